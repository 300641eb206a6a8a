// Package past inserts past the source of its ids. // want package:`driver: `
package past

import (
	"context"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/uuidgen"
)

type User struct {
	ID   uuid.UUID `bson:"_id,omitempty"`
	Name string    `bson:"name"`
}

type Note struct {
	Text string `bson:"text"`
}

type Given struct {
	ID uuid.UUID `bson:"_id"`
}

func insert(ctx context.Context, coll *mongo.Collection) {
	users := autoid.Wrap(coll, uuidgen.DefaultV7())
	users.Collection.InsertOne(ctx, User{Name: "Ada"})       // want `this insert goes past the autoid.Collection, whose source makes no _id for it, but the driver an ObjectID: call InsertOne of the autoid.Collection`
	users.Collection.InsertOne(ctx, bson.M{"name": "Ada"})   // want `goes past the autoid.Collection`
	users.Collection.InsertMany(ctx, []any{Note{}, &Note{}}) // want `goes past the autoid.Collection`
	inner := users.Collection
	inner.InsertOne(ctx, bson.D{{Key: "name", Value: "Ada"}}) // want `goes past the autoid.Collection`

	users.InsertOne(ctx, User{Name: "Ada"})
	users.Collection.InsertOne(ctx, bson.M{"_id": uuid.New(), "name": "Ada"})
	users.Collection.InsertOne(ctx, Given{ID: uuid.New()})
	coll.InsertOne(ctx, Note{})
}
