package cli

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// notGuarded returns a usage error if the collection is guarded and a command would write values that
// the guard refuses: values of the subtype, or of any subtype if the command would copy the guard
// with the validator (into). uuid is that of the collection.
func (c *console) notGuarded(ctx context.Context, coll *mongo.Collection, uuid *bson.Binary, subtype byte, into bool) error {
	if err := fenced(ctx, coll.Database(), coll.Name()); err != nil {
		return err
	}
	g, err := record.FindGuard(ctx, coll.Database(), coll.Name(), uuid)
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return nil // without the record, the server refuses the values
	}
	if err != nil || g == nil || g.Stale(uuid) || !into && g.FromSubtype != subtype {
		return err
	}
	why := "the server would refuse the values to write"
	if into {
		why = "the new collection would have the guard of the old one"
	}
	remove := commandLine(append([]string{"bsonids", "guard", "--db", coll.Database().Name(), "--collection", coll.Name(), "--remove", "--write"}, c.serverArgs()...))
	return failure.Usagef("%s.%s is guarded against %s: %s; remove the guard first: %s", coll.Database().Name(), coll.Name(), g.Against(), why, remove)
}
