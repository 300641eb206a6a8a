package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

func connect(t testing.TB, s *mongotest.Server) *mongo.Database {
	t.Helper()
	return connectTo(t, s, s.Database())
}

func connectTo(t testing.TB, s target, db string) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(db)
}

// started starts a server that has the features, or skips the test, and connects to its database.
func started(t testing.TB, features ...*mongotest.Feature) (*mongotest.Server, *mongo.Database) {
	t.Helper()
	s := mongotest.Start(t)
	s.Require(t, features...)
	return s, connect(t, s)
}

// says fails the test unless stderr has the texts.
func (r result) says(t testing.TB, texts ...string) result {
	t.Helper()
	return r.has(t, "stderr", r.stderr, texts)
}

// prints fails the test unless stdout has the texts.
func (r result) prints(t testing.TB, texts ...string) result {
	t.Helper()
	return r.has(t, "stdout", r.stdout, texts)
}

func (r result) has(t testing.TB, stream, is string, texts []string) result {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(is, text) {
			t.Errorf("%q is not in %s:\n%s%s", text, stream, r.stdout, r.stderr)
		}
	}
	return r
}

// lacks fails the test if the output has one of the texts.
func (r result) lacks(t testing.TB, texts ...string) result {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(r.stdout+r.stderr, text) {
			t.Errorf("%q is in the output:\n%s%s", text, r.stdout, r.stderr)
		}
	}
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// did checks that an operation succeeded, whatever its result.
func did(t testing.TB) func(result any, err error) {
	return func(_ any, err error) {
		t.Helper()
		check(t, err)
	}
}

// decode decodes JSON.
func decode(t testing.TB, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err, text)
	}
}

// put writes a file.
func put(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func insert(t testing.TB, coll *mongo.Collection, docs []any) {
	t.Helper()
	for len(docs) > 0 {
		n := min(len(docs), 5000)
		if _, err := coll.InsertMany(t.Context(), docs[:n]); err != nil {
			t.Fatal(err)
		}
		docs = docs[n:]
	}
}

// set sets a field of the document with the _id.
func set(t testing.TB, coll *mongo.Collection, id any, field string, v any) {
	t.Helper()
	if _, err := coll.UpdateByID(context.Background(), id, bson.D{{Key: "$set", Value: bson.D{{Key: field, Value: v}}}}); err != nil {
		t.Error(err)
	}
}

func drop(t testing.TB, coll *mongo.Collection) {
	t.Helper()
	if err := coll.Drop(context.Background()); err != nil {
		t.Error(err)
	}
}

func rename(t testing.TB, db *mongo.Database, from, to string) {
	t.Helper()
	command := bson.D{{Key: "renameCollection", Value: db.Name() + "." + from}, {Key: "to", Value: db.Name() + "." + to}}
	if err := db.Client().Database("admin").RunCommand(context.Background(), command).Err(); err != nil {
		t.Error(err)
	}
}

func all(t testing.TB, coll *mongo.Collection) map[string]bson.Raw {
	t.Helper()
	cur, err := coll.Find(context.Background(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var docs []bson.Raw
	if err := cur.All(context.Background(), &docs); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bson.Raw, len(docs))
	for _, d := range docs {
		out[d.Lookup("_id").String()] = d
	}
	return out
}

// in returns a UUID as the representation stores it, or with subtype 0 if r is Unspecified.
func in(u uuid.UUID, r uuidrep.Representation) bson.Binary {
	if r == uuidrep.Unspecified {
		return bson.Binary{Data: u[:]}
	}
	b, err := uuidrep.NewBinaryWithRepresentation(u, r)
	if err != nil {
		panic(err)
	}
	return b
}

var legacy = []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy}

// besides are ten bits next to the version and the variant: all there are, in no order.
var besides = rand.New(rand.NewPCG(10, 24)).Perm(1 << 10)

// v4 returns a random UUID of version 4 whose ten bits next to the version and the variant are others for each i,
// modulo 1024. Values that agree in these bits count as one where the order of a field is decided, so that
// a few values with arbitrary bits do not always decide it.
func v4(i int) uuid.UUID {
	u, bits := uuid.New(), besides[i%len(besides)]
	u[6] = 0x40 | byte(bits>>6)
	u[8] = 0x80 | byte(bits)&0x3f
	return u
}

// seed fills a collection with UUIDs in a representation, at every depth. It returns the
// documents that a conversion must produce.
func seed(t testing.TB, coll *mongo.Collection, n int, from uuidrep.Representation) map[string]bson.Raw {
	t.Helper()
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range n {
		a, b, c := v4(i), v4(i), v4(i)
		doc := func(r uuidrep.Representation) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(a, r)}, {Key: "n", Value: int32(0)},
				{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: in(b, r)}, {Key: "name", Value: "x"}}, in(c, r), nil}},
				{Key: "odd", Value: bson.Binary{Data: []byte("short")}}, {Key: "md5", Value: bson.Binary{Subtype: 5, Data: a[:]}}}
		}
		docs = append(docs, doc(from))
		note(want, doc(uuidrep.Standard))
	}
	insert(t, coll, docs)
	return want
}

// wantNew fails the test unless the field has UUIDs of subtype 4 in all documents.
func wantNew(t testing.TB, coll *mongo.Collection, field string) {
	t.Helper()
	for id, doc := range all(t, coll) {
		if subtype, _, ok := doc.Lookup(field).BinaryOK(); !ok || subtype != bson.TypeBinaryUUID {
			t.Errorf("%s: %s has subtype %d", coll.Name(), id, subtype)
			return
		}
	}
}

func equal(t testing.TB, got, want map[string]bson.Raw) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d documents, want %d", len(got), len(want))
	}
	wrong := 0
	for id, doc := range want {
		if !bytes.Equal(got[id], doc) {
			if wrong++; wrong < 4 {
				t.Errorf("%s: got %v, want %v", id, got[id], doc)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("… and %d more", wrong-3)
	}
}

func marshalValue(t testing.TB, v any) bson.RawValue {
	t.Helper()
	return marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v")
}

// some returns the number of documents whose conversion takes long enough to be killed: n on a
// server that reads the whole collection to find a document, several times as many on one that has
// indexes, and a third of that in a short run.
func some(t testing.TB, s *mongotest.Server, n int) int {
	t.Helper()
	if s.Has(t, mongotest.ExplainedIndexes) {
		n *= 6
	}
	if testing.Short() {
		return n / 3
	}
	return n
}

// uuidOf reads a UUID in the Java representation or the standard one.
func uuidOf(v bson.RawValue) (uuid.UUID, error) {
	subtype, data := v.Binary()
	if subtype == bson.TypeBinaryUUID {
		return uuid.UUID(data), nil
	}
	return uuidrep.AsWithRepresentation[uuid.UUID](bson.Binary{Subtype: subtype, Data: data}, uuidrep.JavaLegacy)
}

var marshal = kindstest.Marshal
