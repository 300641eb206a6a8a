// Package interop tests bsonids with PyMongo: each side must read what the other side writes.
package interop

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

func TestMain(m *testing.M) { mongotest.Main(m) }

//go:embed peer.py
var peer string

// ask sends a request to PyMongo and returns its answer.
func ask[T any](t *testing.T, request map[string]any) T {
	t.Helper()
	name := mongotest.Python(t)
	in, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, "-c", peer)
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("PyMongo, %v: %v\n%s", request["op"], err, stderr.Bytes())
	}
	var answer T
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatalf("PyMongo, %v: %v in %q", request["op"], err, out)
	}
	return answer
}

func context30(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func collection(t *testing.T, s *mongotest.Server, r uuidrep.Representation) *mongo.Collection {
	t.Helper()
	client, err := clientopt.Connect(uri(s, r))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client.Database(s.Database()).Collection("items")
}

func uri(s *mongotest.Server, r uuidrep.Representation) string {
	return s.With("uuidRepresentation=" + r.String())
}

var native = []uuidrep.Representation{
	uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy,
}

// stored permutes the bytes of u as the table of the specification permutes its test UUID
// 00112233-4455-6677-8899-aabbccddeeff, whose bytes name their indexes.
func stored(r uuidrep.Representation, u uuid.UUID) bson.Binary {
	table := map[uuidrep.Representation]struct {
		subtype byte
		octets  string
	}{
		uuidrep.Standard:     {4, "00112233445566778899AABBCCDDEEFF"},
		uuidrep.CSharpLegacy: {3, "33221100554477668899AABBCCDDEEFF"},
		uuidrep.JavaLegacy:   {3, "7766554433221100FFEEDDCCBBAA9988"},
		uuidrep.PythonLegacy: {3, "00112233445566778899AABBCCDDEEFF"},
	}[r]
	places, err := hex.DecodeString(table.octets)
	if err != nil {
		panic(err)
	}
	b := bson.Binary{Subtype: table.subtype, Data: make([]byte, 16)}
	for i, p := range places {
		b.Data[i] = u[p>>4]
	}
	return b
}

// document has values of type U in every position that a document has for them.
type document[U any] struct {
	ID     U `bson:"_id"`
	Nested struct {
		U    U `bson:"u"`
		Deep struct {
			U *U `bson:"u"`
		} `bson:"deep"`
	} `bson:"nested"`
	List []U                `bson:"list"`
	Docs []element[U]       `bson:"docs"`
	Map  map[string]U       `bson:"map"`
	N    int32              `bson:"n"`
	Keys map[uuid.UUID]bool `bson:"keys"` // every driver encodes a key as text
}

type element[U any] struct {
	U    U   `bson:"u"`
	List []U `bson:"list"`
}

func newDocument(n int32, random *rand.Rand) document[uuid.UUID] {
	next := func() (u uuid.UUID) {
		for i := range u {
			u[i] = byte(random.Uint32())
		}
		return u
	}
	d := document[uuid.UUID]{ID: next(), N: n}
	d.Nested.U = next()
	deep := next()
	d.Nested.Deep.U = &deep
	d.List = []uuid.UUID{next(), {}, next()}
	d.Docs = []element[uuid.UUID]{{next(), []uuid.UUID{next()}}, {next(), []uuid.UUID{next(), next()}}}
	d.Map = map[string]uuid.UUID{"a": next(), "b": next()}
	d.Keys = map[uuid.UUID]bool{next(): true}
	return d
}

// convert converts every value with f, in the order of the fields.
func convert[U, V any](d document[U], f func(U) V) document[V] {
	var c document[V]
	c.ID, c.N, c.Keys = f(d.ID), d.N, d.Keys
	c.Nested.U = f(d.Nested.U)
	deep := f(*d.Nested.Deep.U)
	c.Nested.Deep.U = &deep
	all := func(list []U) (converted []V) {
		for _, u := range list {
			converted = append(converted, f(u))
		}
		return converted
	}
	c.List = all(d.List)
	for _, e := range d.Docs {
		c.Docs = append(c.Docs, element[V]{f(e.U), all(e.List)})
	}
	c.Map = make(map[string]V)
	for key, u := range d.Map {
		c.Map[key] = f(u)
	}
	return c
}

// inJSON returns the document as requests and answers have it. The function f converts a value.
func inJSON[U any](d document[U], f func(U) any) map[string]any {
	c := convert(d, f)
	keys := make(map[string]any)
	for key, v := range c.Keys {
		keys[key.String()] = v
	}
	docs := []any{}
	for _, x := range c.Docs {
		docs = append(docs, map[string]any{"u": x.U, "list": x.List})
	}
	values := make(map[string]any)
	for key, v := range c.Map {
		values[key] = v
	}
	return map[string]any{
		"_id":    c.ID,
		"nested": map[string]any{"u": c.Nested.U, "deep": map[string]any{"u": *c.Nested.Deep.U}},
		"list":   c.List,
		"docs":   docs,
		"map":    values,
		"n":      float64(c.N),
		"keys":   keys,
	}
}

func uuidJSON(u uuid.UUID) any { return map[string]any{"uuid": u.String()} }

func binaryJSON(b bson.Binary) any {
	return map[string]any{"binary": []any{float64(b.Subtype), hex.EncodeToString(b.Data)}}
}

// generic returns the document as a decoder returns it in maps. The function f converts a value.
func generic(d document[uuid.UUID], f func(uuid.UUID) any) bson.M {
	c := convert(d, f)
	keys := bson.M{}
	for key, v := range c.Keys {
		keys[key.String()] = v
	}
	docs := bson.A{}
	for _, x := range c.Docs {
		docs = append(docs, bson.M{"u": x.U, "list": bson.A(x.List)})
	}
	return bson.M{
		"_id":    c.ID,
		"nested": bson.M{"u": c.Nested.U, "deep": bson.M{"u": *c.Nested.Deep.U}},
		"list":   bson.A(c.List),
		"docs":   docs,
		"map":    bson.M{"a": c.Map["a"], "b": c.Map["b"]},
		"n":      c.N,
		"keys":   keys,
	}
}

func newDocuments(seed uint64) []document[uuid.UUID] {
	random := rand.New(rand.NewPCG(5, seed))
	var docs []document[uuid.UUID]
	for n := range int32(10) {
		docs = append(docs, newDocument(n, random))
	}
	return docs
}

func find[T any](t *testing.T, coll *mongo.Collection, filter any) []T {
	t.Helper()
	var docs []T
	ctx := context30(t)
	cursor, err := coll.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "n", Value: 1}}))
	if err == nil {
		err = cursor.All(ctx, &docs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func check(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// TestPythonWrites tests that a Go client reads the UUIDs of PyMongo as native UUIDs if both have
// the same setting. If the setting of the client has the other subtype, the client reads a Binary
// into any and returns an error for a UUID, as the table of the specification says. A field of type
// Binary holds a Binary in every case.
func TestPythonWrites(t *testing.T) {
	for _, wrote := range native {
		t.Run(wrote.String(), func(t *testing.T) {
			s := mongotest.Start(t)
			docs := newDocuments(uint64(wrote))
			var request []any
			var binaries []document[bson.Binary]
			for _, d := range docs {
				request = append(request, inJSON(d, uuidJSON))
				binaries = append(binaries, convert(d, func(u uuid.UUID) bson.Binary { return stored(wrote, u) }))
			}
			ask[any](t, map[string]any{"op": "insert", "uri": uri(s, wrote), "collection": "items", "documents": request})

			for _, reads := range append([]uuidrep.Representation{uuidrep.Unspecified}, native...) {
				t.Run("read as "+reads.String(), func(t *testing.T) {
					coll := collection(t, s, reads)
					check(t, "typed Binary", find[document[bson.Binary]](t, coll, bson.D{}), binaries)

					subtype := stored(wrote, uuid.UUID{}).Subtype
					isUUID := reads != uuidrep.Unspecified && stored(reads, uuid.UUID{}).Subtype == subtype
					var inAny []bson.M
					for _, d := range docs {
						inAny = append(inAny, generic(d, func(u uuid.UUID) any {
							b := stored(wrote, u)
							if isUUID {
								return uuid.UUID(stored(reads, uuid.UUID(b.Data)).Data) // each order is its own inverse
							}
							return b
						}))
					}
					var inMaps []bson.M
					ctx := context30(t)
					cursor, err := coll.Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "n", Value: 1}}))
					if err != nil {
						t.Fatal(err)
					}
					defer cursor.Close(ctx)
					for cursor.Next(ctx) {
						inMaps = append(inMaps, decodeM(t, cursor.Current, reads))
					}
					check(t, "in maps", inMaps, inAny)

					if reads == wrote {
						check(t, "native", find[document[uuid.UUID]](t, coll, bson.D{}), docs)
						check(t, "by a filter", find[document[uuid.UUID]](t, coll, bson.M{"nested.deep.u": docs[3].Nested.Deep.U}), docs[3:4])
						return
					}
					if !isUUID {
						var doc document[uuid.UUID]
						err := coll.FindOne(context30(t), bson.D{}).Decode(&doc)
						var wrong *uuidrep.SubtypeError
						refused := errors.As(err, &wrong) && wrong.Subtype == subtype
						if reads == uuidrep.Unspecified {
							refused = errors.Is(err, uuidrep.ErrUnspecified)
						}
						if !refused {
							t.Errorf("into a UUID: %v", err)
						}
					}
				})
			}
		})
	}
}

// decodeM decodes into maps at every level.
func decodeM(t *testing.T, raw bson.Raw, r uuidrep.Representation) bson.M {
	t.Helper()
	reg, err := bsoncodec.NewRegistry(r)
	if err != nil {
		t.Fatal(err)
	}
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	dec.DefaultDocumentM()
	var m bson.M
	if err := dec.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestGoWrites tests that PyMongo reads the UUIDs of a Go client as native UUIDs in the same
// setting, and as the same subtype and bytes without a setting.
func TestGoWrites(t *testing.T) {
	for _, r := range native {
		t.Run(r.String(), func(t *testing.T) {
			s := mongotest.Start(t)
			docs := newDocuments(uint64(r))
			var inserted, asUUID, asBinary []any
			for _, d := range docs {
				inserted = append(inserted, d)
				asUUID = append(asUUID, inJSON(d, uuidJSON))
				asBinary = append(asBinary, inJSON(d, func(u uuid.UUID) any { return binaryJSON(stored(r, u)) }))
			}
			if _, err := collection(t, s, r).InsertMany(context30(t), inserted); err != nil {
				t.Fatal(err)
			}

			request := map[string]any{"op": "find", "uri": uri(s, r), "collection": "items", "filter": map[string]any{}}
			check(t, "native", ask[[]any](t, request), normal(t, asUUID))
			request["filter"] = map[string]any{"map.b": uuidJSON(docs[7].Map["b"])}
			check(t, "by a filter", ask[[]any](t, request), normal(t, asUUID[7:8]))
			request["filter"], request["uri"] = map[string]any{}, uri(s, uuidrep.Unspecified)
			check(t, "unspecified", ask[[]any](t, request), normal(t, asBinary))
		})
	}
}

// normal converts a value to JSON and back, so that it has the types of an answer.
func normal(t *testing.T, v []any) []any {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var n []any
	if err := json.Unmarshal(b, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRandomUUIDs sends a thousand random UUIDs in each direction in each setting, as _id.
func TestRandomUUIDs(t *testing.T) {
	const count = 1000
	type keyed struct {
		ID uuid.UUID `bson:"_id"`
		N  int32     `bson:"n"`
	}
	for _, r := range native {
		t.Run(r.String(), func(t *testing.T) {
			t.Run("from Python", func(t *testing.T) {
				s := mongotest.Start(t)
				said := ask[[]string](t, map[string]any{"op": "random", "uri": uri(s, r), "collection": "items", "count": count})
				docs := find[keyed](t, collection(t, s, r), bson.D{})
				if len(docs) != count || len(said) != count {
					t.Fatalf("%d documents, %d UUIDs said, want %d", len(docs), len(said), count)
				}
				for i, d := range docs {
					if d.ID.String() != said[i] {
						t.Fatalf("read %v, Python wrote %s", d.ID, said[i])
					}
				}
			})
			t.Run("from Go", func(t *testing.T) {
				s := mongotest.Start(t)
				docs := make([]any, count)
				for i := range docs {
					var u uuid.UUID // any 16 bytes, not only the UUIDs of one version
					for j := range u {
						u[j] = byte(rand.Uint32())
					}
					docs[i] = keyed{u, int32(i)}
				}
				if _, err := collection(t, s, r).InsertMany(context30(t), docs); err != nil {
					t.Fatal(err)
				}
				read := ask[[]struct {
					ID struct{ UUID string } `json:"_id"`
				}](t, map[string]any{"op": "find", "uri": uri(s, r), "collection": "items", "filter": map[string]any{}})
				if len(read) != count {
					t.Fatalf("Python read %d documents, want %d", len(read), count)
				}
				for i, d := range read {
					if want := docs[i].(keyed).ID.String(); d.ID.UUID != want {
						t.Fatalf("Python read %s, want %s", d.ID.UUID, want)
					}
				}
			})
		})
	}
}

// TestBSON tests that PyMongo and bsoncodec encode the same document to the same bytes. The keys
// are in alphabetical order, as in a request. This test includes arrays of arrays, because FerretDB
// does not store them.
func TestBSON(t *testing.T) {
	for _, r := range native {
		t.Run(r.String(), func(t *testing.T) {
			reg, err := bsoncodec.NewRegistry(r)
			if err != nil {
				t.Fatal(err)
			}
			d := newDocuments(uint64(r))[0]
			got, err := bsoncodec.Marshal(reg, bson.D{
				{Key: "a", Value: d.ID},
				{Key: "b", Value: d.List},
				{Key: "c", Value: [][]uuid.UUID{d.List, {}, d.Docs[0].List}},
				{Key: "d", Value: bson.D{{Key: "p", Value: d.Nested.Deep.U}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			array := func(list []uuid.UUID) []any {
				a := []any{}
				for _, u := range list {
					a = append(a, uuidJSON(u))
				}
				return a
			}
			want := ask[string](t, map[string]any{"op": "bson", "representation": r.String(), "document": map[string]any{
				"a": uuidJSON(d.ID),
				"b": array(d.List),
				"c": []any{array(d.List), []any{}, array(d.Docs[0].List)},
				"d": map[string]any{"p": uuidJSON(*d.Nested.Deep.U)},
			}})
			check(t, "octets", hex.EncodeToString(got), want)
		})
	}
}

// TestExtendedJSON tests that each side reads the Extended JSON that the other side writes, in both
// modes.
func TestExtendedJSON(t *testing.T) {
	for _, r := range native {
		for _, canonical := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v/canonical=%v", r, canonical), func(t *testing.T) {
				reg, err := bsoncodec.NewRegistry(r)
				if err != nil {
					t.Fatal(err)
				}
				d := newDocuments(uint64(r))[4]

				text := ask[string](t, map[string]any{
					"op": "dumps", "representation": r.String(), "canonical": canonical, "document": inJSON(d, uuidJSON),
				})
				var read document[uuid.UUID]
				if err := bsoncodec.UnmarshalExtJSON(reg, []byte(text), canonical, &read); err != nil {
					t.Fatalf("%v in %s", err, text)
				}
				check(t, "Go reads", read, d)

				written, err := bsoncodec.MarshalExtJSON(reg, d, canonical, false)
				if err != nil {
					t.Fatal(err)
				}
				check(t, "Python reads", []any{ask[any](t, map[string]any{
					"op": "loads", "representation": r.String(), "canonical": canonical, "text": string(written),
				})}, normal(t, []any{inJSON(d, uuidJSON)}))
			})
		}
	}
}

type objectID struct {
	OID     string `json:"oid"`
	Seconds int64  `json:"seconds"`
}

// TestObjectIDs tests that both sides read the same time from an ObjectID, over the whole range of
// 32 bits.
func TestObjectIDs(t *testing.T) {
	want := make(map[string]time.Time)
	var oids []string
	add := func(id bson.ObjectID, at time.Time) {
		want[id.Hex()] = at
		oids = append(oids, id.Hex())
	}
	for _, at := range []time.Time{
		time.Unix(0, 0),
		time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC),
		time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC),
		time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC),
		time.Date(2106, 2, 7, 6, 28, 15, 0, time.UTC),
	} {
		gen, err := objectidgen.NewGenerator(objectidgen.WithClock(func() time.Time { return at }))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			add(gen.NewObjectID(), at)
		}
	}
	before := time.Now().Truncate(time.Second)
	var now []string
	for range 1000 {
		now = append(now, objectidgen.NewObjectID().Hex())
	}
	after := time.Now()

	parsed := ask[[]objectID](t, map[string]any{"op": "parse", "oids": append(oids, now...)})
	if len(parsed) != len(oids)+len(now) {
		t.Fatalf("%d parsed", len(parsed))
	}
	for i, p := range parsed {
		read := time.Unix(p.Seconds, 0)
		if i < len(oids) {
			if p.OID != oids[i] || !read.Equal(want[oids[i]]) {
				t.Errorf("PyMongo reads %+v from %s, want %v", p, oids[i], want[oids[i]])
			}
		} else if p.OID != now[i-len(oids)] || read.Before(before) || read.After(after) {
			t.Errorf("PyMongo reads %+v from %s, made between %v and %v", p, now[i-len(oids)], before, after)
		}
	}

	for _, p := range ask[[]objectID](t, map[string]any{"op": "objectids", "count": 1000}) {
		id, err := bson.ObjectIDFromHex(p.OID)
		if err != nil {
			t.Fatal(err)
		}
		if got := objectidgen.Decode(id).Seconds; int64(got) != p.Seconds {
			t.Errorf("%s: %d seconds, PyMongo reads %d", p.OID, got, p.Seconds)
		}
	}
}

// TestGeneratedIDs tests that PyMongo reads from the server the ids that autoid adds to documents.
func TestGeneratedIDs(t *testing.T) {
	s := mongotest.Start(t)
	at := time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC)
	gen, err := objectidgen.NewGenerator(objectidgen.WithClock(func() time.Time { return at }))
	if err != nil {
		t.Fatal(err)
	}
	coll := autoid.Wrap(collection(t, s, uuidrep.Standard), gen)
	res, err := coll.InsertMany(context30(t), []any{bson.M{"n": 0}, bson.M{"n": 1}, bson.M{"n": 2}})
	if err != nil {
		t.Fatal(err)
	}
	read := ask[[]struct {
		ID objectID `json:"_id"`
	}](t, map[string]any{"op": "find", "uri": uri(s, uuidrep.Standard), "collection": "items", "filter": map[string]any{}})
	if len(read) != 3 {
		t.Fatalf("PyMongo read %v", read)
	}
	for i, d := range read {
		if want := (objectID{res.InsertedIDs[i].(bson.ObjectID).Hex(), at.Unix()}); d.ID != want {
			t.Errorf("PyMongo read %v, want %v", d.ID, want)
		}
	}
	// PyMongo finds a document by its generated id.
	found := ask[[]any](t, map[string]any{
		"op": "find", "uri": uri(s, uuidrep.Standard), "collection": "items", "filter": map[string]any{"_id": map[string]any{"oid": read[1].ID.OID}},
	})
	if len(found) != 1 {
		t.Errorf("PyMongo found %v", found)
	}
}
