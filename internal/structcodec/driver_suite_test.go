package structcodec_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The cases here are those of the driver's own tests, version 2.9.3, as data. Each group names the test that it is from.
// They hold for the driver and for plans.

// suiteHook is testValueMarshaler of bson/default_value_encoders_test.go.
type suiteHook struct{ text string }

func (h suiteHook) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(h.text)
	return byte(t), data, err
}

func (h *suiteHook) UnmarshalBSONValue(t byte, data []byte) error {
	return bson.UnmarshalValue(bson.Type(t), data, &h.text)
}

// suiteValueTracker and suiteTracker are unmarshalBSONValueCallTracker and unmarshalBSONCallTracker of
// bson/bson_test.go: they say whether they were called.
type (
	suiteValueTracker struct{ Called bool }
	suiteTracker      struct{ Called bool }
	suiteTrackers     struct {
		BV  suiteValueTracker
		BVP *suiteValueTracker
		B   suiteTracker
		BP  *suiteTracker
	}
	suiteZero struct{ ReportZero bool }
	suiteBool bool
)

func (z suiteZero) IsZero() bool { return z.ReportZero }

func (s *suiteValueTracker) UnmarshalBSONValue(byte, []byte) error {
	s.Called = true
	return nil
}

func (s *suiteTracker) UnmarshalBSON([]byte) error {
	s.Called = true
	return nil
}

type suiteA struct {
	A int64 `bson:",minsize"`
}

// From the success path and the error path of TestDefaultValueEncoders, bson/default_value_encoders_test.go, and from
// TestNullBytes, bson/marshal_test.go.
func TestDriverSuiteEncode(t *testing.T) {
	id, now := bson.ObjectID{1, 2, 3}, time.UnixMilli(1_700_000_000_123).UTC()
	link, err := url.Parse("https://mongodb.com/random-url?hello=world")
	if err != nil {
		t.Fatal(err)
	}
	decimal, err := bson.ParseDecimal128("1.5e10")
	if err != nil {
		t.Fatal(err)
	}
	e := func(key string, value any) bson.E { return bson.E{Key: key, Value: value} }
	ms := bson.DateTime(now.UnixMilli())
	for name, c := range map[string]struct {
		value any
		want  bson.D
		err   string
	}{
		"map[string]int32":    {map[string]int32{"foo": 1}, bson.D{e("foo", int32(1))}, ""},
		"map[string]ObjectID": {map[string]bson.ObjectID{"foo": id}, bson.D{e("foo", id)}, ""},
		"map[string][]int32":  {map[string][]int32{"Z": {1, 2, 3}}, bson.D{e("Z", bson.A{int32(1), int32(2), int32(3)})}, ""},
		"map of json.Number":  {map[string][]json.Number{"Z": {"5", "10.1"}}, bson.D{e("Z", bson.A{int64(5), 10.1})}, ""},
		"map of URLs":         {map[string][]*url.URL{"Z": {link}}, bson.D{e("Z", bson.A{link.String()})}, ""},
		"map of Decimal128":   {map[string][]bson.Decimal128{"Z": {decimal}}, bson.D{e("Z", bson.A{decimal})}, ""},
		"omitempty, empty time": {struct {
			A time.Time `bson:",omitempty"`
		}{}, bson.D{}, ""},
		"inline": {struct {
			Foo suiteA `bson:",inline"`
		}{suiteA{12345}}, bson.D{e("a", int32(12345))}, ""},
		"two fields of one name": {struct {
			Foo, Bar *suiteA `bson:",inline"`
		}{}, nil, "duplicated key a"},
		"nested inline pointers": {struct {
			Foo *struct {
				Bar *suiteA `bson:",inline"`
			} `bson:",inline"`
		}{&struct {
			Bar *suiteA `bson:",inline"`
		}{&suiteA{1}}}, bson.D{e("a", int32(1))}, ""},
		"inline overwrite": {struct {
			Foo struct {
				A int32
				B string
			} `bson:",inline"`
			A int64
		}{A: 54321}, bson.D{e("b", ""), e("a", int64(54321))}, ""},
		"inline overwrite, order": {struct {
			A   int64
			Foo struct {
				A int32
				B string
			} `bson:",inline"`
		}{A: 54321}, bson.D{e("a", int64(54321)), e("b", "")}, ""},
		"inline overwrite, two": {struct {
			Foo, Bar struct{ A int32 } `bson:",inline"`
			A        int64
		}{A: 54321}, bson.D{e("a", int64(54321))}, ""},
		"inline map": {struct {
			Foo map[string]string `bson:",inline"`
		}{map[string]string{"foo": "bar"}}, bson.D{e("foo", "bar")}, ""},
		"inline, omitempty": {struct {
			A   string
			Foo suiteZero `bson:"omitempty,inline"`
		}{"bar", suiteZero{true}}, bson.D{e("a", "bar"), e("reportzero", true)}, ""},
		"a field of each type": {struct {
			A  bool
			B  int32
			C  int64
			D  uint16
			E  uint64
			F  float64
			G  string
			H  map[string]string
			I  []byte
			K  [2]string
			L  struct{ M string }
			Q  bson.ObjectID
			T  []struct{}
			Y  json.Number
			Z  time.Time
			AA json.Number
			AB *url.URL
			AC bson.Decimal128
			AD *time.Time
			AE suiteHook
			AF map[string]any
			AG bson.CodeWithScope
		}{
			true, 123, 456, 789, 101112, 3.14159, "Hello, world", map[string]string{"foo": "bar"}, []byte{1, 2, 3}, [2]string{"baz", "qux"},
			struct{ M string }{"foobar"}, id, nil, "5", now, "10.1", link, decimal, &now, suiteHook{"hello, world"}, nil,
			bson.CodeWithScope{Code: "var hello = 'world';", Scope: bson.D{e("pi", 3.14159)}},
		}, bson.D{
			e("a", true), e("b", int32(123)), e("c", int64(456)), e("d", int32(789)), e("e", int64(101112)), e("f", 3.14159), e("g", "Hello, world"),
			e("h", bson.D{e("foo", "bar")}), e("i", bson.Binary{Data: []byte{1, 2, 3}}), e("k", bson.A{"baz", "qux"}), e("l", bson.D{e("m", "foobar")}),
			e("q", id), e("t", nil), e("y", int64(5)), e("z", ms), e("aa", 10.1), e("ab", link.String()), e("ac", decimal), e("ad", ms),
			e("ae", "hello, world"), e("af", nil), e("ag", bson.CodeWithScope{Code: "var hello = 'world';", Scope: bson.D{e("pi", 3.14159)}}),
		}, ""},
		"slices": {struct {
			H []map[string]string
			I [][]byte
			K [1][2]string
			L []struct{ M string }
			N [][]string
			W []map[string]struct{}
			X []map[string]struct{}
			Y []map[string]struct{}
			D []*time.Time
			E []suiteHook
		}{
			[]map[string]string{{"foo": "bar"}}, [][]byte{{1, 2, 3}}, [1][2]string{{"baz", "qux"}}, []struct{ M string }{{"foobar"}}, [][]string{{"foo", "bar"}},
			nil, []map[string]struct{}{}, []map[string]struct{}{{}}, []*time.Time{&now, &now}, []suiteHook{{"hello"}, {"world"}},
		}, bson.D{
			e("h", bson.A{bson.D{e("foo", "bar")}}), e("i", bson.A{bson.Binary{Data: []byte{1, 2, 3}}}), e("k", bson.A{bson.A{"baz", "qux"}}),
			e("l", bson.A{bson.D{e("m", "foobar")}}), e("n", bson.A{bson.A{"foo", "bar"}}), e("w", nil), e("x", bson.A{}), e("y", bson.A{bson.D{}}),
			e("d", bson.A{ms, ms}), e("e", bson.A{"hello", "world"}),
		}, ""},
		"duplicate name": {struct {
			A int64
			B int64 `bson:"a"`
		}{}, nil, "duplicated key a"},
		"a key of an inline map": {
			struct {
				Foo map[string]string `bson:",inline"`
				Baz string
			}{map[string]string{"baz": "bar"}, "hi"}, nil,
			"Key baz of inlined map conflicts with a struct field name",
		},
		"a zero byte in a key":           {bson.D{e("a\x00", "foobar")}, nil, "BSON element key cannot contain null bytes"},
		"a zero byte in a pattern":       {bson.D{e("foo", bson.Regex{Pattern: "a\x00"})}, nil, "BSON regex values cannot contain null bytes"},
		"a zero byte in options":         {bson.D{e("foo", bson.Regex{Options: "i\x00"})}, nil, "BSON regex values cannot contain null bytes"},
		"a zero byte in a nested key":    {bson.D{e("foo", bson.D{e("foobar", bson.D{e("a\x00", "x")})})}, nil, "BSON element key cannot contain null bytes"},
		"a zero byte in a pattern field": {struct{ R bson.Regex }{bson.Regex{Pattern: "a\x00"}}, nil, "BSON regex values cannot contain null bytes"},
	} {
		for i, reg := range both() {
			for _, encode := range []func(*bson.Registry, any) ([]byte, error){
				func(reg *bson.Registry, v any) ([]byte, error) { return encode(reg, v, func(*bson.Encoder) {}) },
				func(reg *bson.Registry, v any) ([]byte, error) { return marshal(reg, v) },
			} {
				got, err := encode(reg, c.value)
				switch {
				case c.err != "":
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("%s, registry %d: error %v, want %s", name, i, err, c.err)
					}
				case err != nil || !bytes.Equal(got, doc(t, c.want...)):
					t.Errorf("%s, registry %d: got %v and error %v, want %v", name, i, bson.Raw(got), err, c.want)
				}
			}
		}
	}
}

// From unmarshalingTestCases, bson/unmarshaling_cases_test.go, TestUnmarshalInterface, TestUnmarshalBSONWithUndefinedField
// and TestUnmarshalTypeCompatibility, bson/unmarshal_test.go, TestTruncation, bson/truncation_test.go, and "values are
// converted" and "custom type map entry" of TestDefaultValueDecoders, bson/default_value_decoders_test.go.
func TestDriverSuiteDecode(t *testing.T) {
	e := func(key string, value any) bson.E { return bson.E{Key: key, Value: value} }
	type anyField struct{ Value any }
	type anyArray struct{ Value [3]any }
	type anySlice struct{ Value []any }
	type text struct{ DefinedField string }
	type rawField struct{ Foo bson.Raw }
	type myBytes []byte
	longKey := strings.Repeat("k", 1_000_000)
	long := reflect.New(reflect.StructOf([]reflect.StructField{{Name: "Foo", Type: reflect.TypeFor[bool](), Tag: reflect.StructTag(`bson:"` + longKey + `"`)}}))
	longWant := reflect.New(long.Type().Elem())
	longWant.Elem().Field(0).SetBool(true)
	raw := func(elements ...bson.E) bson.Raw { return doc(t, elements...) }
	booleans := func(reg *bson.Registry) { reg.RegisterTypeMapEntry(bson.TypeBoolean, reflect.TypeFor[suiteBool]()) }
	maps := func(reg *bson.Registry) {
		reg.RegisterTypeMapEntry(bson.TypeEmbeddedDocument, reflect.TypeFor[bson.M]())
	}
	type decodeCase struct {
		doc      bson.Raw
		target   func() any
		want     any
		err      string
		register func(*bson.Registry)
	}
	cases := map[string]decodeCase{
		"mixed case":        {doc: raw(e("fooBar", int32(10))), target: func() any { return new(struct{ FooBar int32 }) }, want: &struct{ FooBar int32 }{10}},
		"a long key":        {doc: raw(e(longKey, true)), target: func() any { return reflect.New(long.Type().Elem()).Interface() }, want: longWant.Interface()},
		"null into hooks":   {doc: raw(e("bv", nil), e("bvp", nil), e("b", nil), e("bp", nil)), target: func() any { return new(suiteTrackers) }, want: &suiteTrackers{BV: suiteValueTracker{true}, B: suiteTracker{true}}},
		"a string":          {doc: raw(e("value", "foo")), target: func() any { return &anyField{new(string)} }, want: &anyField{ptr("foo")}},
		"a struct":          {doc: raw(e("value", bson.D{e("data", "foo")})), target: func() any { return &anyField{new(struct{ Data string })} }, want: &anyField{&struct{ Data string }{"foo"}}},
		"a slice":           {doc: raw(e("value", bson.A{"foo", "bar"})), target: func() any { return &anyField{new([]string)} }, want: &anyField{&[]string{"foo", "bar"}}},
		"an array":          {doc: raw(e("value", bson.A{"foo", "bar"})), target: func() any { return &anyField{new([2]string)} }, want: &anyField{&[2]string{"foo", "bar"}}},
		"an array of any":   {doc: raw(e("value", bson.A{"foo", 42, nil})), target: func() any { return &anyArray{[3]any{new(string), new(int), new(int)}} }, want: &anyArray{[3]any{ptr("foo"), ptr(42), nil}}},
		"a filled slice":    {doc: raw(e("value", bson.A{1, 2, 3})), target: func() any { return &anySlice{[]any{7, 8}} }, want: &anySlice{[]any{1, 2, int32(3)}}},
		"an array into Raw": {doc: raw(e("foo", bson.A{true})), target: func() any { return new(rawField) }, want: &rawField{raw(e("0", true))}},
		"a document in Raw": {doc: raw(e("foo", bson.D{e("bar", int32(42))})), target: func() any { return new(rawField) }, want: &rawField{raw(e("bar", int32(42)))}},
		"null into Raw":     {doc: raw(e("foo", nil)), target: func() any { return new(rawField) }, want: &rawField{}},
		"an int into Raw":   {doc: raw(e("foo", 42)), target: func() any { return new(rawField) }, err: "cannot decode 32-bit integer into a bson.Raw"},
		"no truncation": {doc: raw(e("name", "x"), e("val", 7.382)), target: func() any {
			return new(struct {
				Name string
				Val  *int64
			})
		}, err: "truncated"},
		"bytes":           {doc: raw(e("foo", []byte{0, 1, 2})), target: func() any { return new(struct{ Foo myBytes }) }, want: &struct{ Foo myBytes }{myBytes{0, 1, 2}}},
		"bytes into D":    {doc: raw(e("foo", []byte{0, 1, 2})), target: func() any { return new(bson.D) }, want: &bson.D{e("foo", bson.Binary{Data: []byte{0, 1, 2}})}},
		"an error field":  {doc: raw(e("lasterror", nil)), target: func() any { return new(struct{ LastError error }) }, err: "no decoder found for error"},
		"D is converted":  {doc: raw(e("bool", true), e("a", bson.A{true})), target: func() any { return new(bson.D) }, want: &bson.D{e("bool", suiteBool(true)), e("a", bson.A{suiteBool(true)})}, register: booleans},
		"M is converted":  {doc: raw(e("bool", true), e("a", bson.A{true})), target: func() any { return new(bson.M) }, want: &bson.M{"bool": suiteBool(true), "a": bson.A{suiteBool(true)}}, register: booleans},
		"D with an entry": {doc: raw(e("nested", bson.D{e("foo", int32(10))})), target: func() any { return new(bson.D) }, want: &bson.D{e("nested", bson.M{"foo": int32(10)})}, register: maps},
	}
	for name, special := range map[string]any{"min": bson.MinKey{}, "max": bson.MaxKey{}} {
		cases[name+" key into hooks"] = decodeCase{
			doc: raw(e("bv", special), e("bvp", special), e("b", special)), target: func() any { return new(suiteTrackers) },
			want: &suiteTrackers{suiteValueTracker{true}, &suiteValueTracker{true}, suiteTracker{true}, nil},
		}
	}
	for name, unknown := range map[string]any{
		"none": bson.D{e("key", 1)}, "an array outside": bson.A{bson.D{e("key", 1)}}, "an array within": bson.D{e("key", bson.A{1})},
		"arrays": bson.A{bson.D{e("key", bson.A{1})}}, "documents": bson.D{e("key", bson.D{e("one", bson.D{e("two", "three")})})},
		"all":   bson.A{bson.D{e("key", bson.D{e("one", bson.A{3})})}},
		"scope": bson.D{e("logic", bson.A{bson.CodeWithScope{Code: "foo", Scope: bson.D{e("bar", 1)}}})}, "empty": bson.D{},
	} {
		cases["unknown field, "+name] = decodeCase{
			doc:    raw(e("UndefinedField", unknown), e("DefinedField", "value")),
			target: func() any { return new(text) }, want: &text{"value"},
		}
	}
	for name, c := range cases {
		register := c.register
		if register == nil {
			register = registerCallers
		}
		driver, plans := registries(register)
		for i, reg := range []*bson.Registry{driver, plans} {
			for _, decode := range []func(*bson.Registry, []byte, any, func(*bson.Decoder)) error{decodeStream, decodeMemory} {
				got := c.target()
				err := decode(reg, c.doc, got, func(*bson.Decoder) {})
				switch {
				case c.err != "":
					if err == nil || !strings.Contains(err.Error(), c.err) {
						t.Errorf("%s, registry %d: error %v, want %s", name, i, err, c.err)
					}
				case err != nil || !reflect.DeepEqual(got, c.want):
					t.Errorf("%s, registry %d: got %.300s and error %v, want %.300s", name, i, dump(reflect.ValueOf(got)), err, dump(reflect.ValueOf(c.want)))
				}
			}
		}
	}
}

// From "decode errors contain key information" of TestDefaultValueDecoders, bson/default_value_decoders_test.go.
func TestDriverSuiteKeysOfErrors(t *testing.T) {
	type inner3 struct{ Fourth any }
	type inner2 struct{ Third []inner3 }
	type inner1 struct{ Second map[string]inner2 }
	errAny := errors.New("decode value error")
	driver, plans := registries(func(reg *bson.Registry) {
		reg.RegisterTypeDecoder(reflect.TypeFor[any](), bson.ValueDecoderFunc(
			func(bson.DecodeContext, bson.ValueReader, reflect.Value) error { return errAny }))
	})
	e := func(key string, value any) bson.E { return bson.E{Key: key, Value: value} }
	foo := doc(t, e("foo", int32(10)))
	for name, c := range map[string]struct {
		doc    bson.Raw
		target any
		keys   string
	}{
		"a slice of elements": {foo, new([]bson.E), "foo"},
		"an array of them":    {foo, new([1]bson.E), "foo"},
		"a map":               {foo, new(map[string]any), "foo"},
		"a struct":            {foo, new(struct{ Foo any }), "foo"},
		"all": {
			doc(t, e("first", bson.D{e("second", bson.D{e("randomKey", bson.D{e("third", bson.A{bson.D{}, bson.D{e("fourth", "value")}})})})})),
			new(struct{ First inner1 }), "first.second.randomKey.third.1.fourth",
		},
	} {
		for i, reg := range []*bson.Registry{driver, plans} {
			err := decodeStream(reg, c.doc, c.target, func(*bson.Decoder) {})
			var de *bson.DecodeError
			if !errors.As(err, &de) || !errors.Is(err, errAny) || strings.Join(de.Keys(), ".") != c.keys || !strings.Contains(err.Error(), c.keys) {
				t.Errorf("%s, registry %d: error %v, want the keys %s", name, i, err, c.keys)
			}
		}
	}
}
