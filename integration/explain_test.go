package integration

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestMatchUsesIndex tests that a filter for two representations uses an index, as an equality
// does.
func TestMatchUsesIndex(t *testing.T) {
	s := newServer(t)
	s.Require(t, mongotest.ExplainedIndexes)
	ctx := context30(t)
	coll := s.plain("items")
	if _, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "u", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	var docs []any
	for range 200 {
		docs = append(docs, bson.D{{Key: "u", Value: uuidrep.NewBinary(uuid.New())}})
	}
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		t.Fatal(err)
	}
	filter, err := mixedrep.Match("u", uuid.New(), uuidrep.JavaLegacy, uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	explained := coll.Database().RunCommand(ctx, bson.D{
		{Key: "explain", Value: bson.D{{Key: "find", Value: "items"}, {Key: "filter", Value: filter}}},
		{Key: "verbosity", Value: "executionStats"},
	})
	plan, err := explained.Raw()
	if err != nil {
		t.Fatal(err)
	}
	winning := plan.Lookup("queryPlanner", "winningPlan").String()
	if !strings.Contains(winning, "IXSCAN") || strings.Contains(winning, "COLLSCAN") {
		t.Errorf("the winning plan is %s, want a scan of the index", winning)
	}
	if n, ok := plan.Lookup("executionStats", "totalDocsExamined").AsInt64OK(); !ok || n != 0 {
		t.Errorf("%d documents were examined for a UUID that is not there, want 0", n)
	}
}
