package exchange

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Group is collections that are exchanged together, and their copies.
type Group struct{ Names, Copies []string }

// Groups returns the groups of collections that are copied.
func Groups(groups [][]plan.Work) (out []Group) {
	for _, w := range groups {
		if g := copied(w); len(g.Names) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// copied returns those collections of a group that are converted into new ones.
func copied(group []plan.Work) (g Group) {
	for _, w := range group {
		if into := w.Steps[0].Into; into != "" {
			g.Names, g.Copies = append(g.Names, w.Collection), append(g.Copies, into)
		}
	}
	return g
}

// Each calls f for one group after the other, and says after an error which groups are not begun. An
// error that is [failure.ErrIncomplete] does not end it.
func (e *Exchange) Each(groups []Group, f func(g Group) error) error {
	incomplete := false
	for i, g := range groups {
		err := f(g)
		if errors.Is(err, failure.ErrIncomplete) {
			incomplete = true
			continue
		}
		if err != nil {
			for _, left := range groups[i+1:] {
				e.Warn("not begun: %s", strings.Join(left.Names, ", "))
			}
			return err
		}
	}
	if incomplete {
		return failure.ErrIncomplete
	}
	return nil
}

// Waiting returns the groups of a plan for which something is left to do: those whose last cutover is in
// one of the states, or that have none if none is set. The others are named in a notice.
func (e *Exchange) Waiting(ctx context.Context, groups []Group, none bool, states ...string) ([]Group, error) {
	if !e.Planned {
		return groups, nil // what is wrong with the only group is an error
	}
	var all []*record.Cutover
	err := e.Do(ctx, func() (err error) {
		all, err = record.Cutovers(ctx, e.db, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []Group
	for _, g := range groups {
		state := ""
		for _, c := range all {
			if g.of(c) {
				state = c.State
			}
		}
		switch {
		case state == "" && none, slices.Contains(states, state):
			out = append(out, g)
		case state == "":
			e.Warn("%s: there was no cutover", strings.Join(g.Names, ", "))
		default:
			e.Warn("%s: nothing to do, the cutover is in the state %q", strings.Join(g.Names, ", "), state)
		}
	}
	if len(out) == 0 && !none {
		return nil, failure.Usagef("no collections of the plan wait for this")
	}
	return out, nil
}

// of reports whether the cutover is one of these copies.
func (g Group) of(c *record.Cutover) bool {
	return slices.ContainsFunc(c.Collections, func(x record.Exchange) bool {
		i := slices.Index(g.Names, x.Name)
		return i >= 0 && (len(g.Copies) == 0 || g.Copies[i] == x.New)
	})
}
