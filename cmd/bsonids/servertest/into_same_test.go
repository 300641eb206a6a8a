package servertest

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Two documents with the same UUID in two subtypes become one, also if they have the same values.
// The copy is then not verified.
func TestSameValuesInto(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	seed(t, coll, 20, uuidrep.JavaLegacy, uuidrep.Standard)
	u := uuid.New()
	insert(t, coll, []any{bson.D{{Key: "_id", Value: in(u, uuidrep.JavaLegacy)}, {Key: "v", Value: "a"}}, bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "v", Value: "a"}}})
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("_id"), intoNew("c"))
	r := command(t, s, "apply", dir, "--write").want(t, failure.ExitIncomplete)
	proof := command(t, s, "verify", dir).want(t, failure.ExitIncomplete)
	for _, out := range []string{r.stdout, proof.stdout} {
		if !strings.Contains(out, "two documents have the same _id after the conversion") {
			t.Error(out)
		}
	}
}
