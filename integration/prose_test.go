package integration

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The UUID of the test plan of the specification, and its bytes in each order.
var (
	testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

	octetsStandard = unhex("00112233445566778899AABBCCDDEEFF")
	octetsJava     = unhex("7766554433221100FFEEDDCCBBAA9988")
	octetsCSharp   = unhex("33221100554477668899AABBCCDDEEFF")
)

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func binary(subtype byte, octets []byte) bson.Binary {
	return bson.Binary{Subtype: subtype, Data: octets}
}

// context30 returns a context with a timeout of 30 seconds.
func context30(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// server is the server of a test and connects clients with different settings.
type server struct {
	*mongotest.Server
	t *testing.T
}

func newServer(t *testing.T) *server { return &server{mongotest.Start(t), t} }

// collection returns a collection through a client whose connection string sets uuidRepresentation
// to rep.
func (s *server) collection(rep uuidrep.Representation, name string, opts ...clientopt.Option) *mongo.Collection {
	s.t.Helper()
	client, err := clientopt.Connect(s.With("uuidRepresentation="+rep.String()), opts...)
	return s.collectionOf(client, err, name)
}

// plain returns a collection through the driver alone, to read what the server holds.
func (s *server) plain(name string) *mongo.Collection {
	s.t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	return s.collectionOf(client, err, name)
}

func (s *server) collectionOf(client *mongo.Client, err error, name string) *mongo.Collection {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := client.Disconnect(ctx); err != nil {
			s.t.Error(err)
		}
	})
	return client.Database(s.Database()).Collection(name)
}

// stored returns the raw documents that the server holds in the collection, sorted by _id.
func (s *server) stored(name string) []bson.Raw {
	s.t.Helper()
	ctx := context30(s.t)
	cursor, err := s.plain(name).Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	if err != nil {
		s.t.Fatal(err)
	}
	var docs []bson.Raw
	if err := cursor.All(ctx, &docs); err != nil {
		s.t.Fatal(err)
	}
	return docs
}

func checkStored(t *testing.T, doc bson.Raw, want bson.Binary, path ...string) {
	t.Helper()
	subtype, octets, ok := doc.Lookup(path...).BinaryOK()
	if !ok || subtype != want.Subtype || !bytes.Equal(octets, want.Data) {
		t.Errorf("the server holds %v at %v, want subtype %d, %X", doc.Lookup(path...), path, want.Subtype, want.Data)
	}
}

// recorder keeps the commands that a client sends.
type recorder struct {
	mu   sync.Mutex
	sent []*event.CommandStartedEvent
}

func newRecorder() *recorder { return new(recorder) }

func (r *recorder) option() clientopt.Option {
	return clientopt.WithClientOptions(options.Client().SetMonitor(&event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sent = append(r.sent, e)
		},
	}))
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

// last returns the last command with the given name, or an empty document if there is none.
func (r *recorder) last(name string) bson.Raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range slices.Backward(r.sent) {
		if e.CommandName == name {
			return e.Command
		}
	}
	return bson.Raw{5, 0, 0, 0, 0}
}

// TestExplicitEncoding is the "Explicit encoding" part of the test plan of the specification: the
// Binary is made, stored, and read back as the server holds it.
func TestExplicitEncoding(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		id   string
		make func() (bson.Binary, error)
		want bson.Binary
	}{
		{"1a", func() (bson.Binary, error) { return uuidrep.NewBinary(testUUID), nil }, binary(4, octetsStandard)},
		{"2a", newBinary(uuidrep.Standard), binary(4, octetsStandard)},
		{"3a", newBinary(uuidrep.JavaLegacy), binary(3, octetsJava)},
		{"4a", newBinary(uuidrep.CSharpLegacy), binary(3, octetsCSharp)},
		{"5a", newBinary(uuidrep.PythonLegacy), binary(3, octetsStandard)},
	} {
		t.Run(tt.id, func(t *testing.T) {
			b, err := tt.make()
			if err != nil {
				t.Fatal(err)
			}
			name := "explicit" + tt.id
			if _, err := s.plain(name).InsertOne(context30(t), bson.D{{Key: "_id", Value: b}}); err != nil {
				t.Fatal(err)
			}
			checkStored(t, s.stored(name)[0], tt.want, "_id")
		})
	}
	t.Run("6a", func(t *testing.T) {
		if b, err := newBinary(uuidrep.Unspecified)(); err == nil {
			t.Errorf("got %v", b)
		}
	})
}

func newBinary(r uuidrep.Representation) func() (bson.Binary, error) {
	return func() (bson.Binary, error) { return uuidrep.NewBinaryWithRepresentation(testUUID, r) }
}

// TestExplicitDecoding is the "Explicit Decoding" part of the test plan of the specification, with
// values that the driver read from a server.
func TestExplicitDecoding(t *testing.T) {
	s := newServer(t)
	asUUID := uuidrep.As[uuid.UUID]
	as := func(r uuidrep.Representation) func(bson.Binary) (uuid.UUID, error) {
		return func(b bson.Binary) (uuid.UUID, error) { return uuidrep.AsWithRepresentation[uuid.UUID](b, r) }
	}
	type assertion struct {
		id   string
		read func(bson.Binary) (uuid.UUID, error)
		ok   bool
	}
	for _, tt := range []struct {
		stored     bson.Binary
		assertions []assertion
	}{
		{binary(4, octetsStandard), []assertion{
			{"1a", asUUID, true}, {"1b", as(uuidrep.Standard), true}, {"1c", as(uuidrep.Unspecified), false},
			{"1d", as(uuidrep.JavaLegacy), false}, {"1e", as(uuidrep.CSharpLegacy), false}, {"1f", as(uuidrep.PythonLegacy), false},
		}},
		{binary(3, octetsJava), []assertion{
			{"2a", asUUID, false}, {"2b", as(uuidrep.Standard), false}, {"2c", as(uuidrep.Unspecified), false}, {"2d", as(uuidrep.JavaLegacy), true},
		}},
		{binary(3, octetsCSharp), []assertion{
			{"3a", asUUID, false}, {"3b", as(uuidrep.Standard), false}, {"3c", as(uuidrep.Unspecified), false}, {"3d", as(uuidrep.CSharpLegacy), true},
		}},
		{binary(3, octetsStandard), []assertion{
			{"4a", asUUID, false}, {"4b", as(uuidrep.Standard), false}, {"4c", as(uuidrep.Unspecified), false}, {"4d", as(uuidrep.PythonLegacy), true},
		}},
	} {
		name := "explicit" + tt.assertions[0].id
		coll := s.plain(name)
		if _, err := coll.InsertOne(context30(t), bson.D{{Key: "v", Value: tt.stored}}); err != nil {
			t.Fatal(err)
		}
		var doc struct{ V bson.Binary }
		if err := coll.FindOne(context30(t), bson.D{}).Decode(&doc); err != nil {
			t.Fatal(err)
		}
		for _, a := range tt.assertions {
			t.Run(a.id, func(t *testing.T) {
				u, err := a.read(doc.V)
				if a.ok && (err != nil || u != testUUID) {
					t.Errorf("got %v, %v; want %v", u, err, testUUID)
				}
				if !a.ok && err == nil {
					t.Errorf("got %v, want an error", u)
				}
			})
		}
	}
}

// TestImplicitEncoding is the "Implicit encoding" part of the test plan of the specification.
func TestImplicitEncoding(t *testing.T) {
	s := newServer(t)
	for _, tt := range []struct {
		id   string
		rep  uuidrep.Representation
		want bson.Binary
	}{
		{"1a", uuidrep.JavaLegacy, binary(3, octetsJava)},
		{"2a", uuidrep.CSharpLegacy, binary(3, octetsCSharp)}, // the specification says "charpLegacy", which is a misprint
		{"3a", uuidrep.PythonLegacy, binary(3, octetsStandard)},
		{"4a", uuidrep.Standard, binary(4, octetsStandard)},
	} {
		t.Run(tt.id, func(t *testing.T) {
			name := "implicit" + tt.id
			if _, err := s.collection(tt.rep, name).InsertOne(context30(t), bson.D{{Key: "_id", Value: testUUID}}); err != nil {
				t.Fatal(err)
			}
			docs := s.stored(name)
			if len(docs) != 1 {
				t.Fatalf("the server holds %v", docs)
			}
			checkStored(t, docs[0], tt.want, "_id")
		})
	}
	t.Run("5a", func(t *testing.T) {
		sent := newRecorder()
		coll := s.collection(uuidrep.Unspecified, "implicit5a", sent.option())
		_, err := coll.InsertOne(context30(t), bson.D{{Key: "_id", Value: testUUID}})
		var marshalErr mongo.MarshalError
		if !errors.Is(err, uuidrep.ErrUnspecified) || !errors.As(err, &marshalErr) {
			t.Errorf("got %v, want a MarshalError that wraps ErrUnspecified", err)
		}
		if docs := s.stored("implicit5a"); sent.count() != 0 || len(docs) != 0 {
			t.Errorf("%d commands were sent, the server holds %v", sent.count(), docs)
		}
	})
}

// TestImplicitDecoding is the "Implicit Decoding" part of the test plan of the specification.
func TestImplicitDecoding(t *testing.T) {
	s := newServer(t)
	standard := binary(4, octetsStandard)
	for _, tt := range []struct {
		id       string
		rep      uuidrep.Representation
		legacy   bson.Binary
		standard any // the expected value of the field standard
		want     any // the expected value of the field legacy
	}{
		{"1", uuidrep.JavaLegacy, binary(3, octetsJava), standard, testUUID},
		{"1/csharpLegacy", uuidrep.CSharpLegacy, binary(3, octetsCSharp), standard, testUUID},
		{"1/pythonLegacy", uuidrep.PythonLegacy, binary(3, octetsStandard), standard, testUUID},
		{"2", uuidrep.Standard, binary(3, octetsStandard), testUUID, binary(3, octetsStandard)},
		// The specification repeats test 3 with the client set to csharpLegacy and pythonLegacy,
		// which contradicts its own table. Here the client stays unspecified and the legacy field
		// changes.
		{"3", uuidrep.Unspecified, binary(3, octetsStandard), standard, binary(3, octetsStandard)},
		{"3/csharpLegacy", uuidrep.Unspecified, binary(3, octetsCSharp), standard, binary(3, octetsCSharp)},
		{"3/pythonLegacy", uuidrep.Unspecified, binary(3, octetsStandard), standard, binary(3, octetsStandard)},
	} {
		t.Run(tt.id, func(t *testing.T) {
			name := "implicit" + tt.id
			coll := s.collection(tt.rep, name)
			if _, err := coll.InsertOne(context30(t), bson.D{{Key: "standard", Value: standard}, {Key: "legacy", Value: tt.legacy}}); err != nil {
				t.Fatal(err)
			}
			var doc bson.M
			if err := coll.FindOne(context30(t), bson.D{}).Decode(&doc); err != nil {
				t.Fatal(err)
			}
			for id, v := range map[string][2]any{"a": {doc["standard"], tt.standard}, "b": {doc["legacy"], tt.want}} {
				t.Run(id, func(t *testing.T) {
					if fmt.Sprintf("%T %v", v[0], v[0]) != fmt.Sprintf("%T %v", v[1], v[1]) {
						t.Errorf("got %T %v, want %T %v", v[0], v[0], v[1], v[1])
					}
				})
			}
		})
	}
}
