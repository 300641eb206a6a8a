package bsoncodec_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unique"
	"weak"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The driver stores nothing of the types below, and all have a UUID.
type (
	plainRoom      struct{ value uuid.UUID }
	roomsOf[T any] struct {
		_     [0]T
		rooms []T
	}
	option[T any] struct {
		value T
		ok    bool
	}
	result[T any] struct {
		value *T
		err   error
	}
	typeID struct {
		prefix string
		id     uuid.UUID
	}
	roomSet  struct{ set map[uuid.UUID]struct{} }
	roomTree struct {
		left, right *roomTree
		room        plainRoom
	}
	roomArray  struct{ rooms [2]plainRoom }
	lateRoom   struct{ room atomic.Pointer[uuid.UUID] }
	lockedRoom struct {
		mu sync.Mutex
		id uuid.UUID
	}
	handleRoom struct{ room unique.Handle[uuid.UUID] }
	weakRoom   struct{ room weak.Pointer[uuid.UUID] }
	fixedRoom  struct{ id uuidrep.JavaLegacyUUID }
	typedRoom  struct {
		id uuidrep.ID[int]
		at time.Time
	}
	skippedMore struct {
		id   uuid.UUID
		Name string `bson:"-"`
	}
	inlineEmpty struct {
		Room plainRoom `bson:",inline"`
		More struct{}  `bson:",inline"`
	}
	aroundRoom struct{ exportedID }
	timedRoom  struct {
		at         time.Time
		exportedID exportedID
	}
)

// The types below have a bool that is stored and a UUID that is not.
type (
	maybeRoom struct {
		id    uuid.UUID
		Known bool
	}
	maybePointer struct {
		Known bool
		id    *uuid.UUID
	}
	maybeTagged struct {
		id    plainRoom `bson:"id"`
		Known bool      `bson:"known"`
		More  string    `bson:"-"`
	}
)

// The types below have a field inline that the driver leaves out.
type (
	room       struct{ ID uuid.UUID }
	rooms      map[string]uuid.UUID
	inlineRoom struct {
		room `bson:",inline"`
		Name string
	}
	inlineNamed struct {
		room `bson:"inline"` // the key is an option, too
		Name string
	}
	inlinePointer struct {
		Name  string
		*room `bson:"x,omitempty,inline"`
	}
	inlineRooms struct {
		Name  string
		rooms `bson:",inline"`
	}
	inlineMaybe struct {
		M maybeRoom `bson:",inline"`
	}
	inlineInline struct {
		Name string
		In   inlineRoom `bson:",inline"`
	}
)

// The types below have no UUID, or leave one out on purpose.
type (
	besides struct {
		ID     uuid.UUID
		tenant uuid.UUID
	}
	noUUID struct {
		id   bson.ObjectID
		text string
		at   time.Time
		err  error
		f    func(uuid.UUID) uuid.UUID
	}
	phantom[T any] struct {
		_ [0]T
		n int
	}
	dashed struct {
		id uuid.UUID `bson:"-"`
		N  int       `bson:"-"`
	}
	embedsRoom struct {
		room
		Name string
	}
	exportedMaybe struct {
		ID    uuid.UUID
		known bool
	}
	itself struct {
		next *itself
		all  []itself
		by   map[string]*itself
	}
	inlineItself struct {
		M  map[string]int `bson:",inline"`
		id uuid.UUID
	}
)

func ref[T any]() reflect.Type { return reflect.TypeFor[T]() }

// A UUID that the driver would lose is refused in every place, at the top too, where {} as a filter matches every document.
func TestLostUUIDsAreRefused(t *testing.T) {
	u := testUUID
	for mode, reg := range modes(t, standard) {
		t.Run(mode, func(t *testing.T) {
			wantLostRefused(t, reg, plainRoom{u}, "RegisterUUIDType(reflect.TypeFor[bsoncodec_test.plainRoom]())")
			wantLostRefused(t, reg, roomsOf[uuid.UUID]{rooms: []uuid.UUID{u}}, "RegisterDocumentType(reflect.TypeFor[bsoncodec_test.roomsOf[uuid.UUID]]())")
			wantLostRefused(t, reg, option[uuid.UUID]{u, true}, "RegisterNullUUIDType")
			wantLostRefused(t, reg, option[*orderID]{}, "RegisterDocumentType")
			wantLostRefused(t, reg, option[plainRoom]{}, "RegisterNullUUIDType")
			wantLostRefused(t, reg, option[uuidrep.StandardUUID]{}, "RegisterDocumentType")
			wantLostRefused(t, reg, result[uuid.UUID]{value: &u}, "RegisterDocumentType")
			wantLostRefused(t, reg, typeID{"room", u}, "RegisterDocumentType")
			wantLostRefused(t, reg, roomSet{}, "RegisterDocumentType")
			wantLostRefused(t, reg, roomTree{}, "RegisterDocumentType")
			wantLostRefused(t, reg, roomArray{}, "RegisterDocumentType")
			wantLostRefused(t, reg, handleRoom{}, "RegisterDocumentType")
			wantLostRefused(t, reg, weakRoom{}, "RegisterDocumentType")
			wantLostRefused(t, reg, fixedRoom{}, "RegisterUUIDType")
			wantLostRefused(t, reg, typedRoom{}, "RegisterDocumentType")
			wantLostRefused(t, reg, skippedMore{id: u}, "RegisterUUIDType")
			wantLostRefused(t, reg, timedRoom{}, "RegisterDocumentType")
			wantLostRefused(t, reg, maybeRoom{u, true}, "RegisterNullUUIDType")
			wantLostRefused(t, reg, maybePointer{true, &u}, "RegisterDocumentType")
			wantLostRefused(t, reg, maybeTagged{plainRoom{u}, true, ""}, "RegisterNullUUIDType")
			if mode != "mgo" { // which stores what is embedded
				wantLostRefused(t, reg, aroundRoom{exportedID{u}}, "RegisterUUIDType")
				wantLostRefused(t, reg, inlineRoom{room{u}, "x"}, "its field room has the tag inline")
				wantLostRefused(t, reg, inlineNamed{room{u}, "x"}, "its field room has the tag inline")
				wantLostRefused(t, reg, inlinePointer{"x", &room{u}}, "its field room has the tag inline")
				wantLostRefused(t, reg, inlineRooms{"x", rooms{"a": u}}, "its field rooms has the tag inline")
			}
		})
	}
}

// wantLostRefused tests that v is refused as a whole document and, as wrappers are, inside one.
func wantLostRefused[T any](t *testing.T, reg *bson.Registry, v T, wayOut string) {
	t.Helper()
	wantWrapperRefused(t, reg, v, wayOut)
	typ := reflect.TypeFor[T]()
	for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
		for _, doc := range []any{v, &v, ptr(&v)} {
			raw, err := bsoncodec.Marshal(reg, doc, opts...)
			if raw != nil {
				t.Errorf("%T: got %v", doc, bson.Raw(raw))
			}
			wantWrapperError(t, err, typ, wayOut)
			_, err = bsoncodec.MarshalExtJSON(reg, doc, true, false, opts...)
			wantWrapperError(t, err, typ, wayOut)
		}
		for _, raw := range []bson.Raw{emptyDocument, marshal(t, bson.NewRegistry(), bson.D{{Key: "id", Value: 1}, {Key: "known", Value: true}})} {
			wantWrapperError(t, bsoncodec.Unmarshal(reg, raw, new(T), opts...), typ, wayOut)
			wantWrapperError(t, bsoncodec.Unmarshal(reg, raw, new(*T), opts...), typ, wayOut)
			wantWrapperError(t, bsoncodec.UnmarshalExtJSON(reg, []byte(extJSON(raw)), true, new(T), opts...), typ, wayOut)
		}
	}
	wantWrapperError(t, encodeWith(reg, v), typ, wayOut)
	wantWrapperError(t, encodeWith(reg, &v), typ, wayOut)
	wantWrapperError(t, decodeWith(reg, emptyDocument, new(T)), typ, wayOut)
	wantWrapperError(t, decodeWith(reg, emptyDocument, new(*T)), typ, wayOut)
	if wayOut == "its field" {
		return
	}
	// RegisterDocumentType takes it, and then it is what the driver makes of it.
	allowed := build(t, standard().RegisterDocumentType(typ))
	want := encodeUsually(t, bson.D{{Key: "v", Value: v}})
	if got := marshal(t, allowed, bson.D{{Key: "v", Value: v}}); !bytes.Equal(got, want) {
		t.Errorf("%v as a document: got %v, want %v", typ, got, want)
	}
	var back struct{ V T }
	unmarshal(t, allowed, want, &back)
	whole, err := bsoncodec.Marshal(allowed, &v)
	if err != nil || !bytes.Equal(whole, encodeUsually(t, &v)) {
		t.Errorf("%v as a whole document: got %v, %v", typ, bson.Raw(whole), err)
	}
	unmarshal(t, allowed, whole, new(T))
}

var emptyDocument = bson.Raw{5, 0, 0, 0, 0}

// A value that must not be copied is given by pointer, and named by the type that says so.
func TestLostUUIDsThatMustNotBeCopied(t *testing.T) {
	reg := build(t, standard())
	late := new(lateRoom)
	late.room.Store(&testUUID)
	pointer := new(atomic.Pointer[uuid.UUID])
	pointer.Store(&testUUID)
	for _, c := range []struct {
		v    any
		name string
	}{{late, "atomic.Pointer[github.com/google/uuid.UUID]"}, {pointer, "atomic.Pointer[github.com/google/uuid.UUID]"}, {&lockedRoom{id: testUUID}, "sync.Mutex"}} {
		for _, doc := range []any{c.v, bson.M{"v": c.v}, bson.D{{Key: "a", Value: bson.A{c.v}}}} {
			_, err := bsoncodec.Marshal(reg, doc)
			wantWrapperError(t, err, reflect.TypeOf(c.v).Elem(), "a value of type "+c.name+" must not be copied")
		}
		err := bsoncodec.Unmarshal(reg, emptyDocument, c.v)
		wantWrapperError(t, err, reflect.TypeOf(c.v).Elem(), "a value of type "+c.name+" must not be copied")
	}
	var n struct{ N atomic.Int64 }
	if raw := marshal(t, reg, &n); raw.Lookup("n").Type != bson.TypeEmbeddedDocument {
		t.Errorf("without a UUID: got %v", raw)
	}
}

// What has no UUID, and what leaves one out next to a field that is stored, is the driver's.
func TestUUIDsThatAreLeftOutOnPurpose(t *testing.T) {
	u := testUUID
	for mode, reg := range modes(t, standard) {
		for _, v := range []any{
			besides{u, u}, noUUID{}, phantom[uuid.UUID]{}, phantom[besides]{}, dashed{u, 1}, exportedMaybe{u, true}, itself{}, struct{}{},
			inlineItself{id: u, M: map[string]int{"a": 1}}, embedsRoom{room{u}, "x"}, time.Time{},
		} {
			if mode == "mgo" && reflect.TypeOf(v) == ref[embedsRoom]() {
				continue
			}
			for _, doc := range []any{bson.D{{Key: "v", Value: v}}, bson.M{"v": bson.A{v}}} {
				if got, want := marshal(t, reg, doc), encodeUsually(t, doc); !bytes.Equal(got, want) {
					t.Errorf("%s, %T: got %v, want %v", mode, v, got, want)
				}
			}
			target := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "V", Type: reflect.TypeOf(v), Tag: `bson:"v"`}}))
			unmarshal(t, reg, marshal(t, reg, bson.D{{Key: "v", Value: v}}), target.Interface())
		}
	}
	// An inline struct of which nothing is stored is refused by the name of its own type.
	for _, c := range []struct {
		v          any
		typ, outer reflect.Type
		name       string
	}{
		{inlineMaybe{}, ref[maybeRoom](), ref[maybeRoom](), "give it a key"}, {inlineInline{}, ref[inlineRoom](), ref[inlineRoom](), "its field room"},
		{inlineEmpty{Room: plainRoom{testUUID}}, ref[plainRoom](), ref[inlineEmpty](), "give it a key"},
	} {
		_, err := bsoncodec.Marshal(build(t, standard()), c.v)
		var e *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &e) || e.Type != c.typ || !strings.Contains(err.Error(), c.name) {
			t.Errorf("%T: got %v", c.v, err)
		}
		if err := bsoncodec.Unmarshal(build(t, standard()), emptyDocument, reflect.New(reflect.TypeOf(c.v)).Interface()); !errors.As(err, &e) || e.Type != c.typ {
			t.Errorf("%T: got %v", c.v, err)
		}
		allowed := build(t, standard().RegisterDocumentType(c.outer))
		if _, err := bsoncodec.Marshal(allowed, c.v); err != nil {
			t.Errorf("%T: %v", c.v, err)
		}
	}
}

// The tags of the client decide, too.
func TestLostUUIDsByJSONTags(t *testing.T) {
	type lost struct {
		id   uuid.UUID
		Name string `json:"-"`
	}
	type kept struct {
		id uuid.UUID `json:"-"`
		N  int       `json:"-"`
	}
	type inline struct {
		room `json:",inline"`
		Name string
	}
	_, _ = lost{}.id, kept{}.id
	useJSON := bsoncodec.Options{UseJSONStructTags: true}
	reg := build(t, standard())
	for _, v := range []any{lost{}, inline{}} {
		for _, doc := range []any{v, bson.M{"v": v}, bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}, {Key: "v", Value: v}}} {
			_, err := bsoncodec.Marshal(reg, doc, useJSON)
			wantWrapperError(t, err, reflect.TypeOf(v), "RegisterDocumentType")
			if _, err := bsoncodec.Marshal(reg, doc); err != nil {
				t.Errorf("%T without json tags: %v", v, err)
			}
		}
		target := reflect.New(reflect.TypeOf(v)).Interface()
		wantWrapperError(t, bsoncodec.Unmarshal(reg, emptyDocument, target, useJSON), reflect.TypeOf(v), "RegisterDocumentType")
		if err := bsoncodec.Unmarshal(reg, emptyDocument, target); err != nil {
			t.Errorf("%T without json tags: %v", v, err)
		}
	}
	if _, err := bsoncodec.Marshal(reg, bson.M{"v": kept{N: 1}}, useJSON); err != nil {
		t.Error(err)
	}
}

// The types below have methods for one direction, or with a pointer receiver.
type (
	writeOnly struct{ id uuid.UUID }
	readOnly  struct{ id uuid.UUID }
	byPointer struct {
		id uuid.UUID
		n  int
	}
)

// A method counts if it is called for the value in the direction.
func TestLostUUIDsWithMethods(t *testing.T) {
	for mode, reg := range modes(t, standard) {
		raw := marshal(t, reg, bson.M{"v": writeOnly{testUUID}})
		wantStored(t, raw, 4, octetsStandard, "v")
		wantWrapperError(t, bsoncodec.Unmarshal(reg, raw, new(struct{ V writeOnly })), ref[writeOnly](), "RegisterUUIDType")
		var read struct{ V readOnly }
		if unmarshal(t, reg, raw, &read); read.V.id != testUUID {
			t.Errorf("%s: got %v", mode, read)
		}
		_, err := bsoncodec.Marshal(reg, read)
		wantWrapperError(t, err, ref[readOnly](), "RegisterUUIDType")

		v := byPointer{id: testUUID}
		for _, doc := range []any{&v, bson.M{"v": &v}, bson.M{"v": []byPointer{v}}, &struct{ V byPointer }{v}, []*byPointer{&v}} {
			if rv, err := bsoncodec.MarshalValue(reg, doc); err != nil || !bytes.Contains(rv.Value, []byte(testUUID.String())) {
				t.Errorf("%s, %T: got %v, %v", mode, doc, rv, err)
			}
		}
		for path, doc := range map[string]any{
			"": v, "v": bson.D{{Key: "v", Value: v}}, "a": map[string]byPointer{"a": v}, "b": map[string]any{"b": v}, "c": struct{ C byPointer }{v}, "d": struct{ D any }{v},
			"e.0": bson.M{"e": [1]byPointer{v}}, "f.0": bson.M{"f": bson.A{v}},
		} {
			for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
				_, err := bsoncodec.Marshal(reg, doc, opts...)
				var e *bsoncodec.UnregisteredTypeError
				if !errors.As(err, &e) || e.Type != ref[byPointer]() || e.Path != path || !strings.Contains(err.Error(), "pointer receiver") {
					t.Errorf("%s, %T: got %v", mode, doc, err)
				}
			}
		}
		var whole byPointer
		if unmarshal(t, reg, marshal(t, reg, &v), &whole); whole.id != testUUID {
			t.Errorf("%s: got %v", mode, whole)
		}
	}
	var _ = byPointer{}.n
}

// Random struct types are refused if and only if the driver writes {} for them, or for a struct in them that it writes,
// and a UUID is in that.
func TestLostUUIDsOfRandomTypes(t *testing.T) {
	reg := build(t, standard())
	without := build(t, standard().WithoutPlans())
	usual := usualRegistry()
	r := rand.New(rand.NewPCG(43, uint64(time.Now().UnixNano())))
	var refused int
	for range 3000 {
		typ := randomStruct(r, 0)
		v := reflect.New(typ)
		want := wantsRefusal(t, usual, typ, true)
		if want {
			refused++
		}
		for i, reg := range []*bson.Registry{reg, without} {
			_, err := bsoncodec.Marshal(reg, v.Interface())
			var e *bsoncodec.UnregisteredTypeError
			if (err != nil) != want || err != nil && !errors.As(err, &e) {
				t.Fatalf("%d, %v: got %v, want an error: %v", i, typ, err, want)
			}
			if err := bsoncodec.Unmarshal(reg, emptyDocument, v.Interface()); wantsRefusal(t, usual, typ, false) != (err != nil) {
				t.Fatalf("%d, %v: decoding: got %v", i, typ, err)
			}
		}
	}
	if refused < 300 {
		t.Errorf("%d types of 3000 are refused", refused)
	}
}

// wantsRefusal reports whether the driver writes {} for the struct type typ, which has a UUID, or, if deep is set, for a struct within it
// that it writes.
func wantsRefusal(t *testing.T, usual *bson.Registry, typ reflect.Type, deep bool) bool {
	t.Helper()
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(usual)
	if err := enc.Encode(reflect.New(typ).Interface()); err != nil {
		t.Fatal(typ, err)
	}
	if bytes.Equal(buf.Bytes(), emptyDocument) && hasUUID(typ) {
		return true
	}
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() || f.Tag.Get("bson") == "-" || f.Type.Kind() != reflect.Struct || f.Type == ref[time.Time]() {
			continue
		}
		if (deep || f.Tag.Get("bson") == ",inline") && wantsRefusal(t, usual, f.Type, deep) {
			return true
		}
	}
	return false
}

// hasUUID looks for the type of a UUID in the text of typ without the fields that are tagged "-".
func hasUUID(typ reflect.Type) bool {
	if typ.Kind() != reflect.Struct {
		return strings.Contains(typ.String(), "uuid.UUID")
	}
	for i := range typ.NumField() {
		if f := typ.Field(i); f.Tag.Get("bson") != "-" && hasUUID(f.Type) {
			return true
		}
	}
	return false
}

// randomStruct returns a type of structs with up to three fields. Those with a UUID and a bool are another rule's.
func randomStruct(r *rand.Rand, depth int) reflect.Type {
	types := []reflect.Type{
		ref[uuid.UUID](), ref[*uuid.UUID](), ref[[]uuid.UUID](), ref[map[string]uuid.UUID](), ref[map[uuid.UUID]int](), ref[[2]uuid.UUID](), ref[[0]uuid.UUID](),
		ref[string](), ref[*int](), ref[any](), ref[time.Time](), ref[bson.ObjectID](),
	}
	types = append(types[:6], types[7:]...)
	var fields []reflect.StructField
	for i := range r.IntN(4) {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", i), Type: types[r.IntN(len(types))]}
		if r.IntN(3) > 0 {
			f.Name, f.PkgPath = strings.ToLower(f.Name), "example.com/random"
		}
		nested := depth < 3 && r.IntN(3) == 0
		if nested {
			f.Type = randomStruct(r, depth+1)
		}
		switch {
		case r.IntN(5) == 0:
			f.Tag = `bson:"-"`
		case nested && f.PkgPath == "" && r.IntN(2) == 0:
			f.Tag = `bson:",inline"`
		default:
			f.Tag = reflect.StructTag(fmt.Sprintf(`bson:"k%d%d%d"`, depth, i, r.IntN(1e9)))
		}
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

func (r plainRoom) String() string { return r.value.String() }

func (r plainRoom) IsZero() bool { return r.value == uuid.Nil }

func (r plainRoom) UUID() uuid.UUID { return r.value }

var _ = []any{
	typeID{}.prefix, roomsOf[int]{}.rooms, option[int]{}.ok, option[int]{}.value, result[int]{}.value, result[int]{}.err, roomSet{}.set, roomTree{}.left, roomTree{}.right,
	roomTree{}.room, roomArray{}.rooms, handleRoom{}.room, weakRoom{}.room, fixedRoom{}.id, typedRoom{}.id, typedRoom{}.at, skippedMore{}.id, maybeRoom{}.id, maybePointer{}.id, maybeTagged{}.id,
	besides{}.tenant, noUUID{}.id, noUUID{}.text, noUUID{}.at, noUUID{}.err, noUUID{}.f == nil, phantom[int]{}.n, dashed{}.id, exportedMaybe{}.known, itself{}.next, itself{}.all, itself{}.by, typeID{}.id,
	inlineItself{}.id, (&lockedRoom{}).mu.TryLock, timedRoom{}.at, timedRoom{}.exportedID,
}

func (v writeOnly) MarshalBSONValue() (byte, []byte, error) {
	return uuidrep.StandardUUID{UUID: v.id}.MarshalBSONValue()
}

func (v *readOnly) UnmarshalBSONValue(t byte, data []byte) error {
	var u uuidrep.StandardUUID
	err := u.UnmarshalBSONValue(t, data)
	v.id = u.UUID
	return err
}

func (v *byPointer) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.M{"id": v.id.String()}) }

func (v *byPointer) UnmarshalBSON(data []byte) (err error) {
	v.id, err = uuid.Parse(bson.Raw(data).Lookup("id").StringValue())
	return err
}
