package autoid

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// uuid16 is a UUID type as a program may declare it, with a codec for subtype 4.
type uuid16 [16]byte

func registerUUID(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[uuid16](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			u := v.Interface().(uuid16)
			return vw.WriteBinaryWithSubtype(u[:], bson.TypeBinaryUUID)
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[uuid16](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
			b, _, err := vr.ReadBinary()
			if err == nil {
				reflect.Copy(v, reflect.ValueOf(b))
			}
			return err
		}))
	reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[uuid16]())
}

// TestSources tests that the registry in use encodes an id of any type.
func TestSources(t *testing.T) {
	u := uuid16{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}
	seven := int32(7)
	dec, err := bson.ParseDecimal128("1.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		id   any
		want any
	}{
		{bson.ObjectID{1, 2, 3}, bson.ObjectID{1, 2, 3}},
		{u, bson.Binary{Subtype: 4, Data: u[:]}},
		{"text", "text"},
		{"", ""},
		{0, int32(0)},
		{int64(1) << 40, int64(1) << 40},
		{1.5, 1.5},
		{dec, dec},
		{&seven, int32(7)},
		{bson.D{{Key: "shard", Value: "a"}, {Key: "n", Value: 1}}, bson.D{{Key: "shard", Value: "a"}, {Key: "n", Value: 1}}},
		{bson.M{"n": 1}, bson.D{{Key: "n", Value: 1}}},
		{bson.Binary{Subtype: 128, Data: []byte{1}}, bson.Binary{Subtype: 128, Data: []byte{1}}},
		{bson.RawValue{Type: bson.TypeInt32, Value: []byte{9, 0, 0, 0}}, int32(9)},
		{valueMarshaler{bson.D{{Key: "n", Value: 1}}}, bson.D{{Key: "n", Value: 1}}},
		{marshaler{bson.D{{Key: "n", Value: 1}}}, bson.D{{Key: "n", Value: 1}}},
		{time.Unix(0, 0), bson.DateTime(0)},
	} {
		t.Run(fmt.Sprintf("%T", tc.id), func(t *testing.T) {
			reg := registered()
			registerUUID(reg)
			src := SourceFunc(func() (any, error) { return tc.id, nil })
			want, err := bson.Marshal(bson.D{{Key: "_id", Value: tc.want}, {Key: "a", Value: 1}})
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range []any{
				bson.D{{Key: "a", Value: 1}},
				struct {
					ID any `bson:"_id,omitempty"`
					A  int
				}{A: 1},
				struct {
					A  int
					ID any `bson:"_id,omitempty"`
				}{A: 1},
			} {
				got, err := encode(reg, Document(src, doc))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%T: got %s, %v\nwant %s", doc, hex(got), err, hex(want))
				}
			}
		})
	}
}

type nullable struct{}

func (n nullable) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }

// TestSourceErrors tests that a document fails if its source fails or has no id, and that the error
// of the source can be found.
func TestSourceErrors(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name string
		src  Source
		want error
	}{
		{"error", SourceFunc(func() (any, error) { return bson.NewObjectID(), boom }), boom},
		{"nil", SourceFunc(func() (any, error) { return nil, nil }), errNilID},
		{"nil pointer", SourceFunc(func() (any, error) { return (*bson.ObjectID)(nil), nil }), errNilID},
		{"nil map", SourceFunc(func() (any, error) { return map[string]int(nil), nil }), errNilID},
		{"Null", SourceFunc(func() (any, error) { return bson.Null{}, nil }), errNilID},
		{"Undefined", SourceFunc(func() (any, error) { return bson.Undefined{}, nil }), errNilID},
		{"null by marshaler", SourceFunc(func() (any, error) { return nullable{}, nil }), errNilID},
		{"null RawValue", SourceFunc(func() (any, error) { return bson.RawValue{Type: bson.TypeNull}, nil }), errNilID},
		{"no source", nil, errNilSource},
		{"no function", SourceFunc(nil), errNilSource},
		{"not encodable", SourceFunc(func() (any, error) { return func() {}, nil }), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			type late struct {
				A  int
				ID any `bson:"_id,omitempty"`
			}
			type first struct {
				ID any `bson:"_id,omitempty"`
			}
			for _, doc := range []any{bson.D{}, bson.M{}, first{}, late{}, bson.Raw{5, 0, 0, 0, 0}, marshaler{bson.D{}}} {
				_, err := encode(registered(), Document(tc.src, doc))
				var e *IDError
				if !errors.As(err, &e) || e.Index != -1 || !reflect.DeepEqual(e.Document, doc) {
					t.Fatalf("%T: got %#v", doc, err)
				}
				if tc.want != nil && !errors.Is(err, tc.want) {
					t.Errorf("%T: got %v, want %v", doc, err, tc.want)
				}
				if want := fmt.Sprintf("autoid: no id for a document of type %T: ", doc); !strings.HasPrefix(err.Error(), want) {
					t.Errorf("got %q, want %q...", err, want)
				}
			}
			// A document with an _id does not need the source.
			if _, err := encode(registered(), Document(tc.src, bson.D{{Key: "_id", Value: 1}})); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSourceAskedAgain tests that a source that failed or returned null is asked again for the next
// encoding, and that the id that it then returns is kept.
func TestSourceAskedAgain(t *testing.T) {
	for name, first := range map[string]func() (any, error){
		"error":       func() (any, error) { return nil, errors.New("not yet") },
		"nil":         func() (any, error) { return nil, nil },
		"nil pointer": func() (any, error) { return (*bson.ObjectID)(nil), nil },
		"nil map":     func() (any, error) { return map[string]int(nil), nil },
		"Null":        func() (any, error) { return bson.Null{}, nil },
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			d := Document(SourceFunc(func() (any, error) {
				if calls++; calls == 1 {
					return first()
				}
				return int32(calls), nil
			}), bson.D{})
			if _, err := encode(registered(), d); err == nil {
				t.Fatal("no error")
			}
			for range 3 {
				got, err := encode(registered(), d)
				if err != nil || bson.Raw(got).Lookup("_id").Int32() != 2 {
					t.Fatalf("got %s, %v", hex(got), err)
				}
			}
		})
	}
}

// slowNull is an id that calls meanwhile while it is encoded as null.
type slowNull struct{ meanwhile func() }

// TestSourceNullLate tests that an encoding that sees a null id late does not discard an id that
// was drawn since. The order of the calls is fixed.
func TestSourceNullLate(t *testing.T) {
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[*slowNull](), bson.ValueEncoderFunc(
		func(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
			if null := v.Interface().(*slowNull); null.meanwhile != nil {
				meanwhile := null.meanwhile
				null.meanwhile = nil
				meanwhile()
			}
			return vw.WriteNull()
		}))
	var d any
	calls := int32(0)
	want := func() {
		t.Helper()
		got, err := encode(reg, d)
		if err != nil || bson.Raw(got).Lookup("_id").Int32() != 2 {
			t.Fatalf("got %s, %v", hex(got), err)
		}
	}
	d = Document(SourceFunc(func() (any, error) {
		if calls++; calls == 1 {
			return &slowNull{func() {
				if _, err := encode(reg, d); !errors.Is(err, errNilID) {
					t.Errorf("got %v", err)
				}
				want()
			}}, nil
		}
		return calls, nil
	}), bson.D{})
	if _, err := encode(reg, d); !errors.Is(err, errNilID) {
		t.Errorf("got %v", err)
	}
	want()
}

// TestSourceNullConcurrent is TestSourceNullLate with concurrent goroutines.
func TestSourceNullConcurrent(t *testing.T) {
	for range 200 {
		var mu sync.Mutex
		calls := 0
		d := Document(SourceFunc(func() (any, error) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls <= 3 {
				return bson.Null{}, nil
			}
			return int32(calls), nil
		}), bson.D{})
		reg := registered()
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 4 {
					got, err := encode(reg, d)
					if errors.Is(err, errNilID) {
						continue
					}
					if err != nil || bson.Raw(got).Lookup("_id").Int32() != 4 {
						t.Errorf("got %s, %v", hex(got), err)
					}
				}
			})
		}
		wg.Wait()
	}
}

// TestDocumentOfDocument tests that the inner source is used and the outer source is not asked.
func TestDocumentOfDocument(t *testing.T) {
	var inner, outer counter
	d := Document(&inner, bson.D{})
	if got := Document(&outer, d); got != d {
		t.Errorf("got %v", got)
	}
	if _, err := encode(registered(), Document(&outer, d)); err != nil || inner.drawn() != 1 || outer.drawn() != 0 {
		t.Errorf("inner %d, outer %d, %v", inner.drawn(), outer.drawn(), err)
	}
}

// TestDocumentConcurrent tests that one Document draws one id when many goroutines encode it.
func TestDocumentConcurrent(t *testing.T) {
	type late struct {
		A  int   `bson:"a"`
		ID int32 `bson:"_id,omitempty"`
	}
	reg := registered()
	for _, doc := range []any{bson.D{{Key: "a", Value: 1}}, bson.M{"a": 1}, &late{A: 1}, &base{}} {
		var src counter
		d := Document(&src, doc, WithMisfitIDs())
		var wg sync.WaitGroup
		results := make([][]byte, 16)
		for i := range results {
			wg.Go(func() {
				for range 100 {
					b, err := encode(reg, d)
					if err != nil {
						t.Error(err)
						return
					}
					results[i] = b
				}
			})
		}
		wg.Wait()
		for _, r := range results {
			if !bytes.Equal(r, results[0]) {
				t.Errorf("%T: got %s and %s", doc, hex(r), hex(results[0]))
			}
		}
		if src.drawn() != 1 {
			t.Errorf("%T: drew %d ids", doc, src.drawn())
		}
	}
}
