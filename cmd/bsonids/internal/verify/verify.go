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

// conversion is one that is verified, with its files.
type conversion struct {
	migration.Described
	plan.Files // UndoLog is empty for a copy
	// later are the undo logs of conversions of values that this one has listed, or that are beside it, and listed
	// is set if this is one of listed values.
	later        []string
	listed       bool
	allowChanged bool // documents that other programs changed or deleted since are accepted

	log   *convert.UndoReader // nil for a copy
	state convert.State
}

// open reads the files. The error is a usage error if they are not those of the conversion.
func (c *conversion) open() (err error) {
	if c.UndoLog != "" {
		if c.log, err = convert.ReadUndoLog(c.UndoLog); err != nil {
			return migration.IncompleteLogs(migration.Nameless(err), "nothing is proven", err)
		}
		if m := c.log.Undone(); m != nil {
			return failure.Usagef("the undo log %s: %s; there is no conversion to verify", c.UndoLog, m)
		}
		if err := migration.IsOf("the undo log "+c.UndoLog, c.log.Identity, c.ID); err != nil {
			return err
		}
	}
	if c.state, err = convert.ReadState(c.State); err != nil {
		return &failure.Error{Kind: failure.Usage, Text: err.Error(), Err: err}
	}
	if err := migration.IsOf("the state file "+c.State, c.state.Identity, c.ID); err != nil {
		return err
	}
	if err := c.Conversion.Decide(c.state.Decisions); err != nil {
		return failure.Usagef("the state file %s: %v", c.State, err)
	}
	return nil
}

// close closes the files.
func (c *conversion) close() {
	if c.log != nil {
		_ = c.log.Close()
	}
}

// prove verifies the conversion.
func (c *conversion) prove(ctx context.Context, s *migration.Session, out *report.StepProof) error {
	id := c.ID
	db := s.Client.Database(id.Database)
	coll := db.Collection(id.Collection)
	namespace := id.Database + "." + id.Collection
	s.About(namespace)
	var total int64
	var spec *mongo.CollectionSpecification
	expected := migration.LogOf(c.state)
	old, fresh, state, dropped := id.Collection, id.Into, "", false // the last two are of a cutover
	err := s.Do(ctx, func() (err error) {
		if c.log == nil {
			if old, fresh, state, dropped, err = c.pair(ctx, db); err != nil || dropped {
				return err
			}
		}
		if state == record.Released {
			there, err := db.ListCollectionNames(ctx, bson.D{{Key: "name", Value: old}})
			if dropped = len(there) == 0; err != nil || dropped {
				return err
			}
		}
		if spec, err = server.FindCollection(ctx, db.Collection(old)); err != nil {
			return err
		}
		if c.log == nil {
			_, err = server.FindCollection(ctx, db.Collection(fresh))
		} else {
			expected, err = c.covered(ctx, db)
		}
		if err != nil {
			return err
		}
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return err
	}
	if dropped {
		s.Warn("%s, the old collection, was dropped after the cutover: there is nothing to compare with", old)
		return nil
	}
	bar := s.Progress(total, "verifying", namespace)
	var v convert.Verified
	out.Basis = report.RestsOnSource
	if c.log == nil {
		v, err = convert.VerifyInto(ctx, db.Collection(old), db.Collection(fresh), c.Conversion, c.Part, s.Patience, bar.Add)
	} else {
		out.Basis = report.RestsOnUndoLog
		of := &convert.Verification{Conversion: c.Conversion, Part: c.Part, Query: c.Query, UUID: spec.UUID, Undo: c.log, Later: c.later, Listed: c.listed,
			SkipList: c.SkipList, Patience: s.Patience, Progress: bar.Add}
		v, err = of.Verify(ctx, coll)
	}
	bar.Done()
	switch {
	case err != nil:
		return err
	case id.Into == "" && v.Gone > 0 && expected.Replaced(spec):
		return migration.ReplacedError(namespace)
	case c.Query != nil && c.Part.Whole() && v.Read == 0 && v.Proven == 0:
		return failure.Usagef("%s: no document matches the filter", namespace)
	}
	if state == record.Releasing || state == record.Released {
		v = since(v)
	}
	finished := c.state.Complete() || state != "" // the cutover has brought the copy up to date
	v.Finished = &finished
	out.Result, out.Proven = v, v.Holds(c.allowChanged)
	// A user who may read everything may lack the privilege to write the record. The proof holds
	// without it.
	_ = record.MarkVerified(ctx, db, record.Run{Collection: id.Collection, Pairs: id.Pairs, Into: id.Into, Query: id.Query, Part: id.Part}, out.Proven, s.Version)
	return nil
}

// pair returns the names of the source and of the copy, and the state of the cutover that has put the copy in
// the place of its source, if one has. The source was dropped if another cutover has begun since, which puts its own
// old collection in that place.
func (c *conversion) pair(ctx context.Context, db *mongo.Database) (old, fresh, state string, dropped bool, err error) {
	all, err := record.Cutovers(ctx, db, false)
	if migration.Denied(err) {
		err = nil
	}
	of := record.Last(all, []string{c.ID.Collection}, []string{c.ID.Into}, []string{c.state.Conversion})
	if err != nil || of == nil {
		return c.ID.Collection, c.ID.Into, "", false, err
	}
	switch of.State {
	case record.Switching, record.RollingBack, record.Undoing:
		return "", "", "", false, failure.Usagef("a cutover of %s is in the state %q: finish it before the proof", strings.Join(of.Names(), ", "), of.State)
	case record.Switched, record.Releasing, record.Released:
		for _, x := range of.Collections {
			if x.Name == c.ID.Collection {
				return x.Kept, x.Name, of.State, record.Last(all, []string{x.Name}, nil, nil) != of, nil
			}
		}
	}
	return c.ID.Collection, c.ID.Into, "", false, nil
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

// covered returns what is known of the undo log, and an error if it lacks entries that were written.
func (c *conversion) covered(ctx context.Context, db *mongo.Database) (migration.Log, error) {
	l, err := migration.LogOf(c.state).InRecord(ctx, db)
	if err == nil {
		if err = c.log.Covers(l.ID, l.Size); err != nil {
			err = migration.IncompleteLogs(migration.Nameless(err), "nothing is proven", err)
		}
	}
	return l, err
}

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

// step verifies one conversion of a plan.
func step(ctx context.Context, s *migration.Session, state *plan.State, st plan.Step, allowChanged bool) (report.StepProof, error) {
	done, err := migration.StepOf(state, st)
	out := report.StepProof{Step: done.Step}
	if err != nil || done.Status == report.NotBegun || done.Status == report.WasUndone {
		return out, err
	}
	d, err := migration.Describe(migration.IdentityOf(state.Plan.Database, st))
	if err != nil {
		return out, err
	}
	c := &conversion{Described: d, Files: state.Files(st), listed: st.Listed, allowChanged: allowChanged}
	for _, later := range state.Later(st) {
		c.later = append(c.later, state.Files(later).UndoLog)
	}
	for _, other := range state.Steps() {
		if st.Beside(other) {
			c.later = append(c.later, state.Files(other).UndoLog)
		}
	}
	defer c.close()
	if err := c.open(); err != nil {
		return out, err
	}
	err = c.prove(ctx, s.Child(state.Plan.Database+"."+st.Collection), &out)
	return out, err
}
