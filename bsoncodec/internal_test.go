package bsoncodec

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/uuidrep"
)

// A memo makes a value once for each key, and keeps those of other keys.
func TestMemo(t *testing.T) {
	made := map[int]int{}
	m := memo[int, *int]{make: func(key int) *int { made[key]++; return &key }}
	first := map[int]*int{}
	for range 3 {
		for key := range 4 {
			v := m.get(key)
			if first[key] == nil {
				first[key] = v
			}
			if *v != key || v != first[key] {
				t.Errorf("got %d for %d, or another value than before", *v, key)
			}
		}
	}
	for key, n := range made {
		if n != 1 {
			t.Errorf("%d was made %d times", key, n)
		}
	}
}

// An error has the way out once.
func TestOneWayOut(t *testing.T) {
	err := (bson.RawValue{Type: bson.TypeBinary, Value: append([]byte{16, 0, 0, 0, 4}, make([]byte, 16)...)}).UnmarshalWithRegistry(driver.Registry(), new(string))
	once := withWayOut(err)
	twice := withWayOut(errors.Join(once))
	if withWayOut(once) != once || strings.Count(twice.Error(), "a uuid.UUID reads") != 1 {
		t.Errorf("got %v and %v", once, twice)
	}
	if other := errors.New("other"); withWayOut(other) != other || withWayOut(nil) != nil {
		t.Errorf("got %v", withWayOut(other))
	}
}

// What serves one direction has no plan for the other.
func TestOneDirection(t *testing.T) {
	dst := []byte("before")
	typ, out, err := (noEncoder{}).AppendValue(dst, reflect.ValueOf(1))
	if typ != 0 || string(out) != "before" || err != ErrNotPlain {
		t.Errorf("got %v, %s, %v", typ, out, err)
	}
	if err := (noDecoder{}).ReadValue(bson.TypeInt32, nil, reflect.ValueOf(1)); err != ErrNotPlain {
		t.Errorf("got %v", err)
	}
}

type inlineInItself struct {
	Name string
	Next *inlineInItself `bson:",inline"`
}

// What looks at the fields of a type that is inline in itself comes to an end. The driver refuses such a type, or never ends.
func TestInlineInItself(t *testing.T) {
	settleFields(bson.NewRegistry(), reflect.TypeFor[inlineInItself](), 0)
	if v := new(typeRules).of(reflect.TypeFor[inlineInItself](), false); v.refused {
		t.Error("a type without a UUID is refused")
	}
}

// A codec of structs has one codec of the driver for each set of options, whatever registries the contexts have: it would
// otherwise keep one for each.
func TestStructCodecsByOptions(t *testing.T) {
	type doc struct {
		A int `json:"b"`
	}
	reg, err := NewRegistryBuilder(uuidrep.Standard).WithoutPlans().Build()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := reg.LookupEncoder(reflect.TypeFor[doc]())
	enc := found.(*structEncoder)
	foundDec, _ := reg.LookupDecoder(reflect.TypeFor[doc]())
	dec := foundDec.(*structDecoder)
	for _, withTags := range []bool{false, true} {
		for range 3 {
			other := bson.NewRegistry()
			other.RegisterTypeEncoder(reflect.TypeFor[doc](), enc)
			other.RegisterTypeDecoder(reflect.TypeFor[doc](), dec)
			var b bytes.Buffer
			e := bson.NewEncoder(bson.NewDocumentWriter(&b))
			e.SetRegistry(other)
			if withTags {
				e.UseJSONStructTags()
			}
			if err := e.Encode(doc{1}); err != nil {
				t.Fatal(err)
			}
			d := bson.NewDecoder(bson.NewDocumentReader(&b))
			d.SetRegistry(other)
			if withTags {
				d.UseJSONStructTags()
			}
			var got doc
			if err := d.Decode(&got); err != nil || got != (doc{1}) {
				t.Fatalf("got %v, %v", got, err)
			}
		}
		encoders, decoders := enc.other.kept.Load(), dec.other.kept.Load()
		switch {
		case !withTags && (encoders != nil || decoders != nil):
			t.Error("without options, other codecs are kept than that for no options")
		case withTags && (encoders == nil || len(*encoders) != 1 || decoders == nil || len(*decoders) != 1):
			t.Errorf("kept %v and %v", encoders, decoders)
		}
	}
}
