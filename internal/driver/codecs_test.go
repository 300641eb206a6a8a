package driver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/driver"
)

// bsoncodec and autoid ask whether a codec is the driver's own: each of these types has one that is
// told apart from those of the others, and the mgo registries have codecs of the same types.
func TestDriverCodecsAreKnownByTheirTypes(t *testing.T) {
	types := []reflect.Type{
		reflect.TypeFor[*struct{}](), reflect.TypeFor[struct{}](), reflect.TypeFor[map[string]int](), reflect.TypeFor[[]int](),
		reflect.TypeFor[[1]int](), reflect.TypeFor[bson.Raw](), reflect.TypeFor[bson.RawValue](), reflect.TypeFor[bson.Binary](),
		reflect.TypeFor[bson.ObjectID](), reflect.TypeFor[any](), reflect.TypeFor[bool](), reflect.TypeFor[[]byte](),
	}
	plain, mgo, respect := bson.NewRegistry(), bson.NewMgoRegistry(), bson.NewRespectNilValuesMgoRegistry()
	for i, a := range types {
		for _, reg := range []*bson.Registry{plain, mgo, respect} {
			if !driver.HasOwnEncoder(reg, a) || !driver.HasOwnDecoder(reg, a) {
				t.Errorf("the driver's own codec of %v is not known", a)
			}
		}
		for _, b := range types[i+1:] {
			enc, err := plain.LookupEncoder(b)
			if err != nil {
				t.Fatal(err)
			}
			dec, err := plain.LookupDecoder(b)
			if err != nil {
				t.Fatal(err)
			}
			if driver.IsOwnEncoder(enc, a) || driver.IsOwnDecoder(dec, a) {
				t.Errorf("the driver's codec of %v is taken for that of %v", b, a)
			}
		}
	}
	if driver.IsOwnEncoder(bson.ValueEncoderFunc(nil), types[0]) || driver.IsOwnDecoder(nil, types[0]) || driver.IsOwnEncoder(nil, types[0]) {
		t.Error("another codec is taken for the driver's")
	}
}

// A codec that hands a slice to one of the driver's writers may use the slice again.
func TestDriverWritersCopyTheirBytes(t *testing.T) {
	for name, newWriter := range map[string]func(*bytes.Buffer) bson.ValueWriter{
		"NewDocumentWriter":     func(b *bytes.Buffer) bson.ValueWriter { return bson.NewDocumentWriter(b) },
		"NewExtJSONValueWriter": func(b *bytes.Buffer) bson.ValueWriter { return bson.NewExtJSONValueWriter(b, true, false) },
	} {
		write := func(change bool) string {
			var buf bytes.Buffer
			vw := newWriter(&buf)
			if !driver.CopiesBytes(vw) {
				t.Errorf("the writer of %s is not known", name)
			}
			dw, err := vw.WriteDocument()
			if err != nil {
				t.Fatal(err)
			}
			vw, err = dw.WriteDocumentElement("b")
			if err != nil {
				t.Fatal(err)
			}
			if !driver.CopiesBytes(vw) {
				t.Errorf("the writer of an element of %s is not known", name)
			}
			b := []byte{1, 2, 3}
			if err := vw.WriteBinaryWithSubtype(b, 4); err != nil {
				t.Fatal(err)
			}
			if change {
				clear(b)
			}
			if err := dw.WriteDocumentEnd(); err != nil {
				t.Fatal(err)
			}
			return buf.String()
		}
		if write(true) != write(false) {
			t.Errorf("%s keeps its bytes: bsoncodec hands it memory that is used again", name)
		}
	}
}

// keeper is a ValueWriter of another package that keeps what it is given.
type keeper struct {
	bson.ValueWriter
	bson.ArrayWriter
	kept [][]byte
}

func (k *keeper) WriteArray() (bson.ArrayWriter, error)        { return k, nil }
func (k *keeper) WriteArrayElement() (bson.ValueWriter, error) { return k, nil }
func (k *keeper) WriteArrayEnd() error                         { return nil }
func (k *keeper) WriteBinaryWithSubtype(b []byte, _ byte) error {
	k.kept = append(k.kept, b)
	return nil
}

// bsoncodec writes slices of UUIDs, and autoid documents, as raw values in memory that is used
// again.
func TestDriverCopiesRawValuesForOtherWriters(t *testing.T) {
	typ, array, err := bson.MarshalValue(bson.A{bson.Binary{Subtype: 4, Data: []byte{1, 2, 3}}})
	if err != nil {
		t.Fatal(err)
	}
	k := new(keeper)
	enc := driver.Encoder(reflect.TypeFor[bson.RawValue]())
	if err := enc.EncodeValue(bson.EncodeContext{Registry: bson.NewRegistry()}, k, reflect.ValueOf(bson.RawValue{Type: typ, Value: array})); err != nil {
		t.Fatal(err)
	}
	clear(array)
	if len(k.kept) != 1 || !bytes.Equal(k.kept[0], []byte{1, 2, 3}) {
		t.Errorf("the writer keeps %v", k.kept)
	}
}

type binaryOrText any

// bsoncodec has an interface type in the type map for binary values: its decoder decides what an
// any receives.
func TestDriverTypeMapTakesAnInterfaceType(t *testing.T) {
	reg := bson.NewRegistry()
	reg.RegisterTypeMapEntry(bson.TypeBinary, reflect.TypeFor[binaryOrText]())
	reg.RegisterTypeDecoder(reflect.TypeFor[binaryOrText](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
			b, subtype, err := vr.ReadBinary()
			if subtype == 4 {
				val.Set(reflect.ValueOf("four"))
			} else {
				val.Set(reflect.ValueOf(bson.Binary{Subtype: subtype, Data: b}))
			}
			return err
		}))
	raw, err := bson.Marshal(bson.D{{Key: "a", Value: bson.Binary{Subtype: 4}}, {Key: "b", Value: bson.Binary{Subtype: 5, Data: []byte{1}}}})
	if err != nil {
		t.Fatal(err)
	}
	var m bson.M
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
	dec.SetRegistry(reg)
	if err := dec.Decode(&m); err != nil || m["a"] != "four" || !reflect.DeepEqual(m["b"], bson.Binary{Subtype: 5, Data: []byte{1}}) {
		t.Errorf("got %v, %v", m, err)
	}
}

// bsoncodec learns whether BinaryAsSlice is in force by decoding an empty binary value into any.
func TestDriverShowsBinaryAsSlice(t *testing.T) {
	for _, set := range []bool{false, true} {
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader([]byte{13, 0, 0, 0, 5, 'b', 0, 0, 0, 0, 0, 0, 0})))
		if set {
			dec.BinaryAsSlice()
		}
		var m bson.M
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		if _, ok := m["b"].([]byte); ok != set {
			t.Errorf("BinaryAsSlice is %t, and any receives a %T", set, m["b"])
		}
	}
}

// bsoncodec decodes elements of an []any that are nil as empty ones. The driver panics.
func TestDriverPanicsOnNilElements(t *testing.T) {
	raw, err := bson.Marshal(bson.D{{Key: "a", Value: bson.A{1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("the driver decodes into a slice with nil elements: see bsoncodec/any_slice_codec.go")
		}
	}()
	_ = bson.Unmarshal(raw, &struct{ A []any }{[]any{nil}})
}

// Package elements reads struct tags as the driver does; its own test compares the two on random types.
func TestDriverReadsTags(t *testing.T) {
	type inner struct{ Inner int }
	type tagged struct {
		Plain   int
		Named   int   `bson:"n"`
		Empty   int   `bson:",omitempty"`
		JSON    int   `json:"j"`
		Both    int   `bson:"b" json:"x"`
		Skipped int   `bson:"-"`
		JSkip   int   `json:"-"`
		In      inner `bson:",inline"`
		hidden  int
	}
	_ = tagged{}.hidden
	for jsonTags, want := range map[bool]string{
		false: "plain n json b jskip inner",
		true:  "plain n j b inner",
	} {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(bson.NewRegistry())
		if jsonTags {
			enc.UseJSONStructTags()
		}
		if err := enc.Encode(tagged{}); err != nil {
			t.Fatal(err)
		}
		elements, err := bson.Raw(buf.Bytes()).Elements()
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, e := range elements {
			keys = append(keys, e.Key())
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("json tags %t: the keys are %q, want %q", jsonTags, got, want)
		}
	}
}

// A tag without a key is the bson tag as a whole.
func TestDriverReadsWholeTags(t *testing.T) {
	whole := reflect.StructOf([]reflect.StructField{{Name: "Field", Type: reflect.TypeFor[int](), Tag: "w,omitempty"}})
	v := reflect.New(whole).Elem()
	v.Field(0).SetInt(1)
	raw, err := bson.Marshal(v.Interface())
	if err != nil || bson.Raw(raw).Lookup("w").AsInt64() != 1 {
		t.Errorf("got %v, %v", bson.Raw(raw), err)
	}
}

type alwaysZero struct{ N int }

func (alwaysZero) IsZero() bool { return true }

// autoid knows by the type of a field whether omitempty omits its value.
func TestDriverOmitsEmptyValues(t *testing.T) {
	type fields struct {
		Array   uuid.UUID     `bson:",omitempty"`
		None    [0]int        `bson:",omitempty"`
		OID     bson.ObjectID `bson:",omitempty"`
		String  string        `bson:",omitempty"`
		Int     int           `bson:",omitempty"`
		Zeroer  alwaysZero    `bson:",omitempty"`
		Pointer *int          `bson:",omitempty"`
		Any     any           `bson:",omitempty"`
	}
	raw, err := bson.Marshal(fields{Zeroer: alwaysZero{1}})
	if err != nil {
		t.Fatal(err)
	}
	elements, err := bson.Raw(raw).Elements()
	if err != nil || len(elements) != 1 || elements[0].Key() != "array" {
		t.Errorf("got %v, %v; only a UUID is never empty", bson.Raw(raw), err)
	}
}

// autoid sorts the driver's errors by the path of their package.
func TestDriverPackagePaths(t *testing.T) {
	const path = "go.mongodb.org/mongo-driver/v2/"
	for want, typ := range map[string]reflect.Type{
		path + "bson": reflect.TypeFor[bson.ValueEncoderError](), path + "mongo": reflect.TypeFor[mongo.CommandError](),
	} {
		if got := typ.PkgPath(); got != want {
			t.Errorf("%v is of package %s, want %s", typ, got, want)
		}
	}
}

type notADocument struct{}

var errNotADocument = errors.New("not a document")

// autoid inserts a document that cannot be encoded: the driver must encode it before
// it looks for a server, and hand its context to the encoder.
func TestDriverEncodesBeforeItSelectsAServer(t *testing.T) {
	reg := bson.NewRegistry()
	var met *bson.Registry
	reg.RegisterTypeEncoder(reflect.TypeFor[notADocument](), bson.ValueEncoderFunc(
		func(ec bson.EncodeContext, _ bson.ValueWriter, _ reflect.Value) error {
			met = ec.Registry
			return errNotADocument
		}))
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://localhost:1").SetRegistry(reg))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	_, err = client.Database("d").Collection("c").InsertOne(context.Background(), notADocument{})
	if !errors.Is(err, errNotADocument) || met != reg {
		t.Errorf("got %v, and the encoder met the registry %p, want %p", err, met, reg)
	}
}

// clientopt tells by this whether an earlier connection string was refused.
func TestDriverIgnoresConnectionStringsAfterARefusedOne(t *testing.T) {
	const next = "mongodb://next.invalid"
	refused := options.Client().ApplyURI("mongodb://host/?maxPoolSize=none")
	if got := options.MergeClientOptions(refused, nil).ApplyURI(next).GetURI(); got == next {
		t.Error("a connection string is applied after one that was refused")
	}
	if got := options.MergeClientOptions(options.Client(), nil).ApplyURI(next).GetURI(); got != next {
		t.Errorf("GetURI returns %q, want %q", got, next)
	}
}

// clientopt reads the options of a connection string as the driver does: & and ; separate them,
// names are read in any letter case, names and values are percent-encoded, and the first @ ends the
// user information.
func TestDriverParsesConnectionStrings(t *testing.T) {
	for _, uri := range []string{
		"mongodb://h/?appName=x&maxPoolSize=7", "mongodb://h/?appName=x;MAXPOOLSIZE=7", "mongodb://h/?appName=x&&maxPool%53ize=%37&",
		"mongodb://u:p@h/d?appName=x&maxPoolSize=7",
	} {
		o := options.Client().ApplyURI(uri)
		if err := o.Validate(); err != nil || o.MaxPoolSize == nil || *o.MaxPoolSize != 7 || o.GetURI() != uri {
			t.Errorf("%s: %v, %v", uri, o.MaxPoolSize, err)
		}
	}
	for _, uri := range []string{"mongodb://h?maxPoolSize=7", "mongodb://u@p@h/", "mongodb://h/?maxPoolSize", "http://h/"} {
		if err := options.Client().ApplyURI(uri).Validate(); err == nil {
			t.Errorf("%s is accepted", uri)
		}
	}
}

type embeddedField struct{ N int32 }

type embedsField struct{ embeddedField }

// bsoncodec refuses a struct of which nothing is stored: the codec of structs of the mgo registries stores embedded fields that are not
// exported, and fails to decode one.
func TestDriverStoresEmbeddedFieldsInMgoRegistries(t *testing.T) {
	for name, c := range map[string]struct {
		reg  *bson.Registry
		want bool
	}{
		"new": {bson.NewRegistry(), false}, "mgo": {bson.NewMgoRegistry(), true}, "respecting nil": {bson.NewRespectNilValuesMgoRegistry(), true},
	} {
		enc, _ := c.reg.LookupEncoder(reflect.TypeFor[embedsField]())
		dec, _ := c.reg.LookupDecoder(reflect.TypeFor[embedsField]())
		if driver.EncodesEmbedded(enc) != c.want || driver.DecodesEmbedded(dec) != c.want {
			t.Errorf("%s: embedded fields are encoded: %v, and decoded: %v", name, driver.EncodesEmbedded(enc), driver.DecodesEmbedded(dec))
		}
		var buf bytes.Buffer
		if err := enc.EncodeValue(bson.EncodeContext{Registry: c.reg}, bson.NewDocumentWriter(&buf), reflect.ValueOf(embedsField{})); err != nil {
			t.Error(name, err)
		}
		if _, err := bson.Raw(buf.Bytes()).LookupErr("embeddedfield", "n"); (err == nil) != c.want {
			t.Errorf("%s: got %v", name, bson.Raw(buf.Bytes()))
		}
	}
}

type hookValue struct{ _ int }

func (hookValue) String() string { return "" }

func (hookValue) hidden() {}

var _ = hookValue.hidden

type hookPointer struct{ _ int }

func (*hookPointer) String() string { return "" }

type hookNone struct{ _ int }

// bsoncodec lets a hook give way where a codec of the type itself stays: the codec that a registry has for a type tells the
// two apart, whether values or pointers have the method, and whatever methods are not exported.
func TestDriverTellsHooksFromCodecsOfTypes(t *testing.T) {
	type codec interface {
		bson.ValueEncoder
		bson.ValueDecoder
	}
	stringer := reflect.TypeFor[fmt.Stringer]()
	hook, own := codec(&nothing{"hook"}), codec(&nothing{"own"})
	for _, typ := range []reflect.Type{reflect.TypeFor[hookValue](), reflect.TypeFor[hookPointer](), reflect.TypeFor[hookNone]()} {
		for _, c := range []struct{ hook, own bool }{{false, false}, {true, false}, {false, true}, {true, true}} {
			reg := bson.NewRegistry()
			if c.hook {
				reg.RegisterInterfaceEncoder(stringer, hook)
				reg.RegisterInterfaceDecoder(stringer, hook)
			}
			if c.own {
				reg.RegisterTypeEncoder(typ, own)
				reg.RegisterTypeDecoder(typ, own)
			}
			enc, err := reg.LookupEncoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			dec, err := reg.LookupDecoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			want := c.hook && !c.own && reflect.PointerTo(typ).Implements(stringer)
			if driver.IsHookEncoder(reg, enc, typ) != want || driver.IsHookDecoder(reg, dec, typ) != want {
				t.Errorf("%v with %+v: the encoder is that of a hook: %v, the decoder: %v", typ, c, !want, driver.IsHookDecoder(reg, dec, typ))
			}
		}
	}
}

// nothing is a codec of a caller.
type nothing struct{ name string }

func (*nothing) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	return vw.WriteNull()
}

func (*nothing) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
	return vr.Skip()
}

// The plans of bsoncodec write a nil slice as null: the codec of slices of an mgo registry does not.
func TestDriverSettingsOfMgoRegistries(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[[]int](), reflect.TypeFor[struct{}]()} {
		for name, c := range map[string]struct {
			reg  *bson.Registry
			want bool
		}{
			"new": {bson.NewRegistry(), true}, "mgo": {bson.NewMgoRegistry(), false},
			"respecting nil": {bson.NewRespectNilValuesMgoRegistry(), typ.Kind() == reflect.Slice},
		} {
			enc, err := c.reg.LookupEncoder(typ)
			if err != nil {
				t.Fatal(err)
			}
			if driver.HasDefaultSettings(enc, typ) != c.want {
				t.Errorf("%s: the codec of %v has the default settings: %v", name, typ, !c.want)
			}
		}
	}
	for _, codec := range []any{nil, bson.ValueEncoderFunc(nil), struct{}{}, &nothing{}} {
		if driver.HasDefaultSettings(codec, reflect.TypeFor[[]int]()) {
			t.Errorf("%T has the settings of the driver's codec of slices", codec)
		}
	}
}
