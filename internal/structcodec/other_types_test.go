package structcodec

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// bothCodecs returns a registry of the driver and one with plans, to which register was applied.
func bothCodecs(register func(*bson.Registry)) (driver, plans *bson.Registry) {
	driver = bson.NewRegistry()
	plans = newOwnCodec().reg
	register(driver)
	register(plans)
	return driver, plans
}

// outcome returns the bytes that an Encoder with reg writes for v, or its error, or that it panics.
func outcome(reg *bson.Registry, v any) (text string) {
	defer func() {
		if recover() != nil {
			text = "panic"
		}
	}()
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	if err := enc.Encode(v); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%x", buf.Bytes())
}

// readOutcome returns what a Decoder with reg reads from doc into a new value of type t, or its error, or that it panics.
func readOutcome(reg *bson.Registry, doc []byte, t reflect.Type) (text string) {
	defer func() {
		if recover() != nil {
			text = "panic"
		}
	}()
	v := reflect.New(t)
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	dec.SetRegistry(reg)
	if err := dec.Decode(v.Interface()); err != nil {
		return strings.ReplaceAll(err.Error(), "unexpected EOF", "EOF") // of a document that ends too early
	}
	again, err := bson.Marshal(v.Interface())
	m := map[string]any{} // printed in the order of its keys
	if err == nil {
		err = bson.Unmarshal(again, &m)
	}
	return fmt.Sprint(m, err)
}

// A codec of the driver that a caller registers for another type does for that type what it does without plans.
func TestCodecsOfOtherTypes(t *testing.T) {
	type inner struct{ N int32 }
	type text string
	n := 7
	values := []any{
		&n, []int{1}, [1]int{1}, map[string]int{"a": 1}, "s", text("t"), n, int32(7), uint(7), 1.5, true, time.UnixMilli(5).UTC(), bson.ObjectID{1}, bson.Binary{Data: []byte{1}}, inner{1},
		bson.D{{Key: "a", Value: "x"}}, []byte{1}, bson.DateTime(5), bson.Raw{5, 0, 0, 0, 0}, bson.RawValue{Type: bson.TypeNull}, bson.Null{}, bson.Regex{Pattern: "p"},
	}
	var docs [][]byte
	for _, v := range values {
		doc, err := bson.Marshal(bson.D{{Key: "v", Value: v}, {Key: "s", Value: bson.A{v}}, {Key: "m", Value: bson.M{"k": v}}})
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
	types := []reflect.Type{reflect.TypeFor[any]()}
	for _, v := range values {
		types = append(types, reflect.TypeOf(v))
	}
	for i, other := range types {
		holder := reflect.StructOf([]reflect.StructField{
			{Name: "V", Type: other}, {Name: "S", Type: reflect.SliceOf(other)}, {Name: "A", Type: reflect.ArrayOf(1, other)},
			{Name: "M", Type: reflect.MapOf(reflect.TypeFor[string](), other)}, {Name: "P", Type: reflect.PointerTo(other)},
		})
		v := reflect.ValueOf(values[max(i-1, 0)])
		full := reflect.New(holder).Elem()
		full.Field(0).Set(v)
		full.Field(1).Set(reflect.Append(full.Field(1), full.Field(0)))
		full.Field(2).Index(0).Set(v)
		full.Field(3).Set(reflect.MakeMap(full.Field(3).Type()))
		full.Field(3).SetMapIndex(reflect.ValueOf("k"), full.Field(0))
		for _, of := range types {
			driver, plans := bothCodecs(func(reg *bson.Registry) {
				stock := bson.NewRegistry()
				if enc, err := stock.LookupEncoder(of); err == nil {
					reg.RegisterTypeEncoder(other, enc)
				}
				if dec, err := stock.LookupDecoder(of); err == nil {
					reg.RegisterTypeDecoder(other, dec)
				}
			})
			if of.Kind() == reflect.Struct && of == reflect.TypeFor[inner]() {
				continue // the codec of structs is that with the plans
			}
			for _, doc := range []any{reflect.Zero(holder).Interface(), full.Interface()} {
				if got, want := outcome(plans, doc), outcome(driver, doc); got != want {
					t.Errorf("the encoder of %v for %v: got %s, the driver %s", of, other, got, want)
				}
			}
			for j, doc := range docs {
				if got, want := readOutcome(plans, doc, holder), readOutcome(driver, doc, holder); got != want {
					t.Errorf("the decoder of %v for %v, from a %T: got %s, the driver %s", of, other, values[j], got, want)
				}
			}
		}
	}
}

type (
	markedKey struct{ N int }
	textKey   [2]byte
)

func (k markedKey) MarshalKey() (string, error) { return fmt.Sprint("key ", k.N), nil }
func (k textKey) MarshalText() ([]byte, error)  { return []byte(fmt.Sprint("text ", k[0])), nil }
func (k *textKey) UnmarshalText(text []byte) error {
	k[0] = byte(len(text))
	return nil
}

// Keys of every type, and those that cannot be written, have the outcome that they have in the driver.
func TestKeysOfMaps(t *testing.T) {
	type text string
	n := 7
	driver, plans := bothCodecs(func(*bson.Registry) {})
	for _, m := range []any{
		map[string]int{"k": 1}, map[text]int{"k": 1}, map[int]int{-1: 1}, map[int8]int{1: 1}, map[int64]int{1: 1}, map[uint]int{1: 1}, map[uint8]int{1: 1}, map[uintptr]int{1: 1}, map[bool]int{true: 1},
		map[float64]int{1.5: 1}, map[markedKey]int{{1}: 1}, map[textKey]int{{1}: 1}, map[*textKey]int{{1}: 1}, map[any]int{"k": 1}, map[fmt.Stringer]int{time.Second: 1}, map[*int]int{&n: 1},
		map[struct{ A int }]int{{1}: 1}, map[[1]int]int{{1}: 1}, map[string]int{"a\x00b": 1}, map[string]any{"a\x00b": 1}, map[time.Duration]string{5: "x"},
	} {
		doc := struct{ M any }{m}
		typed := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "M", Type: reflect.TypeOf(m)}})).Elem()
		typed.Field(0).Set(reflect.ValueOf(m))
		for _, v := range []any{doc, typed.Interface(), m} {
			if got, want := outcome(plans, v), outcome(driver, v); got != want {
				t.Errorf("%T: got %s, the driver %s", v, got, want)
			}
		}
		for _, key := range []string{"7", "true", "k", ""} {
			doc, err := bson.Marshal(bson.M{"m": bson.M{key: 1}})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := readOutcome(plans, doc, typed.Type()), readOutcome(driver, doc, typed.Type()); got != want {
				t.Errorf("%T: read %s, the driver %s", m, got, want)
			}
		}
	}
	type inner struct{ A any }
	for _, v := range []any{nil, "x", &n, (*int)(nil), inner{}, &inner{}, (*inner)(nil), []any{1}, make(chan int), map[string]int{}, func() {}, struct{ C chan int }{}} {
		for _, doc := range []any{
			bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 1}, {Key: "c", Value: 1}, {Key: "d\x00", Value: v}}, struct{ D bson.D }{bson.D{{Key: "d\x00", Value: v}}}, struct{ M bson.M }{bson.M{"d\x00": v}},
		} {
			if got, want := outcome(plans, doc), outcome(driver, doc); got != want {
				t.Errorf("a key with a zero byte, %T in a %T: got %s, the driver %s", v, doc, got, want)
			}
		}
	}
}

// failingCodec is a codec that takes part in plans and fails.
type (
	failingCodec struct{ ownCodec }
	failingPrice struct{ N int64 }
)

func (failingCodec) AppendValue(dst []byte, _ reflect.Value) (bson.Type, []byte, error) {
	return 0, dst, errFailing
}
func (failingCodec) ReadValue(bson.Type, []byte, reflect.Value) error { return errFailing }

var errFailing = errors.New("failing")

// An error of a codec that takes part in plans is returned, wherever the value is.
func TestErrorsOfValueCodecs(t *testing.T) {
	type price = failingPrice
	_, plans := bothCodecs(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[price](), failingCodec{})
		reg.RegisterTypeDecoder(reflect.TypeFor[price](), failingCodec{})
	})
	for _, v := range []any{
		struct{ V price }{}, struct{ V []price }{make([]price, 1)}, struct{ V [1]price }{}, struct{ V map[string]price }{map[string]price{"k": {}}}, struct{ V *price }{new(price)}, struct{ V any }{price{}},
		struct{ V any }{bson.D{{Key: "v", Value: price{}}}}, struct{ V any }{bson.M{"v": price{}}}, struct{ V bson.M }{bson.M{"v": price{}}}, struct {
			M map[string]price `bson:",inline"`
		}{map[string]price{"v": {}}}, struct{ V struct{ W []any } }{struct{ W []any }{[]any{price{}}}},
	} {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(plans)
		if err := enc.Encode(v); !errors.Is(err, errFailing) {
			t.Errorf("encoding a %T: got %v", v, err)
		}
		doc, err := bson.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		target := reflect.New(reflect.TypeOf(v))
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
		dec.SetRegistry(plans)
		plans.RegisterTypeMapEntry(bson.TypeInt64, reflect.TypeFor[price]())
		if err := dec.Decode(target.Interface()); !errors.Is(err, errFailing) {
			t.Errorf("decoding into a %T: got %v", v, err)
		}
	}
}
