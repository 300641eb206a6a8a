package apply

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/protect"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// guards opens the guards of the plan. The error says why a collection cannot be guarded. begun is called
// before the first change.
func (p *Planned) guards(ctx context.Context, s *migration.Session, begun func()) (all []*protect.Guard, err error) {
	seen := make(map[string]bool)
	for _, c := range p.plan.Collections {
		if c.Guard == "" || seen[c.Name] { // all entries of a collection have the same one
			continue
		}
		seen[c.Name] = true
		var conversion rule.Conversion
		for _, st := range p.steps() {
			if st.Collection == c.Name && !st.Listed { // otherwise an earlier step has the field
				conversion = append(conversion, st.options.Conversion...)
			}
		}
		g, err := protect.Open(ctx, s, p.plan.Database, c.Name, c.Guard, conversion, begun)
		if err != nil {
			return nil, &migration.CollectionError{Collection: c.Name, Err: err}
		}
		all = append(all, g)
	}
	return all, nil
}

// raise changes the level of the guards to the one of the plan, after all conversions.
func (r *Result) raise(ctx context.Context, guards []*protect.Guard) error {
	for _, g := range guards {
		now, err := g.Raise(ctx)
		if err != nil {
			return err
		}
		r.Guards = append(r.Guards, now)
		r.Incomplete = r.Incomplete || now.Stays != ""
	}
	return nil
}
