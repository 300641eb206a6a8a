package cursors_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

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
			testLikeCursor[bson.RawValue](t, reg, docs...)
			testLikeCursor[*bson.RawValue](t, reg, docs...)
			testLikeCursor[bson.Binary](t, reg, docs...) // an error
			testLikeCursor[[]bson.E](t, reg, docs...)
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

// The text of a UUID in a binary value is refused as such, by each way of reading.
func TestTextInBinary(t *testing.T) {
	ctx, reg := context.Background(), registry(t)
	check := func(way string, err error) {
		t.Helper()
		var e *uuidrep.LengthError
		if !errors.As(err, &e) || *e != (uuidrep.LengthError{Length: 36, Text: true}) {
			t.Errorf("%s: got %v", way, err)
		}
	}
	for _, subtype := range []byte{0, 2, 3, 4} {
		doc := bson.D{{Key: "_id", Value: bson.Binary{Subtype: subtype, Data: []byte("00112233-4455-6677-8899-aabbccddeeff")}}}
		_, err := cursors.All[item](ctx, cursorOf(t, reg, nil, items[0], doc))
		check("All", err)
		n := 0
		for _, err := range cursors.Values[item](ctx, cursorOf(t, reg, nil, items[0], doc)) {
			if n++; n == 2 {
				check("Values", err)
			}
		}
		if n != 2 {
			t.Errorf("%d pairs, want a document and an error", n)
		}
		_, err = cursors.One[item](mongo.NewSingleResultFromDocument(doc, nil, reg))
		check("One", err)
	}
}

// Without a context nothing is cancelled, as with the methods of a cursor.
func TestNoContext(t *testing.T) {
	var none context.Context
	if got, err := cursors.All[item](none, cursorOf(t, registry(t), nil, items...)); err != nil || len(got) != len(items) {
		t.Errorf("got %v, %v", got, err)
	}
	n := 0
	for _, err := range cursors.Values[item](none, cursorOf(t, registry(t), nil, items...)) {
		if n++; err != nil {
			t.Error(err)
		}
	}
	if n != len(items) {
		t.Errorf("%d documents, want %d", n, len(items))
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

// A second loop over one sequence does not end as if the cursor had no documents.
func TestSecondLoop(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	lost := errors.New("lost")
	for name, c := range map[string]struct {
		seq  iter.Seq2[item, error]
		stop int // the first loop ends after so many pairs
		want error
	}{
		"read":          {cursors.Values[item](t.Context(), cursorOf(t, registry(t), nil, items...)), 9, nil},
		"ended early":   {cursors.Values[item](t.Context(), cursorOf(t, registry(t), nil, items...)), 1, cursors.ErrEnded},
		"ended at last": {cursors.Values[item](t.Context(), cursorOf(t, registry(t), nil, items...)), 3, cursors.ErrEnded},
		"failed":        {cursors.Values[item](t.Context(), cursorOf(t, registry(t), lost, items...)), 9, lost},
		"cancelled":     {cursors.Values[item](done, cursorOf(t, registry(t), nil, items...)), 9, context.Canceled},
		"nil":           {cursors.Values[item](t.Context(), nil), 9, cursors.ErrNilCursor},
		"wrong option":  {cursors.Values[item](t.Context(), cursorOf(t, registry(t), nil), cursors.WithRegistry(nil, bsoncodec.Options{})), 9, bson.ErrNilRegistry},
		"nil stream":    {cursors.Changes[item](t.Context(), nil), 9, cursors.ErrNilCursor},
	} {
		n := 0
		for range c.seq {
			if n++; n == c.stop {
				break
			}
		}
		for range 2 {
			var got []error
			for v, err := range c.seq {
				if got = append(got, err); v.N != 0 {
					t.Errorf("%s: a second loop has %v", name, v)
				}
			}
			if c.want == nil && len(got) != 0 || c.want != nil && (len(got) != 1 || !errors.Is(got[0], c.want)) {
				t.Errorf("%s: a second loop has %v, want %v", name, got, c.want)
			}
		}
	}
}

// typeSeen keeps the BSON type that it was decoded from.
type typeSeen struct{ Type byte }

func (s *typeSeen) UnmarshalBSONValue(typ byte, _ []byte) error { s.Type = typ; return nil }

// testOne compares One with the Decode method of a result, before and after it.
func testOne[T any](t *testing.T, find func() *mongo.SingleResult) {
	t.Helper()
	var want, after T
	wantErr := find().Decode(&want)
	res := find()
	for range 2 {
		got, err := cursors.One[T](res)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %v, %v, want %v, %v", got, got, err, want, wantErr)
		}
	}
	if err := res.Decode(&after); fmt.Sprint(err) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(after, want) {
		t.Errorf("%T: Decode after One: got %v, %v, want %v, %v", after, after, err, want, wantErr)
	}
	if res.Err() != nil && wantErr == nil {
		t.Errorf("%T: Err after One: %v", after, res.Err())
	}
}

func TestOne(t *testing.T) {
	plain := bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: int64(2)}, {Key: "tags", Value: bson.A{"a"}}}
	for name, reg := range map[string]*bson.Registry{"bsoncodec": registry(t), "driver": bson.NewRegistry()} {
		for _, bsonOpts := range everyOption() {
			for what, batch := range map[string]bson.A{"a document": {plain}, "none": {}, "an order": {items[1]}} {
				if what == "an order" && name == "driver" {
					continue
				}
				s := &server{batches: []bson.A{batch}}
				if what == "an order" {
					raw, err := bsoncodec.Marshal(reg, items[1])
					if err != nil {
						t.Fatal(err)
					}
					s.batches = []bson.A{{bson.Raw(raw)}}
				}
				coll := s.collection(t, reg, bsonOpts)
				find := func() *mongo.SingleResult { return coll.FindOne(t.Context(), bson.D{}) }
				testOne[item](t, find)
				testOne[*item](t, find)
				testOne[any](t, find)
				testOne[bson.D](t, find)
				testOne[bson.M](t, find)
				testOne[bson.Raw](t, find)
				testOne[bson.RawValue](t, find)
				testOne[typeSeen](t, find)
				testOne[struct {
					Renamed int `json:"n"`
				}](t, find)
				testOne[string](t, find)
				if _, err := cursors.One[bson.D](find()); what == "none" && !errors.Is(err, mongo.ErrNoDocuments) {
					t.Errorf("no document: got %v", err)
				}
			}
		}
	}
}

// everyOption returns no options, each option alone, and all of them.
func everyOption() []*options.BSONOptions {
	sets := []*options.BSONOptions{nil, {}, {}}
	all := reflect.ValueOf(sets[2]).Elem()
	for i := range all.NumField() {
		one := new(options.BSONOptions)
		reflect.ValueOf(one).Elem().Field(i).SetBool(true)
		sets = append(sets, one)
		all.Field(i).SetBool(true)
	}
	return sets
}

// What a target held before, times, ObjectIDs, octets and numbers show the options.
func TestOptionsOfTheClient(t *testing.T) {
	type target struct {
		Time  time.Time
		Text  string `bson:"oid"`
		Any   any    `bson:"bin"`
		Int   int    `bson:"half" json:"other"`
		Doc   any
		Other float64 `json:"half"`
	}
	doc := bson.D{
		{Key: "time", Value: bson.DateTime(1e12)}, {Key: "oid", Value: bson.ObjectID{1}}, {Key: "bin", Value: bson.Binary{Data: []byte{1}}},
		{Key: "half", Value: 1.5}, {Key: "doc", Value: bson.D{{Key: "list", Value: bson.A{bson.D{}}}}},
	}
	s := &server{batches: []bson.A{{doc, doc}, {doc}}}
	for _, bsonOpts := range everyOption() {
		coll := s.collection(t, registry(t), bsonOpts)
		open := func() *mongo.Cursor {
			c, err := coll.Find(t.Context(), bson.D{})
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		compare := func(what string, got, want any, err, wantErr error) {
			t.Helper()
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
				t.Errorf("%s with %+v: got %v, %v, want %v, %v", what, bsonOpts, got, err, want, wantErr)
			}
		}
		var want []target
		wantErr := open().All(t.Context(), &want)
		got, err := cursors.All[target](t.Context(), open())
		compare("All", got, want, err, wantErr)
		var values []bson.M
		for v, err := range cursors.Values[bson.M](t.Context(), open()) {
			if err != nil {
				t.Fatal(err)
			}
			values = append(values, v)
		}
		var wantM []bson.M
		if err := open().All(t.Context(), &wantM); err != nil {
			t.Fatal(err)
		}
		compare("Values", values, wantM, nil, nil)
		testOne[target](t, func() *mongo.SingleResult { return coll.FindOne(t.Context(), bson.D{}) })
	}
}

func TestOneMistakes(t *testing.T) {
	lost := errors.New("lost")
	res := func() *mongo.SingleResult {
		return mongo.NewSingleResultFromDocument(bson.D{{Key: "n", Value: 1}}, nil, registry(t))
	}
	for name, c := range map[string]struct {
		res  *mongo.SingleResult
		opts []cursors.Option
		want error
	}{
		"nil":         {nil, nil, cursors.ErrNilCursor},
		"failed":      {mongo.NewSingleResultFromDocument(bson.D{}, lost, registry(t)), nil, lost},
		"no document": {mongo.NewSingleResultFromDocument(nil, nil, nil), nil, mongo.ErrNilDocument},
		"zero":        {new(mongo.SingleResult), nil, bson.ErrNilRegistry},
		"no registry": {res(), []cursors.Option{cursors.WithRegistry(nil, bsoncodec.Options{})}, bson.ErrNilRegistry},
	} {
		if v, err := cursors.One[item](c.res, c.opts...); !errors.Is(err, c.want) || !reflect.DeepEqual(v, item{}) {
			t.Errorf("%s: got %v, %v, want %v", name, v, err, c.want)
		}
	}
	if _, err := cursors.One[item](res(), nil); err == nil {
		t.Error("a nil Option is not an error")
	}
	// What was decoded before an error is not returned.
	half := mongo.NewSingleResultFromDocument(bson.D{{Key: "n", Value: 1}, {Key: "tags", Value: 7}}, nil, registry(t))
	if v, err := cursors.One[item](half); err == nil || v.N != 0 {
		t.Errorf("got %v, %v", v, err)
	}
	type renamed struct {
		Other int `json:"n"`
	}
	v, err := cursors.One[renamed](res(), cursors.WithRegistry(bson.NewRegistry(), bsoncodec.Options{UseJSONStructTags: true}))
	if err != nil || v.Other != 1 {
		t.Errorf("got %v, %v", v, err)
	}
}

func change(n int) bson.D {
	return bson.D{
		{Key: "_id", Value: bson.D{{Key: "_data", Value: n}}}, {Key: "operationType", Value: "insert"},
		{Key: "fullDocument", Value: bson.D{{Key: "n", Value: n}}},
	}
}

type event struct {
	OperationType string          `bson:"operationType"`
	FullDocument  struct{ N int } `bson:"fullDocument"`
}

// The resume token in a loop is that of the event which the loop has, as with the stream's own methods.
func TestChanges(t *testing.T) {
	s := &server{
		batches: []bson.A{{}, {change(1), change(2)}, {}, {change(3)}}, token: bson.D{{Key: "_data", Value: "behind the batch"}},
	}
	for name, reg := range map[string]*bson.Registry{"bsoncodec": registry(t), "driver": bson.NewRegistry()} {
		coll := s.collection(t, reg, nil)
		watch := func() *mongo.ChangeStream {
			stream, err := coll.Watch(t.Context(), mongo.Pipeline{})
			if err != nil {
				t.Fatal(err)
			}
			return stream
		}
		type seen struct {
			e     event
			token string
		}
		var want, got []seen
		stream := watch()
		for stream.Next(t.Context()) {
			var e event
			if err := stream.Decode(&e); err != nil {
				t.Fatal(err)
			}
			want = append(want, seen{e, stream.ResumeToken().String()})
		}
		if err := stream.Close(t.Context()); err != nil || len(want) != 3 || want[0].token != `{"_data": {"$numberInt":"1"}}` {
			t.Fatalf("%v, %v", want, err)
		}
		stream = watch()
		for e, err := range cursors.Changes[event](t.Context(), stream) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, seen{e, stream.ResumeToken().String()})
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if stream.ID() != 0 || stream.Next(t.Context()) {
			t.Errorf("%s: the stream is open after the loop", name)
		}

		// A loop that ends early leaves the token behind what it had.
		stream = watch()
		seq := cursors.Changes[event](t.Context(), stream)
		for range seq {
			break
		}
		if got := stream.ResumeToken().String(); got != want[0].token {
			t.Errorf("%s: the token after a loop that ended early is %s, want %s", name, got, want[0].token)
		}
		for _, err := range seq {
			if !errors.Is(err, cursors.ErrEnded) {
				t.Errorf("%s: a second loop: %v", name, err)
			}
		}

		// An event that cannot be decoded.
		stream = watch()
		n := 0
		for _, err := range cursors.Changes[struct {
			FullDocument string `bson:"fullDocument"`
		}](t.Context(), stream) {
			if n++; err == nil || n > 1 {
				t.Errorf("%s: got %v", name, err)
			}
		}

		// A context that is done between two events.
		ctx, cancel := context.WithCancel(t.Context())
		var last error
		n = 0
		for _, err := range cursors.Changes[event](ctx, watch()) {
			n++
			last = err
			cancel()
		}
		cancel()
		if n != 2 || !errors.Is(last, context.Canceled) {
			t.Errorf("%s: %d pairs, the last with %v", name, n, last)
		}
	}
	if _, ok := <-changesOfClosed(t, s); ok {
		t.Error("a closed stream has events")
	}
}

// changesOfClosed loops over a stream that is closed already.
func changesOfClosed(t *testing.T, s *server) <-chan event {
	stream, err := s.collection(t, registry(t), nil).Watch(t.Context(), mongo.Pipeline{})
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := make(chan event, 10)
	for e := range cursors.Changes[event](t.Context(), stream) {
		events <- e
	}
	close(events)
	return events
}

// Several batches, each of the options of the client, and a cursor that is closed.
func TestBatches(t *testing.T) {
	s := &server{batches: []bson.A{{bson.D{{Key: "n", Value: 1}}}, {}, {bson.D{{Key: "n", Value: 2}}, bson.D{{Key: "n", Value: bson.D{}}}}}}
	coll := s.collection(t, registry(t), &options.BSONOptions{DefaultDocumentM: true})
	find := func() *mongo.Cursor {
		c, err := coll.Find(t.Context(), bson.D{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	var want []any
	c := find() // its All method ends at an empty batch
	for c.Next(t.Context()) {
		var v any
		if err := c.Decode(&v); err != nil {
			t.Fatal(err)
		}
		want = append(want, v)
	}
	got, err := cursors.All[any](t.Context(), find())
	if err != nil || !reflect.DeepEqual(got, want) || reflect.TypeOf(got[2].(bson.M)["n"]) != reflect.TypeFor[bson.M]() {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	closed := find()
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := cursors.All[any](t.Context(), closed); err != nil || len(got) != 0 {
		t.Errorf("a closed cursor: got %v, %v", got, err)
	}
	// A cursor that is not read to its end is closed on the server.
	for name, read := range map[string]func(){
		"a loop that ends early": func() {
			for range cursors.Values[any](t.Context(), find()) {
				break
			}
		},
		"a document that cannot be decoded": func() {
			if _, err := cursors.All[struct{ N string }](t.Context(), find()); err == nil {
				t.Error("a number was decoded into a string")
			}
		},
		"an Option that is nil": func() {
			if _, err := cursors.All[any](t.Context(), find(), nil); err == nil {
				t.Error("a nil Option is not an error")
			}
		},
	} {
		read()
		s.mu.Lock()
		if last := s.commands[len(s.commands)-1]; last != "killCursors" {
			t.Errorf("%s: the last command is %s", name, last)
		}
		s.mu.Unlock()
	}
}

// Nothing but the documents is decoded: a call that fails, to learn the registry, would decode once more.
func TestNoProbe(t *testing.T) {
	reg := registry(t)
	cursor := cursorOf(t, reg, nil, bson.D{{Key: "n", Value: 1}})
	res := mongo.NewSingleResultFromDocument(bson.D{{Key: "n", Value: 1}}, nil, reg)
	if err := res.Err(); err != nil {
		t.Fatal(err)
	}
	type small struct{ N int }
	for name, f := range map[string]func(){
		"One": func() {
			if v, err := cursors.One[small](res); err != nil || v.N != 1 {
				t.Fatal(v, err)
			}
		},
		"All of an ended cursor": func() {
			if v, err := cursors.All[small](t.Context(), cursor); err != nil {
				t.Fatal(v, err)
			}
		},
	} {
		// The driver's Decode method allocates 10 times and more.
		if n := testing.AllocsPerRun(100, f); n > 4 {
			t.Errorf("%s: %v allocations", name, n)
		}
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
