package rule

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewrite returns a copy of doc with the values converted, including those in _id, the number of
// converted values, and the values that are left unchanged. Nothing else in the document changes, except for
// the lengths of the documents and arrays around a value whose length changes. The error wraps walk.ErrCorrupt.
func (c Conversion) Rewrite(doc bson.Raw) (out bson.Raw, values int, left []Left, err error) {
	if out, values, left, err = NewRewriter(c).Document(slices.Clone(doc)); err != nil {
		return nil, 0, nil, err
	}
	return out, values, left, nil
}

// maxMixed is the maximum number of values in one _id that are tried in every combination of all
// kinds.
const maxMixed = 6

// Sources returns the _ids that the conversion turns into id. There are several if values of several
// kinds may be in one _id. If id has more than maxMixed values, Sources tries only the _ids in which every
// value has its old kind, and those whose values all have one kind.
func (c Conversion) Sources(id bson.RawValue) (out []bson.RawValue, err error) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	var edits []walk.Edit
	kind := make([][]walk.Edit, len(c)) // of the old values of each kind
	var first []walk.Edit               // of the first kind that each value may have had
	back, r := c.back(), new(Ruling)
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		n := len(edits)
		for i := range back {
			if back[i:i+1].Rule(r, path, l) && !r.Same && r.Reason == "" {
				e := r.fresh.edit(l.Offset)
				edits, kind[i] = append(edits, e), append(kind[i], e)
			}
		}
		if len(edits) > n {
			first = append(first, edits[n])
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sets := append([][]walk.Edit{nil, first}, kind...)
	if len(edits) <= maxMixed {
		sets = make([][]walk.Edit, 1<<len(edits))
		for set := range sets {
			for i, e := range edits {
				if set>>i&1 == 1 {
					sets[set] = append(sets[set], e)
				}
			}
		}
	}
	for _, set := range sets {
		old, err := walk.Splice(doc, set)
		if err != nil { // two old kinds for one value
			continue
		}
		again, _, _, _ := c.Rewrite(old)
		source := bson.Raw(old).Lookup("_id")
		if bytes.Equal(again, doc) && !slices.ContainsFunc(out, source.Equal) {
			out = append(out, source)
		}
	}
	return out, nil
}
