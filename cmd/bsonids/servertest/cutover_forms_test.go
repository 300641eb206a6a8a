package servertest

import (
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// Copies of text and of Go structs are exchanged, and their cutover is undone. What did not change has its old bytes,
// also a document that says that there is no UUID; new text has the usual spelling; a new value that no document of a
// Go struct shows is named before anything is changed. Text in _id is refused.
func TestCutoverForms(t *testing.T) {
	goStruct := func(i int) any {
		u := cutID(i)
		return []bson.D{{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}, {{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}},
			{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}[i%3]
	}
	c := startCut(t, 0)
	doc := func(i int, ref any, n int32) bson.D {
		return bson.D{{Key: "_id", Value: int32(i)}, {Key: "ref", Value: ref}, {Key: "n", Value: n}}
	}
	for name, form := range map[string]func(int) any{"text": func(i int) any { return spelling(cutID(i), []int{0, 4, 2, 3}[i%4]) }, "goStruct": goStruct} {
		t.Run(name, func(t *testing.T) {
			old := c.db.Collection(name)
			var docs []any
			for i := range 24 {
				docs = append(docs, doc(i, form(i), 0))
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
				note(want, doc(i, form(i), 9))
			}
			set(t, old, int32(6), "ref", in(cutID(600), uuidrep.Standard))
			insert(t, old, []any{doc(100, in(cutID(100), uuidrep.Standard), 0)})
			if name == "text" {
				note(want, doc(6, cutID(600).String(), 0))
				note(want, doc(100, cutID(100).String(), 0))
			}
			for _, i := range []int32{6, 100} {
				if name == "text" {
					break
				}
				c.run(failure.ExitUsage, "undo", "--write").says(t, "nothing shows which fields the document of its Go struct would have")
				_, err := old.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: i}})
				c.check(err)
				delete(want, marshalValue(t, i).String())
			}
			c.run(failure.ExitOK, "undo", "--write")
			equal(t, all(t, old), want)
		})
	}
	insert(t, c.db.Collection("ids"), []any{bson.D{{Key: "_id", Value: cutID(1).String()}}, bson.D{{Key: "_id", Value: cutID(2).String()}}})
	c.copyFrom("ids", "ids_new", "text", "_id")
	c.names = []string{"ids"}
	c.run(failure.ExitUsage, "cutover", "--write").says(t, "its _ids are text")
}
