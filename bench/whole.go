package bench

import (
	"bytes"
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

// purchaseOf is a document of 12 fields, three of which are documents. Its identifiers have type T.
type purchaseOf[T any] struct {
	ID       T                   `bson:"_id"`
	Customer T                   `bson:"customer"`
	Number   string              `bson:"number"`
	Status   string              `bson:"status"`
	Created  time.Time           `bson:"created"`
	Updated  *time.Time          `bson:"updated,omitempty"`
	Paid     bool                `bson:"paid"`
	Total    float64             `bson:"total"`
	Version  int64               `bson:"version"`
	Address  purchaseAddress     `bson:"address"`
	Lines    []purchaseLineOf[T] `bson:"lines"`
	Tags     []string            `bson:"tags"`
}

type purchaseAddress struct {
	Street  string `bson:"street"`
	City    string `bson:"city"`
	Country string `bson:"country"`
}

type purchaseLineOf[T any] struct {
	Article  T       `bson:"article"`
	Quantity int32   `bson:"quantity"`
	Price    float64 `bson:"price"`
}

type (
	purchase     = purchaseOf[uuid.UUID]
	purchaseLine = purchaseLineOf[uuid.UUID]
)

func newPurchase() purchase { return newPurchaseOf(uuid.New) }

func newPurchaseOf[T any](id func() T) purchaseOf[T] {
	updated := time.UnixMilli(1790000100000).UTC()
	return purchaseOf[T]{
		ID: id(), Customer: id(), Number: "2026-000123", Status: "shipped",
		Created: time.UnixMilli(1790000000000).UTC(), Updated: &updated, Paid: true, Total: 1234.5, Version: 7,
		Address: purchaseAddress{"Main Street 1", "Springfield", "US"},
		Lines:   []purchaseLineOf[T]{{id(), 2, 19.99}, {id(), 1, 99.5}},
		Tags:    []string{"express", "gift"},
	}
}

// withOther has the fields of a purchase and an inline map for others.
type withOther struct {
	Purchase purchase       `bson:",inline"`
	Other    map[string]any `bson:",inline"`
}

// handedOver is a type that bsoncodec leaves to the driver when it decodes.
type handedOver struct {
	Purchase purchase `bson:",inline"`
	Note     any
	Other    map[string]any `bson:",inline"`
}

// flat, deep and full are equivalents in small of the documents of the driver benchmark
// specification. They are not the files of the specification. flat has fields of a few types, deep
// is a binary tree, and full has a field of every type.
type flat struct {
	ID                     bson.ObjectID `bson:"_id"`
	Names                  [8]string
	A, B, C, D, E, F, G, H string
	I, J, K, L, M, N, O, P int32
	Q, R, S, T             int64
	U, V, W, X             float64
	Y, Z                   bool
}

type deep struct {
	Value string
	Left  *deep `bson:"left,omitempty"`
	Right *deep `bson:"right,omitempty"`
}

type full struct {
	Double    float64
	Text      string
	Document  struct{ A, B int32 }
	Array     []int64
	Binary    bson.Binary
	ID        bson.ObjectID
	Bool      bool
	Time      time.Time
	Null      *string
	Regex     bson.Regex
	Code      bson.JavaScript
	Int32     int32
	Timestamp bson.Timestamp
	Int64     int64
	Decimal   bson.Decimal128
	Min       bson.MinKey
	Max       bson.MaxKey
}

func newDeep(depth int) *deep {
	if depth == 0 {
		return nil
	}
	return &deep{"A string of a few words.", newDeep(depth - 1), newDeep(depth - 1)}
}

func newLines(n int) []purchaseLine {
	lines := make([]purchaseLine, n)
	for i := range lines {
		lines[i] = purchaseLine{uuid.New(), int32(i), 19.99}
	}
	return lines
}

func byArticle(lines []purchaseLine) map[string]purchaseLine {
	m := make(map[string]purchaseLine)
	for _, line := range lines {
		m[line.Article.String()] = line
	}
	return m
}

func newFlat() flat {
	return flat{
		ID: bson.NewObjectID(), Names: [8]string{"one", "two", "three", "four", "five", "six", "seven", "eight"},
		A: "Lorem ipsum", B: "dolor sit amet", C: "consectetur", D: "adipiscing", E: "elit", F: "sed", G: "do", H: "eiusmod",
		I: 1, J: 2, K: 3, L: 4, M: 5, N: 6, O: 7, P: 8, Q: 1 << 40, R: 1 << 41, S: 1 << 42, T: 1 << 43,
		U: 1.5, V: 2.5, W: 3.5, X: 4.5, Y: true, Z: true,
	}
}

func newFull() full {
	return full{
		Double: 1.5, Text: "text", Array: []int64{1, 2, 3, 4}, Binary: bson.Binary{Data: make([]byte, 32)},
		ID: bson.NewObjectID(), Time: time.UnixMilli(1790000000000).UTC(), Regex: bson.Regex{Pattern: "a+"},
		Code: "function() {}", Int32: 7, Int64: 8, Decimal: bson.NewDecimal128(1, 2),
	}
}

// wholeCases returns the cases of whole documents: the operations of a client and the functions of
// bsoncodec.
func wholeCases() []Case {
	usual, ours := usualCodec(), registry(uuidrep.Standard)
	order := newPurchase()
	ids := four[uuid.UUID]{uuid.New(), uuid.New(), uuid.New(), uuid.New()}
	var cases []Case
	for _, d := range []document{
		typed("Order", order),
		{"OrderByPointer", &order, func() any { return new(purchase) }},
		typed("Four", ids),
		{"OrderToD", orderAs[bson.D](ours, order), func() any { return new(bson.D) }},
		{"OrderToM", orderAs[bson.M](ours, order), func() any { return new(bson.M) }},
		{"OrderToAny", orderAs[bson.D](ours, order), func() any { return new(any) }},
		typed("Flat", newFlat()), typed("Deep", *newDeep(6)), typed("Full", newFull()),
		typed("InlineMap", withOther{Purchase: order, Other: map[string]any{"source": "web"}}),
		typed("HandedOver", handedOver{Purchase: order}),
		typed("SliceOfStructs", struct{ Lines []purchaseLine }{newLines(100)}),
		typed("MapOfStructs", struct{ Lines map[string]purchaseLine }{byArticle(newLines(100))}),
	} {
		impls := []impl{{"usual", usual, nil}, {"bsonids", ours, nil}}
		var read, memory, insert, marshal []Case
		for _, m := range impls {
			read = append(read, Case{Work: "WholeCursorDecode/" + d.name, Impl: m.name, Run: m.decodeStream(d)})
			memory = append(memory, Case{Work: "WholeUnmarshal/" + d.name, Impl: m.name, Run: m.unmarshal(d)})
			insert = append(insert, Case{Work: "WholeInsert/" + d.name, Impl: m.name, Run: m.insertEncoding(d, noOption)})
			marshal = append(marshal, Case{Work: "WholeMarshal/" + d.name, Impl: m.name, Run: m.marshal(d)})
		}
		cases = append(append(append(append(cases, read...), memory...), insert...), marshal...)
	}
	for _, work := range []string{"WholeMarshal/Order", "WholeUnmarshal/Order"} {
		cases = append(cases, Case{Work: work, Impl: "copy", Run: copyBytes(ours, order)})
	}
	for _, m := range []impl{{"usual", usual, nil}, {"bsonids", ours, nil}} {
		cases = append(cases, Case{
			Work: "WholeInsert/OrderWithOption", Impl: m.name, Run: m.insertEncoding(typed("", order), (*bson.Encoder).NilMapAsEmpty),
		})
	}
	return append(append(cases, wholeCursorCases(usual, ours, order)...), growthCases(usual, ours)...)
}

// orderAs returns an order as a document of type T.
func orderAs[T any](reg *bson.Registry, order purchase) (v T) {
	doc, err := bsoncodec.Marshal(reg, order)
	if err == nil {
		err = bsoncodec.Unmarshal(reg, doc, &v)
	}
	if err != nil {
		panic(err)
	}
	return v
}

// wholeCursorCases returns the cases that read 10,000 orders from a cursor.
func wholeCursorCases(usual, ours *bson.Registry, order purchase) []Case {
	doc, err := bsoncodec.Marshal(ours, order)
	if err != nil {
		panic(err)
	}
	raw := make([]any, 10_000)
	for i := range raw {
		raw[i] = bson.Raw(doc)
	}
	ctx := context.Background()
	read := func(reg *bson.Registry, read func(*mongo.Cursor) ([]purchase, error)) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				cursor, err := mongo.NewCursorFromDocuments(raw, nil, reg)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if docs, err := read(cursor); err != nil || len(docs) != len(raw) {
					b.Fatal(len(docs), err)
				}
			}
		}
	}
	cursorAll := func(c *mongo.Cursor) (docs []purchase, err error) {
		err = c.All(ctx, &docs)
		return docs, err
	}
	// A result and a cursor of one document, which pay for all that is done once.
	decoded := func(reg *bson.Registry, decode func(*mongo.SingleResult, *purchase) error) func(*testing.B) {
		return func(b *testing.B) {
			res := mongo.NewSingleResultFromDocument(raw[0], nil, reg)
			b.ReportAllocs()
			for b.Loop() {
				var v purchase
				if err := decode(res, &v); err != nil || v.Version != order.Version {
					b.Fatal(v, err)
				}
			}
		}
	}
	first := func(reg *bson.Registry, decode func(*mongo.Cursor, *purchase) error) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				b.StopTimer()
				cursor, err := mongo.NewCursorFromDocuments(raw[:1], nil, reg)
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				var v purchase
				if err := decode(cursor, &v); err != nil || v.Version != order.Version {
					b.Fatal(v, err)
				}
			}
		}
	}
	resultDecode := func(res *mongo.SingleResult, v *purchase) error { return res.Decode(v) }
	nextDecode := func(c *mongo.Cursor, v *purchase) error {
		defer c.Close(ctx)
		c.Next(ctx)
		return c.Decode(v)
	}
	return []Case{
		{Work: "WholeOne", Impl: "usual_Decode", Run: decoded(usual, resultDecode)},
		{Work: "WholeOne", Impl: "bsonids_Decode", Run: decoded(ours, resultDecode)},
		{Work: "WholeOne", Impl: "cursors_One", Run: decoded(ours, func(res *mongo.SingleResult, v *purchase) (err error) {
			*v, err = cursors.One[purchase](res)
			return err
		})},
		{Work: "WholeCursor1", Impl: "usual_Decode", Run: first(usual, nextDecode)},
		{Work: "WholeCursor1", Impl: "bsonids_Decode", Run: first(ours, nextDecode)},
		{Work: "WholeCursor1", Impl: "cursors_Values", Run: first(ours, func(c *mongo.Cursor, v *purchase) (err error) {
			for *v, err = range cursors.Values[purchase](ctx, c) {
			}
			return err
		})},
		{Work: "WholeCursor10000", Impl: "usual_All", Run: read(usual, cursorAll)},
		{Work: "WholeCursor10000", Impl: "bsonids_All", Run: read(ours, cursorAll)},
		{Work: "WholeCursor10000", Impl: "cursors_All", Run: read(ours, func(c *mongo.Cursor) ([]purchase, error) {
			return cursors.All[purchase](ctx, c)
		})},
	}
}

// growthCases returns the cases that show how the time grows with the number of fields, the depth
// and the length of an array. cmd/plot draws them.
func growthCases(usual, ours *bson.Registry) []Case {
	var cases []Case
	add := func(name string, value any) {
		t := reflect.TypeOf(value)
		d := document{name, value, func() any { return reflect.New(t).Interface() }}
		var marshal, unmarshal []Case
		for _, m := range []impl{{"usual", usual, nil}, {"bsonids", ours, nil}} {
			marshal = append(marshal, Case{Work: "WholeGrowth/Marshal/" + name, Impl: m.name, Run: m.marshal(d)})
			unmarshal = append(unmarshal, Case{Work: "WholeGrowth/Unmarshal/" + name, Impl: m.name, Run: m.unmarshal(d)})
		}
		cases = append(append(cases, marshal...), unmarshal...)
	}
	for _, n := range []int{8, 16, 32, 64, 128} {
		var fields []reflect.StructField
		for i := range n {
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%03d", i), Type: reflect.TypeFor[int64]()})
		}
		add(fmt.Sprintf("fields%d", n), reflect.New(reflect.StructOf(fields)).Elem().Interface())
		add(fmt.Sprintf("elements%d", n), struct{ V []int64 }{make([]int64, n)})
		nested := &deep{}
		for range n {
			nested = &deep{Left: nested}
		}
		add(fmt.Sprintf("depth%d", n), *nested)
	}
	return cases
}

// copyBytes measures the limit for any codec: a copy of the document.
func copyBytes(reg *bson.Registry, v any) func(*testing.B) {
	return func(b *testing.B) {
		doc, err := bsoncodec.Marshal(reg, v)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if len(bytes.Clone(doc)) != len(doc) {
				b.Fatal("not a copy")
			}
		}
	}
}

func noOption(*bson.Encoder) {}

// insertEncoding measures how the driver encodes a document for an insert, with an option of the client.
func (m impl) insertEncoding(doc document, option func(*bson.Encoder)) func(*testing.B) {
	return func(b *testing.B) {
		reg := m.registry()
		b.ReportAllocs()
		for b.Loop() {
			enc := bson.NewEncoder(bson.NewDocumentWriter(new(bytes.Buffer)))
			enc.SetRegistry(reg)
			option(enc)
			if err := enc.Encode(doc.value); err != nil {
				b.Fatal(err)
			}
		}
	}
}
