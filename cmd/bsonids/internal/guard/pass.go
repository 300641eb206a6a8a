package guard

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxFields is the maximum number of fields that a pass distinguishes.
const maxFields = 2000

// Found is what a pass over all documents of a collection found.
type Found struct {
	Read      int64 // documents
	Documents int64 // that have old values in the guarded fields
	Old       int64 // old values in the guarded fields
	// Fields counts the old values of each guarded field, with brackets for arrays.
	Fields convert.Tally
	// Untested counts the old values in arrays in arrays of the guarded fields, which the validator
	// does not test, and Elsewhere those in other fields.
	Untested, Elsewhere convert.Tally
	Corrupt             int64 // documents that are not valid BSON
}

// Pass reads all documents, and counts the values that a validator against the kind refuses.
func (g *Guard) Pass(ctx context.Context, fields []Field, k kinds.Kind, progress func(int)) (Found, error) {
	found := Found{Fields: convert.Tally{}, Untested: convert.Tally{}, Elsewhere: convert.Tally{}}
	err := documents.Each(ctx, g.coll, bson.D{}, func(doc bson.Raw) error {
		progress(1)
		return found.document(doc, fields, k)
	})
	return found, err
}

func (f *Found) document(doc bson.Raw, fields []Field, k kinds.Kind) error {
	f.Read++
	old := false
	err := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if !isOld(k, l) {
			return nil
		}
		name := string(path.AppendField(nil))
		tally := f.Elsewhere
		// A condition on a.b does not test a field with the name "a.b".
		if path.Addressable() == nil && slices.ContainsFunc(fields, func(f Field) bool { return f.pattern.Match(path) }) {
			if strings.Contains(name, "[][]") {
				tally = f.Untested
			} else {
				old = true
				f.Old++
				tally = f.Fields
			}
		}
		if _, ok := tally[name]; !ok && len(tally) >= maxFields {
			name = convert.Others
		}
		tally[name]++
		return nil
	})
	if errors.Is(err, walk.ErrCorrupt) {
		f.Corrupt++
		err = nil
	}
	if old {
		f.Documents++
	}
	return err
}

// Others counts the documents that the validator of before refuses, if level strict would apply it to
// documents to which it did not apply. It returns 0 if there is no such validator.
func (g *Guard) Others(ctx context.Context) (int64, error) {
	before := g.Before()
	if !enforced(before) || before.Level != Moderate {
		return 0, nil
	}
	return g.coll.CountDocuments(ctx, bson.D{{Key: "$nor", Value: bson.A{bson.Raw(before.Validator)}}})
}
