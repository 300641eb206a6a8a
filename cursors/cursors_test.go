package cursors_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/uuidrep"
)

type item struct {
	ID   uuid.UUID `bson:"_id"`
	N    int
	Tags []string
}

func registry(t *testing.T) *bson.Registry {
	t.Helper()
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

var items = []any{
	item{uuid.UUID{1}, 1, []string{"a"}}, item{uuid.UUID{2}, 2, nil}, item{uuid.UUID{3}, 3, []string{}},
}

func cursorOf(t *testing.T, reg *bson.Registry, failure error, docs ...any) *mongo.Cursor {
	t.Helper()
	c, err := mongo.NewCursorFromDocuments(docs, failure, reg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// testLikeCursor compares All and Values with the All method of the cursor.
func testLikeCursor[T any](t *testing.T, reg *bson.Registry, docs ...any) {
	t.Helper()
	ctx := context.Background()
	var want []T
	wantErr := cursorOf(t, reg, nil, docs...).All(ctx, &want)
	got, err := cursors.All[T](ctx, cursorOf(t, reg, nil, docs...))
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Errorf("%T: got error %v, want %v", got, err, wantErr)
	}
	if err == nil && (got == nil || len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want)) {
		t.Errorf("got %v, want %v", got, want)
	}
	var values []T
	var last error
	for v, err := range cursors.Values[T](ctx, cursorOf(t, reg, nil, docs...)) {
		if last != nil {
			t.Error("an error is not the last pair")
		}
		if last = err; err == nil {
			values = append(values, v)
		}
	}
	if (last == nil) != (wantErr == nil) || last == nil && len(want) > 0 && !reflect.DeepEqual(values, want) {
		t.Errorf("Values: got %v and error %v, want %v and %v", values, last, want, wantErr)
	}
}

func TestLikeTheCursor(t *testing.T) {
	for name, reg := range map[string]*bson.Registry{"bsoncodec": registry(t), "driver": bson.NewRegistry()} {
		t.Run(name, func(t *testing.T) {
			docs := items
			if name == "driver" {
				docs = []any{bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "n", Value: 2}}}
			}
			testLikeCursor[item](t, reg, docs...)
			testLikeCursor[*item](t, reg, docs...)
			testLikeCursor[bson.D](t, reg, docs...)
			testLikeCursor[bson.M](t, reg, docs...)
			testLikeCursor[bson.Raw](t, reg, docs...)
			testLikeCursor[map[string]any](t, reg, docs...)
			testLikeCursor[any](t, reg, docs...)
			testLikeCursor[struct{ N string }](t, reg, docs...) // an error
			testLikeCursor[item](t, reg)
		})
	}
}

func TestErrors(t *testing.T) {
	ctx := context.Background()
	failure := errors.New("lost")
	if _, err := cursors.All[item](ctx, cursorOf(t, registry(t), failure, items...)); !errors.Is(err, failure) {
		t.Errorf("got %v, want %v", err, failure)
	}
	if _, err := cursors.All[item](ctx, nil); !errors.Is(err, cursors.ErrNilCursor) {
		t.Errorf("got %v", err)
	}
	for _, err := range cursors.Values[item](ctx, nil) {
		if !errors.Is(err, cursors.ErrNilCursor) {
			t.Errorf("got %v", err)
		}
	}
	done, cancel := context.WithCancel(ctx)
	defer cancel()
	n := 0
	for _, err := range cursors.Values[item](done, cursorOf(t, registry(t), nil, items...)) {
		if n++; n == 1 {
			cancel()
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v after the context was done", err)
		}
	}
	if n != 2 {
		t.Errorf("%d pairs, want a document and an error", n)
	}
	if _, err := cursors.All[item](done, cursorOf(t, registry(t), nil, items...)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// The documents that were read before a call are not read again, and a loop may end early.
func TestRestOfACursor(t *testing.T) {
	ctx := context.Background()
	c := cursorOf(t, registry(t), nil, items...)
	if !c.Next(ctx) {
		t.Fatal(c.Err())
	}
	for v, err := range cursors.Values[item](ctx, c) {
		if err != nil || v.N != 2 {
			t.Errorf("got %v, %v", v, err)
		}
		break
	}
}

func TestWithRegistry(t *testing.T) {
	java, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bsoncodec.Marshal(java, items[0])
	if err != nil {
		t.Fatal(err)
	}
	got, err := cursors.All[item](context.Background(), cursorOf(t, bson.NewRegistry(), nil, bson.Raw(raw)),
		cursors.WithRegistry(java, bsoncodec.Options{}))
	if err != nil || len(got) != 1 || got[0].ID != (uuid.UUID{1}) {
		t.Errorf("got %v, %v", got, err)
	}
	type renamed struct {
		Other int `json:"n"`
	}
	values, err := cursors.All[renamed](context.Background(), cursorOf(t, java, nil, bson.Raw(raw)),
		cursors.WithRegistry(java, bsoncodec.Options{UseJSONStructTags: true}))
	if err != nil || len(values) != 1 || values[0].Other != 1 {
		t.Errorf("got %v, %v", values, err)
	}
}

// An option that is wrong is an error, and not the cursor's own registry.
func TestWrongOptions(t *testing.T) {
	ctx := context.Background()
	none := cursors.WithRegistry(nil, bsoncodec.Options{})
	if _, err := cursors.All[item](ctx, cursorOf(t, registry(t), nil, items...), none); !errors.Is(err, bson.ErrNilRegistry) {
		t.Errorf("no registry: got %v", err)
	}
	if _, err := cursors.All[item](ctx, cursorOf(t, registry(t), nil, items...), nil); err == nil {
		t.Error("a nil Option is not an error")
	}
	n := 0
	for _, err := range cursors.Values[item](ctx, cursorOf(t, registry(t), nil, items...), none) {
		if n++; !errors.Is(err, bson.ErrNilRegistry) {
			t.Errorf("no registry: got %v", err)
		}
	}
	if n != 1 {
		t.Errorf("%d pairs, want an error", n)
	}
	got, err := cursors.All[item](ctx, cursorOf(t, bson.NewRegistry(), nil), none,
		cursors.WithRegistry(registry(t), bsoncodec.Options{}))
	if err != nil || got == nil {
		t.Errorf("the last WithRegistry counts: got %v, %v", got, err)
	}
}

func ExampleAll() {
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		panic(err)
	}
	// In a program, the cursor comes from the Find or Aggregate method of a collection.
	cursor, err := mongo.NewCursorFromDocuments([]any{bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "n", Value: 2}}}, nil, reg)
	if err != nil {
		panic(err)
	}
	all, err := cursors.All[item](context.Background(), cursor)
	if err != nil {
		panic(err)
	}
	fmt.Println(len(all), all[0].N, all[1].N)
	// Output: 2 1 2
}
