package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// plan undoes all conversions of a plan, in the opposite order of the work.
func (o *undoOptions) plan(ctx context.Context, file string) (err error) {
	open := plan.ReadState
	if o.write {
		open = plan.LockState
	}
	s, err := applied(file, o.stateDir, open)
	if err != nil {
		return err
	}
	mode := server.Read
	if o.write {
		mode = server.Write
		defer func() { err = errors.Join(err, s.Close()) }()
	}
	client, err := o.connect(ctx, mode)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.gentle(ctx, client, 1, o.batch, nil)
	o.load.begin(o.console)
	if err := o.logsWhole(ctx, client.Database(s.Plan.Database), s); err != nil {
		return err
	}
	if o.write {
		if err := s.MarkUndone(time.Now()); err != nil {
			return err
		}
	}
	var steps []report.UndoneStep
	var failed error
	incomplete := false
	for _, st := range slices.Backward(s.Plan.Steps()) {
		u, err := o.step(ctx, client, s, st)
		steps = append(steps, u)
		incomplete = incomplete || u.Result.Left > 0 && !o.allowChanged
		if err != nil {
			e := failure.Explain(nameFlag(err), o.connectionString())
			failed = &failure.Error{Kind: e.Kind, Text: quoted(st.Collection) + ": " + e.Text, Err: err}
			break
		}
	}
	if failed != nil && o.write {
		var total int64
		for _, u := range steps {
			total += u.Result.Restored
		}
		o.wayOn = undoneWay(total, failed)
	}
	if o.output.value == formatJSON {
		err = report.PlanUndoneJSON(o.out, s.Plan.Database, o.write, steps)
	} else {
		report.PlanUndone(o.out, s.Plan.Database, o.write, steps)
	}
	switch {
	case failed != nil:
		return failed
	case err == nil && incomplete:
		return failure.ErrIncomplete
	}
	return err
}

// step undoes one conversion of a plan. A conversion into a new collection has nothing to undo.
func (o *undoOptions) step(ctx context.Context, client *mongo.Client, s *plan.State, st plan.Step) (report.UndoneStep, error) {
	of, err := fromFiles(s, st)
	out := report.UndoneStep{Step: of}
	if st.Into != "" {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	path := s.Path(st.UndoLog())
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	one := *o
	one.console = o.child(s.Plan.Database + "." + st.Collection)
	u, err := one.undo(ctx, client, path)
	out.Begun, out.Result = u.begun, u.res
	return out, err
}
