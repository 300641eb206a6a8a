package servertest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// Copies of collections with text, and with documents of Go structs, are put in place, and the old
// collections back after the release, with the old spellings and what changed since.
func TestCutoverForms(t *testing.T) {
	text := func(i int) any {
		s := cutID(i).String()
		return []string{s, strings.ToUpper(s), "{" + s + "}", "urn:uuid:" + s}[i%4]
	}
	goStruct := func(i int) any {
		u := cutID(i)
		return []bson.D{{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}, {{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}},
			{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}[i%3]
	}
	c := startCut(t, 0)
	doc := func(i int, ref any) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "ref", Value: ref}, {Key: "n", Value: int32(0)}}
	}
	const documents = 24
	for name, form := range map[string]func(int) any{"text": text, "goStruct": goStruct} {
		t.Run(name, func(t *testing.T) {
			old := c.db.Collection(name)
			var docs []any
			for i := range documents {
				docs = append(docs, doc(i, form(i)))
			}
			insert(t, old, docs)
			want := all(t, old)
			command(t, c.s, "convert", "--db", c.db.Name(), "--collection", name, "--from", name, "--field", "ref", "--into", name+"_new", "--write").want(t, failure.ExitOK)
			c.names = []string{name}
			c.cutover(c.s, failure.ExitOK, "--write")
			for id, doc := range all(t, old) {
				i := int(doc.Lookup("_id").Int32())
				is, null := doc.Lookup("ref"), name == "goStruct" && i%3 == 2
				if fresh := marshalValue(t, in(cutID(i), uuidrep.Standard)); null != (is.Type == bson.TypeNull) || !null && !is.Equal(fresh) {
					t.Errorf("%s: %v", id, is)
				}
			}
			c.release()
			for _, i := range []int{3, 4, 5} {
				if _, err := old.UpdateByID(t.Context(), int32(i), bson.D{{Key: "$set", Value: bson.D{{Key: "n", Value: int32(9)}}}}); err != nil {
					t.Fatal(err)
				}
				changed, err := bson.Marshal(append(doc(i, form(i))[:2], bson.E{Key: "n", Value: int32(9)}))
				if err != nil {
					t.Fatal(err)
				}
				want[bson.Raw(changed).Lookup("_id").String()] = changed
			}
			fresh := bson.D{{Key: "_id", Value: int32(100)}, {Key: "ref", Value: in(cutID(100), uuidrep.Standard)}}
			insert(t, old, []any{fresh})
			undo := []string{"undo", "--db", c.db.Name(), name, "--batch-timeout", "5s", "--retry-for", "30s", "--write"}
			if name == "goStruct" {
				// There is no document for a value that is new.
				if r := command(t, c.s, undo...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "nothing shows which fields") {
					t.Error(r.stderr)
				}
				if _, err := old.DeleteOne(t.Context(), fresh[:1]); err != nil {
					t.Fatal(err)
				}
			} else {
				back, err := bson.Marshal(bson.D{fresh[0], {Key: "ref", Value: cutID(100).String()}})
				if err != nil {
					t.Fatal(err)
				}
				want[bson.Raw(back).Lookup("_id").String()] = back
			}
			command(t, c.s, undo...).want(t, failure.ExitOK)
			equal(t, all(t, old), want)
		})
	}
}

// A copy whose _ids were text is not put in place.
func TestCutoverTextIDs(t *testing.T) {
	c := startCut(t, 0)
	var docs []any
	for i := range 8 {
		docs = append(docs, bson.D{{Key: "_id", Value: cutID(i).String()}})
	}
	insert(t, c.db.Collection("a"), docs)
	command(t, c.s, "convert", "--db", c.db.Name(), "--collection", "a", "--from", "text", "--field", "_id", "--into", "a_new", "--write").want(t, failure.ExitOK)
	if r := command(t, c.s, "cutover", "--db", c.db.Name(), "a").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "its _ids are text") {
		t.Error(r.stderr)
	}
}
