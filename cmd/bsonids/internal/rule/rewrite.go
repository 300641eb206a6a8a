package rule

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
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
