// Package verify proves that conversions are complete and lost nothing.
package verify

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Plan verifies all conversions of a plan.
func Plan(ctx context.Context, s *migration.Session, state *plan.State, allowChanged bool) (p report.Proof, err error) {
	p = report.Proof{Database: state.Plan.Database, Proven: true, Steps: []report.StepProof{}}
	for _, st := range state.Steps() {
		of, err := step(ctx, s, state, st, allowChanged)
		if err != nil {
			return p, &migration.CollectionError{Collection: st.Collection, Err: err}
		}
		p.Proven = p.Proven && of.Proven
		p.Steps = append(p.Steps, of)
	}
	return p, s.Unselected(ctx, s.Client.Database(state.Plan.Database), state.Plan.Filters())
}

// step verifies one conversion of a plan. allowChanged accepts documents that other programs changed or deleted since.
func step(ctx context.Context, s *migration.Session, state *plan.State, st plan.Step, allowChanged bool) (out report.StepProof, err error) {
	of := state.Of(st)
	out.Step = migration.StepOf(state, st).Step
	if out.Status == report.NotBegun || out.Status == report.WasUndone {
		return out, nil
	}
	what, err := migration.Describe(state.Plan.Database, st.Task)
	if err != nil {
		return out, err
	}
	f := state.Files(st)
	if err := what.Conversion.Decide(of.Decisions); err != nil {
		return out, failure.Usagef("%s: %v", state.Dir(), err)
	}
	what.Conversion = what.Conversion.Without(state.Plan.LeftSince(st))
	var log *convert.UndoReader // nil for a copy
	if f.UndoLog != "" {
		if log, err = convert.ReadUndoLog(f.UndoLog); err != nil {
			return out, migration.IncompleteLogs("nothing is proven", err)
		}
		defer func() { _ = log.Close() }()
		if of.Undone != "" {
			return out, failure.Usagef("an undo of %q began on %s: there is no conversion to verify", st.Collection, of.Undone)
		}
	}
	db := s.Client.Database(state.Plan.Database)
	coll, namespace := db.Collection(st.Collection), state.Plan.Namespace(st.Collection)
	s = s.Child(namespace)
	var total int64
	var spec *mongo.CollectionSpecification
	expected := migration.LogOf(st.Collection, of)
	old, fresh, exchanged, dropped := st.Collection, st.Into, "", false // the last two are of a cutover
	err = s.Do(ctx, func() (err error) {
		if log == nil {
			if old, fresh, exchanged, dropped, err = pair(ctx, db, st, of.Conversion); err != nil || dropped {
				return err
			}
		}
		if exchanged == record.Released {
			there, err := db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: old}})
			if dropped = len(there) == 0; err != nil || dropped {
				return err
			}
		}
		if spec, err = server.FindCollection(ctx, db.Collection(old)); err != nil {
			return err
		}
		if log == nil {
			_, err = server.FindCollection(ctx, db.Collection(fresh))
		} else if expected, err = migration.LogOf(st.Collection, of).InRecord(ctx, db); err == nil {
			if err = log.Covers(expected.ID, expected.Size); err != nil {
				err = migration.IncompleteLogs("nothing is proven", err)
			}
		}
		if err != nil {
			return err
		}
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return out, err
	}
	if dropped {
		s.Warn("%s, the old collection, was dropped after the cutover: there is nothing to compare with", old)
		return out, nil
	}
	bar := s.Progress(total, "verifying", namespace)
	var v convert.Verified
	if log == nil {
		out.Basis = report.RestsOnSource
		v, err = convert.VerifyInto(ctx, db.Collection(old), db.Collection(fresh), what.Conversion, s.Patience, bar.Add)
	} else {
		out.Basis = report.RestsOnUndoLog
		var others []string // the logs of conversions of values that this one has listed
		for _, later := range state.Later(st) {
			others = append(others, state.Files(later).UndoLog)
		}
		v, err = (&convert.Verification{Selection: what.Selection, UUID: spec.UUID, Undo: log, Later: others, Listed: st.Listed,
			Patience: s.Patience, Progress: bar.Add}).Verify(ctx, coll)
	}
	bar.Done()
	switch {
	case err != nil:
		return out, err
	case log != nil && v.Gone > 0 && expected.Replaced(spec):
		return out, migration.ReplacedError(namespace)
	case what.Query != nil && v.Read == 0 && v.Proven == 0:
		return out, failure.Usagef("%s: no document matches the filter", namespace)
	}
	if exchanged == record.Releasing || exchanged == record.Released {
		v = since(v)
	}
	finished := of.Done || exchanged != "" // the cutover has brought the copy up to date
	v.Finished = &finished
	out.Result, out.Proven = v, v.Holds(allowChanged)
	// A user who may read everything may lack the privilege to write the record. The proof holds
	// without it.
	_ = record.MarkVerified(ctx, db, record.Run{Task: st.Task}, out.Proven, s.Version)
	return out, nil
}

// pair returns the names of the source and of the copy, and the state of the cutover that has put the copy in
// the place of its source, if one has. The source was dropped if another cutover has begun since, which puts its own
// old collection in that place.
func pair(ctx context.Context, db *mongo.Database, st plan.Step, conversion string) (old, fresh, state string, dropped bool, err error) {
	all, err := record.Cutovers(ctx, db, false)
	if migration.Denied(err) {
		err = nil
	}
	of := record.Last(all, []string{st.Collection}, []string{st.Into}, []string{conversion})
	if err != nil || of == nil {
		return st.Collection, st.Into, "", false, err
	}
	switch of.State {
	case record.Switching, record.RollingBack:
		return "", "", "", false, failure.Usagef("a cutover of %s is in the state %q: finish it before the proof", strings.Join(of.Names(), ", "), of.State)
	case record.Switched, record.Releasing, record.Released:
		for _, x := range of.Collections {
			if x.Name == st.Collection {
				return x.Kept, x.Name, of.State, record.Last(all, []string{x.Name}, nil, nil) != of, nil
			}
		}
	}
	return st.Collection, st.Into, "", false, nil
}

// since is the proof beside an old collection that was put away, after services have written to the new one:
// what differs may have changed since.
func since(v convert.Verified) convert.Verified {
	v.Changed, v.Gone = v.Wrong+v.Extra, v.Missing
	v.Wrong, v.Extra, v.Missing = 0, 0, 0
	for i := range v.Skips {
		s := &v.Skips[i]
		switch s.Reason {
		case mirror.Missing:
			s.Reason = "the old collection has it, and the new one does not: it was deleted since"
		case mirror.NoSource:
			s.Reason = "the new collection has it, and the old one does not: it was inserted since"
		default:
			s.Reason = "it differs from the document of the old collection: it was changed since"
		}
	}
	return v
}
