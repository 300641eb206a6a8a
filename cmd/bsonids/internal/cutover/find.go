package cutover

import (
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// collections returns the specifications of all collections by name.
func (e *Cutovers) collections(ctx context.Context) (map[string]*mongo.CollectionSpecification, error) {
	all, err := patience.Ask(ctx, e.Patience, func() ([]mongo.CollectionSpecification, error) {
		return e.db.ListCollectionSpecifications(ctx, bson.D{})
	})
	specs := make(map[string]*mongo.CollectionSpecification)
	for i := range all {
		specs[all[i].Name] = &all[i]
	}
	return specs, err
}

// exchanges returns how the collections are to be exchanged, and their conversions. The error is a
// usage error if a collection cannot be exchanged.
func (e *Cutovers) exchanges(ctx context.Context, g Group) ([]record.Exchange, map[string]rule.Conversion, error) {
	specs, err := e.collections(ctx)
	if err != nil {
		return nil, nil, err
	}
	var out []record.Exchange
	conversions := make(map[string]rule.Conversion)
	used := make(map[string]bool)
	for i, name := range g.Names {
		run, err := patience.Ask(ctx, e.Patience, func() (*record.Run, error) { return e.copyOf(ctx, name, g.Copies[i], specs) })
		if err != nil {
			return nil, nil, err
		}
		conv, err := patience.Ask(ctx, e.Patience, func() (rule.Conversion, error) { return e.conversion(ctx, run.ID) })
		if err != nil {
			return nil, nil, err
		}
		x := record.Exchange{Name: name, New: run.Into, Kept: record.KeptName(name), Run: run.ID, Maker: run.Conversion}
		if _, ok := specs[x.Kept]; ok || used[x.Kept] {
			return nil, nil, failure.Usagef("the collection %s, the name under which %s would be kept, exists already; drop or rename it", x.Kept, name)
		}
		if n := len(e.db.Name()) + 1 + len(x.Kept); n > 255 {
			return nil, nil, failure.Usagef("%s, the name under which %s would be kept, is too long: a name has at most 255 bytes with that of the database", x.Kept, name)
		}
		used[x.Name], used[x.New], used[x.Kept] = true, true, true
		old, fresh := specs[name], specs[x.New]
		if fresh.UUID == nil {
			e.Warn("the server gives no UUIDs of collections: nothing tells whether %s.%s is the copy of %s that was made, or another collection of its name, which would be changed and put in its place", e.db.Name(), x.New, name)
		}
		x.OldID, x.NewID, x.OldHad, x.NewHad = old.UUID, fresh.UUID, server.SettingsOf(old), server.SettingsOf(fresh)
		out, conversions[name] = append(out, x), conv
	}
	if err := e.allowed(ctx, out, privilege.Cutover, privilege.Release); err != nil {
		return nil, nil, err
	}
	for i := range out {
		x := &out[i]
		if err := e.mayExchange(ctx, x, specs[x.Name], specs[x.New]); err != nil {
			return nil, nil, err
		}
		if !x.OldHad.Equal(x.NewHad) {
			e.Warn("%s has %s; %s has other settings, which it keeps after the release: %s", x.Name, x.OldHad, x.New, x.NewHad)
		}
	}
	return out, conversions, nil
}

// allowed returns an error that names what the user lacks to exchange the collections, or notes it in a rehearsal.
func (e *Cutovers) allowed(ctx context.Context, collections []record.Exchange, now privilege.Verb, later ...privilege.Verb) (err error) {
	e.denied, err = e.Allowed(ctx, workOf(e.Database, collections), e.Write, now, later...)
	return err
}

// copyOf returns the run that made the copy of a collection.
func (e *Cutovers) copyOf(ctx context.Context, name, into string, specs map[string]*mongo.CollectionSpecification) (*record.Run, error) {
	spec, fresh := specs[name], specs[into]
	switch {
	case spec == nil:
		return nil, failure.Usagef("collection %s.%s does not exist", e.db.Name(), name)
	case spec.Type == "view" || spec.Type == "timeseries":
		return nil, failure.Usagef("cannot exchange %s.%s, because it is a %s", e.db.Name(), name, spec.Type)
	}
	runs, err := record.Copies(ctx, e.db, name)
	if err != nil {
		return nil, err
	}
	earlier, err := record.Cutovers(ctx, e.db)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(runs, func(r *record.Run) bool { return r.Into == into && isOfCollection(r, spec, earlier) })
	if i < 0 || fresh == nil {
		return nil, failure.Usagef("%s.%s has no copy %s according to %s; make it with bsonids apply", e.db.Name(), name, into, record.Name)
	}
	r := runs[i]
	if !r.Made(fresh.UUID, earlier) {
		return nil, failure.Usagef("%s.%s is another collection than the copy of %s, which was dropped or renamed: give that its name back, or rename this one and make the copy again with bsonids apply", e.db.Name(), into, name)
	}
	if r.Outcome != record.Done {
		why := "stopped: " + r.Reason
		if r.Ended == nil {
			why = "has not recorded its end"
		}
		return nil, failure.Usagef("the copy %s of %s is not finished: %s %s; continue it with the same command", into, name, r, why)
	}
	if skipped := r.Progress.Skipped; skipped > 0 && !slices.Contains(e.Skipped, name) {
		return nil, failure.Usagef("the conversion of %s into %s left values in %d documents as they are; see its skip list, and give --with-skipped %s to put the copy in place nevertheless", name, into, skipped, name)
	}
	return r, nil
}

// isOfCollection reports whether the run read the collection, as opposed to another one of the name. A
// server may have changed its UUID in a cutover that was rolled back.
func isOfCollection(r *record.Run, spec *mongo.CollectionSpecification, earlier []*record.Cutover) bool {
	if r.UUID == nil || spec.UUID == nil || r.UUID.Equal(*spec.UUID) {
		return true
	}
	return slices.ContainsFunc(earlier, func(c *record.Cutover) bool {
		return c.State == record.RolledBack && slices.ContainsFunc(c.Collections, func(x record.Exchange) bool {
			return x.Run == r.ID && x.OldID != nil && x.OldID.Equal(*spec.UUID)
		})
	})
}

// conversions returns the conversions of a cutover that is under way.
func (e *Cutovers) conversions(ctx context.Context, c *record.Cutover) (map[string]rule.Conversion, error) {
	out := make(map[string]rule.Conversion)
	for _, x := range c.Collections {
		conv, err := patience.Ask(ctx, e.Patience, func() (rule.Conversion, error) { return e.conversion(ctx, x.Run) })
		if err != nil {
			return nil, fmt.Errorf("reading the conversion of %s from %s: %w", x.Name, record.Name, err)
		}
		out[x.Name] = conv
	}
	return out, nil
}

// conversion returns the conversion of a run, with its decisions.
func (e *Cutovers) conversion(ctx context.Context, run string) (rule.Conversion, error) {
	r, err := record.RunOf(ctx, e.db, run)
	if err != nil {
		return nil, err
	}
	c, err := rule.Compile(r.Pairs)
	if err == nil {
		err = c.Decide(r.Decisions)
	}
	if err != nil {
		return nil, fmt.Errorf("the document %s of %s: %w", run, record.Name, err)
	}
	return c, nil
}

// workOf returns the collections of a cutover.
func workOf(database string, exchanges []record.Exchange) privilege.Work {
	w := privilege.Work{Database: database}
	for _, x := range exchanges {
		w.Copies = append(w.Copies, privilege.Copy{Old: x.Name, New: x.New, Kept: x.Kept})
	}
	return w
}
