package apply

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// share takes over the decisions of other parts of the division about steps of a part. A part records its decision,
// which is about all documents, before it changes a value: later, the values that are left may tell something else.
func (p *Planned) share(ctx context.Context) error {
	for _, st := range p.steps() {
		if st.Part == "" || !st.fresh || st.Listed || st.shared != nil {
			continue
		}
		err := p.Do(ctx, func() error {
			spec, err := server.FindCollection(ctx, p.db.Collection(st.Collection))
			if err != nil {
				return err
			}
			if spec.UUID != nil && !p.isAbout(st.Entry(), hex.EncodeToString(spec.UUID.Data)) {
				return nil // the survey tells
			}
			st.shared, err = record.Shared(ctx, p.db, record.Run{Task: st.Task, UUID: spec.UUID, Division: p.plan.Division(st.Collection)})
			if !p.Write && migration.Denied(err) {
				err = nil
			}
			return err
		})
		if err != nil {
			return &migration.CollectionError{Collection: st.Collection, Err: migration.OfRecord(err)}
		}
	}
	return nil
}

// agree takes over the decision of another part that began its run after the survey of this one. The record lets one
// run begin after the other.
func (st *step) agree(ctx context.Context, run *record.Run) error {
	if run.Division == "" || run.Decisions == nil || st.state.Begun() {
		return nil
	}
	shared, err := record.Shared(ctx, st.of.db, *run)
	if err != nil || shared == nil {
		return err
	}
	run.Decisions, st.state.Decisions = shared, shared
	return st.state.Save()
}

// isAbout reports whether the entry of the plan is about the collection with the UUID, or does not tell.
func (p *Planned) isAbout(e plan.Entry, uuid string) bool {
	return !slices.ContainsFunc(p.plan.Collections, func(c plan.Collection) bool { return c.Entry() == e && c.UUID != "" && c.UUID != uuid })
}

// dry returns the number of values that a step would convert. The survey counts those of all parts.
func (st *step) dry(ctx context.Context, d []decide.Decision) (values int64, err error) {
	switch {
	case st.Listed:
		was, list := st.earlier()
		err = convert.EachListed(list, st.of.plan.Namespace(st.Collection), was.Listed, st.what.Conversion, func([16]byte) { values++ })
		return values, migration.FileError(err)
	case st.Part == "":
		for _, of := range d {
			for _, f := range of.Fields {
				values += f.Values
			}
		}
		return values, nil
	}
	of := st.what.Selection
	of.Conversion = slices.Clone(of.Conversion)
	if err = of.Conversion.Decide(d); err == nil {
		values, err = of.Expected(ctx, st.of.db.Collection(st.Collection), st.of.Patience, st.Into != "")
	}
	if err != nil {
		err = &migration.CollectionError{Collection: st.Collection, Err: err}
	}
	return values, err
}
