package scan

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Namespace is a collection of a database.
type Namespace struct{ Database, Collection string }

func (n Namespace) String() string { return n.Database + "." + n.Collection }

// Namespaces returns the collections with these names, sorted. If collections is empty, it returns
// all collections on which the user has a privilege. If databases is empty, it searches all
// databases except those of the server. Views, the collections of the server and the record of
// conversions are returned only if they are named; views are the others. A database or collection that does
// not exist is a usage error.
func Namespaces(ctx context.Context, client *mongo.Client, databases, collections []string) (out, views []Namespace, err error) {
	named := len(databases) > 0
	if !named {
		if databases, err = Databases(ctx, client); err != nil {
			return nil, nil, err
		}
	}
	databases = slices.Compact(slices.Sorted(slices.Values(databases)))
	for _, db := range databases {
		specs, err := client.Database(db).ListCollectionSpecifications(ctx, bson.D{},
			options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
		if err != nil {
			return nil, nil, err
		}
		if len(specs) == 0 && named {
			return nil, nil, failure.Usagef("database %q does not exist, or the user cannot read it", db)
		}
		for _, s := range specs {
			wanted := s.Type != "view" && !strings.HasPrefix(s.Name, "system.") && s.Name != record.Name
			if len(collections) > 0 {
				wanted = slices.Contains(collections, s.Name)
			}
			switch {
			case wanted:
				out = append(out, Namespace{db, s.Name})
			case s.Type == "view":
				views = append(views, Namespace{db, s.Name})
			}
		}
	}
	for _, name := range collections {
		if !slices.ContainsFunc(out, func(n Namespace) bool { return n.Collection == name }) {
			return nil, nil, failure.Usagef("collection %q does not exist in %s", name, strings.Join(databases, ", "))
		}
	}
	slices.SortFunc(out, func(a, b Namespace) int { return strings.Compare(a.String(), b.String()) })
	return out, views, nil
}

// Databases returns the names of the databases on which the user has a privilege, without those of
// the server.
func Databases(ctx context.Context, client *mongo.Client) ([]string, error) {
	names, err := client.ListDatabaseNames(ctx, bson.D{}, options.ListDatabases().SetAuthorizedDatabases(true))
	if err != nil && failure.Explain(err, "").Kind == failure.Failed {
		// The engines of DocumentDB refuse the option.
		names, err = client.ListDatabaseNames(ctx, bson.D{})
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "admin" || n == "config" || n == "local" }), err
}
