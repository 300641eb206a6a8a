package migration

import (
	"context"
	"fmt"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Allowed asks the server whether the user may do what a verb that writes and those that come later need. It warns of
// what the user lacks for a later one. If write is set, the error names what the user lacks for the verb; it is a
// [*failure.Error], unless it is that of the context. In a rehearsal, it warns of this, too, and denied is the error that the
// verb would end with.
func (s *Session) Allowed(ctx context.Context, w privilege.Work, write bool, now privilege.Verb, later ...privilege.Verb) (denied, err error) {
	granted, err := privilege.Of(ctx, s.Client)
	if err != nil {
		return nil, err
	}
	lacks := make(map[privilege.Verb]string)
	for _, v := range append(later, now) {
		if text := granted.Lacks(v, w); text != "" {
			lacks[v] = fmt.Sprintf("the user lacks privileges for bsonids %s: %s", v, text)
		}
	}
	if len(lacks) == 0 {
		return nil, nil
	}
	if enforced, err := granted.Enforced(ctx, s.Client.Database(w.Database)); err != nil || !enforced {
		return nil, err
	}
	for _, v := range later {
		if lacks[v] != "" {
			s.Warn("%s", lacks[v])
		}
	}
	switch {
	case lacks[now] == "":
		return nil, nil
	case write:
		return nil, &failure.Error{Kind: failure.Denied, Text: lacks[now]}
	}
	s.Warn("%s", lacks[now])
	return &failure.Error{Kind: failure.Denied, Text: lacks[now]}, nil
}

// Lacks warns of what the user lacks for the verbs with which a plan is carried out.
func (s *Session) Lacks(ctx context.Context, p *plan.Plan) error {
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

// WorkOfCutover returns the collections of a cutover.
func WorkOfCutover(database string, exchanges []record.Exchange) privilege.Work {
	w := privilege.Work{Database: database}
	for _, x := range exchanges {
		w.Copies = append(w.Copies, privilege.Copy{Old: x.Name, New: x.New, Kept: x.Kept})
	}
	return w
}
