package structcodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type (
	embedsD  struct{ bson.D }
	inlinesM struct {
		bson.M `bson:",inline"`
	}
	anyAndMap struct {
		Next any
		M    map[string]any `bson:",inline"`
	}
	hookD      bson.D
	hookValueD bson.D
	hookSum    struct{ N int }
)

func (d *hookD) UnmarshalBSON(b []byte) error {
	*d = hookD{{Key: "len", Value: len(b)}}
	return nil
}

func (d hookD) MarshalBSON() ([]byte, error) { return bson.Marshal(bson.D{{Key: "n", Value: len(d)}}) }

func (d *hookValueD) UnmarshalBSONValue(t byte, b []byte) error {
	*d = hookValueD{{Key: "len", Value: len(b)}}
	return nil
}

func (s *hookSum) UnmarshalBSON(b []byte) error {
	s.N += len(b)
	return nil
}

// unusualDocuments hold UUIDs, values of every type, keys that repeat, and keys that are numbers or UUIDs.
func unusualDocuments(t *testing.T, reg *bson.Registry) (docs []bson.Raw) {
	id := uuid.UUID{1, 2, 3}
	e := func(key string, value any) bson.E { return bson.E{Key: key, Value: value} }
	for _, d := range []bson.D{
		{},
		{e("a", id), e("a", nil)},
		{e("", 1), e("", "x")},
		{e("m", bson.D{e("d", bson.D{})}), e("d", bson.A{})},
		{e("next", bson.D{e("next", bson.D{e("x", 1)}), e("y", id)}), e("z", bson.A{id, bson.A{id}})},
		{e(id.String(), 1)},
		{e("1", bson.D{e("2", "3")})},
		{
			e("u", bson.Undefined{}), e("c", bson.CodeWithScope{Code: "x", Scope: bson.D{e("i", id)}}), e("v", bson.NewVector([]float32{1})),
			e("b2", bson.Binary{Subtype: 2, Data: []byte{1, 2}}), e("b3", bson.Binary{Subtype: 3, Data: make([]byte, 15)}), e("s", bson.Symbol("s")),
			e("p", bson.DBPointer{DB: "x"}), e("r", bson.Regex{Pattern: "x"}), e("min", bson.MinKey{}), e("f", 1.5), e("t", bson.DateTime(1)),
		},
	} {
		raw, err := bsoncodec.Marshal(reg, d)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, raw)
	}
	return docs
}

// Whatever the target is, the result is that of a registry without plans, and so is what the result is encoded as.
func TestUnusualTargets(t *testing.T) {
	build := func(b *bsoncodec.RegistryBuilder) *bson.Registry {
		reg, err := b.AlsoDecode(uuidrep.Standard).Build()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}
	driver := build(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).WithoutPlans())
	plans := build(bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy))
	targets := []func() any{
		func() any { return new(embedsD) }, func() any { return new(inlinesM) }, func() any { return new(anyAndMap) },
		func() any { return new(hookD) }, func() any { return new(hookValueD) }, func() any { return &hookD{{Key: "old"}} },
		// Targets that nothing can be decoded into.
		func() any { return (*bson.D)(nil) }, func() any { return (*map[string]any)(nil) }, func() any { return (*any)(nil) },
		func() any { return bson.M(nil) }, func() any { return nil }, func() any { return bson.D{} }, func() any { return new(chan int) },
		func() any { return new(fmt.Stringer) }, func() any { return new([]any) },
		// Pointers, and an any that holds something.
		func() any { return ptr(&bson.D{{Key: "old", Value: 1}}) }, func() any { return new(*bson.D) }, func() any { return new(**bson.D) },
		func() any { return ptr[any](new(bson.M)) }, func() any { return ptr[any](&bson.D{{Key: "old"}}) }, func() any { return ptr[any](bson.M{"k": 1}) },
		// Maps.
		func() any { return make(map[string]any) }, func() any { return map[string]int{} }, func() any { return map[uuid.UUID]int{} },
		func() any { return new(map[uuid.UUID]any) }, func() any { return new(map[string]bson.D) }, func() any { return &map[string]bson.D{"m": {{Key: "old"}}} },
		func() any { return new(map[string]hookSum) }, func() any { return &map[string]*hookSum{"m": {N: 1000}} }, func() any { return new(map[string]hookD) },
		func() any { return new(map[int]any) }, func() any { return new(map[any]any) }, func() any { return new(map[string][]uuid.UUID) },
		func() any { return new(map[string]uuid.UUID) }, func() any { return new(map[string]map[string]map[string]any) },
		func() any { return new(map[string]chan int) }, func() any { return new(map[string]fmt.Stringer) },
		func() any {
			return new(struct {
				Next *struct {
					M map[string]any `bson:",inline"`
				}
				Z     bson.A
				Other map[string]bson.RawValue `bson:",inline"`
			})
		},
	}
	options := []func(*bson.Decoder){
		func(*bson.Decoder) {}, (*bson.Decoder).DefaultDocumentM, (*bson.Decoder).DefaultDocumentMap, (*bson.Decoder).BinaryAsSlice,
		(*bson.Decoder).ZeroMaps, (*bson.Decoder).ObjectIDAsHexString,
	}
	for i, raw := range unusualDocuments(t, driver) {
		for _, target := range targets {
			for j, option := range options {
				for _, decode := range []func(*bson.Registry, []byte, any, func(*bson.Decoder)) error{decodeStream, decodeMemory} {
					want, got := target(), target()
					wantErr, gotErr := decode(driver, raw, want, option), decode(plans, raw, got, option)
					if !sameError(wantErr, gotErr) || !same(reflect.ValueOf(want), reflect.ValueOf(got)) {
						t.Errorf("document %d, option %d: %T: got %s and error %v, want %s and %v",
							i, j, got, dump(reflect.ValueOf(got)), gotErr, dump(reflect.ValueOf(want)), wantErr)
					}
					if wantErr != nil {
						continue
					}
					wantDoc, wantErr := marshal(driver, want)
					gotDoc, gotErr := marshal(plans, got)
					if !sameError(wantErr, gotErr) || !bytes.Equal(wantDoc, gotDoc) && !sameDocument(wantDoc, gotDoc) {
						t.Errorf("marshal %T: got %x and error %v, want %x and %v", got, gotDoc, gotErr, wantDoc, wantErr)
					}
				}
			}
		}
	}
}

// Bytes are decoded from the binary subtypes from which the driver decodes them.
func TestBytesOfSubtypes(t *testing.T) {
	driver, plans := registries(registerCallers)
	for _, subtype := range []byte{0, 1, 2, 3, 4, 5, 0x80} {
		data := doc(t, bson.E{Key: "b", Value: bson.Binary{Subtype: subtype, Data: []byte("some bytes")}})
		type target struct{ B []byte }
		want, got := new(target), new(target)
		wantErr, gotErr := decodeMemory(driver, data, want, nil), decodeMemory(plans, data, got, nil)
		if !sameError(wantErr, gotErr) || !same(reflect.ValueOf(want), reflect.ValueOf(got)) {
			t.Errorf("subtype %d: got %q, %v; the driver %q, %v", subtype, got.B, gotErr, want.B, wantErr)
		}
	}
}
