package convert

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// values finds the 16-byte binary values of a document by their paths.
type values struct {
	doc   bson.Raw
	index map[string]found // other paths are looked up in the document
}

type found struct {
	subtype byte
	octets  [16]byte
}

// manyLookups is the number of lookups from which an index is made. Without one, the time to look
// up all elements of an array grows with the square of its length: two minutes for 50,000 elements.
const manyLookups = 32

// valuesOf returns the values of doc, of which n are going to be looked up.
func valuesOf(doc bson.Raw, n int) values {
	v := values{doc: doc}
	if n < manyLookups {
		return v
	}
	v.index = make(map[string]found, n)
	// The values behind a corrupt place are not found without the index either.
	_ = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		subtype, data, _, ok := l.Binary()
		if ok && len(data) == 16 && path.Addressable() == nil && !path.Repeated(doc) {
			v.index[path.Dotted()] = found{subtype, [16]byte(data)}
		}
		return nil
	})
	return v
}

// at returns the subtype and the bytes of the value at path.
func (v values) at(path string) (subtype byte, octets [16]byte, ok bool) {
	if f, ok := v.index[path]; ok {
		return f.subtype, f.octets, true
	}
	leaf, err := v.doc.LookupErr(strings.Split(path, ".")...)
	if err != nil {
		return 0, octets, false
	}
	subtype, data, ok := leaf.BinaryOK()
	if !ok || len(data) != 16 {
		return 0, octets, false
	}
	return subtype, [16]byte(data), true
}

// is reports whether the value at path has the subtype and the bytes.
func (v values) is(path string, subtype byte, octets [16]byte) bool {
	s, o, ok := v.at(path)
	return ok && s == subtype && o == octets
}
