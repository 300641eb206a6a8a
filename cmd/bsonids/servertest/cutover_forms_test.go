package servertest

import (
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// The undo of a cutover restores documents that were changed since, with the old spellings of text and
// the old documents of Go structs, also those that say that there is no UUID.
func TestUndoCutoverForms(t *testing.T) {
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
			c.copyFrom(name, name+"_new", name, "ref")
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
				set(t, old, int32(i), "n", int32(9))
				note(want, append(doc(i, form(i))[:2], bson.E{Key: "n", Value: int32(9)}))
			}
			fresh := bson.D{{Key: "_id", Value: int32(100)}, {Key: "ref", Value: in(cutID(100), uuidrep.Standard)}}
			insert(t, old, []any{fresh})
			undo := []string{"undo", "--db", c.db.Name(), name, "--batch-timeout", "5s", "--retry-for", "30s", "--write"}
			if name == "goStruct" {
				// There is no document for a value that is new.
				command(t, c.s, undo...).want(t, failure.ExitUsage).says(t, "nothing shows which fields")
				if _, err := old.DeleteOne(t.Context(), fresh[:1]); err != nil {
					t.Fatal(err)
				}
			} else {
				note(want, bson.D{fresh[0], {Key: "ref", Value: cutID(100).String()}})
			}
			command(t, c.s, undo...).want(t, failure.ExitOK)
			equal(t, all(t, old), want)
		})
	}
}
