package bsoncodec_test

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The types below are UUIDs by functions.
type (
	prefixed struct { // with a prefix of its own
		prefix string
		id     uuid.UUID
	}
	firstOf[T any] struct { // of another library
		value []T
	}
	textual string // the text of a UUID, or ""
)

var errNotRoom = errors.New("not a room")

func getPrefixed(p prefixed) (uuid.UUID, bool) { return p.id, p.prefix != "" }

func setPrefixed(id uuid.UUID, ok bool) (prefixed, error) {
	switch {
	case !ok:
		return prefixed{}, nil
	case id == uuid.Max:
		return prefixed{}, errNotRoom
	}
	return prefixed{"room", id}, nil
}

func byFuncs(b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
	bsoncodec.RegisterUUIDFunc(b, getPrefixed, setPrefixed)
	bsoncodec.RegisterUUIDFunc(b, func(o firstOf[uuid.UUID]) (id uuid.UUID, ok bool) {
		if len(o.value) == 0 {
			return id, false
		}
		return o.value[0], true
	}, func(id uuid.UUID, ok bool) (o firstOf[uuid.UUID], err error) {
		if ok {
			o.value = []uuid.UUID{id}
		}
		return o, nil
	})
	return bsoncodec.RegisterUUIDFunc(b, func(s textual) (id uuid.UUID, ok bool) {
		id, err := uuid.Parse(string(s))
		return id, err == nil
	}, func(id uuid.UUID, ok bool) (textual, error) {
		if !ok {
			return "", nil
		}
		return textual(id.String()), nil
	})
}

// A type of RegisterUUIDFunc is encoded and decoded as a UUID in every place.
func TestRegisterUUIDFunc(t *testing.T) {
	type doc struct {
		V prefixed
		P *prefixed
		N *prefixed
		Z prefixed
		S []prefixed
		Q []*prefixed
		A [2]prefixed
		M map[string]prefixed
		K map[prefixed]int32
		L map[textual]prefixed
		O firstOf[uuid.UUID]
		E firstOf[uuid.UUID] `bson:"e,omitempty"`
		T textual
		X any
	}
	p := prefixed{"room", testUUID}
	text := textual(testUUID.String())
	in := doc{V: p, P: &p, S: []prefixed{p, {}}, Q: []*prefixed{&p, nil}, A: [2]prefixed{p}, M: map[string]prefixed{"k": p}, K: map[prefixed]int32{p: 1}, L: map[textual]prefixed{text: p},
		O: firstOf[uuid.UUID]{[]uuid.UUID{testUUID}}, T: text, X: p}
	for _, tt := range table {
		for _, set := range []func(*bsoncodec.RegistryBuilder){
			func(*bsoncodec.RegistryBuilder) {}, func(b *bsoncodec.RegistryBuilder) { b.EncodeAsString() }, func(b *bsoncodec.RegistryBuilder) { b.EncodeZeroAsNull() },
			func(b *bsoncodec.RegistryBuilder) { b.UnregisteredAsBytes() },
		} {
			for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
				b := byFuncs(bsoncodec.NewRegistryBuilder(tt.rep))
				set(b)
				return b
			}) {
				for _, opts := range [][]bsoncodec.Options{nil, {everyOption}} {
					for _, v := range []any{in, &in} {
						data, err := bsoncodec.Marshal(reg, v, opts...)
						if err != nil {
							t.Fatal(err)
						}
						raw := bson.Raw(data)
						for _, path := range [][]string{{"v"}, {"p"}, {"s", "0"}, {"q", "0"}, {"a", "0"}, {"m", "k"}, {"l", string(text)}, {"o"}, {"t"}, {"x"}} {
							if raw.Lookup("v").Type == bson.TypeString {
								if raw.Lookup(path...).StringValue() != string(text) {
									t.Errorf("%s, %v: got %v", mode, path, raw)
								}
							} else {
								wantStored(t, raw, tt.subtype, tt.octets, path...)
							}
						}
						for _, path := range [][]string{{"n"}, {"z"}, {"s", "1"}, {"q", "1"}, {"a", "1"}} {
							if raw.Lookup(path...).Type != bson.TypeNull {
								t.Errorf("%s, %v: got %v", mode, path, raw)
							}
						}
						if raw.Lookup("k", string(text)).Type != bson.TypeInt32 && mode != "mgo" {
							t.Errorf("%s: got %v", mode, raw)
						}
						var out, stream doc
						if err := bsoncodec.Unmarshal(reg, raw, &out, opts...); err != nil {
							t.Fatal(mode, err)
						}
						if err := decodeWith(reg, raw, &stream); err != nil {
							t.Fatal(mode, err)
						}
						for _, out := range []doc{out, stream} {
							if out.X = in.X; !reflect.DeepEqual(in, out) {
								t.Errorf("%s, %v: got %v, want %v", mode, tt.rep, out, in)
							}
						}
					}
				}
			}
		}
	}
	// The same UUID of any type is the same filter, a present zero is a UUID, and undefined is null.
	reg := build(t, byFuncs(standard()).EncodeZeroAsNull())
	if zero := marshal(t, reg, bson.M{"v": prefixed{prefix: "room"}}); zero.Lookup("v").Type != bson.TypeBinary {
		t.Errorf("a present zero: got %v", zero)
	}
	for _, null := range []any{nil, bson.Undefined{}} {
		out := struct{ V prefixed }{p}
		if unmarshal(t, reg, marshal(t, reg, bson.M{"v": null}), &out); out.V != (prefixed{}) {
			t.Errorf("%v: got %v", null, out)
		}
	}
	if err := bsoncodec.CheckPlans(reg, reflect.TypeFor[struct{ V []prefixed }]()); err != nil {
		t.Error(err)
	}
}

// What a type of RegisterUUIDFunc cannot hold is an error, and leaves it as it was.
func TestRegisterUUIDFuncErrors(t *testing.T) {
	binary := func(subtype byte, data []byte) bson.Binary { return bson.Binary{Subtype: subtype, Data: data} }
	p := prefixed{"room", testUUID}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder { return byFuncs(standard()) }) {
		for _, c := range []struct {
			v    any
			want string
		}{
			{binary(3, octetsStandard), "subtype 3"}, {binary(0, octetsStandard), "AlsoDecodeSubtype0"}, {binary(4, octetsStandard[:15]), "15"}, {"x", "AlsoDecodeString"},
			{int32(1), "a UUID is a binary value"}, {bson.D{}, "lost"}, {bson.D{{Key: "id", Value: 1}}, "a UUID is a binary value"}, {uuid.Max, "not a room"},
		} {
			out := struct{ V prefixed }{p}
			err := decode(t, reg, marshal(t, reg, bson.M{"v": c.v}), &out)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "bsoncodec_test.prefixed") || out.V != p && !zeroes(reg) {
				t.Errorf("%s, %v: got %v, %v", mode, c.v, out, err)
			}
			if c.v == any(uuid.Max) && !errors.Is(err, errNotRoom) {
				t.Errorf("%s: the error of the function is not wrapped: %v", mode, err)
			}
		}
		for _, c := range []struct {
			m    map[prefixed]int
			want string
		}{{map[prefixed]int{{id: testUUID}: 1}, "has no UUID"}, {map[prefixed]int{{"a", testUUID}: 1, {"b", testUUID}: 2}, "one UUID"}} {
			if _, err := bsoncodec.Marshal(reg, bson.M{"m": c.m}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v", mode, err)
			}
		}
		key := marshal(t, reg, bson.M{"m": bson.M{uuid.Max.String(): 1}})
		if err := bsoncodec.Unmarshal(reg, key, new(struct{ M map[prefixed]int })); !errors.Is(err, errNotRoom) {
			t.Errorf("%s: got %v", mode, err)
		}
		// What is inline is not a value.
		type inline struct {
			P struct {
				prefixed prefixed
				N        int
			} `bson:",inline"`
			Q exportedPrefixed `bson:",inline"`
		}
		reg := build(t, bsoncodec.RegisterUUIDFunc(standard(), func(e exportedPrefixed) (uuid.UUID, bool) { return e.id, true },
			func(id uuid.UUID, _ bool) (exportedPrefixed, error) { return exportedPrefixed{id: id}, nil }))
		if _, err := bsoncodec.Marshal(reg, inline{}); err == nil || !strings.Contains(err.Error(), "give it a key of its own") {
			t.Errorf("%s: got %v", mode, err)
		}
	}
	unspecified := build(t, byFuncs(bsoncodec.NewRegistryBuilder(uuidrep.Unspecified)))
	if _, err := bsoncodec.Marshal(unspecified, bson.M{"v": p}); !errors.Is(err, uuidrep.ErrUnspecified) {
		t.Errorf("got %v", err)
	}
	if raw := marshal(t, unspecified, bson.M{"v": prefixed{}}); raw.Lookup("v").Type != bson.TypeNull {
		t.Errorf("got %v", raw)
	}
}

type exportedPrefixed struct {
	Prefix string
	id     uuid.UUID
}

// Mistakes in registering are errors of Build.
func TestRegisterUUIDFuncRefuses(t *testing.T) {
	b := func() *bsoncodec.RegistryBuilder { return bsoncodec.NewRegistryBuilder(uuidrep.Standard) }
	p := reflect.TypeFor[prefixed]()
	for want, b := range map[string]*bsoncodec.RegistryBuilder{
		"prefixed cannot be registered with RegisterUUIDFunc: a function is nil":               bsoncodec.RegisterUUIDFunc(b(), getPrefixed, nil),
		"embeddedID cannot be registered with RegisterUUIDFunc: a function is nil":             byNoFuncs[embeddedID](b()),
		"*bsoncodec_test.prefixed cannot be registered with RegisterUUIDFunc: it is":           byZero[*prefixed](b()),
		"interface {} cannot be registered with RegisterUUIDFunc: it is a pointer or":          byZero[any](b()),
		"string cannot be registered with RegisterUUIDFunc: Go predeclares it, and its values": byZero[string](b()),
		"int64 cannot be registered with RegisterUUIDFunc: Go predeclares it":                  byZero[int64](b()),
		"RegisterUUIDFunc: a value of it must not be copied":                                   byZero[atomic.Pointer[uuid.UUID]](b()),
		"lateRoom cannot be registered with RegisterUUIDFunc: a value of type atomic.Pointer":  byZero[lateRoom](b()),
		"lockedRoom cannot be registered with RegisterUUIDFunc: a value of type sync.Mutex":    byZero[[2]lockedRoom](b()),
		"StandardUUID cannot be registered with RegisterUUIDFunc: it has a representation":     byZero[uuidrep.StandardUUID](b()),
		"uuid.UUID cannot be registered with RegisterUUIDFunc: it is registered otherwise":     byZero[uuid.UUID](b()),
		"uuid.NullUUID cannot be registered with RegisterUUIDFunc: it is registered other":     byZero[uuid.NullUUID](b()),
		"embeddedID cannot be registered with RegisterUUIDFunc: it is registered otherwise":    byZero[embeddedID](b().RegisterUUIDType(reflect.TypeFor[embeddedID]())),
		"prefixed cannot be registered with RegisterUUIDFunc: it is registered otherwise":      byZero[prefixed](b()).RegisterDocumentType(p),
		"strangerID cannot be registered with RegisterUUIDFunc: it is registered":              byZero[strangerID](b()).RegisterBytesType(reflect.TypeFor[strangerID]()),
		"typeID cannot be registered with RegisterUUIDFunc: it is registered otherwise, or":    byZero[typeID](byZero[typeID](b())),
	} {
		if _, err := b.Build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func byZero[T any](b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
	return bsoncodec.RegisterUUIDFunc(b, func(T) (id uuid.UUID, ok bool) { return id, false }, func(uuid.UUID, bool) (v T, err error) { return *new(T), nil })
}

func byNoFuncs[T any](b *bsoncodec.RegistryBuilder) *bsoncodec.RegistryBuilder {
	return bsoncodec.RegisterUUIDFunc[T](b, nil, nil)
}

// SetImplicitType takes a type of RegisterUUIDFunc, before or after that is called.
func TestRegisterUUIDFuncForAny(t *testing.T) {
	implicit := reflect.TypeFor[prefixed]()
	p := prefixed{"room", testUUID}
	for mode, reg := range modes(t, func() *bsoncodec.RegistryBuilder {
		return byFuncs(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).SetImplicitType(implicit))
	}) {
		raw := marshal(t, reg, bson.D{{Key: "v", Value: p}, {Key: "a", Value: bson.A{testUUID}}})
		d := bson.D{}
		if unmarshal(t, reg, raw, &d); d[0].Value != any(p) {
			t.Errorf("%s: got %#v", mode, d)
		}
		var m struct {
			V any
			A []any
		}
		if unmarshal(t, reg, raw, &m); m.V != any(p) || m.A[0] != any(p) {
			t.Errorf("%s: got %#v", mode, m)
		}
		a := struct{ A []any }{[]any{prefixed{"x", uuid.Max}, 1}}
		if unmarshal(t, reg, marshal(t, reg, bson.M{"a": bson.A{"text"}}), &a); len(a.A) != 1 || a.A[0] != "text" {
			t.Errorf("%s: got %#v", mode, a)
		}
		refused := marshal(t, reg, bson.M{"v": uuid.Max})
		for _, target := range []any{new(bson.D), new(bson.M), new(any), new(struct{ V any })} {
			if err := bsoncodec.Unmarshal(reg, refused, target); !errors.Is(err, errNotRoom) {
				t.Errorf("%s, %T: got %v", mode, target, err)
			}
		}
	}
	after := build(t, byFuncs(standard()).SetImplicitType(implicit))
	var m bson.M
	if unmarshal(t, after, marshal(t, after, bson.M{"v": testUUID}), &m); m["v"] != any(p) {
		t.Errorf("got %#v", m)
	}
}

// The functions are called by many goroutines.
func TestRegisterUUIDFuncConcurrently(t *testing.T) {
	reg := build(t, byFuncs(standard()))
	type doc struct {
		V prefixed
		S []prefixed
		K map[prefixed]int
	}
	p := prefixed{"room", testUUID}
	in := doc{p, []prefixed{p, p}, map[prefixed]int{p: 1}}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				raw, err := bsoncodec.Marshal(reg, in)
				var out doc
				if err == nil {
					err = bsoncodec.Unmarshal(reg, raw, &out)
				}
				if err != nil || !reflect.DeepEqual(in, out) {
					t.Errorf("got %v, %v", out, err)
				}
			}
		})
	}
	wg.Wait()
}
