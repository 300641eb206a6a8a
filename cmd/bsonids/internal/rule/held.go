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
	index map[string]Value
	odd   bool // a path is not in the index, and is looked up in the document
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
	v.index = make(map[string]Value, n)
	// The values behind a corrupt place are not found without the index either.
	_ = everything(doc, func(path *walk.Path, l walk.Leaf) {
		_, ok := foundIn(l)
		switch {
		case !ok && !kinds.Text.Applies(l) && !kinds.Struct.Applies(l) && !kinds.IsMalformed(l):
		case path.Addressable() == nil && !path.Repeated(doc):
			v.index[path.Dotted()] = ValueOf(l.Type, l.Value)
		default:
			v.odd = true
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
func foundIn(l walk.Leaf) (v Value, ok bool) {
	if _, _, isUUID := kinds.Read(l); isUUID || l.Type == bson.TypeNull || l.Type == bson.TypeBinary {
		v = ValueOf(l.Type, l.Value)
		return v, isUUID || l.Type == bson.TypeNull || v.Other == ""
	}
	return v, false
}

// At returns the value at path. Of many, it finds those that a conversion may convert, list or write.
func (v Held) At(path string) (Value, bool) {
	if f, ok := v.index[path]; ok || v.index != nil && !v.odd {
		return f, ok
	}
	raw, ok := lookUp(v.doc, path)
	return ValueOf(raw.Type, raw.Value), ok
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

// HasOld reports whether the old value of the change is at its path.
func (v Held) HasOld(ch Change) bool { return v.has(ch.Path, ch.Old) }

// HasNew reports whether the new value of the change is at its path.
func (v Held) HasNew(ch Change) bool { return v.has(ch.Path, ch.New) }

func (v Held) has(path string, want Value) bool {
	is, ok := v.At(path)
	return ok && is == want
}
