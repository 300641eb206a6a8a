package guard

import (
	"context"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Found is what a pass over all documents of a collection found.
type Found struct {
	Read      int64 // documents
	Documents int64 // that have old values in the guarded fields
	Old       int64 // old values in the guarded fields
	// Fields counts the old values of each guarded field, with brackets for arrays.
	Fields rule.Tally
	// Untested counts the old values in arrays in arrays of the guarded fields, which the validator
	// does not test, and Elsewhere those in other fields.
	Untested, Elsewhere rule.Tally
	Corrupt             int64 // documents that are not valid BSON
}

// Pass reads all documents, and counts the values that the conversion wants, which a validator refuses. show
// is called with the number of documents to read.
func (g *Guard) Pass(ctx context.Context, fields []Field, c rule.Conversion, patient *patience.Patience, show func(total int64) *progress.Progress) (Found, error) {
	c.Fields = nil // of all fields
	p := &pass{fields: fields, conversion: c}
	read, err := source.Collection{Collection: g.coll}.Read(ctx, patient, show, p)
	p.Corrupt = read.Malformed
	return p.Found, err
}

// pass is a pass over a collection.
type pass struct {
	Found
	fields     []Field
	conversion rule.Conversion
}

// Forget forgets the documents.
func (p *pass) Forget() {
	p.Found = Found{Fields: rule.Tally{}, Untested: rule.Tally{}, Elsewhere: rule.Tally{}}
}

// Add counts the values of a document.
func (p *pass) Add(doc []byte) error { return p.document(doc, p.fields, p.conversion) }

// document counts the values of a document. The error wraps walk.ErrCorrupt.
func (f *Found) document(doc bson.Raw, fields []Field, c rule.Conversion) error {
	f.Read++
	old := false
	err := c.Wants(doc, func(path *walk.Path, _ rule.Left) {
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
		tally.Add(name, 1)
	})
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
