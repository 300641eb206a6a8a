package decide

import (
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// maxKnown is the maximum number of UUIDs of one collection in a Known.
const maxKnown = 1 << 16

// Known has UUIDs of known order, those of subtype 4 and in text, from documents of one collection.
// They can be compared with several passes over other collections.
type Known struct{ ids map[[16]byte]struct{} }

// NewKnown returns an empty Known.
func NewKnown() *Known { return &Known{make(map[[16]byte]struct{})} }

// Add adds the UUIDs of a document, up to 65,536 in all. The error wraps walk.ErrCorrupt.
func (k *Known) Add(doc []byte) error {
	return walk.Document(doc, func(_ *walk.Path, l walk.Leaf) error {
		if len(k.ids) >= maxKnown {
			return nil
		}
		if text, ok := l.Text(); ok {
			if u, ok := scan.TextUUID(text); ok {
				k.ids[u] = struct{}{}
			}
			return nil
		}
		if subtype, data, _, ok := l.Binary(); ok && subtype == bson.TypeBinaryUUID && len(data) == 16 {
			k.ids[[16]byte(data)] = struct{}{}
		}
		return nil
	})
}

// Compare looks for values of the collection that are equal to UUIDs of another one. It must be
// called after the documents of the collection were added.
func (p *Pass) Compare(other *Known) {
	if p.Subtype == bson.TypeBinaryUUID || p.Form != kinds.Binary {
		return
	}
	for u := range other.ids {
		p.known(u)
	}
}

// Leaves reports whether a decision was made to convert no value of the field.
func (j *Judge) Leaves(field []byte) bool {
	if j == nil || j.all {
		return false
	}
	var name [128]byte
	r, ok := j.fields[string(appendPlain(name[:0], field))]
	return ok && r.field.Basis == None
}
