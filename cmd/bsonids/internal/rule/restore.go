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
	openKind  = "the conversion would not have made the value, and nothing shows whether it is a UUID in the new byte order"
)

// Restore returns the document from which the conversion would have made doc, a document of the new
// collection. guide is the document that the old collection has in its place, or nil.
//
// If the conversion makes doc of the guide, Restore returns the guide. Otherwise, a value of doc that
// equals the converted one at the same path of the guide is as in the guide. So is a value that
// another program moved within its field, if only one old value can be meant. Every other value is
// new, and is converted back. If the two kinds have the same subtype, a value is new in the new byte
// order only if the conversion would have made it; the others are in open, as they are in doc, unless
// the conversion leaves their field as it is. New values are also in open if the old ones are documents
// of Go structs. A null is as in the guide only at the same path. The error wraps walk.ErrCorrupt.
func (c Conversion) Restore(doc, guide bson.Raw) (old bson.Raw, open []Left, err error) {
	var was origins
	if guide != nil {
		fresh, _, _, err := c.Rewrite(guide, nil)
		if err != nil {
			return nil, nil, err
		}
		if bytes.Equal(fresh, doc) {
			return slices.Clone(guide), nil, nil
		}
		was = c.origins(guide)
	}
	back := Conversion{From: c.To, To: c.From, Fields: c.Fields}
	var edits []walk.Edit
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if l.Type == bson.TypeNull && c.From.Form == kinds.Struct {
			if old, ok := was.here(path, doc, Null); ok {
				raw := old.Raw()
				edits = append(edits, walk.Edit{Offset: l.Offset, Type: raw.Type, Value: raw.Value})
			}
			return nil
		}
		v, ok := back.find(path, l)
		if !ok || v.unfit != "" {
			return nil
		}
		field := path.AppendField(nil)
		octets, value := back.fresh(v) // unless the old form is Struct
		edit := back.edit(l.Offset, octets, value)
		origin, known, reason := was.of(path, doc, field, ValueOf(l.Type, l.Value))
		switch {
		case known:
			raw := origin.Raw()
			edit = walk.Edit{Offset: l.Offset, Type: raw.Type, Value: raw.Value}
		case reason != "":
		case c.From.Form == kinds.Struct:
			reason = newStruct
		case c.SameSubtype() && octets == v.octets:
			return nil
		case c.SameSubtype() && c.leaves(field):
			return nil
		case c.SameSubtype() && !c.takes(field, octets):
			reason = openKind
		}
		if reason != "" {
			open = append(open, Left{Path: path.Dotted(), Old: v.octets, Value: v.value, Reason: reason})
			return nil
		}
		edits = append(edits, edit)
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
		if c.Rule(&r, path, l) && !r.Same && r.Reason == "" {
			e := c.edit(0, r.fresh, r.value)
			fresh = ValueOf(e.Type, e.Value)
		} else if _, _, ok := c.IsNew(path, l); !ok {
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
		return "", false, ""
	case 1:
		return all[0], true, ""
	}
	return "", false, openTwice
}

// here returns the old value at the path of a new document, if the conversion made the value there of
// it.
func (o origins) here(path *walk.Path, doc bson.Raw, fresh Value) (old Value, ok bool) {
	if path.Addressable() != nil || path.Repeated(doc) {
		return "", false
	}
	pair, ok := o.at[path.Dotted()]
	return pair[1], ok && pair[0] == fresh
}
