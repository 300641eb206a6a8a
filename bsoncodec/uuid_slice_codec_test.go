package bsoncodec_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/uuidrep"
)

type orderIDs []orderID

// slices is decoded and encoded through this package's slice codec and through the driver's alone.
type slices struct {
	V []uuid.UUID
	O []orderID
	D orderIDs
	P []*uuid.UUID
	A [3]uuid.UUID
	N []uuid.NullUUID

	// The driver never comes back from skipping a value with a negative length; with a map for other keys it skips none.
	Rest map[string]bson.RawValue `bson:",inline"`
}

// throughTheDriver keeps the driver's codec for slices, behind a type of its own.
func throughTheDriver(reg *bson.Registry) {
	for _, t := range []reflect.Type{reflect.TypeFor[[]uuid.UUID](), reflect.TypeFor[[]orderID]()} {
		enc, err := reg.LookupEncoder(t)
		if err != nil {
			panic(err)
		}
		dec, err := reg.LookupDecoder(t)
		if err != nil {
			panic(err)
		}
		reg.RegisterTypeEncoder(t, bson.ValueEncoderFunc(enc.EncodeValue))
		reg.RegisterTypeDecoder(t, bson.ValueDecoderFunc(dec.DecodeValue))
	}
}

// fastAndSlow returns two registries that differ in the codec for slices alone.
func fastAndSlow(t testing.TB, r uuidrep.Representation) (fast, slow *bson.Registry) {
	t.Helper()
	return build(t, sliceBuilder(r)), build(t, sliceBuilder(r).With(throughTheDriver))
}

func sliceBuilder(r uuidrep.Representation) *bsoncodec.RegistryBuilder {
	b := bsoncodec.NewRegistryBuilder(r).RegisterUUIDType(reflect.TypeFor[orderID]())
	if r == uuidrep.JavaLegacy {
		b.AlsoDecode(uuidrep.Standard).AlsoDecodeSubtype0().AlsoDecodeString()
	}
	return b
}

var allRepresentations = []uuidrep.Representation{
	uuidrep.Unspecified, uuidrep.CSharpLegacy, uuidrep.Standard, uuidrep.PythonLegacy, uuidrep.JavaLegacy,
}

// A slice of UUIDs, which one raw value holds, has the bytes that the driver's codec of slices writes with
// the codec of each element.
func TestSlicesAreEncodedAsTheDriverEncodesThem(t *testing.T) {
	for _, r := range allRepresentations {
		fast, slow := fastAndSlow(t, r)
		for _, n := range []int{-1, 0, 1, 9, 10, 11, 99, 100, 101, 1000, 1001, 10001} {
			var s slices
			if n >= 0 {
				s = slices{V: make([]uuid.UUID, n), O: make([]orderID, n), D: make(orderIDs, n), P: make([]*uuid.UUID, n), N: make([]uuid.NullUUID, n)}
			}
			for i := range s.V {
				s.V[i] = uuid.New()
				s.O[i], s.D[i], s.P[i] = orderID(s.V[i]), orderID(s.V[i]), &s.V[i]
			}
			for _, v := range []any{s, &s, bson.D{{Key: "v", Value: s.V}, {Key: "o", Value: s.O}}, bson.M{"v": s.V}, bson.D{{Key: "a", Value: bson.A{s.V, s.O}}}} {
				got, err := bsoncodec.Marshal(fast, v)
				want, wantErr := bsoncodec.Marshal(slow, v)
				if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%v, %d in %T: got %d octets, %v; the driver %d octets, %v", r, n, v, len(got), err, len(want), wantErr)
				}
				if n > 101 {
					continue // what is written as JSON is not the work of the codec of slices
				}
				gotJSON, err := bsoncodec.MarshalExtJSON(fast, v, true, false)
				wantJSON, wantErr := bsoncodec.MarshalExtJSON(slow, v, true, false)
				if !bytes.Equal(gotJSON, wantJSON) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%v, %d in %T as JSON: %v; the driver %v", r, n, v, err, wantErr)
				}
			}
		}
	}
}

// Codecs of the caller's for bson.RawValue are none for slices of UUIDs.
func TestSlicesBesideCodecsForRawValue(t *testing.T) {
	errOwn := errors.New("the caller's codec")
	reg := build(t, sliceBuilder(uuidrep.CSharpLegacy).With(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[bson.RawValue](), bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error {
			return errOwn
		}))
		reg.RegisterTypeDecoder(reflect.TypeFor[bson.RawValue](), bson.ValueDecoderFunc(func(bson.DecodeContext, bson.ValueReader, reflect.Value) error {
			return errOwn
		}))
	}))
	type ids struct {
		V []uuid.UUID
		O []orderID
	}
	in := ids{[]uuid.UUID{testUUID}, []orderID{orderID(testUUID)}}
	raw := marshal(t, reg, in)
	wantStored(t, raw, 3, octetsCSharp, "v", "0")
	var out ids
	unmarshal(t, reg, raw, &out)
	if !reflect.DeepEqual(in, out) {
		t.Errorf("got %v, want %v", out, in)
	}
	if _, err := encode(t, reg, bson.M{"v": bson.RawValue{Type: bson.TypeNull}}); !errors.Is(err, errOwn) {
		t.Errorf("a RawValue: got %v", err)
	}
}

// The options of the encoder reach a nil slice.
func TestNilSliceAsEmpty(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(reg)
	enc.NilSliceAsEmpty()
	if err := enc.Encode(slices{}); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"v", "o", "d"} {
		if v := bson.Raw(buf.Bytes()).Lookup(key); v.Type != bson.TypeArray {
			t.Errorf("%s: got %v", key, v)
		}
	}
}

// wellFormed reports whether doc and the documents and arrays in it are valid: Validate does not look into arrays.
func wellFormed(doc bson.Raw) bool {
	elements, err := doc.Elements()
	if err != nil || doc.Validate() != nil {
		return false
	}
	for _, e := range elements {
		switch v := e.Value(); v.Type {
		case bson.TypeArray, bson.TypeEmbeddedDocument:
			if !wellFormed(v.Value) {
				return false
			}
		}
	}
	return true
}

var digits = regexp.MustCompile("[0-9]+")

// fromMemory and fromStream are the two ways in which the driver reads a document. From a stream it makes room for as
// many octets as a length says before it reads them, so lengths that lie are tried from memory alone.
func fromMemory(reg *bson.Registry, doc []byte, v any) error { return bsoncodec.Unmarshal(reg, doc, v) }

func fromStream(reg *bson.Registry, doc []byte, v any) error {
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	dec.SetRegistry(reg)
	return dec.Decode(v)
}

// wantSameDecoding decodes doc with both registries and compares values and errors.
func wantSameDecoding(t *testing.T, decode func(*bson.Registry, []byte, any) error, fast, slow *bson.Registry, doc []byte) {
	t.Helper()
	for _, fresh := range []func() *slices{
		func() *slices { return new(slices) },
		func() *slices { return &slices{V: make([]uuid.UUID, 2, 4), O: []orderID{{1}}} },
	} {
		got, want := fresh(), fresh()
		err, wantErr := decode(fast, doc, got), decode(slow, doc, want)
		if back, beyond := driver.Skips(bson.TypeEmbeddedDocument, doc); back && beyond > 0 && err != nil && wantErr != nil {
			continue // no codec is given the document, but a plan can have read its beginning
		}
		if !reflect.DeepEqual(got, want) || (err == nil) != (wantErr == nil) {
			t.Fatalf("%X\ngot %v, %v\nthe driver %v, %v", doc, got, err, want, wantErr)
		}
		if wantErr == nil || !wellFormed(doc) {
			continue
		}
		// A document that is framed well gives the very error too, but for the offsets that some name.
		if digits.ReplaceAllString(err.Error(), "#") != digits.ReplaceAllString(wantErr.Error(), "#") {
			t.Fatalf("%X\ngot %v\nthe driver %v", doc, err, wantErr)
		}
		var subtype, wantSubtype *uuidrep.SubtypeError
		if errors.As(err, &subtype) != errors.As(wantErr, &wantSubtype) || (subtype != nil && *subtype != *wantSubtype) {
			t.Fatalf("got %v, the driver %v", err, wantErr)
		}
	}
}

// An array has the values and the errors that the driver's codec of slices has with the codec of each
// element.
func TestSlicesAreDecodedAsTheDriverDecodesThem(t *testing.T) {
	elements := []any{
		bson.Binary{Subtype: 4, Data: octetsStandard}, bson.Binary{Subtype: 3, Data: octetsJava},
		bson.Binary{Subtype: 0, Data: octetsStandard}, bson.Binary{Subtype: 5, Data: octetsStandard}, bson.Binary{Subtype: 2, Data: octetsStandard},
		bson.Binary{Subtype: 4, Data: octetsStandard[:15]}, bson.Binary{Subtype: 4}, bson.Null{}, bson.Undefined{}, testUUID.String(), "x",
		int32(1), bson.D{{Key: "a", Value: 1}}, bson.A{}, bson.MinKey{},
	}
	stock := bson.NewRegistry()
	for i, r := range allRepresentations {
		if testing.Short() && i%2 != 0 { // subtype 3 in one order is enough
			continue
		}
		fast, slow := fastAndSlow(t, r)
		check := func(v any) {
			raw := marshal(t, stock, bson.D{{Key: "v", Value: v}, {Key: "o", Value: v}, {Key: "d", Value: v}, {Key: "a", Value: v}, {Key: "p", Value: v}, {Key: "n", Value: v}})
			wantSameDecoding(t, fromMemory, fast, slow, raw)
			wantSameDecoding(t, fromStream, fast, slow, raw)
			wantSameDecoding(t, fromMemory, fast, slow, marshal(t, stock, bson.D{{Key: "v", Value: v}}))
			wantSameDecoding(t, fromMemory, fast, slow, marshal(t, stock, bson.D{{Key: "o", Value: v}}))
		}
		check(bson.A{})
		for _, a := range elements {
			check(a)
			check(bson.A{a})
			for _, b := range elements {
				check(bson.A{a, b})
				check(bson.A{a, a, a, a, a, a, a, a, a, a, a, b})
			}
		}
	}
}

// A nil slice of UUIDs becomes what any nil slice does in the registry: null, or an empty array as in mgo.
func TestNilSlicesAreEncodedAsTheDriverEncodesThem(t *testing.T) {
	mgoSlices := func(reg *bson.Registry) {
		enc, err := bson.NewMgoRegistry().LookupEncoder(reflect.TypeFor[[]string]())
		if err != nil {
			t.Fatal(err)
		}
		reg.RegisterKindEncoder(reflect.Slice, enc)
	}
	for name, c := range map[string]struct {
		reg  *bson.Registry
		with func(*bson.Registry)
	}{
		"default":                 {bson.NewRegistry(), func(*bson.Registry) {}},
		"mgo":                     {bson.NewMgoRegistry(), func(*bson.Registry) {}},
		"mgo respecting nil":      {bson.NewRespectNilValuesMgoRegistry(), func(*bson.Registry) {}},
		"default with mgo slices": {bson.NewRegistry(), mgoSlices},
	} {
		t.Run(name, func(t *testing.T) {
			if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(c.with).ApplyTo(c.reg); err != nil {
				t.Fatal(err)
			}
			for _, opts := range [][]bsoncodec.Options{nil, {{NilSliceAsEmpty: true}}, {{IntMinSize: true}}} {
				for _, pair := range [][2]any{
					{[]uuid.UUID(nil), []string(nil)},
					{struct{ V []uuid.UUID }{}, struct{ V []string }{}},
					{bson.D{{Key: "v", Value: []uuid.UUID(nil)}}, bson.D{{Key: "v", Value: []string(nil)}}},
				} {
					got, err := bsoncodec.MarshalValue(c.reg, pair[0], opts...)
					if err != nil {
						t.Fatal(err)
					}
					want, err := bsoncodec.MarshalValue(c.reg, pair[1], opts...)
					if err != nil {
						t.Fatal(err)
					}
					if !got.Equal(want) {
						t.Errorf("%T with %+v: got %v, a slice of strings is %v", pair[0], opts, got, want)
					}
				}
			}
		})
	}
}

// Keys of an array are not read by the driver: any will do.
func TestArrayKeysDoNotMatter(t *testing.T) {
	fast, slow := fastAndSlow(t, uuidrep.Standard)
	b := bson.Binary{Subtype: 4, Data: octetsStandard}
	for _, keys := range [][]string{{"", ""}, {"1", "0"}, {"a long key", "\u00e9"}} {
		doc := marshal(t, slow, bson.D{{Key: "v", Value: bson.D{{Key: keys[0], Value: b}, {Key: keys[1], Value: b}}}})
		doc[4] = byte(bson.TypeArray)
		wantSameDecoding(t, fromMemory, fast, slow, doc)
	}
}

// An array with one octet that is changed, or cut off anywhere, has the results of the driver's codec.
func TestMalformedSlices(t *testing.T) {
	for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		fast, slow := fastAndSlow(t, r)
		whole := marshal(t, slow, bson.M{"v": []uuid.UUID{testUUID, uuid.New(), uuid.New()}})
		// The length of the second element leads back within a field that is not skipped by all targets.
		lengths, err := hex.DecodeString("55000000048D004D000000053000100000000400112233445566778899AABBCCDDEEFF05314C1000000004864C0E6894844674A0A8970F0E25EC77053200100000000433522B24B3F742BCB226CAAAD7DA5A040000")
		if err != nil {
			t.Fatal(err)
		}
		wantSameDecoding(t, fromMemory, fast, slow, lengths)
		if err := bsoncodec.UnmarshalValue(slow, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: lengths}, new(chan int)); err == nil {
			t.Error("a document was decoded into a channel")
		}
		for n := range whole {
			short := bytes.Clone(whole[:n])
			wantSameDecoding(t, fromMemory, fast, slow, short)
			wantSameDecoding(t, fromStream, fast, slow, short)
			if n >= 4 { // with a length that does not lie
				binary.LittleEndian.PutUint32(short, uint32(n))
				wantSameDecoding(t, fromMemory, fast, slow, short)
			}
		}
		for i := range whole {
			for _, b := range []byte{0, 3, 4, 5, 0x0A, 0x7F, 0xFF, whole[i] + 1, whole[i] - 1} {
				bad := bytes.Clone(whole)
				bad[i] = b
				wantSameDecoding(t, fromMemory, fast, slow, bad)
			}
		}
		for range 500 {
			bad := bytes.Clone(whole)
			for range 1 + rand.IntN(3) {
				bad[4+rand.IntN(len(bad)-4)] = byte(rand.Uint32())
			}
			wantSameDecoding(t, fromMemory, fast, slow, bad)
		}
	}
}

func FuzzSliceDecoding(f *testing.F) {
	fast, slow := fastAndSlow(f, uuidrep.JavaLegacy)
	for _, v := range []any{
		[]uuid.UUID{}, []uuid.UUID{testUUID}, bson.A{testUUID, nil}, bson.A{bson.Binary{Subtype: 0, Data: octetsStandard}, testUUID, "x"},
	} {
		f.Add([]byte(marshal(f, slow, bson.M{"v": v})))
		f.Add([]byte(marshal(f, slow, bson.M{"o": v})))
	}
	f.Add([]byte("\r\x00\x00\x00\x04\x8f\x00000\xff\x00>")) // a negative length, found by fuzzing
	// A value, and then an array of negative length with a length far beyond the end in it, found by fuzzing.
	f.Add([]byte("\x28\x00\x00\x00\xff\xee\x00\x04z\x00\x10\x00\xfd\xff\x0f\x00DT\x00U\x00\x00\x00\x7f\x22\x11\x00\xbb\xaa\x10\xcc\x10\x00\x00\x00\x10\x00\x22\x11\x00"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		wantSameDecoding(t, fromMemory, fast, slow, doc)
	})
}
