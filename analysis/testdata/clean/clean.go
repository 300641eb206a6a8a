// Package clean has no mistakes: each line looks like one. // want package:`driver: `
package clean

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"reflect"
	"strings"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"

	"example.com/shop/model"
)

type Order struct {
	ID       uuid.UUID            `bson:"_id"`
	Customer uuidrep.StandardUUID `bson:"customer"`
	Receipt  []byte               `bson:"receipt"`
	Session  gofrs.UUID           `bson:"session"`
	Item     model.ItemID         `bson:"item"`
	Items    []*model.ItemID      `bson:"items"`
	Ignored  [16]byte             `bson:"-"`
	Self     *Self                `bson:"self"`
	hidden   [16]byte
}

// A cache that is not a document.
type cache struct {
	sum [16]byte
	id  [16]byte
	raw []byte
}

// Self marshals itself.
type Self [16]byte

func (s Self) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeBinary), append([]byte{16, 0, 0, 0, 4}, s[:]...), nil
}

func (s *Self) UnmarshalBSONValue(typ byte, data []byte) error {
	if len(data) != 21 || data[4] != 4 {
		return errors.New("no UUID")
	}
	copy(s[:], data[5:])
	return nil
}

func registry() (*bson.Registry, error) {
	return bsoncodec.NewRegistryBuilder(uuidrep.Standard).
		RegisterUUIDType(reflect.TypeFor[gofrs.UUID]()).
		Build()
}

func write(ctx context.Context, coll *mongo.Collection, bucket *mongo.GridFSBucket, reg *bson.Registry, u uuid.UUID) error {
	sum := md5.Sum([]byte("x"))
	key := u[:4]
	var buf bytes.Buffer
	for _, doc := range []any{
		bson.M{"_id": u, "binary": uuidrep.NewBinary(u), "sum": sum[:], "part": key, "text": u.String(), "bytes": buf.Bytes()},
		bson.D{{Key: "explicit", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: u[:]}}},
		bson.D{{Key: "hash", Value: bson.Binary{Data: sum[:]}}},
		bson.A{u, &u, []uuid.UUID{u}, Self{}},
		Order{ID: u, Receipt: sum[:]},
		cache{sum: sum, id: u, raw: u[:]},
	} {
		if _, err := coll.InsertOne(ctx, doc); err != nil {
			return err
		}
	}
	doc, err := bson.Marshal(bson.D{{Key: "n", Value: 1}, {Key: "u", Value: uuidrep.NewBinary(u)}})
	if err != nil {
		return err
	}
	var order struct{ Customer uuidrep.StandardUUID }
	if err := bson.Unmarshal(doc, &order); err != nil {
		return err
	}
	if err := bson.Raw(doc).Lookup("u").UnmarshalWithRegistry(reg, &u); err != nil {
		return err
	}
	if _, err := bsoncodec.Marshal(reg, Order{ID: u}); err != nil {
		return err
	}
	upload := options.GridFSUpload().SetRegistry(reg).SetMetadata(bson.D{{Key: "owner", Value: u}})
	later := options.GridFSUpload().SetMetadata(bson.D{{Key: "owner", Value: u}})
	later.SetRegistry(reg)
	_, err = bucket.UploadFromStream(ctx, "name", strings.NewReader("x"), upload, later,
		options.GridFSUpload().SetMetadata(bson.M{"owner": u}).SetRegistry(reg),
		options.GridFSUpload().SetMetadata(bson.M{"owner": "x"}))
	raw := u[:]
	raw = nil
	_, err = coll.InsertOne(ctx, bson.M{"raw": raw})
	return err
}
