package guard

import (
	"context"
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
	// Fields counts the old values of each guarded field, with brackets for arrays, and Untested those in
	// arrays in arrays, which the validator does not test.
	Fields, Untested rule.Tally
	Corrupt          int64 // documents that are not valid BSON
}

// Pass reads all documents, and counts the values that the conversions want in their fields, which a
// validator refuses. show is called with the number of documents to read.
func (g *Guard) Pass(ctx context.Context, conversions []rule.Conversion, patient *patience.Patience, show func(total int64) *progress.Progress) (Found, error) {
	p := &pass{conversions: conversions}
	read, err := source.Collection{Collection: g.coll}.Read(ctx, patient, show, p)
	p.Corrupt = read.Malformed
	return p.Found, err
}

// pass is a pass over a collection.
type pass struct {
	Found
	conversions []rule.Conversion
}

// Forget forgets the documents.
func (p *pass) Forget() { p.Found = Found{Fields: rule.Tally{}, Untested: rule.Tally{}} }

// Add counts the values of a document. The error wraps walk.ErrCorrupt.
func (p *pass) Add(doc []byte) error {
	p.Read++
	old := false
	for _, c := range p.conversions {
		err := c.Wants(doc, func(path *walk.Path, _ rule.Left) {
			name := string(path.AppendField(nil))
			switch {
			// A condition on a.b does not test a field with the name "a.b".
			case path.Addressable() != nil:
			case strings.Contains(name, "[][]"):
				p.Untested.Add(name, 1)
			default:
				old = true
				p.Old++
				p.Fields.Add(name, 1)
			}
		})
		if err != nil {
			return err
		}
	}
	if old {
		p.Documents++
	}
	return nil
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
