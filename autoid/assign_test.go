package autoid

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/uuidrep"
)

// always returns a source that always returns id.
func always(id any) Source { return SourceFunc(func() (any, error) { return id, nil }) }

func ptr[T any](v T) *T { return &v }

type orderID uuid.UUID

// Assign puts an id into the place that the driver writes as the _id, and into no other, and leaves one that
// is there.
func TestAssign(t *testing.T) {
	type plain struct {
		Name string
		ID   uuid.UUID `bson:"_id" json:"id"`
	}
	type field[T any] struct {
		ID T `bson:"_id,omitempty"`
	}
	type base = field[uuid.UUID]
	type inline struct {
		Base base `bson:",inline"`
	}
	type inlinePointer struct {
		Base *base `bson:",inline"`
	}
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	other := uuid.UUID{1}
	oid := bson.ObjectID{2}
	name := bson.E{Key: "name", Value: "Ada"}
	var nilMap bson.M
	for _, c := range []struct {
		id, doc, want any
	}{
		{u, &plain{Name: "Ada"}, &plain{"Ada", u}},
		{u, &plain{"Ada", other}, &plain{"Ada", other}},
		{u, ptr(&plain{Name: "Ada"}), ptr(&plain{"Ada", u})},
		{u, &field[*uuid.UUID]{}, &field[*uuid.UUID]{&u}},
		{u, &field[*uuid.UUID]{new(uuid.UUID)}, &field[*uuid.UUID]{&u}},
		{u, &field[any]{}, &field[any]{u}},
		{u, &field[orderID]{}, &field[orderID]{orderID(u)}},
		{u, &field[[16]byte]{}, &field[[16]byte]{u}},
		{u, &field[uuidrep.JavaLegacyUUID]{}, &field[uuidrep.JavaLegacyUUID]{uuidrep.JavaLegacyUUID{UUID: u}}},
		{u, &field[*uuidrep.StandardUUID]{}, &field[*uuidrep.StandardUUID]{&uuidrep.StandardUUID{UUID: u}}},
		{oid, &field[bson.ObjectID]{}, &field[bson.ObjectID]{oid}},
		{"x", &field[string]{}, &field[string]{"x"}},
		{"x", &field[plainKey]{}, &field[plainKey]{"x"}},
		{int32(7), &field[int64]{}, &field[int64]{7}},
		{7, &field[int8]{}, &field[int8]{7}},
		{int32(7), &field[int]{}, &field[int]{7}},
		{uint8(7), &field[uint]{}, &field[uint]{7}},
		{uint8(7), &field[uint64]{}, &field[uint64]{7}},
		{u, &inline{}, &inline{base{u}}},
		{u, &inlinePointer{}, &inlinePointer{&base{u}}},
		{u, &inlinePointer{&base{other}}, &inlinePointer{&base{other}}},
		{u, plain{"Ada", other}, plain{"Ada", other}}, // it has an _id, so it need not be assignable
		{u, bson.M{}, bson.M{"_id": u}},
		{u, bson.M{"_id": nil}, bson.M{"_id": u}},
		{u, bson.M{"_id": uuid.Nil}, bson.M{"_id": u}},
		{u, bson.M{"_id": other}, bson.M{"_id": other}},
		{u, &bson.M{}, &bson.M{"_id": u}},
		{u, &nilMap, &bson.M{"_id": u}},
		{"x", map[plainKey]string{}, map[plainKey]string{"_id": "x"}},
		{u, &bson.D{name}, &bson.D{{Key: "_id", Value: u}, name}},
		{u, new(bson.D), &bson.D{{Key: "_id", Value: u}}},
		{u, &bson.D{name, {Key: "_id"}}, &bson.D{name, {Key: "_id", Value: u}}},
		{u, bson.D{{Key: "_id", Value: uuid.Nil}}, bson.D{{Key: "_id", Value: u}}},
		{u, bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "_id", Value: 1}}},
		{u, marshal(t, bson.D{{Key: "_id", Value: 1}}), marshal(t, bson.D{{Key: "_id", Value: 1}})},
	} {
		if err := Assign(always(c.id), c.doc); err != nil || !reflect.DeepEqual(c.doc, c.want) {
			t.Errorf("%v into %T: %v, %v, want %v", c.id, c.doc, c.doc, err, c.want)
		}
	}
}

// A document without a place for the id is an error that says so, and the source is asked for none.
func TestAssignErrors(t *testing.T) {
	type plain struct {
		ID uuid.UUID `bson:"_id"`
	}
	type jsonTag struct {
		ID uuid.UUID `json:"_id"`
	}
	type none struct{ Name string }
	type twice struct {
		A uuid.UUID `bson:"_id"`
		B uuid.UUID `bson:"_id"`
	}
	type hidden struct {
		//lint:ignore U1000 the field is there to be skipped
		id uuid.UUID `bson:"_id"`
	}
	type small struct {
		ID int8 `bson:"_id"`
	}
	type smallUnsigned struct {
		ID uint8 `bson:"_id"`
	}
	type text struct {
		ID string `bson:"_id"`
	}
	type pointer struct {
		ID *uuid.UUID `bson:"_id"`
	}
	type wrapper struct {
		ID uuidrep.StandardUUID `bson:"_id"`
	}
	type number struct {
		ID int64 `bson:"_id"`
	}
	type truth struct {
		ID bool `bson:"_id"`
	}
	type inlineMap struct { // an entry of the map can be the _id
		ID   uuid.UUID
		Rest map[string]any `bson:",inline"`
	}
	type hiddenID struct {
		//lint:ignore U1000 the field is there to be skipped
		id uuid.UUID
	}
	failed := errors.New("no more")
	u := always(uuid.UUID{1})
	for _, c := range []struct {
		src  Source
		doc  any
		is   error
		text string
	}{
		{u, nil, ErrNotAssignable, "it is nil"},
		{u, (*plain)(nil), ErrNotAssignable, "it is nil"},
		{u, plain{}, ErrNotAssignable, "pointer"},
		{u, &jsonTag{}, ErrNotAssignable, "bson tag"},
		{u, &none{}, ErrNotAssignable, "bson tag"},
		{u, &twice{}, ErrNotAssignable, "bson tag"},
		{u, &hidden{}, ErrNotAssignable, "bson tag"},
		{u, bson.M(nil), ErrNotAssignable, "nil"},
		{u, bson.D{}, ErrNotAssignable, "pointer"},
		{u, marshal(t, bson.D{}), ErrNotAssignable, "encoded"},
		{u, []byte("x"), ErrNotAssignable, "encoded"},
		{u, map[int]any{}, ErrNotAssignable, "neither"},
		{u, map[shouting]any{}, ErrNotAssignable, "neither"},
		{u, 7, ErrNotAssignable, "neither"},
		{u, []plain{{}}, ErrNotAssignable, "neither"},
		{u, Document(u, bson.M{}), ErrNotAssignable, "Document"},
		{nil, &plain{}, nil, "source is nil"},
		{SourceFunc(nil), &plain{}, nil, "source is nil"},
		{always(nil), &plain{}, errNilID, ""},
		{always((*uuid.UUID)(nil)), &plain{}, errNilID, ""},
		{SourceFunc(func() (any, error) { return nil, failed }), &plain{}, failed, ""},
		{always("x"), &plain{}, nil, "an id of type string does not fit into uuid.UUID"},
		{u, &text{}, nil, "does not fit into string"},
		{always(65), &text{}, nil, "does not fit"},
		{always(128), &small{}, nil, "does not fit"},
		{always(uint16(256)), &smallUnsigned{}, nil, "does not fit"},
		{always(uint8(1)), &small{}, nil, "does not fit"},
		{always(int8(1)), &smallUnsigned{}, nil, "does not fit"},
		{always(uint8(1)), &text{}, nil, "does not fit"},
		{always(bson.ObjectID{1}), &plain{}, nil, "does not fit"},
		{always("x"), &pointer{}, nil, "does not fit into *uuid.UUID"},
		{always("x"), &wrapper{}, nil, "does not fit into uuidrep.StandardUUID"},
		{always("x"), &number{}, nil, "does not fit into int64"},
		{always("x"), &truth{}, nil, "does not fit into bool"},
		{u, marshal(t, bson.D{{Key: "_id", Value: bson.ObjectID{}}}), ErrNotAssignable, "encoded"},
		{u, &inlineMap{}, ErrNotAssignable, "no field, or more than one"},
		{u, &hiddenID{}, ErrNotAssignable, "no field, or more than one"},
	} {
		err := Assign(c.src, c.doc)
		var idErr *IDError
		if !errors.As(err, &idErr) || idErr.Index != -1 || c.is != nil && !errors.Is(err, c.is) ||
			!strings.HasPrefix(err.Error(), "autoid: ") || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%T: %v, want %v, %q", c.doc, err, c.is, c.text)
		}
	}
}

// TestAssignDraws tests that the source is not asked for a document that has an id or no field for
// one.
func TestAssignDraws(t *testing.T) {
	var src counter
	for _, doc := range []any{bson.M{"_id": 1}, bson.D{}, 7} {
		_ = Assign(&src, doc)
	}
	if src.drawn() != 0 {
		t.Errorf("%d ids were drawn", src.drawn())
	}
}

// Assign is safe for concurrent use with different documents.
func TestAssignConcurrent(t *testing.T) {
	var src counter
	var wg sync.WaitGroup
	docs := make([]bson.M, 64)
	for i := range docs {
		docs[i] = bson.M{}
		wg.Go(func() { _ = Assign(&src, docs[i]) })
	}
	wg.Wait()
	seen := map[any]bool{}
	for _, d := range docs {
		seen[d["_id"]] = true
	}
	if len(seen) != len(docs) {
		t.Errorf("%d ids for %d documents", len(seen), len(docs))
	}
}

type user struct {
	ID   int32  `bson:"_id"`
	Name string `bson:"name"`
}

// echoing encodes itself, and its _id twice.
type echoing struct {
	ID int32 `bson:"_id"`
}

func (e echoing) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "_id", Value: e.ID}, {Key: "copy", Value: e.ID}})
}

// With WriteBack the caller's document has the id that was inserted.
func TestWriteBack(t *testing.T) {
	ctx := context.Background()
	s := newTestServer()
	client, _ := s.client(t, registered())
	users := Wrap(client.Database("db").Collection("users"), &counter{}, WithWriteBack())

	ada := user{Name: "Ada"}
	res, err := users.InsertOne(ctx, &ada)
	if err != nil || ada.ID != 1 || res.InsertedID != int32(1) {
		t.Fatalf("%v, %v, %v", ada, res, err)
	}
	// The document keeps its id although the insert failed.
	if _, err := users.InsertOne(ctx, &ada); !mongo.IsDuplicateKeyError(err) || ada.ID != 1 {
		t.Fatalf("%v, %v", ada, err)
	}

	bob, m := &user{Name: "Bob"}, bson.M{}
	d := bson.D{{Key: "name", Value: "Dan"}}
	if _, err := users.InsertMany(ctx, []any{bob, m, &d}); err != nil || bob.ID != 2 || m["_id"] != int32(3) || d[0].Value != int32(4) {
		t.Fatalf("%v, %v, %v, %v", bob, m, d, err)
	}
	structs := []user{{Name: "Eve"}, {ID: 77}, {Name: "Flo"}}
	if _, err := users.InsertMany(ctx, structs); err != nil || structs[0].ID != 5 || structs[1].ID != 77 || structs[2].ID != 6 {
		t.Fatalf("%v, %v", structs, err)
	}
	ds := []bson.D{{}, {{Key: "_id", Value: 78}}}
	if _, err := users.InsertMany(ctx, ds); err != nil || ds[0][0].Value != int32(7) || ds[1][0].Value != 78 {
		t.Fatalf("%v, %v", ds, err)
	}
	if _, err := users.InsertMany(ctx, []echoing{{}}); err != nil || s.stored()[9].Lookup("copy").AsInt64() != 8 {
		t.Fatalf("%v, %v", s.stored()[9], err)
	}
	gus := &user{Name: "Gus"}
	if _, err := users.Clone().BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(gus)}); err != nil || gus.ID != 9 {
		t.Fatalf("%v, %v", gus, err)
	}
	stored := s.stored()
	for i, want := range []int32{1, 2, 3, 4, 5, 77, 6, 7, 78, 8, 9} {
		if id := stored[i].Lookup("_id"); id.AsInt64() != int64(want) {
			t.Errorf("document %d is stored as %v, want %d", i, id, want)
		}
	}

	// A document without a field for its _id prevents the whole call.
	n := len(stored)
	var idErr *IDError
	_, err1 := users.InsertOne(ctx, user{})
	_, err2 := users.InsertMany(ctx, []any{&user{}, user{}})
	_, err3 := users.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(&user{}), mongo.NewInsertOneModel().SetDocument(bson.D{})})
	for i, err := range []error{err1, err2, err3} {
		if !errors.As(err, &idErr) || !errors.Is(err, ErrNotAssignable) || idErr.Index != min(i, 1) {
			t.Errorf("%v", err)
		}
	}
	if got := len(s.stored()); got != n {
		t.Errorf("%d documents were sent", got-n)
	}
}

// A source or an Option that is nil is an error of every insert, and nothing is sent.
func TestWrapErrors(t *testing.T) {
	ctx := context.Background()
	s := newTestServer()
	client, started := s.client(t, registered())
	coll := client.Database("db").Collection("users")
	for _, c := range []*Collection{
		Wrap(coll, nil), Wrap(coll, SourceFunc(nil)), Wrap(coll, &counter{}, nil), Wrap(coll, nil).Clone(),
	} {
		_, err1 := c.InsertOne(ctx, bson.M{"_id": 1})
		_, err2 := c.InsertMany(ctx, []any{bson.M{"_id": 1}})
		_, err3 := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(bson.M{"_id": 1})})
		for _, err := range []error{err1, err2, err3} {
			if err == nil || !strings.HasPrefix(err.Error(), "autoid: ") {
				t.Errorf("%v", err)
			}
		}
	}
	if len(started()) != 0 {
		t.Errorf("%v was sent", started())
	}
}

// TestAssignToID tests that the error for a struct with the key id in place of _id names the field.
func TestAssignToID(t *testing.T) {
	server := newTestServer()
	client, started := server.client(t, registered())
	coll := Wrap(client.Database("db").Collection("c"), always(uuid.UUID{1}), WithWriteBack())
	type jsonTag struct {
		Key uuid.UUID `json:"_id" bson:"id"`
	}
	for field, doc := range map[string]any{"ID": &struct{ ID uuid.UUID }{}, "Key": &jsonTag{}, "Id": &struct{ Id string }{}} {
		_, insertErr := coll.InsertOne(ctx, doc)
		for _, err := range []error{Assign(always(uuid.UUID{1}), doc), insertErr} {
			if !errors.Is(err, ErrNotAssignable) || !strings.Contains(err.Error(), "field "+field+" is id") {
				t.Errorf("%T: got %v", doc, err)
			}
		}
	}
	if len(started()) != 0 {
		t.Errorf("sent %v", started())
	}

	// A client with UseJSONStructTags reads the json tag, and so does WithWriteBack.
	json, _ := server.client(t, registered(), options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true}))
	type tagged struct {
		ID string `json:"_id"`
	}
	var doc tagged
	if _, err := Wrap(json.Database("db").Collection("c"), always("x"), WithWriteBack()).InsertOne(ctx, &doc); err != nil || doc.ID != "x" {
		t.Errorf("%v, %v", doc, err)
	}
}

// TestWriteBackMistakes tests what is said of documents into which WithWriteBack cannot put an id, and that of several documents those
// before the one that is refused keep their ids.
func TestWriteBackMistakes(t *testing.T) {
	type user struct {
		ID uuid.UUID `bson:"_id,omitempty"`
	}
	client, started := newTestServer().client(t, registries(t)["plans"]())
	users := Wrap(client.Database("db").Collection("c"), always(uuid.UUID{1}), WithWriteBack())
	one := func(doc any) error { _, err := users.InsertOne(ctx, doc); return err }
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"a struct": {one(user{}), "autoid: no id for a document of type autoid.user: the document has no place for an _id: " +
			"a struct needs a pointer to get an _id (the option WithWriteBack puts it there)"},
		"a D": {one(bson.D{}), "autoid: no id for a document of type bson.D: the document has no place for an _id: " +
			"a bson.D needs a pointer to get an _id (the option WithWriteBack puts it there)"},
		"no field": {one(&struct{ A int }{}), "autoid: no id for a document of type *struct { A int }: the document has no place for an _id: " +
			"no field, or more than one, has the bson tag _id (the option WithWriteBack puts it there)"},
		"a model": {func() error {
			_, err := users.BulkWrite(ctx, []mongo.WriteModel{mongo.NewInsertOneModel().SetDocument(user{})})
			return err
		}(), "autoid: no id for document 0 of type autoid.user: the document has no place for an _id: " +
			"a struct needs a pointer to get an _id (the option WithWriteBack puts it there)"},
	} {
		var failed *IDError
		if !errors.Is(c.err, ErrNotAssignable) || !errors.As(c.err, &failed) || failed.Index != 0 || c.err.Error() != c.want {
			t.Errorf("%s: got %v", what, c.err)
		}
	}
	first := &user{}
	docs := []any{first, bson.D{}, &user{}}
	var failed *IDError
	if _, err := users.InsertMany(ctx, docs); !errors.As(err, &failed) || failed.Index != 1 || !strings.HasPrefix(err.Error(), "autoid: no id for document 1 of") {
		t.Errorf("got %v", err)
	}
	if first.ID != (uuid.UUID{1}) || docs[2].(*user).ID != uuid.Nil || len(started()) != 0 {
		t.Errorf("the documents are %v, sent %v", docs, started())
	}
	if err := Assign(always(1), user{}); err == nil || strings.Contains(err.Error(), "WithWriteBack") || strings.Count(err.Error(), "autoid:") != 1 {
		t.Errorf("Assign: got %v", err)
	}
	// Without Register nothing is put into a document.
	client, _ = newTestServer().client(t, nil)
	if _, err := Wrap(client.Database("db").Collection("c"), always(uuid.UUID{1}), WithWriteBack()).InsertOne(ctx, first); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("got %v", err)
	}
	empty := &user{}
	if _, err := Wrap(client.Database("db").Collection("c"), always(uuid.UUID{1}), WithWriteBack()).InsertOne(ctx, empty); !errors.Is(err, ErrNotRegistered) || empty.ID != uuid.Nil {
		t.Errorf("got %v, %v", err, empty)
	}
}

// TestErrorsNameThePackageOnce tests the errors of many mistakes.
func TestErrorsNameThePackageOnce(t *testing.T) {
	client, _ := newTestServer().client(t, registries(t)["plans"]())
	plain := client.Database("db").Collection("c")
	boom := SourceFunc(func() (any, error) { return nil, errors.New("boom") })
	u := always(uuid.UUID{1})
	byA := bson.M{"a": 1}
	for name, err := range map[string]error{
		"nil source":    second(Wrap(plain, nil).InsertOne(ctx, bson.M{})),
		"NewID of nil":  second(Wrap(plain, always(nil)).NewID()),
		"no source":     second(Wrap(plain, nil).NewID()),
		"NewID":         second(Wrap(plain, boom).NewID()),
		"source of two": second(Wrap(plain, Wrap(plain, boom)).InsertOne(ctx, bson.M{})),
		"nil id":        second(Wrap(plain, always(nil)).InsertOne(ctx, bson.M{})),
		"zero id":       second(Wrap(plain, always(uuid.Nil)).InsertOne(ctx, bson.M{})),
		"generic id":    second(Wrap(plain, always(bson.Binary{Data: make([]byte, 15)})).InsertOne(ctx, omitID[int]{})),
		"own zero id":   second(Wrap(plain, u).InsertOne(ctx, bson.M{"_id": nil})),
		"misfit":        second(Wrap(plain, u).InsertOne(ctx, omitID[bson.ObjectID]{})),
		"assign":        Assign(u, &omitID[bson.ObjectID]{}),
		"assign nil":    Assign(u, nil),
		"assign source": Assign(nil, bson.M{}),
		"upsert": second(Wrap(plain, u).UpdateOne(ctx, byA, bson.A{bson.M{"$set": byA}},
			options.UpdateOne().SetUpsert(true))),
		"upsert source":          second(Wrap(plain, boom).UpdateOne(ctx, byA, bson.M{"$set": byA}, options.UpdateOne().SetUpsert(true))),
		"upsert zero":            second(Wrap(plain, u).UpdateOne(ctx, bson.M{"_id": nil}, bson.M{"$set": byA}, options.UpdateOne().SetUpsert(true))),
		"upsert malformed":       second(Wrap(plain, u).UpdateOne(ctx, byA, bson.Raw{1}, options.UpdateOne().SetUpsert(true))),
		"replacement":            second(Wrap(plain, u).ReplaceOne(ctx, byA, byA, options.Replace().SetUpsert(true))),
		"Document":               second(plain.InsertOne(ctx, Document(boom, bson.M{}))),
		"Document WithWriteBack": second(plain.InsertOne(ctx, Document(u, bson.M{}, WithWriteBack()))),
		"nil option":             second(Wrap(plain, u, nil).InsertOne(ctx, bson.M{})),
	} {
		if err == nil || strings.Count(err.Error(), "autoid:") != 1 {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
