package clientopt

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// Collection returns a collection with another representation and the BSON options of the given one.
func TestCollection(t *testing.T) {
	ctx := context.Background()
	s := &server{}
	client := connect(t, s, "mongodb://h/?uuidRepresentation=standard",
		WithClientOptions(options.Client().SetBSONOptions(&options.BSONOptions{NilSliceAsEmpty: true})))
	standard := client.Database("db").Collection("orders")
	for want := range stored {
		coll, err := Collection(standard, want)
		if err != nil {
			t.Fatal(err)
		}
		// An _id from a source is also encoded with the BSON options of the client.
		orders := autoid.Wrap(coll, autoid.SourceFunc(func() (any, error) { return testUUID, nil }))
		res, err := orders.InsertOne(ctx, bson.M{"list": []int(nil)})
		if err != nil || res.InsertedID != any(testUUID) {
			t.Fatalf("%v, %v", res, err)
		}
		if list := s.sent("insert")[0].Lookup("documents", "0", "list"); list.Type != bson.TypeArray {
			t.Errorf("a nil slice was sent as %v", list)
		}
		wantStored(t, s.insertedID(t), want)
		if coll.Name() != "orders" || coll.Database().Name() != "db" {
			t.Errorf("the collection is %s.%s", coll.Database().Name(), coll.Name())
		}
	}
	if _, err := standard.InsertOne(ctx, bson.M{"_id": testUUID}); err != nil {
		t.Fatal(err)
	}
	wantStored(t, s.insertedID(t), uuidrep.Standard)

	unspecified, err := Collection(standard, uuidrep.Unspecified)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unspecified.InsertOne(ctx, bson.M{"_id": testUUID}); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Error(err)
	}
}

// Collection takes the options of a registry, and reports their errors.
func TestCollectionOptions(t *testing.T) {
	type own uuid.UUID
	client := connect(t, &server{}, "mongodb://h/")
	coll := client.Database("db").Collection("coll")
	reg, err := NewClientRegistry(uuidrep.JavaLegacy, WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.RegisterUUIDType(reflect.TypeFor[own]()) }))
	if err != nil {
		t.Fatal(err)
	}
	rv, err := bsoncodec.MarshalValue(reg, own(testUUID))
	if err != nil {
		t.Fatal(err)
	}
	wantStored(t, rv, uuidrep.JavaLegacy)

	for _, c := range []struct {
		coll *mongo.Collection
		r    uuidrep.Representation
		opt  Option
		want string
	}{
		{nil, uuidrep.Standard, WithRegistryBuilder(func(*bsoncodec.RegistryBuilder) {}), "the collection is nil"},
		{coll, 9, WithRegistryBuilder(func(*bsoncodec.RegistryBuilder) {}), "cannot build the registry"},
		{coll, uuidrep.Standard, nil, "an Option is nil"},
		{coll, uuidrep.Standard, WithRegistryBuilder(nil), "the function of WithRegistryBuilder is nil"},
		{coll, uuidrep.Standard, WithDefaultRepresentation(uuidrep.Standard), "WithDefaultRepresentation does not apply"},
		{coll, uuidrep.Standard, WithDefaultRepresentation(9), "WithDefaultRepresentation"},
		{coll, uuidrep.Standard, WithClientOptions(), "WithClientOptions does not apply"},
		{coll, uuidrep.Standard, WithAudit(func(uuidaudit.Finding) {}), "WithAudit does not apply"},
	} {
		got, err := Collection(c.coll, c.r, c.opt)
		if err == nil || got != nil || !strings.HasPrefix(err.Error(), "clientopt: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}
