package autoid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// An upsertMethod upserts through one method of a Collection. The last command of the server has its
// filter and its update.
type upsertMethod struct {
	name string
	do   func(c methods, filter, update any) error
	sent func(s *testServer) (filter, update bson.RawValue)
}

func updateCommand(s *testServer) (filter, update bson.RawValue) {
	cmds := s.received("update")
	u := arrayOf(cmds[len(cmds)-1], "updates")[0]
	return u.Lookup("q"), u.Lookup("u")
}

func findAndModifyCommand(s *testServer) (filter, update bson.RawValue) {
	cmds := s.received("findAndModify")
	c := cmds[len(cmds)-1]
	return c.Lookup("query"), c.Lookup("update")
}

func clientCommand(s *testServer) (filter, update bson.RawValue) {
	cmds := s.received("bulkWrite")
	op := arrayOf(cmds[len(cmds)-1], "ops")[0]
	return op.Lookup("filter"), op.Lookup("updateMods")
}

func found(res *mongo.SingleResult) error {
	if err := res.Err(); !errors.Is(err, mongo.ErrNoDocuments) {
		return err
	}
	return nil
}

// methods are those of the driver's Collection that this package has too.
type methods interface {
	BulkWrite(context.Context, []mongo.WriteModel, ...options.Lister[options.BulkWriteOptions]) (*mongo.BulkWriteResult, error)
	UpdateOne(context.Context, any, any, ...options.Lister[options.UpdateOneOptions]) (*mongo.UpdateResult, error)
	UpdateMany(context.Context, any, any, ...options.Lister[options.UpdateManyOptions]) (*mongo.UpdateResult, error)
	ReplaceOne(context.Context, any, any, ...options.Lister[options.ReplaceOptions]) (*mongo.UpdateResult, error)
	FindOneAndUpdate(context.Context, any, any, ...options.Lister[options.FindOneAndUpdateOptions]) *mongo.SingleResult
	FindOneAndReplace(context.Context, any, any, ...options.Lister[options.FindOneAndReplaceOptions]) *mongo.SingleResult
	Database() *mongo.Database
}

func bulkWrite(c methods, m mongo.WriteModel) error {
	_, err := c.BulkWrite(ctx, []mongo.WriteModel{m})
	return err
}

func clientWrite(c methods, m mongo.ClientWriteModel) error {
	writes := []mongo.ClientBulkWrite{{Database: "db", Collection: "c", Model: m}}
	if c, ok := c.(*Collection); ok {
		var err error
		if writes, err = c.ClientWrites(m); err != nil {
			return err
		}
	}
	_, err := c.Database().Client().BulkWrite(ctx, writes)
	return err
}

// updateMethods are the methods that update with upsert set, or without.
func updateMethods(upsert bool) []upsertMethod {
	return []upsertMethod{
		{"UpdateOne", func(c methods, f, u any) error {
			_, err := c.UpdateOne(ctx, f, u, nil, options.UpdateOne().SetUpsert(!upsert), options.UpdateOne().SetUpsert(upsert))
			return err
		}, updateCommand},
		{"UpdateMany", func(c methods, f, u any) error {
			_, err := c.UpdateMany(ctx, f, u, options.UpdateMany().SetUpsert(upsert))
			return err
		}, updateCommand},
		{"FindOneAndUpdate", func(c methods, f, u any) error {
			return found(c.FindOneAndUpdate(ctx, f, u, options.FindOneAndUpdate().SetUpsert(upsert)))
		}, findAndModifyCommand},
		{"UpdateOneModel", func(c methods, f, u any) error {
			return bulkWrite(c, mongo.NewUpdateOneModel().SetFilter(f).SetUpdate(u).SetUpsert(upsert))
		}, updateCommand},
		{"UpdateManyModel", func(c methods, f, u any) error {
			return bulkWrite(c, mongo.NewUpdateManyModel().SetFilter(f).SetUpdate(u).SetUpsert(upsert))
		}, updateCommand},
		{"ClientUpdateOneModel", func(c methods, f, u any) error {
			return clientWrite(c, mongo.NewClientUpdateOneModel().SetFilter(f).SetUpdate(u).SetUpsert(upsert))
		}, clientCommand},
		{"ClientUpdateManyModel", func(c methods, f, u any) error {
			return clientWrite(c, mongo.NewClientUpdateManyModel().SetFilter(f).SetUpdate(u).SetUpsert(upsert))
		}, clientCommand},
	}
}

// replaceMethods are the methods that replace with upsert set, or without.
func replaceMethods(upsert bool) []upsertMethod {
	return []upsertMethod{
		{"ReplaceOne", func(c methods, f, r any) error {
			_, err := c.ReplaceOne(ctx, f, r, options.Replace().SetUpsert(upsert))
			return err
		}, updateCommand},
		{"FindOneAndReplace", func(c methods, f, r any) error {
			return found(c.FindOneAndReplace(ctx, f, r, options.FindOneAndReplace().SetUpsert(upsert)))
		}, findAndModifyCommand},
		{"ReplaceOneModel", func(c methods, f, r any) error {
			return bulkWrite(c, mongo.NewReplaceOneModel().SetFilter(f).SetReplacement(r).SetUpsert(upsert))
		}, updateCommand},
		{"ClientReplaceOneModel", func(c methods, f, r any) error {
			return clientWrite(c, mongo.NewClientReplaceOneModel().SetFilter(f).SetReplacement(r).SetUpsert(upsert))
		}, clientCommand},
	}
}

func upsertServer(t *testing.T) (*testServer, *mongo.Collection, func() []string) {
	server := newTestServer()
	server.upserted = "upserted"
	reg := registries(t)["plans"]()
	client, started := server.client(t, reg)
	return server, client.Database("db").Collection("c"), started
}

type setFields struct {
	Set struct {
		A int32 `bson:"a"`
	} `bson:"$set"`
}

func setA() (s setFields) {
	s.Set.A = 1
	return s
}

// TestUpsertUpdates tests that updates of every form get the id of the source, and that nothing else
// of them or of the filter changes.
func TestUpsertUpdates(t *testing.T) {
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: int32(1)}}}}
	raw := marshal(t, set)
	with := func(more ...bson.E) bson.D { return append(append(bson.D{}, set...), more...) }
	onInsert := func(fields ...bson.E) bson.E { return bson.E{Key: "$setOnInsert", Value: append(bson.D{}, fields...)} }
	id := bson.E{Key: "_id", Value: int32(1)}
	b := bson.E{Key: "b", Value: "x"}
	server, plain, _ := upsertServer(t)
	for _, m := range updateMethods(true) {
		for _, c := range []struct{ update, want any }{
			{set, with(onInsert(id))},
			{raw, with(onInsert(id))},
			{[]byte(raw), with(onInsert(id))},
			{&raw, with(onInsert(id))},
			{bson.M{"$set": bson.M{"a": int32(1)}}, with(onInsert(id))},
			{map[string]any{"$set": map[string]int32{"a": 1}}, with(onInsert(id))},
			{setA(), with(onInsert(id))},
			{&set, with(onInsert(id))},
			{marshaler{set}, with(onInsert(id))},
			{&pointerMarshaler{set}, with(onInsert(id))},
			{valueMarshaler{set}, with(onInsert(id))},
			{with(onInsert(b)), with(onInsert(id, b))},
			{bson.D{onInsert(b), set[0]}, bson.D{onInsert(id, b), set[0]}},
			{bson.D{onInsert()}, bson.D{onInsert(id)}},
			{with(onInsert(bson.E{Key: "_id", Value: "own"})), with(onInsert(bson.E{Key: "_id", Value: "own"}))},
			{bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: ""}}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "_id", Value: ""}}}}},
			{bson.D{{Key: "$set", Value: bson.D{{Key: "_id.shop", Value: 1}}}}, bson.D{{Key: "$set", Value: bson.D{{Key: "_id.shop", Value: 1}}}}},
			// The server refuses these, because two operators are for the _id. Without $setOnInsert it makes an ObjectID.
			{bson.D{{Key: "$rename", Value: bson.D{{Key: "x", Value: "_id"}}}}, bson.D{{Key: "$rename", Value: bson.D{{Key: "x", Value: "_id"}}}, onInsert(id)}},
			{bson.D{{Key: "$rename", Value: bson.D{{Key: "_id", Value: "x"}}}}, bson.D{{Key: "$rename", Value: bson.D{{Key: "_id", Value: "x"}}}, onInsert(id)}},
			{bson.D{{Key: "$unset", Value: bson.D{{Key: "_id", Value: ""}}}}, bson.D{{Key: "$unset", Value: bson.D{{Key: "_id", Value: ""}}}, onInsert(id)}},
			{bson.D{{Key: "$pull", Value: bson.D{{Key: "_id.tags", Value: 1}}}}, bson.D{{Key: "$pull", Value: bson.D{{Key: "_id.tags", Value: 1}}}, onInsert(id)}},
			{bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: bson.D{{Key: "_id", Value: nil}}}}}},
				bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: bson.D{{Key: "_id", Value: nil}}}}}, onInsert(id)}},
			{bson.D{{Key: "$setOnInsert", Value: 1}}, bson.D{{Key: "$setOnInsert", Value: 1}}}, // which the server refuses
		} {
			var src counter
			if err := m.do(Wrap(plain, &src), bson.M{"name": "Ada"}, c.update); err != nil {
				t.Errorf("%s: %T: %v", m.name, c.update, err)
				continue
			}
			filter, update := m.sent(server)
			if !bytes.Equal(update.Value, marshal(t, c.want)) {
				t.Errorf("%s: %T: sent %v, want %v", m.name, c.update, update, c.want)
			}
			if !bytes.Equal(filter.Value, marshal(t, bson.M{"name": "Ada"})) {
				t.Errorf("%s: the filter is %v", m.name, filter)
			}
			drawn := 0
			if bytes.Contains(marshal(t, c.want), marshal(t, bson.D{id})[4:13]) {
				drawn = 1
			}
			if src.drawn() != drawn {
				t.Errorf("%s: %v: %d drawn", m.name, c.update, src.drawn())
			}
		}
	}
	if len(set) != 1 || !bytes.Equal(raw, marshal(t, set)) {
		t.Error("an update was changed")
	}
}

// TestUpsertFilters upserts with filters of every form. If MongoDB takes the _id from the filter, the source is not asked;
// if it takes none, the id of the source is in $setOnInsert; if that depends on its version, the upsert is an error, unless the
// source makes ObjectIDs.
func TestUpsertFilters(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	u := uuid.UUID{1}
	update := d("$set", d("a", int32(1)))
	server, plain, started := upsertServer(t)
	for _, c := range []struct {
		filter any
		id     claim
		zero   bool
	}{
		{bson.D{}, noID, false},
		{d("name", "_id"), noID, false},
		{d("_idx", 1), noID, false},
		{d("customer", d("_id", nil)), noID, false},
		{d("items", d("$elemMatch", d("_id", nil))), noID, false},
		{d("_id", d("$gt", nil)), noID, false},
		{d("_id", d("$ne", nil)), noID, false},
		{bson.M{"_id": bson.M{"$ne": u}}, noID, false},
		{idOf[bson.D]{d("$exists", true)}, noID, false},
		{marshaler{d("_id", d("$gt", uuidrep.StandardUUID{UUID: u}))}, noID, false},
		{marshal(t, d("$nor", bson.A{d("_id", u)})), noID, false},
		{d("_id", u), givenID, false},
		{bson.M{"_id": u}, givenID, false},
		{idOf[uuid.UUID]{u}, givenID, false},
		{marshaler{d("_id", uuidrep.StandardUUID{UUID: u})}, givenID, false},
		{d("_id", ""), givenID, false},
		{d("_id.shop", nil), givenID, false},
		{d("$and", bson.A{d("name", "x"), d("_id", u)}), givenID, false},
		{d("$or", bson.A{d("_id", u), d("_id", u)}), maybeID, false},
		{d("_id", nil), givenID, true},
		{d("_id", uuid.Nil), givenID, true},
		{d("_id", d("$eq", bson.NilObjectID)), givenID, true},
		{d("_id", d("$in", bson.A{nil})), givenID, true},
		{d("_id", d("$in", bson.A{u, nil})), noID, true},
		{d("$and", bson.A{d("name", "x"), d("_id", bson.NilObjectID)}), givenID, true},
		{d("$or", bson.A{d("name", "x"), d("_id", nil)}), noID, true},
		{idOf[uuid.UUID]{}, givenID, true},
		{marshal(t, d("_id", nil)), givenID, true},
	} {
		for _, m := range updateMethods(true) {
			var src counter
			n := len(started())
			err := m.do(Wrap(plain, &src), c.filter, update)
			if c.zero {
				var failed *IDError
				if !errors.Is(err, ErrZeroID) || !errors.As(err, &failed) || failed.Index != 0 || len(started()) != n {
					t.Errorf("%s: %v: got %v", m.name, c.filter, err)
				}
				err = m.do(Wrap(plain, &src, WithZeroIDs()), c.filter, update)
			}
			wantDrawn := map[claim]int{noID: 1}[c.id]
			if c.id == maybeID {
				which := "a document"
				if strings.HasSuffix(m.name, "Model") {
					which = "document 0"
				}
				want := "autoid: no id for " + which + " of type bson.D: the upsert can get no id of the source: some servers take an _id from its filter"
				if !errors.Is(err, ErrUpsert) || !strings.HasPrefix(err.Error(), want) || len(started()) != n {
					t.Errorf("%s: %v: got %v, want %s", m.name, c.filter, err, want)
				}
				err = m.do(Wrap(plain, always(bson.ObjectID{1})), c.filter, update)
				wantDrawn = 1 // to know whether it is an ObjectID
			}
			if err != nil {
				t.Errorf("%s: %v: %v", m.name, c.filter, err)
				continue
			}
			filter, sent := m.sent(server)
			if !bytes.Equal(filter.Value, encoded(t, plain, c.filter)) {
				t.Errorf("%s: the filter %v is sent as %v", m.name, c.filter, filter)
			}
			if _, err := sent.Document().LookupErr("$setOnInsert"); (err == nil) != (c.id == noID) || src.drawn() != wantDrawn {
				t.Errorf("%s: %v: sent %v, %d drawn", m.name, c.filter, sent, src.drawn())
			}
		}
	}
	// UpdateByID names it.
	if _, err := Wrap(plain, &counter{}).UpdateByID(ctx, uuid.Nil, update, options.UpdateOne().SetUpsert(true)); !errors.Is(err, ErrZeroID) {
		t.Errorf("got %v", err)
	}
	if _, err := Wrap(plain, &counter{}).UpdateByID(ctx, nil, update); !errors.Is(err, mongo.ErrNilValue) {
		t.Errorf("got %v", err)
	}
}

func encoded(t testing.TB, coll *mongo.Collection, v any) []byte {
	t.Helper()
	e, err := newContexts(coll).encoding()
	if err != nil {
		t.Fatal(err)
	}
	b, err := encode(e.ec.Registry, v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestUpsertZeroUpdates tests that a zero _id in an update is an error, whether or not the filter
// names the _id, and that nothing is sent or drawn.
func TestUpsertZeroUpdates(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	_, plain, started := upsertServer(t)
	for _, filter := range []bson.D{{}, d("_id", 1)} {
		for _, update := range []any{
			d("$set", d("_id", nil)), d("$set", idOf[uuid.UUID]{}), d("$setOnInsert", d("_id", bson.NilObjectID)),
			bson.M{"$set": omitID[uuid.UUID]{Name: "Ada"}}, d("$max", d("_id", uuid.Nil)),
			marshal(t, d("$setOnInsert", d("_id", bson.Binary{Data: make([]byte, 16)}))), marshaler{d("$set", d("_id", nil))},
		} {
			for _, m := range updateMethods(true) {
				var src counter
				n := len(started())
				if err := m.do(Wrap(plain, &src), filter, update); !errors.Is(err, ErrZeroID) || len(started()) != n || src.drawn() != 0 {
					t.Errorf("%s: %v: got %v", m.name, update, err)
				}
				if err := m.do(Wrap(plain, &src, WithZeroIDs()), filter, update); err != nil || src.drawn() != 0 {
					t.Errorf("%s: %v: with WithZeroIDs: %v", m.name, update, err)
				}
			}
		}
	}
}

// pipelineMarshaler is a pipeline that encodes itself.
type pipelineMarshaler struct{ stages bson.A }

func (m pipelineMarshaler) MarshalBSONValue() (byte, []byte, error) {
	t, b, err := bson.MarshalValue(m.stages)
	return byte(t), b, err
}

// TestUpsertPipelines tests that a pipeline is an error unless the filter gives the _id or the source makes ObjectIDs.
func TestUpsertPipelines(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	stage := d("$set", d("a", int32(1)))
	server, plain, started := upsertServer(t)
	for _, update := range []any{
		mongo.Pipeline{stage}, bson.A{stage}, []bson.M{{"$set": bson.M{"a": int32(1)}}}, [1]bson.D{stage}, pipelineMarshaler{bson.A{stage}}, []any{stage},
	} {
		for _, m := range updateMethods(true) {
			var src counter
			n := len(started())
			for _, filter := range []bson.D{{}, d("_id", d("$ne", 1)), d("$or", bson.A{d("_id", 1), d("_id", 1)})} {
				if err := m.do(Wrap(plain, &src), filter, update); !errors.Is(err, ErrUpsert) || len(started()) != n {
					t.Errorf("%s: %T: got %v", m.name, update, err)
				}
				if err := m.do(Wrap(plain, always(bson.ObjectID{1})), filter, update); err != nil {
					t.Errorf("%s: %T: with ObjectIDs: %v", m.name, update, err)
				}
				n = len(started())
			}
			src = counter{}
			if err := m.do(Wrap(plain, &src), d("_id", 1), update); err != nil || src.drawn() != 0 {
				t.Errorf("%s: %T: %v", m.name, update, err)
				continue
			}
			if _, sent := m.sent(server); sent.Type != bson.TypeArray || !bytes.Equal(sent.Array().Index(0).Document(), marshal(t, stage)) {
				t.Errorf("%s: %T: sent %v", m.name, update, sent)
			}
		}
	}
	for _, stage := range []bson.D{
		d("$set", d("_id", nil)), d("$addFields", d("_id", d("$literal", bson.NilObjectID))), d("$replaceWith", d("_id", uuid.Nil)),
		d("$replaceRoot", d("newRoot", d("_id", nil))), d("$project", d("_id", d("$literal", nil))),
	} {
		for _, m := range updateMethods(true) {
			if err := m.do(Wrap(plain, &counter{}), d("_id", 1), bson.A{stage}); !errors.Is(err, ErrZeroID) {
				t.Errorf("%s: %v: got %v", m.name, stage, err)
			}
		}
	}
}

// TestUpsertReplacements tests that a replacement never gets a new id.
func TestUpsertReplacements(t *testing.T) {
	type user struct {
		Name string    `bson:"name"`
		ID   uuid.UUID `bson:"_id,omitempty"`
	}
	name := bson.D{{Key: "name", Value: "Ada"}}
	u := uuid.UUID{1}
	oids, uuids := always(bson.ObjectID{1}), always(u)
	byName, byID := bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "_id", Value: u}}
	withNull := bson.D{{Key: "_id", Value: nil}, name[0]}
	empty := user{Name: "Ada"}
	server, plain, started := upsertServer(t)
	for _, c := range []struct {
		src                 Source
		filter, replacement any
		want                any // what is sent, or the error
	}{
		{oids, byName, name, name},
		{oids, byName, withNull, name},
		{oids, byName, idOf[bson.ObjectID]{}, bson.D{}},
		{oids, byName, empty, name},
		{oids, byName, marshal(t, withNull), name},
		{oids, byName, []byte(marshal(t, withNull)), name},
		{oids, byName, marshaler{withNull}, name},
		{oids, byName, &lateID[*uuid.UUID]{Name: "Ada"}, name},
		{oids, byName, user{"Ada", u}, user{"Ada", u}},
		{uuids, byName, user{"Ada", u}, user{"Ada", u}},
		{uuids, byName, name, ErrUpsert},
		{uuids, byName, empty, ErrUpsert},
		{uuids, byName, withNull, ErrUpsert},
		{uuids, byName, marshaler{name}, ErrUpsert},
		{uuids, bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: u}}}}, name, ErrUpsert},
		{uuids, bson.D{{Key: "$or", Value: bson.A{byID, byID}}}, name, ErrUpsert},
		{uuids, bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: u}}}}, user{"Ada", u}, user{"Ada", u}},
		{uuids, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{u, u}}}}}, name, name},
		{oids, bson.D{{Key: "_id", Value: bson.D{{Key: "$ne", Value: u}}}}, withNull, name},
		{oids, bson.D{{Key: "$or", Value: bson.A{byID, byID}}}, name, name},
		{uuids, byID, name, name},
		{uuids, byID, user{"Ada", u}, user{"Ada", u}},
		{uuids, byID, empty, ErrZeroID},
		{oids, byID, withNull, ErrZeroID},
		{uuids, byName, bson.D{{Key: "_id", Value: ""}}, bson.D{{Key: "_id", Value: ""}}},
	} {
		for _, m := range replaceMethods(true) {
			n := len(started())
			err := m.do(Wrap(plain, c.src), c.filter, c.replacement)
			if want, ok := c.want.(error); ok {
				if !errors.Is(err, want) || len(started()) != n {
					t.Errorf("%s: %v by %v: got %v, want %v", m.name, c.replacement, c.filter, err, want)
				}
				text := fmt.Sprint(err)
				wayOut := strings.Contains(text, "UpdateOne") && strings.Contains(text, "_id into the filter")
				if strings.Contains(fmt.Sprint(c.filter), "$or") {
					wayOut = strings.Contains(text, "name one _id")
				}
				if want == ErrUpsert && !wayOut {
					t.Errorf("%s: the error names no way out: %v", m.name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v by %v: %v", m.name, c.replacement, c.filter, err)
				continue
			}
			filter, sent := m.sent(server)
			if !bytes.Equal(sent.Value, encoded(t, plain, c.want)) || !bytes.Equal(filter.Value, encoded(t, plain, c.filter)) {
				t.Errorf("%s: %v by %v: sent %v by %v", m.name, c.replacement, c.filter, sent, filter)
			}
		}
	}
	for _, m := range replaceMethods(true) {
		coll := Wrap(plain, uuids, WithZeroIDs())
		if err := m.do(coll, byName, withNull); err != nil {
			t.Errorf("%s: with WithZeroIDs: %v", m.name, err)
		}
		if _, sent := m.sent(server); !bytes.Equal(sent.Value, marshal(t, withNull)) {
			t.Errorf("%s: with WithZeroIDs: sent %v", m.name, sent)
		}
		if err := m.do(Wrap(plain, oids, WithZeroIDAsMissing()), byName, bson.D{{Key: "_id", Value: 0}, name[0]}); err != nil {
			t.Error(err)
		}
		if _, sent := m.sent(server); !bytes.Equal(sent.Value, marshal(t, name)) {
			t.Errorf("%s: with WithZeroIDAsMissing: sent %v", m.name, sent)
		}
	}
}

// TestNoUpsert tests that without upsert the arguments are the driver's business, in every method.
func TestNoUpsert(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	server, plain, _ := upsertServer(t)
	fails := SourceFunc(func() (any, error) { return nil, errors.New("not to be asked") })
	for _, filter := range []bson.D{{}, d("_id", nil)} {
		for _, update := range []any{d("$set", d("_id", nil)), mongo.Pipeline{d("$set", d("a", 1))}} {
			for _, m := range updateMethods(false) {
				if err := m.do(Wrap(plain, fails), filter, update); err != nil {
					t.Errorf("%s: %v", m.name, err)
				}
			}
		}
		for _, m := range replaceMethods(false) {
			if err := m.do(Wrap(plain, fails), filter, d("_id", nil)); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
			if _, sent := m.sent(server); !bytes.Equal(sent.Value, marshal(t, d("_id", nil))) {
				t.Errorf("%s: sent %v", m.name, sent)
			}
		}
	}
}

// TestUpsertErrors tests that the errors of upserts are those of the driver, if it refuses the
// arguments, and those of the source and the registry.
func TestUpsertErrors(t *testing.T) {
	server, plain, started := upsertServer(t)
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
	for i, m := range append(updateMethods(true), replaceMethods(true)...) {
		replaces := i >= len(updateMethods(true))
		for _, c := range []struct{ filter, update any }{
			{nil, set}, {bson.D{{Key: "_id", Value: 1}}, nil}, {func() {}, set}, {bson.M{"_id": func() {}}, set}, {"text", set},
			{bson.Raw{5, 0}, set}, {bson.D{{Key: "_id", Value: 1}}, func() {}}, {bson.D{}, bson.M{"$set": func() {}}},
			{bson.D{{Key: "_id", Value: 1}}, bson.D{}}, {bson.D{{Key: "_id", Value: 1}}, bson.D{{Key: "a", Value: 1}}},
			{bson.D{{Key: "_id", Value: 1}}, set}, {bson.D{{Key: "_id", Value: 1}}, 1}, {bson.D{{Key: "_id", Value: 1}}, []int{1}},
			{bson.D{{Key: "_id", Value: 1}}, []any{nil}}, {bson.D{}, &counter{}}, {bson.D{}, (*bson.D)(nil)},
		} {
			got, want := m.do(Wrap(plain, &counter{}), c.filter, c.update), m.do(plain, c.filter, c.update)
			if replaces && got != nil && errors.Is(got, ErrUpsert) {
				continue
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %v, %v:\ngot  %v\nwant %v", m.name, c.filter, c.update, got, want)
			}
		}
	}
	boom := errors.New("boom")
	registered, _ := server.client(t, nil)
	for _, m := range updateMethods(true) {
		n := len(started())
		for _, c := range []struct {
			src  Source
			want error
		}{
			{SourceFunc(func() (any, error) { return nil, boom }), boom}, {always(nil), errNilID}, {always(emptyAsNull{}), errNilID},
			{always(bson.NilObjectID), ErrZeroID}, {always(bson.Binary{Data: []byte("0123456789abcdef")}), errGenericID}, {always(failingID{}), errFailing}, {nil, errNilSource},
		} {
			if err := m.do(Wrap(plain, c.src), bson.D{}, set); !errors.Is(err, c.want) || len(started()) != n {
				t.Errorf("%s: got %v, want %v", m.name, err, c.want)
			}
		}
		if err := m.do(Wrap(plain, nil), bson.D{{Key: "_id", Value: 1}}, set); !errors.Is(err, errNilSource) || len(started()) != n {
			t.Errorf("%s: got %v", m.name, err)
		}
		if err := m.do(Wrap(registered.Database("db").Collection("c"), &counter{}), bson.D{}, set); !errors.Is(err, ErrNotRegistered) {
			t.Errorf("%s: got %v", m.name, err)
		}
	}
}

// failingID is an id that cannot be encoded.
type failingID struct{}

func (failingID) MarshalBSONValue() (byte, []byte, error) { return 0, nil, errFailing }

// counting counts how often it is encoded.
type counting struct {
	n   *int
	doc bson.D
}

func (c counting) MarshalBSON() ([]byte, error) {
	*c.n++
	return bson.Marshal(c.doc)
}

// TestUpsertEncodesOnce tests that the caller's filter and update are encoded once, and only by this
// package if upsert is set.
func TestUpsertEncodesOnce(t *testing.T) {
	_, plain, _ := upsertServer(t)
	for i, m := range append(updateMethods(true), replaceMethods(true)...) {
		doc := bson.D{{Key: "$set", Value: bson.D{{Key: "a", Value: 1}}}}
		if i >= len(updateMethods(true)) {
			doc = bson.D{{Key: "a", Value: 1}}
		}
		var filters, updates int
		err := m.do(Wrap(plain, always(bson.ObjectID{1})), counting{&filters, bson.D{{Key: "b", Value: 1}}}, counting{&updates, doc})
		if err != nil || filters != 1 || updates != 1 {
			t.Errorf("%s: %v, the filter was encoded %d times, the update %d times", m.name, err, filters, updates)
		}
	}
}

// bytesMarshaler and bytesValueMarshaler marshal themselves into their bytes.
type (
	bytesMarshaler      []byte
	bytesValueMarshaler []byte
)

func (b bytesMarshaler) MarshalBSON() ([]byte, error) { return b, nil }
func (b bytesValueMarshaler) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeEmbeddedDocument), b, nil
}

// TestUpsertMalformed upserts with values that marshal themselves into bytes that are not BSON, which the driver copies.
func TestUpsertMalformed(t *testing.T) {
	server, coll, _ := upsertServer(t)
	c := Wrap(coll, SourceFunc(func() (any, error) { return uuid.New(), nil }))
	for _, malformed := range [][]byte{nil, {4, 0, 0, 0}, {5, 0, 0, 0}, {4, 0, 0, 0, 0}, {6, 0, 0, 0, 0}} {
		value := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: malformed}
		for _, m := range updateMethods(true) {
			if err := m.do(c, bson.M{"a": 1}, bson.M{"$setOnInsert": value}); err == nil {
				t.Errorf("%s: $setOnInsert of %v: no error", m.name, malformed)
			}
			for _, update := range []any{bson.Raw(malformed), malformed, bytesMarshaler(malformed), bytesValueMarshaler(malformed)} {
				if err := m.do(c, bson.M{"a": 1}, update); err == nil || !strings.Contains(err.Error(), "malformed") {
					t.Errorf("%s: the update %T %v: got %v", m.name, update, malformed, err)
				}
			}
		}
	}
	clause := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: []byte{9, 0, 0, 0, 'x', 'a', 0, 1, 0}} // no type is 'x'
	for _, m := range updateMethods(true) {
		err := m.do(c, bson.M{"$and": bson.A{clause, bson.M{}}}, bson.M{"$set": bson.M{"a": 1}})
		if err == nil || !strings.Contains(err.Error(), "the filter is malformed") {
			t.Errorf("%s: got %v", m.name, err)
		}
		err = m.do(c, bson.M{"$and": bson.A{bson.M{"_id": bson.ObjectID{}}, bson.M{"a": 1}}}, bson.M{"$set": bson.M{"a": 1}})
		if !errors.Is(err, ErrZeroID) {
			t.Errorf("%s: got %v", m.name, err)
		}
	}
	if got := len(server.received("update")); got != 0 {
		t.Errorf("%d updates were sent", got)
	}
}

// TestUpsertOptions tests that upserts are encoded with the BSON options of the client, and that the
// caller's other options and models stay.
func TestUpsertOptions(t *testing.T) {
	type name struct {
		Name string `json:"n"`
		ID   int64  `json:"i"`
	}
	server := newTestServer()
	server.upserted = "upserted"
	client, _ := server.client(t, registered(), options.Client().SetBSONOptions(&options.BSONOptions{UseJSONStructTags: true, IntMinSize: true}))
	coll := Wrap(client.Database("db").Collection("c"), always(int64(7)))
	for _, m := range updateMethods(true) {
		if err := m.do(coll, name{"Ada", 1}, bson.M{"$set": name{"Bob", 2}}); err != nil {
			t.Fatal(err)
		}
		filter, update := m.sent(server)
		if !bytes.Equal(filter.Value, marshal(t, bson.D{{Key: "n", Value: "Ada"}, {Key: "i", Value: int32(1)}})) {
			t.Errorf("%s: the filter is %v", m.name, filter)
		}
		want := bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: "Bob"}, {Key: "i", Value: int32(2)}}},
			{Key: "$setOnInsert", Value: bson.D{{Key: "_id", Value: int32(7)}}}}
		if !bytes.Equal(update.Value, marshal(t, want)) {
			t.Errorf("%s: the update is %v", m.name, update)
		}
	}
	model := mongo.NewUpdateOneModel().SetFilter(bson.D{}).SetUpdate(bson.M{"$set": bson.M{"a": 1}}).SetUpsert(true).
		SetArrayFilters([]any{bson.M{"x": 1}}).SetHint("h").SetSort(bson.D{{Key: "s", Value: 1}}).SetCollation(&options.Collation{Locale: "en"})
	before := *model
	if err := bulkWrite(coll, model); err != nil {
		t.Fatal(err)
	}
	cmds := server.received("update")
	sent := arrayOf(cmds[len(cmds)-1], "updates")[0]
	for _, key := range []string{"arrayFilters", "hint", "sort", "collation"} {
		if _, err := sent.LookupErr(key); err != nil {
			t.Errorf("%s was not sent: %v", key, sent)
		}
	}
	if len(model.Filter.(bson.D)) != 0 || len(model.Update.(bson.M)) != 1 || model.Upsert != before.Upsert {
		t.Errorf("the model was changed: %v", model)
	}
}

// TestBulkUpserts tests that nothing of a bulk write is sent if one of its upserts is refused, and
// that the error has its index and its update.
func TestBulkUpserts(t *testing.T) {
	_, plain, started := upsertServer(t)
	coll := Wrap(plain, &counter{})
	set := bson.M{"$set": bson.M{"a": 1}}
	bad := bson.M{"name": "Ada"}
	_, err := coll.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{}), mongo.NewUpdateOneModel().SetFilter(bson.M{}).SetUpdate(set).SetUpsert(true),
		mongo.NewReplaceOneModel().SetFilter(bson.M{}).SetReplacement(bad).SetUpsert(true),
	})
	var failed *IDError
	if !errors.As(err, &failed) || failed.Index != 2 || fmt.Sprint(failed.Document) != fmt.Sprint(bad) || !errors.Is(err, ErrUpsert) {
		t.Errorf("got %v", err)
	}
	_, err = coll.ClientWrites(mongo.NewClientInsertOneModel().SetDocument(bson.M{}),
		mongo.NewClientReplaceOneModel().SetFilter(bson.M{}).SetReplacement(bad).SetUpsert(true))
	if !errors.As(err, &failed) || failed.Index != 1 {
		t.Errorf("got %v", err)
	}
	for _, m := range []mongo.ClientWriteModel{nil, (*mongo.ClientInsertOneModel)(nil), (*mongo.ClientUpdateOneModel)(nil), mongo.NewClientInsertOneModel()} {
		if _, err := coll.ClientWrites(m); !errors.Is(err, mongo.ErrNilDocument) {
			t.Errorf("%T: got %v", m, err)
		}
	}
	if len(started()) != 0 {
		t.Errorf("sent %v", started())
	}
}

// TestClientWrites tests writes to several collections in one bulk write of the client.
func TestClientWrites(t *testing.T) {
	server, plain, _ := upsertServer(t)
	other := plain.Database().Collection("other")
	a, b := counter{}, counter{n: 10}
	first, err := Wrap(plain, &a).ClientWrites(
		mongo.NewClientInsertOneModel().SetDocument(bson.D{{Key: "x", Value: 1}}),
		mongo.NewClientDeleteOneModel().SetFilter(bson.D{}),
		mongo.NewClientUpdateOneModel().SetFilter(bson.D{}).SetUpdate(bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}}).SetUpsert(true))
	if err != nil {
		t.Fatal(err)
	}
	second, err := Wrap(other, &b).ClientWrites(mongo.NewClientInsertOneModel().SetDocument(bson.D{{Key: "y", Value: 1}}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // they keep their ids
		res, err := plain.Database().Client().BulkWrite(ctx, append(first, second...), options.ClientBulkWrite().SetVerboseResults(true).SetOrdered(false))
		if res == nil || err != nil && len(server.received("bulkWrite")) == 1 {
			t.Fatalf("%v, %v", res, err)
		}
	}
	cmds := server.received("bulkWrite")
	for _, cmd := range cmds {
		ops := arrayOf(cmd, "ops")
		if ops[0].Lookup("document", "_id").Int32() != 1 || ops[2].Lookup("updateMods", "$setOnInsert", "_id").Int32() != 2 ||
			ops[3].Lookup("document", "_id").Int32() != 11 {
			t.Errorf("sent %v", ops)
		}
		if ns := arrayOf(cmd, "nsInfo"); len(ns) != 2 || ns[0].Lookup("ns").StringValue() != "db.c" || ns[1].Lookup("ns").StringValue() != "db.other" {
			t.Errorf("to %v", ns)
		}
	}
	if a.drawn() != 2 || b.drawn() != 11 {
		t.Errorf("%d and %d drawn", a.drawn(), b.drawn())
	}
}

// TestUpsertsConcurrent upserts through one new Collection from many goroutines.
func TestUpsertsConcurrent(t *testing.T) {
	server, plain, _ := upsertServer(t)
	coll := Wrap(plain, &counter{})
	var wg sync.WaitGroup
	for range 8 {
		for _, m := range updateMethods(true) {
			wg.Go(func() {
				if err := m.do(coll, bson.M{"a": 1}, bson.M{"$set": bson.M{"b": 1}}); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			if err := replaceMethods(true)[0].do(coll, bson.M{"a": 1}, bson.M{}); !errors.Is(err, ErrUpsert) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	seen := map[int32]bool{}
	for _, cmd := range server.received("update") {
		for _, u := range arrayOf(cmd, "updates") {
			id := u.Lookup("u", "$setOnInsert", "_id").Int32()
			if seen[id] {
				t.Errorf("the id %d was sent twice", id)
			}
			seen[id] = true
		}
	}
}

// FuzzUpsert tests that malformed filters, updates, pipelines and replacements are errors, that what is
// sent for an update is a valid document, and that it has what the update has.
func FuzzUpsert(f *testing.F) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	for _, doc := range []bson.D{
		{}, d("$set", d("_id", 1)), d("$and", bson.A{d("_id", d("$in", bson.A{nil}))}), d("$expr", d("$getField", d("field", "_id"))),
		d("$setOnInsert", d("a", 1)), d("0", d("$replaceRoot", d("newRoot", d("_id", d("$literal", nil))))), d("$where", bson.CodeWithScope{Scope: bson.D{}}),
		d("$rename", d("a", "_id")), d("$jsonSchema", d("properties", d("_id", bson.Regex{}))),
	} {
		f.Add([]byte(marshal(f, doc)), []byte(marshal(f, d("$set", d("a", 1)))))
		f.Add([]byte(marshal(f, d("a", 1))), []byte(marshal(f, doc)))
	}
	reg := registered()
	coll, err := mongo.Connect(options.Client().ApplyURI("mongodb://nowhere.invalid").SetRegistry(reg))
	if err != nil {
		f.Fatal(err)
	}
	c := Wrap(coll.Database("db").Collection("c"), always("drawn"))
	f.Fuzz(func(t *testing.T, filter, update []byte) {
		_, _, _ = c.updateUpsert(bson.Raw(filter), encodedValue{byte(bson.TypeArray), update}, 0)
		_, _, _ = c.replaceUpsert(bson.Raw(filter), bson.Raw(update), 0, encodeReplacement)
		_, _, _ = c.replaceUpsert(filter, update, 0, encodeUpdate)
		q, u, err := c.updateUpsert(filter, update, 0)
		if err != nil {
			return
		}
		if want, err := encode(reg, filter); err != nil || !bytes.Equal(q.(encodedDocument), want) {
			t.Fatalf("the filter %x became %x, the driver writes %x, %v", filter, q, want, err)
		}
		sent := bson.Raw(u.(encodedDocument))
		if err := sent.Validate(); err != nil {
			t.Fatalf("%x became %x: %v", update, sent, err)
		}
		if bytes.Equal(sent, update) {
			return
		}
		if v, err := sent.LookupErr("$setOnInsert", "_id"); err != nil || v.StringValue() != "drawn" {
			t.Fatalf("%x became %x", update, sent)
		}
		want, _ := bson.Raw(update).Elements()
		got, _ := sent.Elements()
		for i, e := range want {
			if e.Key() != "$setOnInsert" && !bytes.Equal(e, got[i]) {
				t.Fatalf("%x became %x", update, sent)
			}
		}
	})
}

// TestClientWritesRegistry writes to a collection whose registry is not that of its client.
func TestClientWritesRegistry(t *testing.T) {
	server, coll, _ := upsertServer(t)
	reg, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	Register(reg)
	c := Wrap(coll, SourceFunc(func() (any, error) { return uuid.New(), nil })).
		Clone(options.Collection().SetRegistry(reg))
	with := bson.D{{Key: "u", Value: uuid.UUID{1}}}
	set := bson.D{{Key: "$set", Value: with}}
	for _, upsert := range []bool{false, true} {
		for _, m := range []mongo.ClientWriteModel{
			mongo.NewClientInsertOneModel().SetDocument(with),
			mongo.NewClientUpdateOneModel().SetFilter(with).SetUpdate(set).SetUpsert(upsert).SetArrayFilters([]any{with}),
			mongo.NewClientUpdateManyModel().SetFilter(with).SetUpdate(set).SetUpsert(upsert).SetArrayFilters([]any{with}),
			mongo.NewClientUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}).SetUpdate(bson.A{set}).SetUpsert(upsert),
			mongo.NewClientReplaceOneModel().SetFilter(bson.D{{Key: "_id", Value: 1}}).SetReplacement(with).SetUpsert(upsert),
			mongo.NewClientDeleteOneModel().SetFilter(with),
			mongo.NewClientDeleteManyModel().SetFilter(with),
		} {
			if err := clientWrite(c, m); err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			cmds := server.received("bulkWrite")
			sent := cmds[len(cmds)-1]
			java := []byte{16, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1} // the first half is in the other order
			standard := []byte{16, 0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 0}
			if !bytes.Contains(sent, java) || bytes.Contains(sent, standard) {
				t.Errorf("%T, upsert %v: sent %v", m, upsert, sent)
			}
		}
	}
}
