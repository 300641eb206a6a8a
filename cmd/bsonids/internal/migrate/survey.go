package migrate

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Dropped returns those of the copies that are not there, although no cutover puts them in the places of their
// collections. There may be other collections of their names.
func Dropped(ctx context.Context, db *mongo.Database, conversions []string, copies ...string) ([]string, error) {
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: bson.D{{Key: "$in", Value: copies}}}})
	if err != nil {
		return nil, err
	}
	all, err := record.Cutovers(ctx, db)
	var runs []*record.Run
	if err == nil {
		runs, err = record.Runs(ctx, db)
	}
	if failure.IsDenied(err) { // that is not known
		return nil, nil
	}
	var there []string
	for _, spec := range specs {
		last := &record.Run{}
		for _, r := range runs {
			if r.Into == spec.Name && slices.Contains(conversions, r.Conversion) {
				last = r
			}
		}
		if last.Made(spec.UUID, all) {
			there = append(there, spec.Name)
		}
	}
	for _, c := range all {
		for _, x := range c.Collections {
			if c.State != record.RolledBack && x.MadeBy(conversions) {
				there = append(there, x.New)
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(copies), func(name string) bool { return slices.Contains(there, name) }), err
}
