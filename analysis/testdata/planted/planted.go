// Package planted has ten mistakes. // want package:`driver: `
package planted

import (
	"context"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/bson/bsontype" // want `version 1 of the driver beside version 2`
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

type Order struct {
	ID       uuid.UUID `bson:"_id"`
	Customer []byte    `bson:"customer"`
}

type OrderID [16]byte

type Invoice struct {
	Order OrderID `bson:"order"` // want `a registry of bsoncodec refuses OrderID`
}

type Session struct{ uuid.UUID }

func (s Session) MarshalBSONValue() (bsontype.Type, []byte, error) { // want `version 2 of the driver ignores this form of MarshalBSONValue`
	if s.UUID == uuid.Nil {
		return bsontype.Null, nil, nil
	}
	return bsontype.Binary, append([]byte{16, 0, 0, 0, 4}, s.UUID[:]...), nil
}

func write(ctx context.Context, coll *mongo.Collection, bucket *mongo.GridFSBucket, u uuid.UUID) error {
	filter := bson.M{"_id": bson.Binary{Data: u[:]}} // want `bson.Binary of subtype 0`
	if _, err := coll.DeleteOne(ctx, filter); err != nil {
		return err
	}
	b := bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: u[:]}                                         // want `bson.Binary of subtype 3`
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "b", Value: b}, {Key: "u", Value: u[:]}}); err != nil { // want `the bytes of a UUID in a document`
		return err
	}
	if _, err := coll.InsertOne(ctx, Order{ID: u, Customer: u[:]}); err != nil { // want `the bytes of a UUID in the field Customer`
		return err
	}
	doc, err := bson.Marshal(Order{ID: u}) // want `bson.Marshal does not use the registry`
	if err != nil {
		return err
	}
	if err := bson.Raw(doc).Lookup("_id").Unmarshal(&u); err != nil { // want `RawValue.Unmarshal does not use the registry`
		return err
	}
	upload := options.GridFSUpload().SetMetadata(bson.D{{Key: "owner", Value: u}}) // want `the metadata of GridFS do not use the registry`
	_, err = bucket.UploadFromStream(ctx, "name", strings.NewReader("x"), upload)
	return err
}
