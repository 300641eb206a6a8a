package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// arguments checks the arguments of verify: none, or a plan, which describes the conversions instead
// of the flags.
func (o *verifyOptions) arguments(cmd *cobra.Command, args []string) error {
	if err := cobra.MaximumNArgs(1)(cmd, args); err != nil {
		return err
	}
	switch {
	case len(args) == 0 && o.stateDir != "":
		return errors.New("--state-dir requires a plan")
	case len(args) == 0:
		return nil
	case o.stateDir == "":
		return errors.New("a plan requires --state-dir")
	}
	var err error
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"state-dir", "allow-changed", "retry-for", "output", "uri", "uri-file", "quiet", "log-format"}, f.Name) {
			err = fmt.Errorf("--%s cannot be used with a plan, which describes the conversions", f.Name)
		}
	})
	// Without them, the flags that describe a conversion are not required.
	cmd.PreRunE = nil
	_ = cmd.Flags().SetAnnotation("from", cobra.BashCompOneRequiredFlag, []string{"false"}) // the flag exists
	return err
}

// applied returns the plan in the file, and its state in the directory. The error is a usage error if
// the plan is not the one that was applied.
func applied(file, dir string, open func(string) (*plan.State, error)) (*plan.State, error) {
	p, err := readPlan(file)
	if err != nil {
		return nil, err
	}
	s, err := open(dir)
	if err != nil {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
		return nil, failure.Usagef("--state-dir: %v", err)
	}
	if d := plan.Difference(s.Plan, p); d != "" {
		return nil, errors.Join(failure.Usagef("--state-dir %s belongs to another plan than %s: %s", dir, file, d), s.Close())
	}
	return s, nil
}

// plan verifies all conversions of a plan.
func (o *verifyOptions) plan(ctx context.Context, file string) error {
	s, err := applied(file, o.stateDir, plan.ReadState)
	if err != nil {
		return err
	}
	client, err := o.connect(ctx, server.Write)
	if err != nil {
		return err
	}
	defer server.Disconnect(client)
	o.load.begin(o.console)
	proven := true
	var proofs []report.StepProof
	for _, st := range s.Plan.Steps() {
		p, err := o.step(ctx, client, s, st)
		if err != nil {
			e := failure.Explain(nameFlag(err), o.connectionString())
			return &failure.Error{Kind: e.Kind, Text: quoted(st.Collection) + ": " + e.Text, Err: err}
		}
		proven = proven && p.Proven
		proofs = append(proofs, p)
	}
	if o.output.value == formatJSON {
		err = report.PlanProofJSON(o.out, s.Plan.Database, proofs, proven)
	} else {
		report.PlanProof(o.out, s.Plan.Database, proofs, proven)
	}
	if err == nil && !proven {
		err = failure.ErrIncomplete
	}
	return err
}

// step verifies one conversion of a plan.
func (o *verifyOptions) step(ctx context.Context, client *mongo.Client, s *plan.State, st plan.Step) (report.StepProof, error) {
	done, err := fromFiles(s, st)
	out := report.StepProof{Step: done}
	if err != nil {
		return out, err
	}
	if done.Status == report.NotBegun || done.Status == report.WasUndone {
		return out, nil
	}
	v := &verifyOptions{console: o.child(s.Plan.Database + "." + st.Collection), output: o.output, allowChanged: o.allowChanged, load: o.load, state: s.Path(st.State())}
	v.database, v.collection, v.into, v.fields = s.Plan.Database, st.Collection, st.Into, st.Fields
	if st.UndoLog() != "" {
		v.undoLog = s.Path(st.UndoLog())
	}
	if v.from.Kind, err = kinds.Parse(st.From); err != nil {
		return out, err
	}
	if v.to.Kind, err = kinds.Parse(st.To); err != nil {
		return out, err
	}
	p, err := v.prove(ctx, func() (*mongo.Client, error) { return client, nil })
	out.Proven, out.Basis, out.Result = p.proven, p.basis, p.result
	return out, err
}
