package autoid

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// registries returns a registry of the driver, one with codecs for UUIDs, and one without plans, each
// with Register.
func registries(t testing.TB) map[string]func() *bson.Registry {
	build := func(b *bsoncodec.RegistryBuilder) *bson.Registry {
		t.Helper()
		reg, err := b.With(Register).Build()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}
	return map[string]func() *bson.Registry{
		"driver": registered,
		"plans":  func() *bson.Registry { return build(bsoncodec.NewRegistryBuilder(uuidrep.Standard)) },
		"codecs": func() *bson.Registry { return build(bsoncodec.NewRegistryBuilder(uuidrep.Standard).WithoutPlans()) },
	}
}

type idOf[T any] struct {
	ID T `bson:"_id"`
}

type lateID[T any] struct {
	Name string `bson:"name"`
	ID   T      `bson:"_id"`
}

type openID[T any] struct {
	Rest bson.M `bson:",inline"`
	ID   T      `bson:"_id"`
}

type omitID[T any] struct {
	Name string `bson:"name"`
	ID   T      `bson:"_id,omitempty"`
}

// emptyAsNull encodes as null if it is empty.
type emptyAsNull struct{ s []byte }

func (n emptyAsNull) MarshalBSONValue() (byte, []byte, error) {
	if len(n.s) == 0 {
		return byte(bson.TypeNull), nil, nil
	}
	t, b, err := bson.MarshalValue(string(n.s))
	return byte(t), b, err
}

// TestZeroIDsRefused tests that an _id that is null, the zero ObjectID or 16 zero octets is an error,
// in every kind of document and without a draw, and is inserted as it is with WithZeroIDs.
func TestZeroIDsRefused(t *testing.T) {
	zeroBinary := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	raw := func(id any) bson.Raw { return marshal(t, bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: id}}) }
	for name, newRegistry := range registries(t) {
		for _, doc := range []any{
			idOf[bson.ObjectID]{}, &idOf[bson.ObjectID]{}, lateID[bson.ObjectID]{}, openID[bson.ObjectID]{},
			idOf[uuid.UUID]{}, lateID[uuid.UUID]{}, openID[uuid.UUID]{}, &lateID[*uuid.UUID]{ID: new(uuid.UUID)},
			idOf[*uuid.UUID]{}, lateID[*bson.ObjectID]{}, openID[*int]{}, idOf[any]{}, lateID[any]{}, openID[any]{ID: uuid.Nil},
			idOf[any]{bson.NilObjectID}, lateID[bson.Binary]{ID: zeroBinary}, idOf[bson.Null]{}, idOf[emptyAsNull]{},
			idOf[uuidrep.StandardUUID]{},
			bson.M{"_id": nil}, bson.M{"_id": uuid.Nil}, bson.M{"_id": bson.NilObjectID, "a": 1, "b": 2, "c": 3},
			map[string]uuid.UUID{"_id": {}}, map[string]*int{"_id": nil}, map[string]any{"_id": zeroBinary},
			bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: nil}}, bson.D{{Key: "_id", Value: uuid.Nil}},
			&bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "c", Value: 1}, {Key: "_id", Value: bson.NilObjectID}},
			[]bson.E{{Key: "_id", Value: bson.Undefined{}}}, oddD{{Key: "_id", Value: uuid.Nil}},
			raw(nil), []byte(raw(bson.NilObjectID)), raw(zeroBinary), raw(bson.Binary{Subtype: 3, Data: make([]byte, 16)}),
			raw(bson.Binary{Data: make([]byte, 16)}), raw(bson.Undefined{}),
			marshaler{bson.D{{Key: "_id", Value: nil}}}, &pointerMarshaler{bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: bson.NilObjectID}}},
		} {
			reg := newRegistry()
			var src counter
			_, err := encode(reg, Document(&src, doc))
			var failed *IDError
			if !errors.Is(err, ErrZeroID) || !errors.As(err, &failed) || failed.Index != -1 {
				t.Errorf("%s: %T: got %v", name, doc, err)
				continue
			}
			for _, way := range []string{"omitempty", "WithZeroIDAsMissing", "WithZeroIDs"} {
				if !strings.Contains(err.Error(), way) {
					t.Errorf("%s: %T: the error does not name %s: %v", name, doc, way, err)
				}
			}
			plain, err := encode(reg, doc)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := encode(reg, Document(&src, doc, WithZeroIDs()))
			if m, ok := doc.(bson.M); ok && len(m) > 1 { // the order of a map varies
				if bson.Raw(kept).Lookup("_id").Type != bson.TypeObjectID {
					t.Errorf("%s: %T: kept as %s, %v", name, doc, hex(kept), err)
				}
			} else if err != nil || !bytes.Equal(kept, plain) {
				t.Errorf("%s: %T: kept as %s, %v, want %s", name, doc, hex(kept), err, hex(plain))
			}
			if src.drawn() != 0 {
				t.Errorf("%s: %T: %d drawn", name, doc, src.drawn())
			}
			replaced, err := encode(reg, Document(&src, doc, WithZeroIDAsMissing(), WithMisfitIDs()))
			if id, ok := bson.Raw(replaced).Lookup("_id").Int32OK(); err != nil || !ok || id != 1 {
				t.Errorf("%s: %T: replaced as %s, %v", name, doc, hex(replaced), err)
			}
		}
	}
}

// TestOtherZeroIDs tests that other zero values are ids.
func TestOtherZeroIDs(t *testing.T) {
	for _, doc := range []any{
		idOf[string]{}, lateID[int32]{}, openID[bool]{}, idOf[float64]{}, bson.M{"_id": ""}, bson.D{{Key: "_id", Value: 0}},
		bson.D{{Key: "_id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 15)}}}, bson.D{{Key: "_id", Value: bson.Binary{}}},
		bson.D{{Key: "_id", Value: bson.D{}}}, bson.D{{Key: "_id", Value: bson.Decimal128{}}}, bson.D{{Key: "_id", Value: bson.DateTime(0)}},
		bson.Raw(marshal(t, bson.D{{Key: "_id", Value: false}})),
	} {
		for name, newRegistry := range registries(t) {
			reg := newRegistry()
			want, err := encode(reg, doc)
			if err != nil {
				t.Fatal(err)
			}
			var src counter
			if got, err := encode(reg, Document(&src, doc)); err != nil || !bytes.Equal(got, want) || src.drawn() != 0 {
				t.Errorf("%s: %T: got %s, %v, want %s", name, doc, hex(got), err, hex(want))
			}
		}
	}
}

// TestZeroIDsNothingSent tests that the methods of a Collection send nothing if an _id is refused,
// and report the document.
func TestZeroIDsNothingSent(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	coll := client.Database("db").Collection("c")
	bad, good := idOf[bson.ObjectID]{}, bson.M{"a": 1}
	for _, opts := range [][]Option{nil, {WithZeroIDs()}} {
		c := Wrap(coll, &counter{}, opts...)
		_, one := c.InsertOne(ctx, bad)
		_, many := c.InsertMany(ctx, []any{good, bad})
		_, bulk := c.BulkWrite(ctx, []mongo.WriteModel{
			mongo.NewInsertOneModel().SetDocument(good), mongo.NewDeleteOneModel().SetFilter(bson.M{"a": 1}),
			mongo.NewInsertOneModel().SetDocument(bad),
		})
		for i, err := range []error{one, many, bulk} {
			var failed *IDError
			if opts != nil {
				if errors.Is(err, ErrZeroID) {
					t.Errorf("call %d with WithZeroIDs: %v", i, err)
				}
				continue
			}
			if !errors.Is(err, ErrZeroID) || !errors.As(err, &failed) || failed.Index != i || failed.Document != any(bad) {
				t.Errorf("call %d: got %v", i, err)
			}
		}
		if opts == nil && len(started()) != 0 {
			t.Errorf("sent %v", started())
		}
	}
}

// TestNullableID tests that an _id that encodes as null counts as missing if its tag has omitempty.
func TestNullableID(t *testing.T) {
	type first struct {
		ID   uuid.NullUUID `bson:"_id,omitempty"`
		Name string        `bson:"name"`
	}
	type inline struct {
		Name  string `bson:"name"`
		First first  `bson:",inline"`
	}
	type jsonTag struct {
		Name string        `json:"n"`
		ID   uuid.NullUUID `json:"_id,omitempty"`
	}
	u := uuid.UUID{1, 2, 3}
	invalid := uuid.NullUUID{UUID: u}
	for name, newRegistry := range registries(t) {
		reg := newRegistry()
		missing := []any{
			first{}, &first{Name: "Ada"}, inline{}, omitID[uuid.NullUUID]{}, &omitID[*uuid.NullUUID]{}, omitID[*emptyAsNull]{ID: &emptyAsNull{}},
			omitID[any]{ID: uuid.Nil}, omitID[*uuid.UUID]{ID: new(uuid.UUID)}, omitID[bson.Binary]{ID: bson.Binary{Data: make([]byte, 16)}},
			omitID[any]{ID: emptyAsNull{}}, omitID[emptyAsNull]{ID: emptyAsNull{[]byte{}}}, omitID[struct{ A, B int }]{},
			omitID[any]{ID: uuid.NullUUID{}}, omitID[*uuid.NullUUID]{ID: new(uuid.NullUUID)},
		}
		if name != "driver" { // its registry has no codec of NullUUID
			missing = append(missing, first{ID: invalid}, inline{First: first{ID: invalid}}, omitID[uuid.NullUUID]{ID: invalid},
				omitID[*uuid.NullUUID]{ID: &invalid}, omitID[any]{ID: invalid})
		}
		for _, doc := range missing {
			var src counter
			got, err := encode(reg, Document(&src, doc, WithMisfitIDs()))
			if id, ok := bson.Raw(got).Lookup("_id").Int32OK(); err != nil || !ok || id != 1 || src.drawn() != 1 {
				t.Errorf("%s: %#v: got %s, %v", name, doc, hex(got), err)
			}
			if n := bytes.Count(got, []byte("_id\x00")); n != 1 {
				t.Errorf("%s: %#v: %d ids in %s", name, doc, n, hex(got))
			}
		}
		got, err := encode(reg, Document(&counter{}, jsonTag{Name: "Ada"}, WithMisfitIDs()), (*bson.Encoder).UseJSONStructTags)
		if want := marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: "Ada"}}); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: json tag: got %s, %v", name, hex(got), err)
		}
		// A valid one stays, and elsewhere omitempty is the driver's.
		for _, doc := range []any{
			first{ID: uuid.NullUUID{UUID: u, Valid: true}}, omitID[uuid.NullUUID]{ID: uuid.NullUUID{UUID: u, Valid: true}},
			bson.M{"_id": u}, struct {
				ID    int           `bson:"_id"`
				Other uuid.NullUUID `bson:"other,omitempty"`
			}{ID: 1},
		} {
			want, err := encode(reg, doc)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := encode(reg, Document(&counter{}, doc)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s: %#v: got %s, %v, want %s", name, doc, hex(got), err, hex(want))
			}
		}
	}
}

// TestJSONTagsOfTwoClients tests that omitempty of a json tag is read if the client uses json tags,
// when one registry serves a client with the option and one without it, whichever comes first.
func TestJSONTagsOfTwoClients(t *testing.T) {
	type flat struct {
		Name string    `json:"n"`
		ID   uuid.UUID `json:"_id,omitempty"`
	}
	type inner struct {
		ID uuid.UUID `json:"_id,omitempty"`
	}
	type inline struct {
		Inner inner  `json:",inline"`
		Name  string `json:"n"`
	}
	type inlinePointer struct {
		Name  string `json:"n"`
		Inner *inner `bson:",inline"`
	}
	type inlineMap struct {
		ID   uuid.UUID        `json:"_id,omitempty"`
		Rest map[string]int32 `bson:",inline"`
	}
	type both struct {
		Inner inner     `bson:",inline"`
		ID    uuid.UUID `bson:"_id,omitempty" json:"x"`
	}
	type inlineMapOf[T any] struct {
		ID   T      `json:"_id,omitempty"`
		Rest bson.M `bson:",inline"`
	}
	u := uuid.UUID{1}
	docs := []any{
		flat{Name: "Ada"}, &flat{Name: "Ada"}, inline{Name: "Ada"}, inlinePointer{Name: "Ada", Inner: &inner{}},
		inlinePointer{Name: "Ada"}, inlineMap{}, both{},
		flat{ID: u}, inline{Inner: inner{u}}, inlinePointer{Inner: &inner{u}}, inlineMap{ID: u}, both{ID: u}, both{Inner: inner{u}},
		inlineMapOf[uuid.NullUUID]{}, &inlineMapOf[uuid.NullUUID]{Rest: bson.M{"a": 1}}, inlineMapOf[any]{ID: uuid.NullUUID{}},
		inlineMapOf[struct{ A, B int }]{}, inlineMapOf[uuid.NullUUID]{ID: uuid.NullUUID{UUID: u, Valid: true}},
		inlineMapOf[struct{ A, B int }]{ID: struct{ A, B int }{1, 0}},
	}
	for name, newRegistry := range registries(t) {
		for _, jsonFirst := range []bool{false, true} {
			for _, doc := range docs {
				reg := newRegistry()
				server := newTestServer()
				plain, _ := server.client(t, reg)
				json, _ := server.client(t, reg, options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true}))
				clients := []*mongo.Client{plain, json, plain, json}
				if jsonFirst {
					clients = []*mongo.Client{json, plain, json, plain}
				}
				for i, client := range clients {
					// What the driver sends for the document, first in this registry too.
					if _, err := client.Database("db").Collection("c").InsertOne(ctx, doc); err != nil && !mongo.IsDuplicateKeyError(err) {
						t.Fatal(err)
					}
					sent := server.sent()
					want := sent[len(sent)-1]
					id := want.Lookup("_id")
					_, set := bson.Raw(id.Value), false
					if id.Type == bson.TypeBinary {
						_, octets := id.Binary()
						set = !allZero(octets)
					}
					if doc, ok := id.DocumentOK(); ok {
						_, invalid := doc.LookupErr("valid")
						valid, _ := doc.Lookup("valid").BooleanOK()
						a, _ := doc.Lookup("a").Int32OK()
						set = invalid == nil && valid || a != 0
					}
					src := &counter{n: int32(i)}
					_, err := Wrap(client.Database("db").Collection("c"), src, WithMisfitIDs()).InsertOne(ctx, doc)
					if err != nil && !mongo.IsDuplicateKeyError(err) {
						t.Fatalf("%s, json first %t, client %d, %T: %v", name, jsonFirst, i, doc, err)
					}
					sent = server.sent()
					got := sent[len(sent)-1]
					if set {
						if !bytes.Equal(got, want) || src.drawn() != i {
							t.Errorf("%s, json first %t, client %d, %T: got %v, want %v", name, jsonFirst, i, doc, got, want)
						}
						continue
					}
					if n, ok := got.Lookup("_id").Int32OK(); !ok || n != int32(i)+1 {
						t.Errorf("%s, json first %t, client %d, %T: got %v", name, jsonFirst, i, doc, got)
					}
					// Beside the _id, it is what the driver sends.
					if !bytes.Equal(withoutID(t, got), withoutID(t, want)) {
						t.Errorf("%s, json first %t, client %d, %T: got %v, want %v with another _id", name, jsonFirst, i, doc, got, want)
					}
				}
			}
		}
	}
}

// TestIDOfAnInlineMap tests that an _id of an inline map is not taken for that of a field that another client reads.
func TestIDOfAnInlineMap(t *testing.T) {
	type doc[T any] struct {
		ID   T      `json:"_id,omitempty"`
		Rest bson.M `bson:",inline"`
	}
	for _, id := range []any{int32(0), "", false, bson.D{{Key: "uuid", Value: 1}}} {
		for _, d := range []any{doc[uuid.NullUUID]{Rest: bson.M{"_id": id}}, doc[int32]{Rest: bson.M{"_id": id}}} {
			want, err := encode(registered(), d)
			if err != nil {
				t.Fatal(err)
			}
			got, err := encode(registered(), Document(&counter{}, d))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T: got %s, %v, want %s", d, hex(got), err, hex(want))
			}
		}
	}
}

func withoutID(t testing.TB, doc bson.Raw) bson.Raw {
	t.Helper()
	elements, err := doc.Elements()
	if err != nil {
		t.Fatal(err)
	}
	var d bson.D
	for _, e := range elements {
		if e.Key() != "_id" {
			d = append(d, bson.E{Key: e.Key(), Value: e.Value()})
		}
	}
	return marshal(t, append(bson.D{}, d...))
}

// TestGenericIDs tests that 16 octets of subtype 0 from a source are refused.
func TestGenericIDs(t *testing.T) {
	u := uuid.UUID{1}
	for _, id := range []any{u, &u, u[:], bson.Binary{Data: u[:]}, [16]byte(u)} {
		for _, doc := range []any{bson.M{}, idOmitted{}, bson.Raw(marshal(t, bson.D{})), &omitID[any]{}} {
			_, err := encode(registered(), Document(always(id), doc))
			if !errors.Is(err, errGenericID) || !strings.Contains(err.Error(), "WithGenericIDs") {
				t.Errorf("%T into %T: got %v", id, doc, err)
			}
			got, err := encode(registered(), Document(always(id), doc, WithGenericIDs()))
			if subtype, data, ok := bson.Raw(got).Lookup("_id").BinaryOK(); err != nil || !ok || subtype != 0 || !bytes.Equal(data, u[:]) {
				t.Errorf("%T into %T: got %s, %v", id, doc, hex(got), err)
			}
		}
	}
	// What is not from a source, or not 16 octets, is inserted.
	if _, err := encode(registered(), Document(&counter{}, bson.M{"_id": u})); err != nil {
		t.Error(err)
	}
	if _, err := encode(registered(), Document(always(u[:15]), bson.M{})); err != nil {
		t.Error(err)
	}
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := encode(reg, Document(always(u), bson.M{})); err != nil {
		t.Error(err)
	}

	server := newTestServer()
	client, started := server.client(t, registered())
	coll := client.Database("db").Collection("c")
	for _, opts := range [][]Option{nil, {WithWriteBack()}} {
		if _, err := Wrap(coll, always(u), opts...).InsertOne(ctx, &omitID[uuid.UUID]{}); !errors.Is(err, errGenericID) {
			t.Errorf("%d options: got %v", len(opts), err)
		}
	}
	if len(started()) != 0 {
		t.Errorf("sent %v", started())
	}
}

type idOmitted struct {
	ID   uuid.UUID `bson:"_id,omitempty"`
	Name string    `bson:"name"`
}

// TestZeroIDsOfSources tests that a zero id of a source is an error, and that the source is asked
// again.
func TestZeroIDsOfSources(t *testing.T) {
	u := uuid.UUID{1}
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(Register).Build()
	if err != nil {
		t.Fatal(err)
	}
	for _, zero := range []any{uuid.Nil, bson.NilObjectID, bson.Binary{Subtype: 4, Data: make([]byte, 16)}, new(uuid.UUID)} {
		ids := []any{zero, u}
		src := SourceFunc(func() (any, error) { id := ids[0]; ids = ids[1:]; return id, nil })
		d := Document(src, bson.M{})
		if _, err := encode(reg, d); !errors.Is(err, ErrZeroID) {
			t.Errorf("%T: got %v", zero, err)
		}
		if got, err := encode(reg, d); err != nil || bson.Raw(got).Lookup("_id").Type != bson.TypeBinary {
			t.Errorf("%T: got %s, %v", zero, hex(got), err)
		}
		if _, err := encode(reg, Document(always(zero), bson.M{}, WithZeroIDs())); err != nil {
			t.Errorf("%T: %v", zero, err)
		}
	}
}
