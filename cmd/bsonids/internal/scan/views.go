package scan

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Views returns the views in the databases of the namespaces, without those in namespaces.
func Views(ctx context.Context, client *mongo.Client, namespaces []Namespace) ([]Namespace, error) {
	var databases []string
	for _, n := range namespaces {
		databases = append(databases, n.Database)
	}
	slices.Sort(databases)
	var out []Namespace
	for _, db := range slices.Compact(databases) {
		specs, err := client.Database(db).ListCollectionSpecifications(ctx, bson.D{{Key: "type", Value: "view"}},
			options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
		if err != nil {
			return nil, err
		}
		for _, s := range specs {
			// Some servers ignore the filter.
			if n := (Namespace{db, s.Name}); s.Type == "view" && !slices.Contains(namespaces, n) {
				out = append(out, n)
			}
		}
	}
	return out, nil
}
