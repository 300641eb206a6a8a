package bsoncodec_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// optional is the option of a generic library, with the method that its authors write.
type optional[T any] struct {
	value *T
}

func some[T any](v T) optional[T] { return optional[T]{&v} }

// set is a set of a generic library.
type set[T comparable] struct{ m map[T]bool }

// account has the method of a type that changes its document before it stores it.
type account struct {
	ID     uuid.UUID `bson:"_id"`
	Parent *uuid.UUID
	Nonce  []byte
	Other  any
}

// textAccount has its UUID as text, and stores the octets.
type textAccount struct{ id string }

// ordered stores its UUID in the order of octets of a representation.
type ordered struct {
	u   uuid.UUID
	rep uuidrep.Representation
}

// octetsMethod is a type of kind [16]byte with a method, registered as bytes or not.
type octetsMethod [16]byte

// sealed has a UUID and stores other octets.
type sealed struct {
	u      uuid.UUID
	octets [4]uint32
}

// guarded has a lock and a UUID.
type guarded struct {
	mu sync.Mutex
	u  uuid.UUID
}

func wantSubtype0Error(t *testing.T, doc any, raw []byte, err error, want reflect.Type, path string) {
	t.Helper()
	var e *bsoncodec.UnregisteredTypeError
	if raw != nil || !errors.As(err, &e) || e.Type != want || e.Path != path || !strings.Contains(e.Error(), "AllowSubtype0OfMethods") {
		t.Errorf("%T: got %v, %v, want an UnregisteredTypeError for %v at %q", doc, bson.Raw(raw), err, want, path)
	}
}

// The octets of a UUID that a method stores as subtype 0 cannot be read as a UUID any more.
func TestSubtype0OfMethodsIsRefused(t *testing.T) {
	u, other := testUUID, uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	type withOptional struct{ V optional[uuid.UUID] }
	type order struct {
		Customer optional[struct{ ID uuid.UUID }]
	}
	for _, tt := range []struct {
		v    any
		path string
		typ  reflect.Type // nil: that of v
	}{
		{v: some(u)},
		{v: ptr(some(u)), typ: reflect.TypeFor[optional[uuid.UUID]]()},
		{v: some(uuid.Nil)},
		{v: some(strangerID(u))},
		{v: some([]uuid.UUID{other, u})},
		{v: some([16]byte(u))},
		{v: some(any(u))},
		{v: some(bson.M{"a": bson.A{int32(1), bson.D{{Key: "u", Value: u}}}})},
		{v: some(map[string]*uuid.UUID{"u": &u})},
		{v: &set[uuid.UUID]{map[uuid.UUID]bool{u: true, other: true}}, typ: reflect.TypeFor[set[uuid.UUID]]()},
		{v: withOptional{some(u)}, path: ".v", typ: reflect.TypeFor[optional[uuid.UUID]]()},
		{v: []withOptional{{}, {some(u)}}, path: ".1.v", typ: reflect.TypeFor[optional[uuid.UUID]]()},
		{v: order{some(struct{ ID uuid.UUID }{u})}, path: ".customer", typ: reflect.TypeFor[optional[struct{ ID uuid.UUID }]]()},
		{v: account{ID: u}},
		{v: &account{ID: other, Parent: &u, Nonce: []byte("0123456789abcdef")}, typ: reflect.TypeFor[account]()},
		{v: account{Other: account{ID: u}}},
		{v: textAccount{u.String()}},
		{v: ordered{u, uuidrep.Standard}},
		{v: ordered{u, uuidrep.CSharpLegacy}},
		{v: ordered{u, uuidrep.JavaLegacy}},
		{v: octetsMethod(u)},
		{v: &guarded{u: u}, typ: reflect.TypeFor[guarded]()},
	} {
		typ := tt.typ
		if typ == nil {
			typ = reflect.TypeOf(tt.v)
		}
		for _, r := range allRepresentations {
			reg := registry(t, r)
			doc := bson.D{{Key: "n", Value: int32(1)}, {Key: "k", Value: tt.v}}
			raw, err := encode(t, reg, doc)
			wantSubtype0Error(t, tt.v, raw, err, typ, "k"+tt.path)
			raw, err = encode(t, reg, struct{ F any }{tt.v})
			wantSubtype0Error(t, tt.v, raw, err, typ, "f"+tt.path)
			_, err = bsoncodec.MarshalValue(reg, tt.v)
			wantSubtype0Error(t, tt.v, nil, err, typ, strings.TrimPrefix(tt.path, "."))
			_, err = bsoncodec.MarshalExtJSON(reg, doc, true, false)
			wantSubtype0Error(t, tt.v, nil, err, typ, "k"+tt.path)
		}
		// The ways to say that it is meant.
		want, err := bson.Marshal(bson.M{"v": tt.v})
		if err != nil {
			t.Fatal(err)
		}
		if len(tt.path) > 0 { // the rest of these is not refused, and subtype 4
			want = nil
		}
		for name, b := range map[string]*bsoncodec.RegistryBuilder{
			"AllowSubtype0OfMethods": bsoncodec.NewRegistryBuilder(uuidrep.Standard).AllowSubtype0OfMethods(),
			"AlsoDecodeSubtype0":     bsoncodec.NewRegistryBuilder(uuidrep.Standard).AlsoDecodeSubtype0(),
			"UnregisteredAsBytes":    bsoncodec.NewRegistryBuilder(uuidrep.Standard).UnregisteredAsBytes(),
		} {
			if _, ok := tt.v.(*set[uuid.UUID]); ok {
				continue // its order is that of a map
			}
			got, err := encode(t, build(t, b), bson.M{"v": tt.v})
			if err != nil || want != nil && !bytes.Equal(got, want) {
				t.Errorf("%T, %s: got %v, %v, want %v", tt.v, name, bson.Raw(got), err, bson.Raw(want))
			}
		}
	}
}

// A whole document with MarshalBSON is searched by the functions of this package. The driver's Encoder asks no registry.
func TestSubtype0OfWholeDocumentsIsRefused(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, doc := range []any{account{ID: testUUID}, &account{ID: testUUID}} {
		raw, err := bsoncodec.Marshal(reg, doc)
		wantSubtype0Error(t, doc, raw, err, reflect.TypeFor[account](), "")
		_, err = bsoncodec.MarshalExtJSON(reg, doc, true, false)
		wantSubtype0Error(t, doc, nil, err, reflect.TypeFor[account](), "")
	}
	var none *account
	if _, err := bsoncodec.MarshalValue(reg, none); err != nil {
		t.Error(err)
	}
}

// Octets that are not those of a UUID of the value are other data.
func TestOtherOctetsOfMethodsAreStored(t *testing.T) {
	octets := []byte("0123456789abcdef")
	u := uuid.UUID(octets)
	for _, v := range []any{
		some(octets), some(bson.Binary{Data: octets}), some("text"), some(bson.M{"b": octets}),
		some(struct {
			ID    uuidrep.StandardUUID
			Nonce []byte
		}{uuidrep.StandardUUID{UUID: testUUID}, octets}),
		account{ID: testUUID, Nonce: octets}.withFixedID(),
		account{ID: testUUID, Nonce: testUUID[:]}.withFixedID(), // told as bytes, although a UUID has the same
		sealed{u: testUUID, octets: [4]uint32{7}},
		optional[uuid.UUID]{},
		some(u[:15]), some(append(u[:], 1)),
		some(bson.Binary{Subtype: 4, Data: octets}), some(bson.Binary{Subtype: 3, Data: u[:]}),
		some(uuidrep.StandardUUID{UUID: u}),
		some([17]byte{}), some(bson.D{}),
	} {
		for _, r := range allRepresentations {
			want, err := bson.Marshal(bson.M{"v": v})
			if err != nil {
				t.Fatal(err)
			}
			if got, err := encode(t, registry(t, r), bson.M{"v": v}); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T: got %v, %v, want %v", v, bson.Raw(got), err, bson.Raw(want))
			}
		}
	}
	// A type that is registered as bytes is no UUID.
	reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).RegisterBytesType(reflect.TypeFor[octetsMethod]()))
	wantStored(t, marshal(t, reg, bson.M{"v": octetsMethod(u)}), 0, octets, "v")
	wantStored(t, marshal(t, reg, bson.M{"v": some(octetsMethod(u))}), 0, octets, "v")
}

// fixedAccount is an account whose method stores the UUID as subtype 4.
type fixedAccount struct{ account }

// A method that fails, one that writes no BSON value and a nil receiver are left to the driver.
func TestMethodsWithoutAValue(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	for _, v := range []any{failingMethod{}, (*guardedNil)(nil), brokenMethod{u: testUUID}} {
		want, wantErr := bson.Marshal(bson.D{{Key: "v", Value: v}})
		got, err := encode(t, reg, bson.D{{Key: "v", Value: v}})
		if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() || !bytes.Equal(got, want) {
			t.Errorf("%T: got %x, %v, want %x, %v", v, got, err, want, wantErr)
		}
	}
}

type failingMethod struct{ u uuid.UUID }

var errOfMethod = errors.New("of the method")

// guardedNil has a method that a nil pointer can call.
type guardedNil struct{ u uuid.UUID }

// brokenMethod returns a document that ends within a value.
type brokenMethod struct{ u uuid.UUID }

func (o optional[T]) MarshalBSONValue() (byte, []byte, error) {
	if o.value == nil {
		return byte(bson.TypeNull), nil, nil
	}
	t, data, err := bson.MarshalValue(*o.value)
	return byte(t), data, err
}

func (s *set[T]) MarshalBSONValue() (byte, []byte, error) {
	var all []T
	for v := range s.m {
		all = append(all, v)
	}
	t, data, err := bson.MarshalValue(all)
	return byte(t), data, err
}

func (a account) MarshalBSON() ([]byte, error) {
	type plain account
	return bson.Marshal(plain(a))
}

func (a textAccount) MarshalBSONValue() (byte, []byte, error) {
	u := uuid.MustParse(a.id)
	t, data, err := bson.MarshalValue(u[:])
	return byte(t), data, err
}

func (o ordered) MarshalBSONValue() (byte, []byte, error) {
	octets := o.rep.Permute(o.u)
	t, data, err := bson.MarshalValue(bson.CodeWithScope{Code: "f", Scope: bson.M{"u": octets[:]}})
	return byte(t), data, err
}

func (o octetsMethod) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(o[:])
	return byte(t), data, err
}

func (s sealed) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(bytes.Repeat([]byte{byte(s.octets[0])}, 16))
	return byte(t), data, err
}

func (g *guarded) MarshalBSONValue() (byte, []byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	t, data, err := bson.MarshalValue(g.u)
	return byte(t), data, err
}

func (a account) withFixedID() fixedAccount { return fixedAccount{a} }

func (a fixedAccount) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "_id", Value: uuidrep.StandardUUID{UUID: a.ID}}, {Key: "nonce", Value: a.Nonce}})
}

func (f failingMethod) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeBinary), append([]byte{16, 0, 0, 0, 0}, f.u[:]...), errOfMethod
}

func (g *guardedNil) MarshalBSONValue() (byte, []byte, error) {
	if g == nil {
		return byte(bson.TypeNull), nil, nil
	}
	return (&guarded{u: g.u}).MarshalBSONValue()
}

func (b brokenMethod) MarshalBSON() ([]byte, error) {
	return append([]byte{40, 0, 0, 0, 5, 'u', 0, 16, 0, 0, 0, 0}, b.u[:3]...), nil
}
