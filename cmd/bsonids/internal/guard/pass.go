package guard

import (
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Pass is a pass over a collection that counts the values that the conversions want in their fields, which a
// validator refuses. It takes the documents of a source.
type Pass struct {
	Conversion rule.Conversion
	Documents  int64 // that have old values in the guarded fields
	Old        int64 // old values in the guarded fields
	// Fields counts the old values of each guarded field, with brackets for arrays, and Untested those in
	// arrays in arrays, which the validator does not test.
	Fields, Untested rule.Tally
}

// Forget forgets the documents.
func (p *Pass) Forget() {
	*p = Pass{Conversion: p.Conversion, Fields: rule.Tally{}, Untested: rule.Tally{}}
}

// Add counts the values of a document. The error wraps walk.ErrCorrupt.
func (p *Pass) Add(doc []byte) error {
	before := p.Old
	err := p.Conversion.Wants(doc, func(path *walk.Path, _ rule.Left) {
		name := string(path.AppendField(nil))
		switch {
		// A condition on a.b does not test a field with the name "a.b".
		case path.Addressable() != nil:
		case strings.Contains(name, "[][]"):
			p.Untested.Add(name, 1)
		default:
			p.Old++
			p.Fields.Add(name, 1)
		}
	})
	if p.Old > before {
		p.Documents++
	}
	return err
}
