package autoid

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// TestPlansAreKept tests that each client has one plan for a type, and keeps it when another client or another type comes.
func TestPlansAreKept(t *testing.T) {
	var c documentCodec
	types := []reflect.Type{reflect.TypeFor[base](), reflect.TypeFor[bson.M](), reflect.TypeFor[base]()}
	reg := registered()
	var ecs []bson.EncodeContext
	for _, set := range [][]setting{nil, {(*bson.Encoder).UseJSONStructTags}, {(*bson.Encoder).OmitEmpty}} {
		enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
		enc.SetRegistry(reg)
		for _, s := range set {
			s(enc)
		}
		var p encodeProbe
		_ = enc.Encode(&p)
		ecs = append(ecs, p.ec)
	}
	type key struct {
		ec bson.EncodeContext
		t  reflect.Type
	}
	plans, seen := map[key]*plan{}, map[*plan]bool{}
	for range 3 {
		for _, ec := range ecs {
			for _, typ := range types {
				p, err := c.plan(ec, typ)
				if err != nil {
					t.Fatal(err)
				}
				if first := plans[key{ec, typ}]; first == nil {
					plans[key{ec, typ}] = p
				} else if first != p {
					t.Errorf("%v has another plan", typ)
				}
				seen[p] = true
			}
		}
	}
	if clients := *c.clients.Load(); len(clients) != len(ecs) || len(seen) != 2*len(ecs) {
		t.Errorf("%d clients and %d plans, want %d and %d", len(clients), len(seen), len(ecs), 2*len(ecs))
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, typ := range types {
			_, _ = c.plan(ecs[0], typ)
		}
	}); n > 0 {
		t.Errorf("finding plans allocates %v times", n)
	}
}

// TestSameFunc tests that encoders are told apart, whatever their types are.
func TestSameFunc(t *testing.T) {
	if !sameFunc(oidCodec, oidCodec) || sameFunc(rawCodec, oidCodec) || sameFunc(nil, oidCodec) || sameFunc(new(documentCodec), oidCodec) {
		t.Error("encoders are not told apart")
	}
}

// TestPlacer tests where documents that are not structs have their _id, and that it is returned if it is there.
func TestPlacer(t *testing.T) {
	raw := func(d bson.D) bson.Raw { return marshal(t, d) }
	zero := bson.ObjectID{}
	for _, tt := range []struct {
		doc           any
		zeroIsMissing bool
		want          placement
	}{
		{bson.D{}, false, nowhere}, {bson.D{{Key: "a", Value: 1}}, true, nowhere}, {bson.D{{Key: "a"}, {Key: "_id", Value: 1}}, true, somewhere},
		{bson.D{{Key: "_id", Value: zero}}, false, somewhere}, {bson.D{{Key: "_id", Value: zero}}, true, replaced},
		{bson.M{}, false, nowhere}, {bson.M{"_id": 1}, true, somewhere}, {bson.M{"_id": zero}, false, somewhere}, {bson.M{"_id": zero}, true, replaced},
		{raw(bson.D{}), false, nowhere}, {raw(bson.D{{Key: "my_id", Value: 1}}), true, nowhere}, {raw(bson.D{{Key: "a", Value: "_id\x00"}}), true, nowhere},
		{raw(bson.D{{Key: "a", Value: 1}, {Key: "_id", Value: 1}}), true, somewhere},
		{raw(bson.D{{Key: "_id", Value: zero}}), false, somewhere}, {raw(bson.D{{Key: "_id", Value: zero}}), true, replaced},
		{map[shouting]int{"a": 1}, false, anywhere}, {map[int]int{}, false, anywhere}, {oddD{}, false, anywhere},
	} {
		typ := reflect.TypeOf(tt.doc)
		enc, err := registered().LookupEncoder(typ)
		if err != nil {
			t.Fatal(err)
		}
		got, id := placer(enc, typ)(reflect.ValueOf(tt.doc), tt.zeroIsMissing)
		if got != tt.want || got == somewhere != id.IsValid() && got != replaced {
			t.Errorf("%T %v, %v: got %v and %v, want %v", tt.doc, tt.doc, tt.zeroIsMissing, got, id, tt.want)
		}
	}
}

// TestZeroRaw tests which encoded values count as zero, see WithZeroIDAsMissing.
func TestZeroRaw(t *testing.T) {
	for _, v := range []any{bson.Null{}, bson.Undefined{}, "", bson.ObjectID{}, false, int32(0), int64(0), 0.0, uuid.Nil, bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Binary{}} {
		kind, data, err := bson.MarshalValue(v)
		if err != nil || !isZeroRaw(bson.RawValue{Type: kind, Value: data}) {
			t.Errorf("%T %v is not zero: %v", v, v, err)
		}
	}
	for _, v := range []any{"x", "\x00", bson.ObjectID{11: 1}, true, int32(1), int64(1) << 40, 0.5, uuid.UUID{15: 1}, bson.Binary{Data: []byte{0, 1}}, bson.D{}, bson.A{},
		bson.JavaScript(""), bson.Symbol(""), bson.DateTime(0), bson.Timestamp{}, bson.MinKey{}} {
		kind, data, err := bson.MarshalValue(v)
		if err != nil || isZeroRaw(bson.RawValue{Type: kind, Value: data}) {
			t.Errorf("%T %v is zero: %v", v, v, err)
		}
	}
}

// TestReadingsAreKept tests that the reading of a client is found once, whatever its registry is.
func TestReadingsAreKept(t *testing.T) {
	count := func() (n int) {
		readings.Range(func(any, any) bool { n++; return true })
		return n
	}
	readingOf(bson.EncodeContext{})
	before := count()
	for range 3 {
		if r := readingOf(bson.EncodeContext{Registry: bson.NewRegistry()}); r != (reading{}) {
			t.Errorf("got %+v", r)
		}
	}
	if n := count(); n != before {
		t.Errorf("%d readings became %d", before, n)
	}
	if n := testing.AllocsPerRun(100, func() { readingOf(bson.EncodeContext{}) }); n > 3 {
		t.Errorf("finding a reading allocates %v times", n)
	}
}

type silent struct{ A map[string]int }

// TestNotOneDocument tests the error for an encoder of the caller's that writes nothing.
func TestNotOneDocument(t *testing.T) {
	reg := registered()
	reg.RegisterTypeEncoder(reflect.TypeFor[silent](), bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return nil }))
	_, err := encode(reg, Document(&counter{}, silent{}))
	if err == nil || !strings.HasPrefix(err.Error(), "autoid: cannot encode a document of type autoid.silent: ") {
		t.Errorf("got %v", err)
	}
}

type hiddenBase struct {
	ID string `bson:"_id"`
}

// TestZeroIDOfAnEmbeddedStruct tests that a zero _id counts as missing if only some registries write its field.
func TestZeroIDOfAnEmbeddedStruct(t *testing.T) {
	type embedding struct {
		hiddenBase `bson:",inline"`
		Name       string
	}
	reg := bson.NewMgoRegistry()
	Register(reg)
	raw, err := encode(reg, Document(always("drawn"), embedding{Name: "Ada"}, WithZeroIDAsMissing()))
	if want := marshal(t, bson.D{{Key: "_id", Value: "drawn"}, {Key: "name", Value: "Ada"}}); err != nil || !bytes.Equal(raw, want) {
		t.Errorf("got %v, %v", bson.Raw(raw), err)
	}
}

// TestErrorsOfTheDriverAreHidden tests that the driver does not find an error of its own in the chain of a Document's error, by
// value or by pointer, and that the application finds the others.
func TestErrorsOfTheDriverAreHidden(t *testing.T) {
	mine := &sourceError{}
	for _, cause := range []error{mongo.CommandError{Code: 6}, &mongo.CommandError{Code: 6}, mine, bson.ErrNilRegistry} {
		_, err := encode(registered(), Document(SourceFunc(func() (any, error) { return nil, cause }), bson.M{}))
		if !errors.Is(err, cause) && reflect.TypeOf(cause) != reflect.TypeFor[mongo.CommandError]() {
			t.Errorf("%T: got %v", cause, err)
		}
		var (
			value   mongo.CommandError
			pointer *mongo.CommandError
			source  *sourceError
		)
		if errors.As(err, &value) || errors.As(err, &pointer) || errors.As(err, &source) != (reflect.TypeOf(cause) == reflect.TypeOf(mine)) {
			t.Errorf("%T: the chain shows %v, %v or %v", cause, value, pointer, source)
		}
	}
}

type sourceError struct{}

func (*sourceError) Error() string { return "no id" }
