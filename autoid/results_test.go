package autoid

import (
	"context"
	"reflect"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// upserts returns the upserted ids of every method that can upsert.
func upserts(t *testing.T, coll *Collection) []any {
	t.Helper()
	ctx := context.Background()
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	res1, err1 := coll.UpdateOne(ctx, bson.D{}, set, options.UpdateOne().SetUpsert(true))
	res2, err2 := coll.UpdateByID(ctx, 1, set, options.UpdateOne().SetUpsert(true))
	res3, err3 := coll.UpdateMany(ctx, bson.D{}, set, options.UpdateMany().SetUpsert(true))
	res4, err4 := coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: 1}}, bson.D{}, options.Replace().SetUpsert(true))
	res5, err5 := coll.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(set).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}).SetReplacement(bson.D{}).SetUpsert(true),
	})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return []any{res1.UpsertedID, res2.UpsertedID, res3.UpsertedID, res4.UpsertedID, res5.UpsertedIDs[0], res5.UpsertedIDs[1]}
}

// TestUpsertedIDs tests that an upserted id is equal to the InsertedID that the driver returns for
// the same _id.
func TestUpsertedIDs(t *testing.T) {
	ctx := context.Background()
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	java, err := uuidrep.NewBinaryWithRepresentation(u, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	for _, bsonOpts := range []*options.BSONOptions{
		nil, {BinaryAsSlice: true}, {DefaultDocumentM: true}, {DefaultDocumentMap: true}, {UseJSONStructTags: true},
		{BinaryAsSlice: true, DefaultDocumentM: true, ObjectIDAsHexString: true, UseLocalTimeZone: true, ZeroStructs: true},
	} {
		reg, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
		if err != nil {
			t.Fatal(err)
		}
		Register(reg)
		for _, id := range []any{
			java, uuidrep.NewBinary(u), bson.Binary{Data: []byte("x")}, bson.D{{Key: "a", Value: java}},
			bson.D{{Key: "a", Value: bson.D{{Key: "b", Value: bson.A{java}}}}}, bson.ObjectID{1}, "x", int32(1), int64(1), 1.5,
			bson.CodeWithScope{Code: "f()", Scope: bson.D{}}, bson.DateTime(1), bson.Regex{Pattern: "a"}, bson.MaxKey{},
		} {
			s := newTestServer()
			s.upserted = id
			opts := options.Client()
			opts.BSONOptions = bsonOpts
			client, started := s.client(t, reg, opts)
			coll := Wrap(client.Database("db").Collection("coll"), &counter{})
			inserted, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}})
			if err != nil {
				t.Fatal(err)
			}
			for i, got := range upserts(t, coll) {
				if !reflect.DeepEqual(got, inserted.InsertedID) {
					t.Errorf("%+v: upsert %d gave %#v, the insert %#v", bsonOpts, i, got, inserted.InsertedID)
				}
			}
			if len(s.received("insert")) != 1 {
				t.Errorf("%v was sent", started())
			}
		}
	}
}

// TestUpsertedIDsUnknown tests that if a codec of the caller handles the type of the probe, the
// upserted ids are those of the driver and no probe is sent.
func TestUpsertedIDsUnknown(t *testing.T) {
	u := uuidrep.NewBinary(uuid.UUID{1})
	registered := func(f func(reg *bson.Registry)) *bson.Registry {
		reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
		if err != nil {
			t.Fatal(err)
		}
		Register(reg)
		f(reg)
		return reg
	}
	code := reflect.TypeFor[bson.CodeWithScope]()
	for i, reg := range []*bson.Registry{
		registered(func(reg *bson.Registry) {
			dec, _ := bson.NewRegistry().LookupDecoder(code)
			reg.RegisterTypeDecoder(code, dec)
		}),
		registered(func(reg *bson.Registry) {
			reg.RegisterTypeMapEntry(bson.TypeCodeWithScope, reflect.TypeFor[bson.RawValue]())
		}),
	} {
		s := newTestServer()
		s.upserted = u
		client, _ := s.client(t, reg)
		for _, got := range upserts(t, Wrap(client.Database("db").Collection("coll"), &counter{})) {
			if !reflect.DeepEqual(got, u) {
				t.Errorf("%d: %#v", i, got)
			}
		}
		if n := len(s.received("insert")); n != 0 {
			t.Errorf("%d: %d inserts were sent", i, n)
		}
	}
}

// Results of concurrent upserts have the ids of their own calls.
func TestUpsertedIDsConcurrent(t *testing.T) {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	Register(reg)
	s := newTestServer()
	s.upserted = uuidrep.NewBinary(uuid.UUID{1})
	client, _ := s.client(t, reg)
	coll := Wrap(client.Database("db").Collection("coll"), &counter{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for _, got := range upserts(t, coll) {
				if got != any(uuid.UUID{1}) {
					t.Errorf("%#v", got)
				}
			}
		})
	}
	wg.Wait()
}
