package rule

import (
	"bytes"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewrite returns a copy of doc with the values converted, including those in _id, the number of
// converted values, and the values that are left unchanged. If fields is not nil, Rewrite counts the
// converted values in it by field. Nothing else in the document changes, except for the lengths of the
// documents and arrays around a value whose length changes. The error wraps walk.ErrCorrupt.
func (c Conversion) Rewrite(doc bson.Raw, fields Tally) (out bson.Raw, values int, left []Left, err error) {
	r := NewRewriter(c)
	if fields != nil {
		r.fields = Tally{}
	}
	if out, values, left, err = r.Document(slices.Clone(doc)); err != nil {
		return nil, 0, nil, err
	}
	for name, n := range r.fields {
		fields.Add(name, n)
	}
	return out, values, left, nil
}

// maxMixed is the maximum number of values in one _id that are tried in every combination of both
// kinds.
const maxMixed = 6

// Sources returns the _ids that the conversion turns into id. There are several if values of both
// kinds may be in one _id. If id has more than maxMixed values, Sources tries only the _ids whose
// values all have one kind.
func (c Conversion) Sources(id bson.RawValue) ([]bson.RawValue, error) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	back := Conversion{From: c.To, To: c.From, Fields: c.Fields}
	var edits []walk.Edit
	broken := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if v, ok := back.find(path, l); ok && v.unfit == "" {
			octets, value := back.fresh(v)
			edits = append(edits, back.edit(l.Offset, octets, value))
		}
		return nil
	})
	if err = errors.Join(err, broken); err != nil {
		return nil, err
	}
	step, all := 1, 1<<min(len(edits), maxMixed)-1
	if len(edits) > maxMixed {
		step = all
	}
	var out []bson.RawValue
	for set := 0; set <= all; set += step {
		var some []walk.Edit
		for i, e := range edits {
			if set>>min(i, maxMixed-1)&1 == 1 {
				some = append(some, e)
			}
		}
		old, _ := walk.Splice(doc, some) // at values that were found
		if again, _, _, _ := c.Rewrite(old, nil); bytes.Equal(again, doc) {
			out = append(out, bson.Raw(old).Lookup("_id"))
		}
	}
	return out, nil
}
