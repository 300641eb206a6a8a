// Package verify proves that conversions are complete and lost nothing.
package verify

import (
	"cmp"
	"context"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Options describe the conversion to verify.
type Options struct {
	migration.Described
	UndoLog, State string // paths; may be empty
	SkipList       string // path; empty for the one in the state
	// Later are the undo logs of conversions of values that this one has listed, and Listed is set if this is
	// one.
	Later        []string
	Listed       bool
	AllowChanged bool // documents that other programs changed or deleted since are accepted
}

// Proof is the result of a verification.
type Proof struct {
	About  report.Conversion
	Result convert.Verified
	Basis  report.Basis
	Proven bool
}

// Files are the files of a conversion that is verified. The caller must close them.
type Files struct {
	Options
	log   *convert.UndoReader // nil if there is none
	state *convert.State      // nil if there is none
}

// Open reads the files. The error is a usage error if they are not those of the conversion.
func Open(o Options) (_ *Files, err error) {
	f := &Files{Options: o}
	if f.Conversion.SameSubtype() && f.UndoLog == "" && f.ID.Into == "" {
		return nil, failure.Usagef("%s: --undo-log is required", f.Conversion.Alike())
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if f.UndoLog != "" {
		if f.log, err = convert.ReadUndoLog(f.UndoLog); err != nil {
			return nil, migration.IncompleteLogs(migration.Nameless(err), "nothing is proven", err)
		}
		if m := f.log.Undone(); m != nil {
			return nil, failure.Usagef("--undo-log %s: %s; there is no conversion to verify", f.UndoLog, m)
		}
		f.ID.Part = f.log.Identity.Part
		if err := migration.IsOf("--undo-log "+f.UndoLog, f.log.Identity, f.ID); err != nil {
			return nil, err
		}
	}
	if f.State != "" {
		s, err := convert.ReadState(f.State)
		if err != nil {
			return nil, &failure.Error{Kind: failure.Usage, Text: err.Error(), Err: err}
		}
		if f.log == nil && f.ID.Into == "" {
			f.ID.Part = s.Identity.Part
		}
		if err := migration.IsOf("--state "+f.State, s.Identity, f.ID); err != nil {
			return nil, err
		}
		if s.Decision != nil {
			f.Conversion.Judge = s.Decision.Judge(f.Conversion.From.Order)
		}
		f.state = &s
	}
	if f.Part, err = convert.ParsePart(f.ID.Part); err != nil {
		return nil, failure.Usagef("the part in the files is invalid: %v", err)
	}
	return f, nil
}

// Close closes the files.
func (f *Files) Close() {
	if f.log != nil {
		_ = f.log.Close()
	}
}

// Prove verifies the conversion.
func (f *Files) Prove(ctx context.Context, s *migration.Session) (p Proof, err error) {
	id := f.ID
	db := s.Client.Database(id.Database)
	coll := db.Collection(id.Collection)
	namespace := id.Database + "." + id.Collection
	s.About(namespace)
	var total int64
	var spec *mongo.CollectionSpecification
	var expected migration.Log
	if f.state != nil {
		expected = migration.LogOf(*f.state)
	}
	err = s.Do(ctx, func() (err error) {
		if spec, err = f.find(ctx, db); err != nil {
			return err
		}
		switch {
		case f.log != nil:
			expected, err = f.covered(ctx, db)
		case f.state == nil && id.Into == "":
			expected, err = migration.LogOfLast(ctx, db, id)
		}
		if err != nil {
			return err
		}
		if f.state == nil || f.state.Decision == nil { // a decision had values of each field, which may be gone since
			if err := migration.Matching(ctx, coll, f.Conversion); err != nil {
				return err
			}
		}
		total, err = coll.EstimatedDocumentCount(ctx)
		return err
	})
	if err != nil {
		return p, err
	}
	bar := s.Progress(total, "verifying", namespace)
	var v convert.Verified
	basis := report.RestsOnSubtypes
	if id.Into != "" {
		basis = report.RestsOnSource
		v, err = convert.VerifyInto(ctx, coll, db.Collection(id.Into), f.Conversion, f.Part, s.Patience, bar.Add)
	} else {
		if f.log != nil {
			basis = report.RestsOnUndoLog
		}
		of := convert.Verification{Conversion: f.Conversion, Part: f.Part, Query: f.Query, UUID: spec.UUID, Undo: f.log, Later: f.Later, Listed: f.Listed, Patience: s.Patience, Progress: bar.Add}
		if f.state != nil {
			of.SkipList = cmp.Or(f.SkipList, f.state.SkipList)
		}
		v, err = of.Verify(ctx, coll)
	}
	bar.Done()
	switch {
	case err != nil:
		return p, err
	case id.Into == "" && (f.log == nil || v.Gone > 0) && expected.Replaced(spec):
		return p, migration.ReplacedError(namespace)
	case f.Query != nil && f.Part.Whole() && v.Read == 0 && v.Proven == 0:
		return p, failure.Usagef("%s: no document matches the filter", namespace)
	}
	if f.state != nil {
		finished := f.state.Complete()
		v.Finished = &finished
	}
	proven := v.Holds(f.AllowChanged)
	// A user who may read everything may lack the privilege to write the record. The proof holds
	// without it.
	_ = record.MarkVerified(ctx, db, record.Run{Collection: id.Collection, From: id.From, To: id.To, Into: id.Into, Fields: id.Fields, Query: id.Query, Part: id.Part}, proven, s.Version)
	return Proof{report.Conversion{Identity: id, From: f.Conversion.From, To: f.Conversion.To}, v, basis, proven}, nil
}

// find finds the collections.
func (f *Files) find(ctx context.Context, db *mongo.Database) (*mongo.CollectionSpecification, error) {
	spec, err := server.FindCollection(ctx, db.Collection(f.ID.Collection))
	if err != nil || f.ID.Into == "" {
		return spec, err
	}
	if _, err = server.FindCollection(ctx, db.Collection(f.ID.Into)); err != nil || f.state != nil {
		return spec, err
	}
	// The copy has the values that the decision left unchanged.
	var d decide.Decision
	found, err := record.Decision(ctx, db, record.Run{Collection: f.ID.Collection, UUID: spec.UUID, From: f.ID.From, To: f.ID.To, Fields: f.ID.Fields, Query: f.ID.Query}, &d)
	if migration.Denied(err) {
		return spec, nil
	}
	if err == nil && found {
		f.Conversion.Judge = d.Judge(f.Conversion.From.Order)
	}
	return spec, err
}

// covered returns what is known of the undo log, and an error if it lacks entries that were written.
func (f *Files) covered(ctx context.Context, db *mongo.Database) (migration.Log, error) {
	l, err := migration.LogBehind(f.log, f.state).InRecord(ctx, db)
	if err == nil {
		if err = f.log.Covers(l.ID, l.Size); err != nil {
			err = migration.IncompleteLogs(migration.Nameless(err), "nothing is proven", err)
		}
	}
	return l, err
}

// Plan verifies all conversions of a plan.
func Plan(ctx context.Context, s *migration.Session, state *plan.State, allowChanged bool) (proofs []report.StepProof, proven bool, err error) {
	proven = true
	for _, st := range state.Steps() {
		p, err := step(ctx, s, state, st, allowChanged)
		if err != nil {
			return nil, false, &migration.CollectionError{Collection: st.Collection, Err: err}
		}
		proven = proven && p.Proven
		proofs = append(proofs, p)
	}
	return proofs, proven, s.Unselected(ctx, s.Client.Database(state.Plan.Database), state.Plan.Filters())
}

// step verifies one conversion of a plan.
func step(ctx context.Context, s *migration.Session, state *plan.State, st plan.Step, allowChanged bool) (report.StepProof, error) {
	done, err := migration.StepOf(state, st)
	out := report.StepProof{Step: done}
	if err != nil || done.Status == report.NotBegun || done.Status == report.WasUndone {
		return out, err
	}
	d, err := migration.Describe(migration.IdentityOf(state.Plan.Database, st))
	if err != nil {
		return out, err
	}
	of := state.Files(st)
	o := Options{Described: d, State: of.State, UndoLog: of.UndoLog, SkipList: of.SkipList, AllowChanged: allowChanged, Listed: st.Listed}
	for _, later := range state.Later(st) {
		o.Later = append(o.Later, state.Files(later).UndoLog)
	}
	for _, other := range state.Steps() {
		if st.Beside(other) {
			o.Later = append(o.Later, state.Files(other).UndoLog)
		}
	}
	f, err := Open(o)
	if err != nil {
		return out, err
	}
	defer f.Close()
	p, err := f.Prove(ctx, s.Child(state.Plan.Database+"."+st.Collection))
	out.Proven, out.Basis, out.Result = p.Proven, p.Basis, p.Result
	return out, err
}
