package autoid

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// TestProbedOnce tests that a Collection learns its contexts once for each direction when many
// goroutines use it first, and how it decodes only if it needs that.
func TestProbedOnce(t *testing.T) {
	var encodes, decodes atomic.Int32
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[*encodeProbe](), bson.ValueEncoderFunc(
		func(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
			encodes.Add(1)
			time.Sleep(time.Millisecond) // the others wait
			return encodeEncodeProbe(ec, vw, val)
		}))
	code := reflect.TypeFor[bson.CodeWithScope]()
	dec, err := reg.LookupDecoder(code)
	if err != nil {
		t.Fatal(err)
	}
	reg.RegisterTypeDecoder(code, bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
			decodes.Add(1)
			return dec.DecodeValue(dc, vr, val)
		}))
	server := newTestServer()
	server.upserted = "upserted"
	client, started := server.client(t, reg)
	coll := Wrap(client.Database("db").Collection("c"), &counter{})

	if _, err := coll.InsertOne(ctx, bson.M{}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"a": 1}}); err != nil {
		t.Fatal(err)
	}
	encodes.Store(0)
	decodes.Store(0)
	var first sync.WaitGroup
	coll = Wrap(client.Database("db").Collection("c"), &counter{})
	for range 8 {
		first.Go(func() {
			if _, err := coll.contexts.encoding(); err != nil {
				t.Error(err)
			}
		})
	}
	first.Wait()
	if encodes.Load() != 1 {
		t.Errorf("%d probes by goroutines that wait for the first", encodes.Load())
	}
	encodes.Store(0)
	coll = Wrap(client.Database("db").Collection("c"), &counter{n: 1})
	if _, err := coll.InsertMany(ctx, []bson.M{{}, {}}); err != nil || encodes.Load() != 1 || decodes.Load() != 0 {
		t.Errorf("%v, %d and %d probes by inserts", err, encodes.Load(), decodes.Load())
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 5 {
				_, err := coll.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{}),
					mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}).SetUpsert(true)})
				if err != nil {
					t.Error(err)
				}
				if _, err := coll.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"a": 1}}, options.UpdateOne().SetUpsert(true)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	// The first decoding is a trial that nothing is sent.
	if encodes.Load() != 1 || decodes.Load() != 2 {
		t.Errorf("%d probes of encoding and %d of decoding", encodes.Load(), decodes.Load())
	}
	for _, name := range started() {
		if name != "insert" && name != "update" {
			t.Errorf("%s was sent", name)
		}
	}
	if n := len(server.stored()); n != 1+2+40 {
		t.Errorf("%d documents stored", n)
	}
}
