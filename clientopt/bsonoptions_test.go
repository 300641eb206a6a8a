package clientopt

import (
	"bytes"
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/inuse"
	"github.com/bsonids/bsonids/uuidrep"
)

// withField returns BSONOptions with the field i set, and the expected Options of bsoncodec.
func withField(i int) (*options.BSONOptions, bsoncodec.Options) {
	var b options.BSONOptions
	v := reflect.ValueOf(&b).Elem()
	v.Field(i).SetBool(true)
	var o bsoncodec.Options
	reflect.ValueOf(&o).Elem().FieldByName(v.Type().Field(i).Name).SetBool(true)
	return &b, o
}

// TestCollectionCodec tests that the options are learned without a server, whether they
// come from the client, the database or the collection.
func TestCollectionCodec(t *testing.T) {
	tOptions := reflect.TypeFor[options.BSONOptions]()
	for i := range tOptions.NumField() {
		name := tOptions.Field(i).Name
		bsonOpts, want := withField(i)
		client := connect(t, new(server), "mongodb://localhost/?uuidRepresentation=standard", WithClientOptions(options.Client().SetBSONOptions(bsonOpts)))
		plain := connect(t, new(server), "mongodb://localhost/?uuidRepresentation=standard")
		for where, coll := range map[string]*mongo.Collection{
			"client":     client.Database("d").Collection("c"),
			"database":   plain.Database("d", options.Database().SetBSONOptions(bsonOpts)).Collection("c"),
			"collection": plain.Database("d").Collection("c", options.Collection().SetBSONOptions(bsonOpts)),
		} {
			reg, got, err := CollectionCodec(coll)
			if err != nil || reg == nil {
				t.Fatalf("%s of the %s: %v", name, where, err)
			}
			if got != want {
				t.Errorf("%s of the %s: got %+v", name, where, got)
			}
		}
	}
}

// TestOptionsAreThoseOfTheClient tests that the functions of bsoncodec write and read the same as a
// client with the same options.
func TestOptionsAreThoseOfTheClient(t *testing.T) {
	type inner struct{ A, B int }
	type document struct {
		ID    int32  `bson:"_id"`
		Name  string `json:"fullName"`
		UUID  uuid.UUID
		Any   any
		Bin   any
		M     map[string]int
		S     []int
		B     []byte
		Zero  inner `bson:",omitempty"`
		Time  time.Time
		Trunc float32 `json:"below"`
		OID   any
		Keys  map[inner]int
	}
	newDocument := func() *document {
		return &document{ID: 1, Name: "old", UUID: testUUID, M: map[string]int{"old": 1}, Zero: inner{7, 7}}
	}
	found := bson.D{
		{Key: "_id", Value: int32(1)}, {Key: "name", Value: "name"}, {Key: "fullName", Value: "full"},
		{Key: "uuid", Value: stored[uuidrep.JavaLegacy]}, {Key: "any", Value: bson.D{{Key: "u", Value: stored[uuidrep.JavaLegacy]}}},
		{Key: "bin", Value: bson.Binary{Data: []byte{1}}}, {Key: "m", Value: bson.D{{Key: "new", Value: 2.0}}},
		{Key: "zero", Value: bson.D{{Key: "b", Value: 2}}}, {Key: "time", Value: bson.DateTime(1e12)}, {Key: "oid", Value: bson.ObjectID{1}},
	}
	type text struct {
		OID string
		M   map[string]int
	}
	tOptions := reflect.TypeFor[options.BSONOptions]()
	for i := -1; i < tOptions.NumField(); i++ {
		bsonOpts, name := new(options.BSONOptions), "no option"
		if i >= 0 {
			name = tOptions.Field(i).Name
			bsonOpts, _ = withField(i)
		}
		s := &server{found: found}
		client := connect(t, s, "mongodb://localhost/?uuidRepresentation=javaLegacy", WithClientOptions(options.Client().SetBSONOptions(bsonOpts)))
		coll := client.Database("d").Collection("c")
		reg, enc, err := CollectionCodec(coll)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ctx := context.Background()
		cursor, err := coll.Find(ctx, bson.D{})
		if err != nil || !cursor.Next(ctx) {
			t.Fatalf("%s: %v", name, err)
		}
		_, dec, _ := inuse.Of(cursor)
		if want, _ := inuse.Options(bsonOpts); enc != want || dec != enc {
			t.Errorf("%s: learned %+v and %+v", name, enc, dec)
		}
		for _, target := range []func() any{
			func() any { return newDocument() }, func() any { return new(bson.D) }, func() any { return new(any) },
			func() any { return new(text) }, func() any { return &map[string]any{"m": bson.M{"old": 1}} },
		} {
			got, want := target(), target()
			err, wantErr := bsoncodec.Unmarshal(reg, cursor.Current, got, dec), cursor.Decode(want)
			if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: Unmarshal gives %+v, %v; the client %+v, %v", name, got, err, want, wantErr)
			}
		}
		for _, doc := range []any{
			&document{ID: 1, UUID: testUUID, Any: int64(1), Keys: map[inner]int{{1, 2}: 1}}, &document{ID: 1, UUID: testUUID, Any: int64(1)},
			bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: testUUID}, {Key: "n", Value: 1}, {Key: "s", Value: []int(nil)}},
			struct {
				ID int32 `bson:"_id"`
				In inner `bson:",inline"`
				A  int
			}{ID: 1},
		} {
			s.mu.Lock()
			s.commands = nil
			s.mu.Unlock()
			_, wantErr := coll.InsertOne(ctx, doc)
			got, err := bsoncodec.Marshal(reg, doc, enc)
			if (err == nil) != (wantErr == nil) {
				t.Errorf("%s: Marshal(%T): %v; the client: %v", name, doc, err, wantErr)
			}
			for _, insert := range s.sent("insert") {
				if want := insert.Lookup("documents", "0").Value; !bytes.Equal(got, want) {
					t.Errorf("%s: Marshal(%T) writes %v, the client %v", name, doc, bson.Raw(got), bson.Raw(want))
				}
			}
			if n := len(s.sent("insert")); (n == 1) != (wantErr == nil) {
				t.Errorf("%s: %d inserts were sent, %v", name, n, wantErr)
			}
		}
	}
}

// TestOptionsThatCannotBeLearned tests that unknown options are errors.
func TestOptionsThatCannotBeLearned(t *testing.T) {
	if _, _, err := CollectionCodec(nil); err == nil {
		t.Error("no error for a nil collection")
	}
	if _, _, err := CollectionCodec(new(mongo.Collection)); err == nil {
		t.Error("no error for a collection without a registry")
	}
}

// TestForeignRegistry tests that any registry is told.
func TestForeignRegistry(t *testing.T) {
	reg := bson.NewRegistry()
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost").SetRegistry(reg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	if got, _, err := CollectionCodec(client.Database("d").Collection("c")); err != nil || got != reg {
		t.Errorf("a collection: got %p, %v", got, err)
	}
}

// CollectionCodec of no collection is an error.
func TestCodecOfNothing(t *testing.T) {
	if _, _, err := CollectionCodec(nil); err == nil || err.Error() != "clientopt: the collection is nil" {
		t.Errorf("got %v", err)
	}
}
