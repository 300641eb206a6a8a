package record

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// named is a collection by its name and its UUID, which is nil if it is not known.
type named struct {
	name string
	uuid *bson.Binary
}

// is reports whether both are the same collection, which may have been renamed.
func (n named) is(o named) bool {
	if n.uuid == nil || o.uuid == nil {
		return n.name == o.name
	}
	return n.uuid.Equal(*o.uuid)
}

// history returns the conversions that have made values which a collection may have, and their undos, in the order in which
// they began, without their decisions. The collection may have had another name, or may be the copy of another one that
// was converted before, whether a cutover or a person has put it in place.
func history(ctx context.Context, db *mongo.Database, name string, uuid *bson.Binary) ([]*Run, error) {
	cutovers, err := Cutovers(ctx, db)
	if err != nil {
		return nil, err
	}
	runs, err := Runs(ctx, db)
	return Behind(name, uuid, runs, cutovers), err
}

// Behind returns those of the runs that have made values of the collection with the name and the UUID, which is nil if it is
// not known, and of those from which it was copied.
func Behind(name string, uuid *bson.Binary, runs []*Run, cutovers []*Cutover) []*Run {
	of := []named{{name, uuid}}
	has := make(map[*Run]bool)
	add := func(n named) {
		if !slices.ContainsFunc(of, func(o named) bool { return o.name == n.name && o.is(n) }) {
			of = append(of, n)
		}
	}
	for i := 0; i < len(of); i++ {
		n := of[i]
		makers, sources := made(n, cutovers)
		for _, r := range runs {
			source := named{r.Collection, r.UUID}
			switch {
			case r.Into == "" && n.is(source):
				has[r] = true
			case r.Into != "" && (n.is(named{r.Into, r.IntoUUID}) || slices.Contains(makers, r.Conversion)):
				has[r] = true
				add(source)
			case slices.Contains(sources, r.Conversion):
				add(source)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(runs), func(r *Run) bool { return !has[r] })
}

// made returns the conversions that have made a collection which a cutover has renamed, and those that have read one: on
// some servers, a rename changes the UUID.
func made(n named, cutovers []*Cutover) (makers, sources []string) {
	for _, c := range cutovers {
		for _, x := range c.Collections {
			switch {
			case c.State == Released && n.is(named{x.Name, x.NewID}), c.State == RolledBack && n.is(named{x.New, x.NewID}):
				makers = append(makers, x.Maker)
			case c.State == RolledBack && n.is(named{x.Name, x.OldID}), c.State == Released && n.is(named{x.Kept, x.KeptID}):
				sources = append(sources, x.Maker)
			}
		}
	}
	return makers, sources
}
