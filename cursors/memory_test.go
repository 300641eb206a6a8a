package cursors_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/cursors"
)

// keeper has a field of every type that could keep the bytes it was read from.
type keeper struct {
	Token   bson.Raw `bson:"_id"`
	Text    string
	Named   bson.Symbol
	Code    bson.JavaScript
	Bytes   []byte
	Binary  bson.Binary
	Regex   bson.Regex
	Raw     bson.Raw
	Value   bson.RawValue
	ID      uuid.UUID
	IDs     []uuid.UUID
	Texts   []string
	ByKey   map[string]string
	D       bson.D
	M       bson.M
	A       bson.A
	Any     any
	Pointer *string
	Scope   bson.CodeWithScope
	Rest    map[string]string `bson:",inline"`
}

func keeperDoc() bson.D {
	text := strings.Repeat("text ", 20)
	inner := bson.D{{Key: "key of an inner document", Value: text}, {Key: "a", Value: bson.A{text, bson.Binary{Data: []byte(text)}}}}
	return bson.D{
		{Key: "text", Value: text}, {Key: "named", Value: bson.Symbol(text)}, {Key: "code", Value: bson.JavaScript(text)},
		{Key: "bytes", Value: []byte(text)}, {Key: "binary", Value: bson.Binary{Subtype: 9, Data: []byte(text)}},
		{Key: "regex", Value: bson.Regex{Pattern: text}}, {Key: "raw", Value: inner}, {Key: "value", Value: inner},
		{Key: "_id", Value: bson.D{{Key: "_data", Value: text}}}, {Key: "id", Value: bson.Binary{Subtype: 4, Data: make([]byte, 16)}},
		{Key: "ids", Value: bson.A{bson.Binary{Subtype: 4, Data: make([]byte, 16)}}}, {Key: "texts", Value: bson.A{text}},
		{Key: "bykey", Value: inner[:1]}, {Key: "d", Value: inner}, {Key: "m", Value: inner}, {Key: "a", Value: bson.A{inner}},
		{Key: "any", Value: inner}, {Key: "pointer", Value: text}, {Key: "scope", Value: bson.CodeWithScope{Code: "c", Scope: inner}},
		{Key: "a key of the inline map", Value: text},
	}
}

// freed returns a channel that is closed when no part of the allocation in which doc is is used any more.
func freed(doc bson.Raw) <-chan struct{} {
	done := make(chan struct{})
	runtime.AddCleanup(&doc[0], func(done chan struct{}) { close(done) }, done)
	return done
}

func checkFreed(t *testing.T, what string, batch <-chan struct{}) {
	t.Helper()
	for range 1000 {
		runtime.GC()
		select {
		case <-batch:
			return
		default:
		}
	}
	t.Errorf("%s: the batch is kept", what)
}

// What was decoded does not keep the batch that it came from: a service that keeps one string of each document would keep
// 16 MiB for it.
func TestNothingKeepsItsBatch(t *testing.T) {
	reg := registry(t)
	ctx := context.Background()
	testKept[keeper](t, "struct", reg)
	testKept[bson.D](t, "bson.D", reg)
	testKept[bson.M](t, "bson.M", reg)
	testKept[any](t, "any", reg)
	testKept[bson.Raw](t, "bson.Raw", reg)
	testKept[map[string]bson.RawValue](t, "map of bson.RawValue", reg)

	// The other way around: the test sees what is kept.
	cursor := cursorOf(t, reg, nil, keeperDoc())
	cursor.Next(ctx)
	batch := freed(cursor.Current)
	kept := cursor.Current
	cursor = nil
	runtime.GC()
	select {
	case <-batch:
		t.Error("a batch that is in use counts as free")
	default:
	}
	runtime.KeepAlive(kept)
}

func testKept[T any](t *testing.T, what string, reg *bson.Registry) {
	ctx := context.Background()
	for _, opts := range []bsoncodec.Options{{}, {DefaultDocumentM: true, BinaryAsSlice: true, UseJSONStructTags: true}} {
		with := cursors.WithRegistry(reg, opts)
		open := func() (*mongo.Cursor, <-chan struct{}) {
			cursor := cursorOf(t, reg, nil, keeperDoc(), keeperDoc())
			if !cursor.Next(ctx) {
				t.Fatal(cursor.Err())
			}
			return cursor, freed(cursor.Current)
		}
		check := func(name string, batch <-chan struct{}, n int, err error) {
			t.Helper()
			if err != nil || n != 1 {
				t.Errorf("%s of %s: %d documents and error %v", name, what, n, err)
			}
			checkFreed(t, name+" of "+what, batch)
		}

		cursor, batch := open()
		all, err := cursors.All[T](ctx, cursor, with)
		cursor = nil
		check("All", batch, len(all), err)

		cursor, batch = open()
		var values []T
		for v, loopErr := range cursors.Values[T](ctx, cursor, with) {
			values, err = append(values, v), loopErr
		}
		cursor = nil
		check("Values", batch, len(values), err)

		res := mongo.NewSingleResultFromDocument(keeperDoc(), nil, reg)
		doc, err := res.Raw()
		if err != nil {
			t.Fatal(err)
		}
		batch = freed(doc)
		one, err := cursors.One[T](res, with)
		res, doc = nil, nil
		check("One", batch, 1, err)

		s := &server{batches: []bson.A{{keeperDoc(), keeperDoc()}}}
		stream, err := s.collection(t, reg, nil).Watch(ctx, mongo.Pipeline{})
		if err != nil || !stream.Next(ctx) {
			t.Fatal(err)
		}
		batch = freed(stream.Current)
		var events []T
		for v, loopErr := range cursors.Changes[T](ctx, stream, with) {
			events, err = append(events, v), loopErr
		}
		stream = nil
		check("Changes", batch, len(events), err)

		runtime.KeepAlive(all)
		runtime.KeepAlive(values)
		runtime.KeepAlive(one)
		runtime.KeepAlive(events)
	}
}
