package migrate

import (
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// notFenced returns a usage error if a cutover that has not ended uses the collection of a task, or its copy.
func (r *Recorded) notFenced(database string, t kinds.Task) error {
	c := record.Using(r.Cutovers, t.Collection, t.Into)
	switch {
	case c == nil:
		return nil
	case c.State == record.Comparing:
		return failure.Usagef("%s.%s is compared by a cutover of %s; finish it with bsonids cutover, or give it up with bsonids cutover --roll-back", database, t.Collection, strings.Join(c.Names(), ", "))
	}
	return failure.Usagef("%s.%s is fenced by a cutover of %s, in the state %q; finish it with bsonids cutover and bsonids release first",
		database, t.Collection, strings.Join(c.Names(), ", "), c.State)
}

// notReleased returns a usage error if a cutover has put the copy that a conversion made in the place of its collection, and was
// released: there is nothing to convert any more.
func (r *Recorded) notReleased(database string, t kinds.Task, conversion string) error {
	_, c := r.Exchange(conversion)
	if c == nil || c.State != record.Released || c.FreedAt == nil {
		return nil
	}
	return failure.Usagef("%s.%s was released at %s UTC: its copy %s is in its place, and the conversion is done", database, t.Collection, c.FreedAt.UTC().Format(time.DateTime), t.Into)
}

// cutOver returns a usage error if a cutover that has not ended uses a collection of the plan, if there is something to decide of a
// group of which one was released, or if all were released: the same with and without --write. It warns of those that were released.
func (p *Application) cutOver() error {
	var last error
	all := p.steps()
	for _, g := range p.plan.Groups() {
		fresh, released := false, ""
		for _, s := range g {
			st := all[slices.IndexFunc(all, func(st *step) bool { return st.conversion == p.plan.Conversion(s.Task) })]
			if err := p.recorded.notFenced(p.plan.Database, st.Task); err != nil {
				return err
			}
			if st.released = p.recorded.notReleased(p.plan.Database, st.Task, st.conversion); st.released != nil {
				last, released = st.released, st.Collection
			}
			fresh = fresh || st.fresh()
		}
		if fresh && released != "" {
			return failure.Usagef("%q: a cutover has put its copy in its place, and was released: make a plan in a new directory for what is left", released)
		}
	}
	if !slices.ContainsFunc(all, func(st *step) bool { return st.released == nil }) {
		return last
	}
	for _, st := range all {
		if st.released != nil {
			p.Warn("%v", st.released)
		}
	}
	return nil
}
