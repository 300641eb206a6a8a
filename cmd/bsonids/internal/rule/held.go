package rule

import (
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Held finds the values of a document by their paths.
type Held struct {
	doc   bson.Raw
	index map[string]found // other paths are looked up in the document
}

// found is a binary value of 16 bytes, or another value.
type found struct {
	subtype byte
	octets  [16]byte
	value   Value
}

// manyLookups is the number of lookups from which an index is made. Without one, the time to look
// up all elements of an array grows with the square of its length: two minutes for 50,000 elements.
const manyLookups = 32

// HeldBy finds the values of doc, of which n are going to be looked up.
func HeldBy(doc bson.Raw, n int) Held {
	v := Held{doc: doc}
	if n < manyLookups {
		return v
	}
	v.index = make(map[string]found, n)
	// The values behind a corrupt place are not found without the index either.
	_ = everything(doc, func(path *walk.Path, l walk.Leaf) {
		if f, ok := foundIn(l); ok && path.Addressable() == nil && !path.Repeated(doc) {
			v.index[path.Dotted()] = f
		}
	})
	return v
}

// everything calls visit for the values of doc, and for the documents in it.
func everything(doc []byte, visit func(*walk.Path, walk.Leaf)) error {
	return walk.Documents(doc,
		func(p *walk.Path, l walk.Leaf) (bool, error) { visit(p, l); return false, nil },
		func(p *walk.Path, l walk.Leaf) error { visit(p, l); return nil })
}

// foundIn returns the value if a conversion may read or write such a value.
func foundIn(l walk.Leaf) (found, bool) {
	if subtype, data, _, ok := l.Binary(); ok {
		if len(data) != 16 {
			return found{}, false
		}
		return found{subtype: subtype, octets: [16]byte(data)}, true
	}
	if _, _, ok := kinds.Read(l); !ok && l.Type != bson.TypeNull {
		return found{}, false
	}
	return found{value: ValueOf(l.Type, l.Value)}, true
}

// find returns the value at path.
func (v Held) find(path string) (found, bool) {
	if f, ok := v.index[path]; ok {
		return f, true
	}
	leaf, ok := lookUp(v.doc, path)
	if !ok {
		return found{}, false
	}
	if subtype, data, ok := leaf.BinaryOK(); ok {
		if len(data) != 16 {
			return found{}, false
		}
		return found{subtype: subtype, octets: [16]byte(data)}, true
	}
	return found{value: ValueOf(leaf.Type, leaf.Value)}, true
}

// lookUp returns the value at path. Raw.LookupErr panics if a document in doc is not valid.
func lookUp(doc bson.Raw, path string) (v bson.RawValue, ok bool) {
	for name := range strings.SplitSeq(path, ".") {
		if array, is := v.ArrayOK(); is {
			doc = bson.Raw(array)
		} else if v.Type != 0 {
			if doc, is = v.DocumentOK(); !is {
				return v, false
			}
		}
		var err error
		if v, err = doc.LookupErr(name); err != nil {
			return v, false
		}
	}
	return v, true
}

// at returns the subtype and the bytes of the binary value at path.
func (v Held) at(path string) (subtype byte, octets [16]byte, ok bool) {
	f, ok := v.find(path)
	return f.subtype, f.octets, ok && f.value == ""
}

// is reports whether the value at path has the subtype and the bytes.
func (v Held) is(path string, subtype byte, octets [16]byte) bool {
	s, o, ok := v.at(path)
	return ok && s == subtype && o == octets
}

// Holds reports whether the value at path is value, or if that is empty, a binary value with the
// subtype and the bytes.
func (v Held) Holds(path string, subtype byte, octets [16]byte, value Value) bool {
	if value == "" {
		return v.is(path, subtype, octets)
	}
	f, ok := v.find(path)
	return ok && f.value == value
}

func (v Held) HasOld(ch Change, subtype byte) bool {
	return v.Holds(ch.Path, subtype, ch.Old, ch.OldValue)
}

func (v Held) HasNew(ch Change, subtype byte) bool {
	return v.Holds(ch.Path, subtype, ch.New, ch.NewValue)
}
