package cursors_test

import (
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

type order struct {
	ID    int `bson:"_id"`
	Total float64
}

// find stands for the Find method of a collection.
func find() *mongo.Cursor {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		panic(err)
	}
	cursor, err := mongo.NewCursorFromDocuments([]any{order{1, 9.5}, order{2, 20}, order{3, 7}}, nil, reg)
	if err != nil {
		panic(err)
	}
	return cursor
}

// findOne stands for the FindOne method of a collection.
func findOne(doc any, err error) *mongo.SingleResult {
	reg, regErr := bsoncodec.NewRegistry(uuidrep.Standard)
	if regErr != nil {
		panic(regErr)
	}
	return mongo.NewSingleResultFromDocument(doc, err, reg)
}

func ExampleOne() {
	o, err := cursors.One[order](findOne(order{1, 9.5}, nil))
	fmt.Println(o, err)

	_, err = cursors.One[order](findOne(bson.D{}, mongo.ErrNoDocuments))
	fmt.Println(errors.Is(err, mongo.ErrNoDocuments))
	// Output:
	// {1 9.5} <nil>
	// true
}

func ExampleAll() {
	orders, err := cursors.All[order](context.Background(), find())
	fmt.Println(orders, err)
	// Output: [{1 9.5} {2 20} {3 7}] <nil>
}

// A loop that ends early closes the cursor.
func ExampleValues() {
	for o, err := range cursors.Values[order](context.Background(), find()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(o.ID, o.Total)
		if o.Total > 10 {
			break
		}
	}
	// Output:
	// 1 9.5
	// 2 20
}

// The loop ends when ctx is done. The token of the last event that was handled is kept, to go on from there.
func ExampleChanges() {
	watch := func(ctx context.Context, coll *mongo.Collection, handle func(order) error) (token bson.Raw, err error) {
		stream, err := coll.Watch(ctx, mongo.Pipeline{})
		if err != nil {
			return nil, err
		}
		type event struct {
			FullDocument order `bson:"fullDocument"`
		}
		for e, err := range cursors.Changes[event](ctx, stream) {
			if err == nil {
				err = handle(e.FullDocument)
			}
			if err != nil {
				return token, err
			}
			token = stream.ResumeToken()
		}
		return token, nil
	}
	_ = watch // change streams need a replica set
}
