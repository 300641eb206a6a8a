package rule

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// The reasons for which Restore cannot restore a value.
const (
	openTwice = "several old values of the field have this value after the conversion"
	newStruct = "the value is new, and nothing shows which fields the document of its Go struct would have"
	openTwo   = "the value is new, and the field has had values in several representations"
)

// Restore returns the document from which the conversion would have made doc, a document of the new
// collection. guide is the document that the old collection has in its place, or nil.
//
// If the conversion makes doc of the guide, Restore returns the guide. Otherwise, a value of doc that
// equals the converted one at the same path of the guide is as in the guide. So is a value that
// another program moved within its field, if only one old value can be meant. Every other value is
// new, and is converted back. New values are in open if the old ones are documents
// of Go structs, or if several old kinds are possible. A null is as in the guide only at the same path. The error wraps walk.ErrCorrupt.
func (c Conversion) Restore(doc, guide bson.Raw) (old bson.Raw, open []Left, err error) {
	var was origins
	if guide != nil {
		fresh, _, _, err := c.Rewrite(guide)
		if err != nil {
			return nil, nil, err
		}
		if bytes.Equal(fresh, doc) {
			return slices.Clone(guide), nil, nil
		}
		was = c.origins(guide)
	}
	var edits []walk.Edit
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if l.Type == bson.TypeNull && c.structs(path) {
			if old, ok := was.here(path, doc, Null); ok {
				edits = append(edits, old.edit(l.Offset))
			}
			return nil
		}
		var made *Pair // the pair that may have made the value, and of which value
		var old Value
		pairs := 0
		for i := range c {
			if was, ok := c[i].former(path, l); ok {
				made, old = &c[i], was
				pairs++
			}
		}
		if pairs == 0 {
			return nil
		}
		is, field := ValueOf(l.Type, l.Value), path.AppendField(nil)
		origin, known, reason := was.of(path, doc, field, is)
		switch {
		case known:
			old = origin
		case reason != "":
		case pairs > 1:
			reason = openTwo
		case made.From.Form == kinds.Struct:
			reason = newStruct
		}
		if reason != "" {
			open = append(open, Left{Path: path.Dotted(), Value: is, Reason: reason})
			return nil
		}
		edits = append(edits, old.edit(l.Offset))
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	old, err = walk.Splice(doc, edits)
	return old, open, err
}

// origins has the values of an old document by what the conversion makes of them.
type origins struct {
	at    map[string][2]Value            // new and old value, by the path
	field map[string]map[Value]([]Value) // distinct old values, by the field and the new value
}

// origins returns the values of the old document, which is valid BSON, that the conversion may have made or
// left.
func (c Conversion) origins(guide bson.Raw) origins {
	var r Ruling
	o := origins{at: make(map[string][2]Value), field: make(map[string]map[Value][]Value)}
	_ = c.Walk(guide, func(path *walk.Path, l walk.Leaf) error {
		old := ValueOf(l.Type, l.Value)
		fresh := old
		field := path.AppendField(nil)
		if c.Rule(&r, path, l) && r.Reason == "" {
			fresh = r.fresh
		} else if !c.IsNew(path, l) {
			return nil
		}
		if path.Addressable() == nil && !path.Repeated(guide) {
			o.at[path.Dotted()] = [2]Value{fresh, old}
		}
		of := o.field[string(field)]
		if of == nil {
			of = make(map[Value][]Value)
			o.field[string(field)] = of
		}
		if !slices.Contains(of[fresh], old) {
			of[fresh] = append(of[fresh], old)
		}
		return nil
	})
	return o
}

// of returns the old value of which the conversion made a value of a new document. known is false if
// there is none. The reason says why it is not known which one of several it is.
func (o origins) of(path *walk.Path, doc bson.Raw, field []byte, fresh Value) (old Value, known bool, reason string) {
	if old, ok := o.here(path, doc, fresh); ok {
		return old, true, ""
	}
	switch all := o.field[string(field)][fresh]; len(all) {
	case 0:
		return Value{}, false, ""
	case 1:
		return all[0], true, ""
	}
	return Value{}, false, openTwice
}

// here returns the old value at the path of a new document, if the conversion made the value there of
// it.
func (o origins) here(path *walk.Path, doc bson.Raw, fresh Value) (old Value, ok bool) {
	if path.Addressable() != nil || path.Repeated(doc) {
		return Value{}, false
	}
	pair, ok := o.at[path.Dotted()]
	return pair[1], ok && pair[0] == fresh
}
