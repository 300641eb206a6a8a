package migrate

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Lacks warns of what the user lacks for the verbs with which a plan is carried out.
func Lacks(ctx context.Context, s *session.Session, p *plan.Plan) error {
	_, err := s.Allowed(ctx, WorkOf(p, p.Steps()), false, privilege.Apply, privilege.Verify, privilege.Cutover, privilege.Release, privilege.Undo)
	return err
}

// WorkOf returns the collections of a plan with the steps.
func WorkOf(p *plan.Plan, steps []plan.Step) privilege.Work {
	w := privilege.Work{Database: p.Database}
	seen := make(map[[2]string]bool)
	for _, st := range steps {
		if at := [2]string{st.Collection, st.Into}; seen[at] {
			continue
		} else if seen[at] = true; st.Into == "" {
			w.InPlace = append(w.InPlace, st.Collection)
			continue
		}
		c := privilege.Copy{Old: st.Collection, New: st.Into, Kept: record.KeptName(st.Collection)}
		for _, name := range p.Accepted() {
			if name == st.Collection {
				c.Kept = ""
			}
		}
		w.Copies = append(w.Copies, c)
	}
	return w
}
