package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidrep"
)

// representations is the table of the specification: what each setting writes for the test UUID.
var representations = []struct {
	rep    uuidrep.Representation
	stored bson.Binary
}{
	{uuidrep.Standard, binary(4, octetsStandard)},
	{uuidrep.CSharpLegacy, binary(3, octetsCSharp)},
	{uuidrep.JavaLegacy, binary(3, octetsJava)},
	{uuidrep.PythonLegacy, binary(3, octetsStandard)},
}

// item is a document with a UUID as its _id, in an array, and in an embedded document.
type item struct {
	ID   uuid.UUID   `bson:"_id"`
	Refs []uuid.UUID `bson:"refs"`
	Sub  struct {
		Ref *uuid.UUID `bson:"ref"`
	} `bson:"sub"`
	N int32 `bson:"n"`
}

func newItem(id uuid.UUID, n int32, refs ...uuid.UUID) item {
	i := item{ID: id, Refs: refs, N: n}
	if len(refs) > 0 {
		i.Sub.Ref = &refs[0]
	}
	return i
}

func (s *server) insert(coll *mongo.Collection, docs ...any) *mongo.InsertManyResult {
	s.t.Helper()
	res, err := coll.InsertMany(context30(s.t), docs)
	if err != nil {
		s.t.Fatal(err)
	}
	return res
}

func all[T any](t *testing.T, cursor *mongo.Cursor, err error) []T {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var docs []T
	if err := cursor.All(context30(t), &docs); err != nil {
		t.Fatal(err)
	}
	return docs
}

// TestOperations uses a UUID in every operation of a collection, in each representation.
func TestOperations(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			s := newServer(t)
			coll := s.collection(r.rep, "items")
			other := uuid.MustParse("ffeeddcc-bbaa-9988-7766-554433221100")
			first, second := newItem(testUUID, 1, other, testUUID), newItem(other, 2, testUUID)

			if res := s.insert(coll, first, second); !reflect.DeepEqual(res.InsertedIDs, []any{testUUID, other}) {
				t.Errorf("InsertedIDs: %#v", res.InsertedIDs)
			}
			for _, doc := range s.stored("items") {
				if doc.Lookup("n").Int32() == 1 {
					checkStored(t, doc, r.stored, "_id")
					checkStored(t, doc, r.stored, "refs", "1")
				} else {
					checkStored(t, doc, r.stored, "refs", "0")
					checkStored(t, doc, r.stored, "sub", "ref")
				}
			}

			for name, filter := range map[string]any{
				"_id": bson.D{{Key: "_id", Value: testUUID}},
				"M":   bson.M{"_id": testUUID},
				"struct": struct {
					ID uuid.UUID `bson:"_id"`
				}{testUUID},
				"$in":      bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{testUUID, uuid.Nil}}}}},
				"$in of T": bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: []uuid.UUID{testUUID, uuid.Nil}}}}},
				"array":    bson.D{{Key: "refs", Value: bson.D{{Key: "$all", Value: []uuid.UUID{other, testUUID}}}}},
				"$eq":      bson.D{{Key: "sub.ref", Value: bson.D{{Key: "$eq", Value: &other}}}},
				"$or":      bson.D{{Key: "$or", Value: bson.A{bson.M{"_id": testUUID}, bson.M{"_id": uuid.Nil}}}},
			} {
				cursor, err := coll.Find(ctx, filter)
				if got := all[item](t, cursor, err); len(got) != 1 || !reflect.DeepEqual(got[0], first) {
					t.Errorf("find by %s: got %v", name, got)
				}
			}
			cursor, err := coll.Find(ctx, bson.D{{Key: "_id", Value: testUUID}})
			docs := all[bson.M](t, cursor, err)
			if len(docs) != 1 || docs[0]["_id"] != testUUID || !reflect.DeepEqual(docs[0]["refs"], bson.A{other, testUUID}) {
				t.Errorf("find into bson.M: %v", docs)
			}

			third := uuid.New()
			if _, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: testUUID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "sub.ref", Value: third}}}, {Key: "$push", Value: bson.D{{Key: "refs", Value: third}}}}); err != nil {
				t.Fatal(err)
			}
			if _, err := coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: other}}, newItem(other, 3, third)); err != nil {
				t.Fatal(err)
			}
			var got item
			if err := coll.FindOneAndUpdate(ctx, bson.D{{Key: "refs", Value: third}, {Key: "_id", Value: testUUID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: 10}}}},
				options.FindOneAndUpdate().SetReturnDocument(options.After)).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if got.N != 10 || *got.Sub.Ref != third || !reflect.DeepEqual(got.Refs, []uuid.UUID{other, testUUID, third}) {
				t.Errorf("updated: %v", got)
			}

			var distinct []uuid.UUID
			// A deadline becomes maxTimeMS, which FerretDB refuses here. Decode does not return an
			// error of the command.
			values := coll.Distinct(context.Background(), "sub.ref", bson.D{})
			if err := values.Err(); err != nil {
				t.Fatal(err)
			}
			if err := values.Decode(&distinct); err != nil || !reflect.DeepEqual(distinct, []uuid.UUID{third}) {
				t.Errorf("distinct: got %v, %v", distinct, err)
			}
			cursor, err = coll.Aggregate(ctx, mongo.Pipeline{
				{{Key: "$match", Value: bson.D{{Key: "sub.ref", Value: third}}}},
				{{Key: "$group", Value: bson.D{{Key: "_id", Value: "$sub.ref"}, {Key: "count", Value: bson.D{{Key: "$sum", Value: 1}}}}}},
			})
			groups := all[bson.M](t, cursor, err)
			if len(groups) != 1 || groups[0]["_id"] != third || fmt.Sprint(groups[0]["count"]) != "2" {
				t.Errorf("aggregate: %v", groups)
			}
			if n, err := coll.CountDocuments(ctx, bson.D{{Key: "_id", Value: testUUID}}); err != nil || n != 1 {
				t.Errorf("count: %d, %v", n, err)
			}
			if err := coll.FindOneAndDelete(ctx, bson.D{{Key: "_id", Value: other}}).Decode(&got); err != nil || got.ID != other {
				t.Errorf("find and delete: %v, %v", got, err)
			}
			if res, err := coll.DeleteMany(ctx, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: []uuid.UUID{testUUID, other}}}}}); err != nil || res.DeletedCount != 1 {
				t.Errorf("delete: %v, %v", res, err)
			}
		})
	}
}

// TestArrayFilters tests that an update encodes the UUIDs in its array filters with the
// representation.
func TestArrayFilters(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	sent := newRecorder()
	coll := s.collection(uuidrep.JavaLegacy, "items", sent.option())
	// Some servers do not support array filters. The test is about the command that is sent.
	_, err := coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: testUUID}}, bson.D{{Key: "$set", Value: bson.D{{Key: "refs.$[r]", Value: uuid.Nil}}}},
		options.UpdateOne().SetArrayFilters([]any{bson.D{{Key: "r", Value: testUUID}}}))
	var commandErr mongo.CommandError
	if err != nil && !errors.As(err, &commandErr) {
		var writeErr mongo.WriteException
		if !errors.As(err, &writeErr) {
			t.Fatal(err)
		}
	}
	command := sent.last("update")
	checkStored(t, command, binary(3, octetsJava), "updates", "0", "q", "_id")
	checkStored(t, command, binary(3, octetsJava), "updates", "0", "arrayFilters", "0", "r")
	checkStored(t, command, binary(3, make([]byte, 16)), "updates", "0", "u", "$set", "refs.$[r]")
}

// TestBulkWrite runs every model of the bulk write of a collection.
func TestBulkWrite(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			s := newServer(t)
			coll := s.collection(r.rep, "items")
			a, b, c := uuid.New(), uuid.New(), uuid.New()
			res, err := coll.BulkWrite(ctx, []mongo.WriteModel{
				mongo.NewInsertOneModel().SetDocument(newItem(a, 1, c)),
				mongo.NewInsertOneModel().SetDocument(bson.D{{Key: "_id", Value: b}, {Key: "n", Value: 2}}),
				mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": a}).SetUpdate(bson.M{"$set": bson.M{"sub.ref": b}}),
				mongo.NewReplaceOneModel().SetFilter(bson.M{"_id": testUUID}).SetReplacement(bson.M{"n": 3, "refs": []uuid.UUID{c}}).SetUpsert(true),
				mongo.NewUpdateManyModel().SetFilter(bson.M{"refs": c}).SetUpdate(bson.M{"$inc": bson.M{"n": 10}}),
				mongo.NewDeleteOneModel().SetFilter(bson.M{"_id": b}),
			})
			if err != nil {
				t.Fatal(err)
			}
			if res.InsertedCount != 2 || res.UpsertedCount != 1 || res.DeletedCount != 1 {
				t.Errorf("got %+v", res)
			}
			reg, err := bsoncodec.NewRegistry(r.rep)
			if err != nil {
				t.Fatal(err)
			}
			for _, upserted := range res.UpsertedIDs { // the key is the index that the server returned, and FerretDB returns a different one
				if id, err := bsoncodec.DecodeNative(reg, upserted); err != nil || id != testUUID {
					t.Errorf("UpsertedIDs: %v, native %v, %v", res.UpsertedIDs, id, err)
				}
			}
			cursor, err := coll.Find(ctx, bson.M{"refs": c, "n": bson.M{"$gt": 10}})
			if got := all[item](t, cursor, err); len(got) != 2 {
				t.Errorf("got %v", got)
			}
			checkUpserted := s.plain("items").FindOne(ctx, bson.M{"_id": r.stored})
			if raw, err := checkUpserted.Raw(); err != nil {
				t.Errorf("upserted: %v", err)
			} else {
				checkStored(t, raw, r.stored, "_id")
			}
		})
	}
}

// TestResultIDs shows which ids of a result are native, and how to convert the others.
func TestResultIDs(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			s := newServer(t)
			coll := s.collection(r.rep, "items")
			one, err := coll.InsertOne(ctx, bson.M{"_id": testUUID})
			if err != nil || one.InsertedID != testUUID {
				t.Errorf("InsertedID: %#v, %v", one, err)
			}
			id := uuid.New()
			update, err := coll.UpdateOne(ctx, bson.M{"_id": id}, bson.M{"$set": bson.M{"n": 1}}, options.UpdateOne().SetUpsert(true))
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := update.UpsertedID.(bson.Binary); !ok {
				t.Errorf("UpsertedID is a %T: the driver reads it with the client's registry now", update.UpsertedID)
			}
			reg, err := bsoncodec.NewRegistry(r.rep)
			if err != nil {
				t.Fatal(err)
			}
			if native, err := bsoncodec.DecodeNative(reg, update.UpsertedID); err != nil || native != id {
				t.Errorf("native UpsertedID: %v, %v; want %v", native, err, id)
			}
		})
	}
}

// TestInWithBothSubtypes searches a collection that holds both subtypes with one Binary of each.
func TestInWithBothSubtypes(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	u := uuid.New()
	legacy, err := uuidrep.NewBinaryWithRepresentation(u, uuidrep.CSharpLegacy)
	if err != nil {
		t.Fatal(err)
	}
	standard := uuidrep.NewBinary(u)
	s.insert(s.plain("mixed"), bson.D{{Key: "ref", Value: standard}}, bson.D{{Key: "ref", Value: legacy}}, bson.D{{Key: "ref", Value: uuidrep.NewBinary(uuid.New())}})

	coll := s.collection(uuidrep.Standard, "mixed", clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.AlsoDecode(uuidrep.CSharpLegacy) }))
	cursor, err := coll.Find(ctx, bson.M{"ref": bson.M{"$in": bson.A{u, legacy}}})
	docs := all[struct{ Ref uuid.UUID }](t, cursor, err)
	if len(docs) != 2 || docs[0].Ref != u || docs[1].Ref != u {
		t.Errorf("got %v", docs)
	}
	// Without AlsoDecode, the same query is an error, because a UUID field cannot be decoded from
	// the other subtype.
	cursor, err = s.collection(uuidrep.Standard, "mixed").Find(ctx, bson.M{"ref": bson.M{"$in": bson.A{u, legacy}}})
	if err != nil {
		t.Fatal(err)
	}
	var typed []struct{ Ref uuid.UUID }
	var subtype *uuidrep.SubtypeError
	if err := cursor.All(ctx, &typed); !errors.As(err, &subtype) || subtype.Subtype != 3 {
		t.Errorf("Cursor.All: got %v", err)
	}
}

// TestUnspecifiedSendsNothing tests that an operation with a UUID fails before anything is sent to
// the server, and that the error says what to do.
func TestUnspecifiedSendsNothing(t *testing.T) {
	s := newServer(t)
	for name, op := range map[string]func(context.Context, *mongo.Collection) error{
		"insert one": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.InsertOne(ctx, bson.M{"a": testUUID})
			return err
		},
		"insert many": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.InsertMany(ctx, []any{bson.M{"a": 1}, bson.M{"a": testUUID}})
			return err
		},
		"filter": func(ctx context.Context, c *mongo.Collection) error {
			return c.FindOne(ctx, bson.M{"a": testUUID}).Err()
		},
		"find": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Find(ctx, bson.M{"a": []uuid.UUID{testUUID}})
			return err
		},
		"update": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"a": testUUID}})
			return err
		},
		"replace": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.ReplaceOne(ctx, bson.M{}, bson.M{"a": &testUUID})
			return err
		},
		"delete": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.DeleteOne(ctx, bson.M{"a": testUUID})
			return err
		},
		"distinct": func(ctx context.Context, c *mongo.Collection) error {
			return c.Distinct(ctx, "a", bson.M{"a": testUUID}).Err()
		},
		"count": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.CountDocuments(ctx, bson.M{"a": testUUID})
			return err
		},
		"pipeline": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: bson.M{"a": testUUID}}}})
			return err
		},
		"bulk write": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"a": testUUID})})
			return err
		},
		"find and modify": func(ctx context.Context, c *mongo.Collection) error {
			return c.FindOneAndUpdate(ctx, bson.M{}, bson.M{"$set": bson.M{"a": testUUID}}).Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			sent := newRecorder()
			err := op(context30(t), s.collection(uuidrep.Unspecified, "items", sent.option()))
			if !errors.Is(err, uuidrep.ErrUnspecified) || !strings.Contains(err.Error(), "uuidRepresentation") {
				t.Errorf("got %v", err)
			}
			if n := sent.count(); n != 0 {
				t.Errorf("%d commands were sent", n)
			}
		})
	}
	if docs := s.stored("items"); len(docs) != 0 {
		t.Errorf("the server holds %v", docs)
	}
}

// TestErrorsThroughTheDriver tests that the errors of the codecs reach the caller through the
// errors of the driver.
func TestErrorsThroughTheDriver(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	s.insert(s.plain("items"),
		bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: binary(3, octetsJava)}},
		bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: binary(4, octetsJava[:15])}},
		bson.D{{Key: "_id", Value: 3}, {Key: "u", Value: "text"}},
		bson.D{{Key: "_id", Value: 4}, {Key: "u", Value: binary(3, []byte("00112233-4455-6677-8899-aabbccddeeff"))}})
	type doc struct{ U uuid.UUID }
	coll := s.collection(uuidrep.Standard, "items")
	var subtype *uuidrep.SubtypeError
	if err := coll.FindOne(ctx, bson.M{"_id": 1}).Decode(new(doc)); !errors.As(err, &subtype) || *subtype != (uuidrep.SubtypeError{Subtype: 3, Representation: uuidrep.Standard}) {
		t.Errorf("subtype: got %v", err)
	}
	var length *uuidrep.LengthError
	if err := coll.FindOne(ctx, bson.M{"_id": 2}).Decode(new(doc)); !errors.As(err, &length) || length.Length != 15 {
		t.Errorf("length: got %v", err)
	}
	if err := coll.FindOne(ctx, bson.M{"_id": 4}).Decode(new(doc)); !errors.As(err, &length) || *length != (uuidrep.LengthError{Length: 36, Text: true}) {
		t.Errorf("text in a binary value: got %v", err)
	}
	var decodeErr *bson.DecodeError
	if err := coll.FindOne(ctx, bson.M{"_id": 3}).Decode(new(doc)); !errors.As(err, &decodeErr) || !reflect.DeepEqual(decodeErr.Keys(), []string{"u"}) {
		t.Errorf("string: got %v", err)
	}
	cursor, err := s.collection(uuidrep.Unspecified, "items").Find(ctx, bson.M{"_id": 1})
	if err != nil {
		t.Fatal(err)
	}
	var docs []doc
	if err := cursor.All(ctx, &docs); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("unspecified: got %v", err)
	}
}

// TestSettingsSideBySide uses two clients with different settings, and a registry for one
// collection, in one process.
func TestSettingsSideBySide(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	java, standard := s.collection(uuidrep.JavaLegacy, "items"), s.collection(uuidrep.Standard, "items")
	csharp, err := bsoncodec.NewRegistry(uuidrep.CSharpLegacy)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientopt.Connect(s.With("uuidRepresentation=javaLegacy"))
	overridden := s.collectionOf(client, err, "items")
	perCollection := client.Database(s.Database()).Collection("items", options.Collection().SetRegistry(csharp))
	perDatabase := client.Database(s.Database(), options.Database().SetRegistry(csharp)).Collection("items")
	for i, c := range []*mongo.Collection{java, standard, perCollection, perDatabase, overridden} {
		if _, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "u", Value: testUUID}}); err != nil {
			t.Fatal(err)
		}
	}
	docs := s.stored("items")
	for i, want := range []bson.Binary{binary(3, octetsJava), binary(4, octetsStandard), binary(3, octetsCSharp), binary(3, octetsCSharp), binary(3, octetsJava)} {
		checkStored(t, docs[i], want, "u")
	}
}

// TestGridFS stores a file whose id is a UUID.
func TestGridFS(t *testing.T) {
	ctx := context30(t)
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			s := newServer(t)
			bucket := s.collection(r.rep, "x").Database().GridFSBucket()
			content := bytes.Repeat([]byte("content"), 50_000)
			if err := bucket.UploadFromStreamWithID(ctx, testUUID, "name", bytes.NewReader(content)); err != nil {
				t.Fatal(err)
			}
			checkStored(t, s.stored("fs.files")[0], r.stored, "_id")
			for _, chunk := range s.stored("fs.chunks") {
				checkStored(t, chunk, r.stored, "files_id")
			}
			stream, err := bucket.OpenDownloadStream(ctx, testUUID)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(stream)
			if err != nil || !bytes.Equal(got, content) {
				t.Errorf("got %d octets, %v", len(got), err)
			}
			if id := stream.GetFile().ID; id != testUUID {
				t.Logf("the driver reads the file's id without the registry, as %T", id)
			}
			if err := bucket.Delete(ctx, testUUID); err != nil {
				t.Error(err)
			}
			if docs := s.stored("fs.files"); len(docs) != 0 {
				t.Errorf("left: %v", docs)
			}
		})
	}
}

// TestSession tests that a session uses the registry of its client.
func TestSession(t *testing.T) {
	ctx := context30(t)
	s := newServer(t)
	coll := s.collection(uuidrep.JavaLegacy, "items")
	err := coll.Database().Client().UseSession(ctx, func(ctx context.Context) error {
		if _, err := coll.InsertOne(ctx, bson.M{"_id": testUUID}); err != nil {
			return err
		}
		var doc bson.M
		if err := coll.FindOne(ctx, bson.M{"_id": testUUID}).Decode(&doc); err != nil {
			return err
		}
		if doc["_id"] != testUUID {
			t.Errorf("got %v", doc)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	checkStored(t, s.stored("items")[0], binary(3, octetsJava), "_id")
}

// TestGofrsUUID registers the UUID type of another library and uses it in every operation.
func TestGofrsUUID(t *testing.T) {
	type doc struct {
		ID    gofrs.UUID            `bson:"_id"`
		Ptr   *gofrs.UUID           `bson:"ptr"`
		Slice []gofrs.UUID          `bson:"slice"`
		Map   map[gofrs.UUID]string `bson:"map"`
		Other uuid.UUID             `bson:"other"`
		Any   any                   `bson:"any"`
	}
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			s := newServer(t)
			register := clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.SetImplicitType(reflect.TypeFor[gofrs.UUID]()) })
			coll := s.collection(r.rep, "items", register)
			g := gofrs.UUID(testUUID)
			in := doc{ID: g, Ptr: &g, Slice: []gofrs.UUID{g, {}}, Map: map[gofrs.UUID]string{g: "x"}, Other: testUUID, Any: g}
			res, err := coll.InsertOne(ctx, in)
			if err != nil || res.InsertedID != g {
				t.Fatalf("got %#v, %v", res, err)
			}
			raw := s.stored("items")[0]
			for _, path := range [][]string{{"_id"}, {"ptr"}, {"slice", "0"}, {"other"}, {"any"}} {
				checkStored(t, raw, r.stored, path...)
			}
			var out doc
			if err := coll.FindOne(ctx, bson.M{"_id": g}).Decode(&out); err != nil || !reflect.DeepEqual(in, out) {
				t.Errorf("got %v, %v", out, err)
			}
		})
	}
}
