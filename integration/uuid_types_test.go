package integration

import (
	"database/sql"
	"errors"
	"reflect"
	"testing"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidrep"
)

type orderID uuid.UUID

// TestUUIDTypesAreOne tests that a query with one UUID type finds what another one stored.
func TestUUIDTypesAreOne(t *testing.T) {
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			ctx := context30(t)
			coll := newServer(t).collection(r.rep, "orders", clientopt.WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) {
				b.RegisterUUIDType(reflect.TypeFor[orderID]())
				b.RegisterNullUUIDType(reflect.TypeFor[gofrs.NullUUID]())
				b.RegisterNullUUIDType(reflect.TypeFor[sql.Null[orderID]]())
			}))
			forms := []any{
				testUUID, &testUUID, orderID(testUUID), gofrs.UUID(testUUID), uuid.NullUUID{UUID: testUUID, Valid: true},
				gofrs.NullUUID{UUID: gofrs.UUID(testUUID), Valid: true}, sql.Null[orderID]{V: orderID(testUUID), Valid: true}, r.stored,
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
