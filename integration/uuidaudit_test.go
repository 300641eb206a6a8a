package integration

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestAudit tests that the audit finds what the driver sends and receives with each method, and
// nothing that the driver and the server write themselves.
func TestAudit(t *testing.T) {
	s := newServer(t)
	ctx := context30(t)
	var mu sync.Mutex
	var found []string
	audited := s.collection(uuidrep.Standard, "items", clientopt.WithAudit(func(f uuidaudit.Finding) {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, fmt.Sprintf("%s %s %s %d x%d", f.Command, f.Part, f.Path, f.Subtype, f.Count))
		if f.Collection != "items" {
			t.Errorf("%v: the collection is not items", f)
		}
	}))
	u := uuid.New()
	octets := bson.Binary{Data: u[:]}
	java, err := uuidrep.NewBinaryWithRepresentation(u, uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	filter := bson.D{{Key: "u", Value: u[:]}}
	set := bson.D{{Key: "$set", Value: bson.D{{Key: "v", Value: java}}}}
	for _, c := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"InsertMany", func() error {
			_, err := audited.InsertMany(ctx, []any{
				bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: octets}, {Key: "good", Value: u}},
				bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: octets}, {Key: "good", Value: uuid.New()}},
			})
			return err
		}, []string{"insert document *.u 0 x2"}},
		{"Find", func() error {
			cursor, err := audited.Find(ctx, filter, options.Find().SetBatchSize(1))
			if err != nil {
				return err
			}
			var docs []bson.M
			return cursor.All(ctx, &docs)
		}, []string{"find filter u 0 x1", "find reply u 0 x1", "getMore reply u 0 x1"}},
		{"UpdateOne", func() error { _, err := audited.UpdateOne(ctx, filter, set); return err },
			[]string{"update filter u 0 x1", "update update $set.v 3 x1"}},
		{"FindOneAndUpdate", func() error { return audited.FindOneAndUpdate(ctx, filter, set).Err() },
			[]string{"findAndModify filter u 0 x1", "findAndModify reply u 0 x1", "findAndModify reply v 3 x1", "findAndModify update $set.v 3 x1"}},
		{"Aggregate", func() error {
			cursor, err := audited.Aggregate(ctx, mongo.Pipeline{{{Key: "$match", Value: filter}}, {{Key: "$count", Value: "n"}}})
			if err != nil {
				return err
			}
			return cursor.Close(ctx)
		}, []string{"aggregate pipeline *.$match.u 0 x1"}},
		{"Collections", func() error {
			_, err := audited.Database().ListCollectionSpecifications(ctx, bson.D{})
			return err
		}, nil},
		{"DeleteMany", func() error { _, err := audited.DeleteMany(ctx, filter); return err },
			[]string{"delete filter u 0 x1"}},
	} {
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		mu.Lock()
		slices.Sort(found)
		if !slices.Equal(found, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(found, "\n"), strings.Join(c.want, "\n"))
		}
		found = nil
		mu.Unlock()
	}
}
