package bench

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// four is a document of four identifiers of one type.
type four[T any] struct{ A, B, C, D T }

// invoice is a document of about 2 KB with three identifiers, as a service might store it.
type invoice[T any] struct {
	ID       T         `bson:"_id"`
	Customer T         `bson:"customer"`
	Tenant   T         `bson:"tenant"`
	Number   string    `bson:"number"`
	Issued   time.Time `bson:"issued"`
	Paid     bool      `bson:"paid"`
	Total    float64   `bson:"total"`
	Lines    []line    `bson:"lines"`
	Tags     []string  `bson:"tags"`
	Notes    string    `bson:"notes"`
}

type line struct {
	Article  string  `bson:"article"`
	Quantity int32   `bson:"quantity"`
	Price    float64 `bson:"price"`
}

// document is one payload: a value to encode, a target to decode its document into, and a name.
type document struct {
	name   string
	value  any
	target func() any
}

func typed[T any](name string, value T) document {
	return document{name, value, func() any { return new(T) }}
}

// documents returns the payloads, whose identifiers have type T.
func documents[T any](id func() T) []document {
	f := four[T]{id(), id(), id(), id()}
	p := four[*T]{&f.A, &f.B, &f.C, &f.D}
	ids := make([]T, 1000)
	for i := range ids {
		ids[i] = id()
	}
	byName := make(map[string]T, 100)
	for i := range 100 {
		byName[fmt.Sprintf("key%02d", i)] = id()
	}
	doc := invoice[T]{
		ID: id(), Customer: id(), Tenant: id(), Number: "2026-000123", Issued: time.UnixMilli(1790000000000).UTC(), Total: 1234.5,
		Tags: []string{"export", "priority", "net30"}, Notes: strings.Repeat("Delivered to the back door. ", 12),
	}
	for i := range 20 {
		doc.Lines = append(doc.Lines, line{fmt.Sprintf("ART-%06d", i), int32(i), float64(i) * 1.25})
	}
	d := bson.D{{Key: "a", Value: f.A}, {Key: "b", Value: f.B}, {Key: "c", Value: f.C}, {Key: "d", Value: f.D}}
	untyped := document{"Doc2KUntyped", doc, func() any { return new(bson.M) }}
	return []document{
		typed("Struct4", f), {"Struct4ByPointer", &f, func() any { return new(four[T]) }}, typed("Pointers4", p),
		typed("D4", d), typed("Slice1000", struct{ IDs []T }{ids}), typed("Map100", struct{ IDs map[string]T }{byName}),
		typed("Doc2K", doc), untyped,
	}
}

// impl is one way to encode and decode identifiers in documents.
type impl struct {
	name      string
	reg       *bson.Registry // nil means the driver's own Marshal and Unmarshal
	documents []document
}

// wrapped is the wrapper type that programs write if they have no codec.
type wrapped uuid.UUID

func (w wrapped) MarshalBSONValue() (byte, []byte, error) {
	t, data, err := bson.MarshalValue(bson.Binary{Subtype: 4, Data: w[:]})
	return byte(t), data, err
}

func (w *wrapped) UnmarshalBSONValue(t byte, data []byte) error {
	var b bson.Binary
	if err := bson.UnmarshalValue(bson.Type(t), data, &b); err != nil {
		return err
	}
	u, err := uuid.FromBytes(b.Data)
	*w = wrapped(u)
	return err
}

// usualCodec is the codec that programs write by hand.
func usualCodec() *bson.Registry {
	t := reflect.TypeFor[uuid.UUID]()
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(t, bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
		if !val.IsValid() || val.Type() != t {
			return bson.ValueEncoderError{Name: "UUIDEncodeValue", Types: []reflect.Type{t}, Received: val}
		}
		u := val.Interface().(uuid.UUID)
		return vw.WriteBinaryWithSubtype(u[:], bson.TypeBinaryUUID)
	}))
	reg.RegisterTypeDecoder(t, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
		if !val.CanSet() || val.Type() != t {
			return bson.ValueDecoderError{Name: "UUIDDecodeValue", Types: []reflect.Type{t}, Received: val}
		}
		data, subtype, err := vr.ReadBinary()
		if err != nil {
			return err
		}
		if subtype != bson.TypeBinaryUUID {
			return fmt.Errorf("unsupported binary subtype %d for a UUID", subtype)
		}
		u, err := uuid.FromBytes(data)
		if err != nil {
			return err
		}
		val.Set(reflect.ValueOf(u))
		return nil
	}))
	return reg
}

// floorCodec returns a registry with a codec that does less than any useful codec: it writes the
// same bytes for every value, and discards the bytes that it reads. No codec that is registered for
// a type can be faster.
func floorCodec() *bson.Registry {
	t := reflect.TypeFor[uuid.UUID]()
	octets := make([]byte, 16)
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(t, bson.ValueEncoderFunc(func(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
		return vw.WriteBinaryWithSubtype(octets, bson.TypeBinaryUUID)
	}))
	reg.RegisterTypeDecoder(t, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
		_, _, err := vr.ReadBinary()
		return err
	}))
	return reg
}

func registry(r uuidrep.Representation) *bson.Registry {
	reg, err := bsoncodec.NewRegistry(r)
	if err != nil {
		panic(err)
	}
	return reg
}

func codecCases() []Case {
	uuids := documents(uuid.New)
	impls := []impl{
		{"usual", usualCodec(), uuids},
		{"bsonids", registry(uuidrep.Standard), uuids},
		{"bsonids_java", registry(uuidrep.JavaLegacy), uuids},
		{"bsonids_csharp", registry(uuidrep.CSharpLegacy), uuids},
		{"floor", floorCodec(), uuids},
		{"driver", nil, uuids},
		{"binary", nil, documents(func() bson.Binary { return uuidrep.NewBinary(uuid.New()) })},
		{"wrapper", nil, documents(func() wrapped { return wrapped(uuid.New()) })},
		{"objectid", nil, documents(bson.NewObjectID)},
	}
	var cases []Case
	for i := range uuids {
		var encode, marshal, stream, unmarshal []Case
		for _, m := range impls {
			doc := m.documents[i]
			encode = append(encode, Case{Work: "Encode/" + doc.name, Impl: m.name, Run: m.encode(doc)})
			marshal = append(marshal, Case{Work: "Marshal/" + doc.name, Impl: m.name, Run: m.marshal(doc)})
			stream = append(stream, Case{Work: "DecodeStream/" + doc.name, Impl: m.name, Run: m.decodeStream(doc)})
			unmarshal = append(unmarshal, Case{Work: "Unmarshal/" + doc.name, Impl: m.name, Run: m.unmarshal(doc)})
		}
		cases = append(cases, encode...)
		cases = append(cases, marshal...)
		cases = append(cases, stream...)
		cases = append(cases, unmarshal...)
	}
	return append(append(cases, otherValues()...), cursorCases()...)
}

// registry returns the registry of the implementation. The default is the driver's default
// registry.
func (m impl) registry() *bson.Registry {
	if m.reg == nil {
		return bson.NewRegistry()
	}
	return m.reg
}

// encode measures an encoder that is reused.
func (m impl) encode(doc document) func(*testing.B) {
	return func(b *testing.B) {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(m.registry())
		b.ReportAllocs()
		for b.Loop() {
			buf.Reset()
			if err := enc.Encode(doc.value); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func (m impl) marshal(doc document) func(*testing.B) {
	return func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.bytes(doc); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func (m impl) bytes(doc document) ([]byte, error) {
	if m.reg == nil {
		return bson.Marshal(doc.value)
	}
	return bsoncodec.Marshal(m.reg, doc.value)
}

// decode measures the decode function on the document of doc. Without a codec, the driver reads a
// UUID field only from subtype 0, so it gets subtype 0.
func (m impl) decode(b *testing.B, doc document, decode func(data []byte, v any) error) {
	data, err := m.bytes(doc)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := decode(data, doc.target()); err != nil {
			b.Fatal(err)
		}
	}
}

// decodeStream measures decoding as the driver's Cursor.Decode does it.
func (m impl) decodeStream(doc document) func(*testing.B) {
	return func(b *testing.B) {
		reg := m.registry()
		m.decode(b, doc, func(data []byte, v any) error {
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(data)))
			dec.SetRegistry(reg)
			return dec.Decode(v)
		})
	}
}

// unmarshal measures decoding from memory.
func (m impl) unmarshal(doc document) func(*testing.B) {
	return func(b *testing.B) {
		reg := m.registry()
		m.decode(b, doc, func(data []byte, v any) error { return bsoncodec.Unmarshal(reg, data, v) })
	}
}

// otherValues returns the cases of documents without a binary value, and of slices of other types.
// The driver is measured twice: the difference between the two is noise of the machine.
func otherValues() []Case {
	ints, texts, anys := make([]int, 1000), make([]string, 1000), make(bson.A, 1000)
	for i := range ints {
		ints[i], texts[i], anys[i] = i, fmt.Sprint("text", i), int64(i)
	}
	mixed := bson.D{
		{Key: "s", Value: "text"}, {Key: "i", Value: int32(1)}, {Key: "l", Value: int64(2)}, {Key: "f", Value: 1.5}, {Key: "b", Value: true},
		{Key: "t", Value: time.UnixMilli(1790000000000).UTC()}, {Key: "oid", Value: bson.NewObjectID()}, {Key: "n", Value: nil},
		{Key: "d", Value: bson.D{{Key: "a", Value: bson.A{"x", "y", int32(3)}}, {Key: "k", Value: "v"}}},
	}
	documents := []document{
		{"PlainD", mixed, func() any { return new(bson.D) }},
		{"PlainM", mixed, func() any { return new(bson.M) }},
		typed("Ints1000", struct{ V []int }{ints}),
		typed("Strings1000", struct{ V []string }{texts}),
		typed("A1000", struct{ V bson.A }{anys}),
	}
	impls := []impl{{"driver", bson.NewRegistry(), nil}, {"bsonids", registry(uuidrep.Standard), nil}, {"driver_again", bson.NewRegistry(), nil}}
	var cases []Case
	for _, doc := range documents {
		for _, m := range impls {
			cases = append(cases, Case{Work: "Encode/" + doc.name, Impl: m.name, Run: m.encode(doc)})
		}
		for _, m := range impls {
			cases = append(cases, Case{Work: "Unmarshal/" + doc.name, Impl: m.name, Run: m.unmarshal(doc)})
		}
	}
	return cases
}

// cursorCases returns the cases that read 10,000 documents of four UUIDs from a cursor.
func cursorCases() []Case {
	const count = 10_000
	usual, ours := usualCodec(), registry(uuidrep.Standard)
	raw := make([]any, count)
	for i := range raw {
		doc, err := bsoncodec.Marshal(ours, four[uuid.UUID]{uuid.New(), uuid.New(), uuid.New(), uuid.New()})
		if err != nil {
			panic(err)
		}
		raw[i] = bson.Raw(doc)
	}
	read := func(reg *bson.Registry, read func(*mongo.Cursor) ([]four[uuid.UUID], error)) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				cursor, err := mongo.NewCursorFromDocuments(raw, nil, reg)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				docs, err := read(cursor)
				if err != nil || len(docs) != count {
					b.Fatal(len(docs), err)
				}
			}
		}
	}
	ctx := context.Background()
	cursorAll := func(c *mongo.Cursor) (docs []four[uuid.UUID], err error) {
		err = c.All(ctx, &docs)
		return docs, err
	}
	current := func(c *mongo.Cursor) (docs []four[uuid.UUID], err error) {
		for c.Next(ctx) {
			docs = append(docs, four[uuid.UUID]{})
			if err := bsoncodec.Unmarshal(ours, c.Current, &docs[len(docs)-1]); err != nil {
				return nil, err
			}
		}
		return docs, c.Err()
	}
	return []Case{
		{Work: "Cursor10000", Impl: "usual_All", Run: read(usual, cursorAll)},
		{Work: "Cursor10000", Impl: "bsonids_All", Run: read(ours, cursorAll)},
		{Work: "Cursor10000", Impl: "bsonids_Current", Run: read(ours, current)},
	}
}
