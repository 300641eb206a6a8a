package integration

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidgen"
)

// TestTransaction inserts documents with given and generated UUID ids inside a transaction with
// every method, and commits and aborts it.
func TestTransaction(t *testing.T) {
	gen, err := uuidgen.NewV7Generator()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range representations {
		t.Run(r.rep.String(), func(t *testing.T) {
			for _, commit := range []bool{true, false} {
				t.Run(map[bool]string{true: "commit", false: "abort"}[commit], func(t *testing.T) {
					s := newServer(t)
					s.Require(t, mongotest.Transactions)
					ctx := context30(t)
					coll := s.collection(r.rep, "items")
					if err := coll.Database().CreateCollection(ctx, "items"); err != nil {
						t.Fatal(err)
					}
					var ids []any
					err := coll.Database().Client().UseSession(ctx, func(ctx context.Context) error {
						session := mongo.SessionFromContext(ctx)
						if err := session.StartTransaction(); err != nil {
							return err
						}
						var err error
						if ids, err = insertEveryWay(ctx, autoid.Wrap(coll, gen)); err != nil {
							return errors.Join(err, session.AbortTransaction(ctx))
						}
						var doc struct {
							ID uuid.UUID `bson:"_id"`
						}
						if err := coll.FindOne(ctx, bson.M{"_id": testUUID}).Decode(&doc); err != nil || doc.ID != testUUID {
							t.Errorf("inside: got %v, %v", doc.ID, err)
						}
						if n, err := coll.CountDocuments(ctx, bson.M{"_id": bson.M{"$in": ids}}); err != nil || int(n) != len(ids) {
							t.Errorf("inside: %d documents, want %d; %v", n, len(ids), err)
						}
						if commit {
							return session.CommitTransaction(ctx)
						}
						return session.AbortTransaction(ctx)
					})
					if err != nil {
						t.Fatal(err)
					}

					if !commit {
						if docs := s.stored("items"); len(docs) != 0 {
							t.Errorf("after the abort the server holds %v", docs)
						}
						return
					}
					want := make(map[uuid.UUID]bool)
					for _, id := range ids {
						want[id.(uuid.UUID)] = true
					}
					if len(want) != 6 || !want[testUUID] {
						t.Fatalf("ids %v, want the given one and five others", ids)
					}
					for _, doc := range s.stored("items") {
						subtype, octets := doc.Lookup("_id").Binary()
						// Undo the byte order of the table. Each order is its own inverse.
						var id uuid.UUID
						for i, o := range r.stored.Data {
							id[int(o>>4)] = octets[i] // 0x00, 0x11, … 0xFF: each byte of the test UUID names its index
						}
						if subtype != r.stored.Subtype || !want[id] {
							t.Errorf("the server holds subtype %d, %X, which is none of %v", subtype, octets, ids)
						}
						delete(want, id)
					}
					if len(want) != 0 {
						t.Errorf("the server lacks %v", want)
					}
				})
			}
		})
	}
}

// insertEveryWay inserts one document with the test UUID of the specification and five without an
// id.
func insertEveryWay(ctx context.Context, coll *autoid.Collection) ([]any, error) {
	var ids []any
	one, err := coll.InsertOne(ctx, bson.M{"_id": testUUID})
	if err != nil {
		return nil, err
	}
	ids = append(ids, one.InsertedID)
	if one, err = coll.InsertOne(ctx, bson.M{"by": "InsertOne"}); err != nil {
		return nil, err
	}
	ids = append(ids, one.InsertedID)
	many, err := coll.InsertMany(ctx, []any{bson.M{"by": "InsertMany"}, bson.D{{Key: "by", Value: "InsertMany"}}})
	if err != nil {
		return nil, err
	}
	ids = append(ids, many.InsertedIDs...)
	id, err := coll.NewID()
	if err != nil {
		return nil, err
	}
	if _, err := coll.BulkWrite(ctx, []mongo.WriteModel{
		mongo.NewInsertOneModel().SetDocument(bson.M{"_id": id, "by": "BulkWrite"}),
		mongo.NewUpdateOneModel().SetFilter(bson.M{"_id": id}).SetUpdate(bson.M{"$set": bson.M{"ref": id}}),
	}); err != nil {
		return nil, err
	}
	ids = append(ids, id)
	// The driver's own collection takes a Document.
	if one, err = coll.Collection.InsertOne(ctx, autoid.Document(coll, bson.M{"by": "Document"})); err != nil {
		return nil, err
	}
	return append(ids, one.InsertedID), nil
}

// TestTransactionRunAgain tests that a transaction that the driver runs a second time inserts its
// Documents with the same ids.
func TestTransactionRunAgain(t *testing.T) {
	s := newServer(t)
	s.Require(t, mongotest.Transactions)
	ctx := context30(t)
	sent := newRecorder()
	coll := s.collection(representations[0].rep, "items", sent.option())
	if err := coll.Database().CreateCollection(ctx, "items"); err != nil {
		t.Fatal(err)
	}
	gen, err := uuidgen.NewV7Generator()
	if err != nil {
		t.Fatal(err)
	}
	docs := []any{autoid.Document(gen, bson.M{"n": 1}), autoid.Document(gen, bson.M{"n": 2})}
	session, err := coll.Database().Client().StartSession()
	if err != nil {
		t.Fatal(err)
	}
	defer session.EndSession(ctx)
	runs := 0
	var ids [2][]any
	if _, err = session.WithTransaction(ctx, func(ctx context.Context) (any, error) {
		res, err := coll.InsertMany(ctx, docs)
		if err != nil {
			return nil, err
		}
		if runs == 2 {
			return nil, errors.New("run a third time")
		}
		ids[runs] = res.InsertedIDs
		if runs++; runs == 1 {
			return nil, mongo.CommandError{Labels: []string{"TransientTransactionError"}}
		}
		return nil, nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(ids[0]) != 2 || len(ids[1]) != 2 || ids[0][0] != ids[1][0] || ids[0][1] != ids[1][1] {
		t.Errorf("the runs inserted %v and %v", ids[0], ids[1])
	}
	if docs := s.stored("items"); len(docs) != 2 {
		t.Errorf("the server holds %v", docs)
	}
}
