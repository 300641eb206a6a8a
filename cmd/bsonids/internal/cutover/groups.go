package cutover

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Group is collections that are exchanged together, and their copies.
type Group struct {
	Names, Copies []string
	ID            string // of their cutover; empty if the names and the copies tell
}

// Groups returns those collections of each group of steps that are converted into new ones, without those that a cutover
// leaves out.
func Groups(groups [][]plan.Step, without []string) (out []Group) {
	for _, steps := range groups {
		var g Group
		for _, st := range steps {
			if st.Into != "" && !slices.Contains(g.Names, st.Collection) && !slices.Contains(without, st.Collection) {
				g.Names, g.Copies = append(g.Names, st.Collection), append(g.Copies, st.Into)
			}
		}
		if len(g.Names) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// Each calls f for one group after the other, and says after an error which groups are not begun. An
// error that is [failure.ErrIncomplete] does not end it.
func (e *Cutovers) Each(groups []Group, f func(g Group) error) error {
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

// A Verb is what is done with cutovers.
type Verb string

// The verbs of a plan.
const (
	Forward  Verb = "cutover"
	RollBack Verb = "cutover --roll-back"
	Release  Verb = "release"
)

// begun are the states of a cutover in which a verb has something to do.
var begun = map[Verb][]string{
	Forward:  {record.Comparing, record.Fencing, record.Switching, record.Switched, record.Releasing, record.RollingBack, record.RolledBack},
	RollBack: {record.Comparing, record.Fencing, record.Switching, record.Switched, record.RollingBack},
	Release:  {record.Switched, record.Releasing, record.Released},
}

// Waiting returns the groups of a plan for which a verb has something to do. The others are named in a
// notice.
func (e *Cutovers) Waiting(ctx context.Context, groups []Group, verb Verb) ([]Group, error) {
	all, err := patience.Ask(ctx, e.Patience, func() ([]*record.Cutover, error) { return record.Cutovers(ctx, e.db) })
	if err != nil {
		return nil, err
	}
	var out []Group
	for _, g := range groups {
		switch c := record.Last(all, g.Names, g.Copies, e.Conversions); {
		case verb == Forward && (c == nil || len(e.Conversions) == 0), c != nil && slices.Contains(begun[verb], c.State):
			out = append(out, g)
		case c == nil:
			e.Warn("%s: there was no cutover", strings.Join(g.Names, ", "))
		case c.State == record.Released:
			if err := e.released(ctx, c); err != nil {
				e.Warn("%s", e.Explain(err).Text)
			}
		default:
			e.Warn("%s: nothing to do, the cutover is in the state %q", strings.Join(g.Names, ", "), c.State)
		}
	}
	if len(out) == 0 && verb != Forward {
		return nil, failure.Usagef("no collections of the plan wait for this")
	}
	return out, nil
}

// ToPutBack returns the cutovers of copies of a plan that were not rolled back, the last first. Those that were released are named in
// a notice if they are left, and are a usage error otherwise.
func (e *Cutovers) ToPutBack(ctx context.Context, groups []Group) (out []*record.Cutover, err error) {
	var all []*record.Cutover
	err = e.Do(ctx, func() (err error) {
		if all, err = record.Cutovers(ctx, e.db); failure.IsDenied(err) {
			return nil // of a user who may not read the record, no cutover is known
		}
		return err
	})
	for _, g := range slices.Backward(groups) {
		for i := range slices.Backward(g.Names) { // the group may have been several when they were exchanged
			c := record.Last(all, g.Names[i:i+1], g.Copies[i:i+1], e.Conversions)
			if c == nil || c.State == record.RolledBack || slices.Contains(out, c) {
				continue
			}
			switch err := e.released(ctx, c); {
			case err != nil && !e.WithoutReleased:
				return nil, err
			case err != nil:
				e.Warn("%s", e.Explain(err).Text)
				continue
			}
			out = append(out, c)
		}
	}
	return out, err
}
