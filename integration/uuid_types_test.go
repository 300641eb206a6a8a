package integration

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidrep"
)

type orderID uuid.UUID

// The driver stores nothing of the types below.
type (
	roomID         struct{ value uuid.UUID }
	registeredRoom struct{ value uuid.UUID }
	prefixedRoom   struct {
		prefix string
		value  uuid.UUID
	}
)

// TestUUIDTypesAreOne tests that a query with one UUID type finds what another one stored.
func TestUUIDTypesAreOne(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			coll := newServer(t).collection(r.rep, "orders", clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) {
				b.RegisterUUIDType(reflect.TypeFor[orderID]())
				b.RegisterNullUUIDType(reflect.TypeFor[gofrs.NullUUID]())
				b.RegisterNullUUIDType(reflect.TypeFor[sql.Null[orderID]]())
				b.RegisterUUIDType(reflect.TypeFor[registeredRoom]())
				bsoncodec.RegisterUUIDFunc(b, func(r prefixedRoom) (uuid.UUID, bool) { return r.value, r.prefix != "" },
					func(id uuid.UUID, ok bool) (prefixedRoom, error) { return prefixedRoom{"room", id}, nil })
			}))
			forms := []any{
				testUUID, &testUUID, orderID(testUUID), gofrs.UUID(testUUID), uuid.NullUUID{UUID: testUUID, Valid: true},
				gofrs.NullUUID{UUID: gofrs.UUID(testUUID), Valid: true}, sql.Null[orderID]{V: orderID(testUUID), Valid: true}, r.stored,
				registeredRoom{testUUID}, prefixedRoom{"room", testUUID}, &prefixedRoom{"other", testUUID},
			}
			for i, form := range forms {
				if _, err := coll.InsertOne(ctx, bson.M{"_id": i, "ref": form, "null": gofrs.NullUUID{}}); err != nil {
					t.Fatalf("%T: %v", form, err)
				}
			}
			for _, form := range forms {
				n, err := coll.CountDocuments(ctx, bson.M{"ref": form, "null": nil})
				if err != nil || n != int64(len(forms)) {
					t.Errorf("a query with a %T finds %d of %d, %v", form, n, len(forms), err)
				}
			}
			cursor, err := coll.Find(ctx, bson.M{})
			if err != nil {
				t.Fatal(err)
			}
			var docs []struct {
				Ref  gofrs.UUID
				Null gofrs.NullUUID
			}
			if err := cursor.All(ctx, &docs); err != nil {
				t.Fatal(err)
			}
			for _, doc := range docs {
				if uuid.UUID(doc.Ref) != testUUID || doc.Null.Valid {
					t.Errorf("got %v", doc)
				}
			}
		})
	}
}

// TestUnregisteredTypeReachesNoServer tests that neither an insert nor a query sends a value of a
// type that is not registered.
func TestUnregisteredTypeReachesNoServer(t *testing.T) {
	ctx := context30(t)
	coll := newServer(t).collection(uuidrep.Standard, "orders")
	_, insertErr := coll.InsertOne(ctx, bson.M{"_id": orderID(testUUID)})
	findErr := coll.FindOne(ctx, bson.M{"_id": orderID(testUUID)}).Err()
	_, updateErr := coll.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"ref": gofrs.UUID(testUUID)}})
	distinctErr := coll.Distinct(ctx, "ref", bson.M{"ref": bson.M{"$in": []orderID{{}}}}).Err()
	for name, err := range map[string]error{"insert": insertErr, "find": findErr, "update": updateErr, "distinct": distinctErr} {
		var unregistered *bsoncodec.UnregisteredTypeError
		if !errors.As(err, &unregistered) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n, err := coll.CountDocuments(ctx, bson.M{}); err != nil || n != 0 {
		t.Errorf("%d documents, %v", n, err)
	}
}

// TestLostUUIDReachesNoServer tests that no operation sends a value of a type of which the driver stores nothing, and that
// none is read into one.
func TestLostUUIDReachesNoServer(t *testing.T) {
	s := newServer(t)
	id := roomID{testUUID}
	type room struct {
		ID roomID `bson:"_id"`
	}
	stored := s.collection(uuidrep.Standard, "rooms")
	if _, err := stored.InsertOne(context30(t), bson.M{"_id": testUUID, "empty": bson.D{}}); err != nil {
		t.Fatal(err)
	}
	for name, op := range map[string]func(context.Context, *mongo.Collection) error{
		"insert one": func(ctx context.Context, c *mongo.Collection) error { _, err := c.InsertOne(ctx, room{id}); return err },
		"insert many": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.InsertMany(ctx, []any{bson.M{}, &room{id}})
			return err
		},
		"whole": func(ctx context.Context, c *mongo.Collection) error { _, err := c.InsertOne(ctx, id); return err },
		"filter": func(ctx context.Context, c *mongo.Collection) error {
			return c.FindOne(ctx, bson.D{{Key: "_id", Value: id}}).Err()
		},
		"whole filter": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.DeleteMany(ctx, id)
			return err
		},
		"pointer filter": func(ctx context.Context, c *mongo.Collection) error { _, err := c.DeleteMany(ctx, &id); return err },
		"in": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Find(ctx, bson.M{"_id": bson.M{"$in": []roomID{id}}})
			return err
		},
		"update": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"room": id}})
			return err
		},
		"update by pipeline": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateMany(ctx, bson.M{}, mongo.Pipeline{{{Key: "$set", Value: bson.M{"room": &id}}}})
			return err
		},
		"update by id": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateByID(ctx, id, bson.M{"$set": bson.M{"a": 1}})
			return err
		},
		"array filter": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.UpdateOne(ctx, bson.M{}, bson.M{"$set": bson.M{"a.$[x]": 1}}, options.UpdateOne().SetArrayFilters([]any{bson.M{"x": id}}))
			return err
		},
		"replace": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.ReplaceOne(ctx, bson.M{}, room{id})
			return err
		},
		"delete":   func(ctx context.Context, c *mongo.Collection) error { _, err := c.DeleteOne(ctx, room{id}); return err },
		"distinct": func(ctx context.Context, c *mongo.Collection) error { return c.Distinct(ctx, "a", room{id}).Err() },
		"count": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.CountDocuments(ctx, map[string]roomID{"_id": id})
			return err
		},
		"pipeline": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Aggregate(ctx, []any{bson.M{"$match": bson.M{"_id": bson.A{id}}}})
			return err
		},
		"min": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Find(ctx, bson.M{}, options.Find().SetMin(room{id}))
			return err
		},
		"let": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.Aggregate(ctx, mongo.Pipeline{}, options.Aggregate().SetLet(bson.M{"x": id}))
			return err
		},
		"bulk write": func(ctx context.Context, c *mongo.Collection) error {
			_, err := c.BulkWrite(ctx, []mongo.WriteModel{mongo.NewDeleteManyModel().SetFilter(room{id})})
			return err
		},
		"find and modify": func(ctx context.Context, c *mongo.Collection) error {
			return c.FindOneAndDelete(ctx, bson.M{"_id": bson.M{"$eq": id}}).Err()
		},
		"command": func(ctx context.Context, c *mongo.Collection) error {
			return c.Database().RunCommand(ctx, bson.D{{Key: "find", Value: c.Name()}, {Key: "filter", Value: room{id}}}).Err()
		},
	} {
		for _, opts := range []*options.BSONOptions{nil, {UseJSONStructTags: true, OmitZeroStruct: true, NilSliceAsEmpty: true}} {
			t.Run(name, func(t *testing.T) {
				sent := newRecorder()
				c := s.collection(uuidrep.Standard, "rooms", sent.option(), clientopt.WithClientOptions(options.Client().SetBSONOptions(opts)))
				err := op(context30(t), c)
				var unregistered *bsoncodec.UnregisteredTypeError
				if !errors.As(err, &unregistered) || unregistered.Type != reflect.TypeFor[roomID]() {
					t.Errorf("got %v", err)
				}
				if n := sent.count(); n != 0 {
					t.Errorf("%d commands were sent", n)
				}
			})
		}
	}
	ctx := context30(t)
	var unregistered *bsoncodec.UnregisteredTypeError
	if err := stored.FindOne(ctx, bson.M{}).Decode(new(room)); !errors.As(err, &unregistered) {
		t.Errorf("decoding: got %v", err)
	}
	if err := stored.FindOne(ctx, bson.M{}).Decode(new(roomID)); !errors.As(err, &unregistered) {
		t.Errorf("decoding a whole document: got %v", err)
	}
	for _, many := range []any{new([]room), new([]*room), new([]roomID), new([]struct{ Empty *roomID })} {
		cursor, err := stored.Find(ctx, bson.M{})
		if err != nil {
			t.Fatal(err)
		}
		if err := cursor.All(ctx, many); !errors.As(err, &unregistered) {
			t.Errorf("%T: got %v", many, err)
		}
	}
	var ids []roomID
	if err := stored.Distinct(context.Background(), "_id", bson.M{}).Decode(&ids); !errors.As(err, &unregistered) {
		t.Errorf("distinct: got %v and %v", ids, err)
	}
	if docs := s.stored("rooms"); len(docs) != 1 {
		t.Errorf("the server holds %v", docs)
	}
}
