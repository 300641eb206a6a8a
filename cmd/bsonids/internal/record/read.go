package record

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"
)

// collection returns the collection of the record, with the settings that the lock needs. They
// override those of the connection string.
func collection(db *mongo.Database) *mongo.Collection {
	return db.Collection(Name, options.Collection().SetWriteConcern(writeconcern.Majority()).SetReadPreference(readpref.Primary()))
}

// read returns the runs of a collection, sorted by epoch.
func read(ctx context.Context, coll *mongo.Collection, name string) ([]*Run, error) {
	return find[*Run](ctx, coll, bson.D{{Key: "collection", Value: name}}, "epoch")
}

// find returns the documents of the record that a filter selects, without their decisions, in the order of
// the fields.
func find[T any](ctx context.Context, coll *mongo.Collection, filter bson.D, fields ...string) (found []T, err error) {
	return fetch[T](ctx, coll, filter, options.Find().SetProjection(bson.D{{Key: "decisions", Value: 0}}), fields...)
}

// fetch returns the documents of the record that a filter selects, in the order of the fields.
func fetch[T any](ctx context.Context, coll *mongo.Collection, filter bson.D, how *options.FindOptionsBuilder, fields ...string) (found []T, err error) {
	if len(fields) > 0 {
		order := bson.D{}
		for _, f := range fields {
			order = append(order, bson.E{Key: f, Value: 1})
		}
		how.SetSort(order)
	}
	cur, err := coll.Find(ctx, filter, how)
	if err != nil {
		return nil, err
	}
	err = cur.All(ctx, &found)
	return found, err
}

// Now returns the time of the server, with which the times in the record can be compared, or the local time if the server does not report one.
func Now(ctx context.Context, db *mongo.Database) (time.Time, error) {
	var hello struct {
		LocalTime time.Time `bson:"localTime"`
	}
	if err := db.RunCommand(ctx, bson.D{{Key: "hello", Value: 1}}).Decode(&hello); err != nil {
		return time.Time{}, err
	}
	if hello.LocalTime.IsZero() {
		return time.Now().UTC(), nil
	}
	return hello.LocalTime, nil
}
