package convert

import (
	"context"
	"encoding/hex"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// UUID returns the UUID of a collection in hexadecimal digits, or nil if there are none.
func UUID(digits string) *bson.Binary {
	b, err := hex.DecodeString(digits)
	if err != nil || len(b) == 0 {
		return nil
	}
	return &bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
}

// CollectionWith returns the name of the collection with the UUID, in hexadecimal digits, or "" if
// there is none.
func CollectionWith(ctx context.Context, db *mongo.Database, uuid string) (string, error) {
	b, err := hex.DecodeString(uuid)
	if err != nil {
		return "", err
	}
	want := bson.Binary{Subtype: bson.TypeBinaryUUID, Data: b}
	specs, err := db.ListCollectionSpecifications(ctx, bson.D{{Key: "info.uuid", Value: want}})
	for _, s := range specs {
		if s.UUID != nil && s.UUID.Equal(want) {
			return s.Name, err
		}
	}
	return "", err
}

// uuidOf returns the UUID of a collection in hexadecimal digits, or "" if there is none.
func uuidOf(ctx context.Context, coll *mongo.Collection) (string, error) {
	s, err := server.Specification(ctx, coll)
	if s.UUID == nil {
		return "", err
	}
	return hex.EncodeToString(s.UUID.Data), err
}
