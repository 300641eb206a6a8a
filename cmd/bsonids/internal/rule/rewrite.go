package rule

import (
	"bytes"
	"errors"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewrite returns a copy of doc with the values converted, including those in _id, the number of
// converted values, and the values that are left unchanged. Nothing else in the document changes, except for
// the lengths of the documents and arrays around a value whose length changes. The error wraps walk.ErrCorrupt.
func (c Conversion) Rewrite(doc bson.Raw) (out bson.Raw, values int, left []Left, err error) {
	out, values, left, err = NewRewriter(c).Document(slices.Clone(doc))
	if err != nil {
		return nil, 0, nil, err
	}
	return out, values, left, nil
}

// maxSources is the maximum number of _ids that are tried: those of eight values that may have had another kind, or of
// five that may have had two.
const maxSources = 256

var errMixed = errors.New("the _id has so many values which may have been converted that it does not tell which were")

// Sources returns the _ids that the conversion turns into id. There are several if values of several
// kinds may be in one _id. It is an error if there may be more than maxSources.
func (c Conversion) Sources(id bson.RawValue) (out []bson.RawValue, err error) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	sets := [][]walk.Edit{nil}
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		all := sets
		for i := range c {
			if old, ok := c[i].former(path, l); ok {
				for _, set := range sets {
					all = append(all, append(slices.Clip(set), old.edit(l.Offset)))
				}
			}
		}
		if sets = all; len(sets) > maxSources {
			return errMixed
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, set := range sets {
		old, err := walk.Splice(doc, set)
		if err != nil {
			return nil, err
		}
		again, _, _, _ := c.Rewrite(old)
		source := bson.Raw(old).Lookup("_id")
		if bytes.Equal(again, doc) && !slices.ContainsFunc(out, source.Equal) {
			out = append(out, source)
		}
	}
	return out, nil
}
