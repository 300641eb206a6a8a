package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// exchanged are collections that are exchanged together, and their copies.
type exchanged struct {
	names, copies []string
}

// groups returns the groups of collections to exchange: the one that the arguments name, or with a plan,
// those that it copies. It sets the database.
func (o *switchFlags) groups(args []string) ([]exchanged, error) {
	if o.database != "" {
		return []exchanged{{names: args}}, o.check(args)
	}
	if len(args) != 1 {
		return nil, failure.Usagef("--db is required, or one plan instead of the names of collections")
	}
	o.file = args[0]
	p, err := readPlan(o.file)
	if err != nil {
		if !strings.ContainsAny(o.file, "./") {
			err = failure.Usagef("%v; to name a collection, give --db", err)
		}
		return nil, err
	}
	if err := mayApply(o.file, p); err != nil {
		return nil, err
	}
	o.database = p.Database
	var out []exchanged
	var all []string
	for _, g := range p.Groups() {
		e := copied(g)
		if len(e.names) > 0 {
			out, all = append(out, e), append(all, e.names...)
		}
	}
	if len(out) == 0 {
		return nil, failure.Usagef("%s converts no collection into a new one: no collection of it has into", o.file)
	}
	return out, o.check(all)
}

// copied returns those collections of a group that are converted into new ones.
func copied(group []plan.Work) (e exchanged) {
	for _, w := range group {
		if into := w.Steps[0].Into; into != "" {
			e.names, e.copies = append(e.names, w.Collection), append(e.copies, into)
		}
	}
	return e
}

// each calls f for one group after the other. After an error, no group is begun.
func (o *switchFlags) each(groups []exchanged, f func(g exchanged) error) error {
	incomplete := false
	for i, g := range groups {
		if i > 0 && o.output.value != formatJSON {
			fmt.Fprintln(o.out)
		}
		err := f(g)
		if errors.Is(err, failure.ErrIncomplete) {
			incomplete = true
			continue
		}
		if err != nil {
			for _, left := range groups[i+1:] {
				o.warn("not begun: %s", strings.Join(left.names, ", "))
			}
			return err
		}
	}
	if incomplete {
		return failure.ErrIncomplete
	}
	return nil
}

// waiting returns the groups of a plan for which something is left to do: those whose last cutover is in
// one of the states, or that have none if none is set. The others are named in a notice.
func (o *switchFlags) waiting(ctx context.Context, db *mongo.Database, groups []exchanged, none bool, states ...string) ([]exchanged, error) {
	if o.file == "" {
		return groups, nil // what is wrong with the only group is an error
	}
	var all []*record.Cutover
	err := o.load.patience.Do(ctx, func() (err error) {
		all, err = record.Cutovers(ctx, db, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []exchanged
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
			o.warn("%s: there was no cutover", strings.Join(g.names, ", "))
		default:
			o.warn("%s: nothing to do, the cutover is in the state %q", strings.Join(g.names, ", "), state)
		}
	}
	if len(out) == 0 && !none {
		return nil, failure.Usagef("no collections of %s wait for this", o.file)
	}
	return out, nil
}

// of reports whether the cutover is one of these copies.
func (g exchanged) of(c *record.Cutover) bool {
	return slices.ContainsFunc(c.Collections, func(x record.Exchange) bool {
		i := slices.Index(g.names, x.Name)
		return i >= 0 && (len(g.copies) == 0 || g.copies[i] == x.New)
	})
}

// namesOrPlan checks the arguments of cutover and release.
func (o *switchFlags) namesOrPlan(cmd *cobra.Command, args []string) error {
	if err := cobra.MinimumNArgs(1)(cmd, args); err != nil {
		return errors.New("name the collections, with --db, or give a plan")
	}
	return nil
}
