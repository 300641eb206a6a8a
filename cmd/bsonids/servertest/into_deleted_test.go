package servertest

import (
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// If documents are deleted in the source during the copy, they are deleted in the copy, too, and
// the copy is verified. What another program wrote to the copy is kept.
func TestIntoFollowsDeletions(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		s := mongotest.Start(t)
		db := connect(t, s)
		old := db.Collection("old")
		want := seed(t, old, 30, uuidrep.JavaLegacy, uuidrep.Standard)
		for _, id := range []string{"3", "17"} {
			delete(want, `{"$numberInt":"`+id+`"}`)
		}
		dir := prepared(t, s, "standard", intoNew("old"))
		var once sync.Once
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			answer := pass()
			if name, _ := r.command.Lookup("insert").StringValueOK(); name == "old_standard" {
				once.Do(func() {
					if _, err := old.DeleteMany(t.Context(), bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{3, 17}}}}}); err != nil {
						t.Error(err)
					}
					if foreign {
						if _, err := db.Collection("old_standard").InsertOne(t.Context(), bson.D{{Key: "_id", Value: "foreign"}}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			return answer
		})
		code, text := failure.ExitOK, "done"
		if foreign {
			code, text = failure.ExitIncomplete, "another program wrote it to the copy"
		}
		r := command(t, p, "apply", dir, "--write").want(t, code)
		if !strings.Contains(r.stdout, text) {
			t.Error(r.stdout)
		}
		got := all(t, db.Collection("old_standard"))
		if _, ok := got[`"foreign"`]; ok != foreign {
			t.Errorf("another program's document: %v", ok)
		}
		delete(got, `"foreign"`)
		equal(t, got, want)
	}
}
