package offline

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// operations converts the entries of the oplog, which mongorestore applies to the restored
// collections. The values in them have the decision of their collection.
type operations struct {
	*run
	conversions map[string]*convert.Conversion // by namespace; nil for a collection that is not converted
	c           *Collection
	edits       []walk.Edit
	left        []convert.Left
}

// maxFields is the maximum number of fields that are counted apart.
const maxFields = 2000

func newOperations(r *run) *operations {
	return &operations{run: r, conversions: make(map[string]*convert.Conversion)}
}

// entry converts an entry.
func (o *operations) entry(c *Collection, doc bson.Raw) (bson.Raw, error) {
	if err := walk.Document(doc, func(*walk.Path, walk.Leaf) error { return nil }); err != nil {
		return nil, err
	}
	o.c, o.edits, o.left = c, o.edits[:0], o.left[:0]
	if c.Fields == nil {
		c.Fields = convert.Tally{}
	}
	o.operation(walk.Leaf{Type: bson.TypeEmbeddedDocument, Value: doc})
	if len(o.left) > 0 {
		o.leave(c, doc.Lookup("ts"), o.left)
	}
	if len(o.edits) == 0 {
		return doc, nil
	}
	c.Changed++
	o.res.Changed++
	slices.SortFunc(o.edits, func(a, b walk.Edit) int { return a.Offset - b.Offset })
	return walk.Splice(doc, o.edits)
}

// element is an element of a document or array of an entry.
type element struct {
	key string
	walk.Leaf
}

func (e element) isDocument() bool { return e.Type == bson.TypeEmbeddedDocument }

// elements returns the elements of a document or an array, which is whole.
func elements(l walk.Leaf) []element {
	list, _ := bson.Raw(l.Value).Elements()
	out := make([]element, len(list))
	at := l.Offset + 4
	for i, e := range list {
		v := e.Value()
		out[i] = element{e.Key(), walk.Leaf{Type: v.Type, Value: v.Value, Offset: at + len(e) - len(v.Value)}}
		at += len(e)
	}
	return out
}

// lookup returns the first element of a document with the key, or one without a type.
func lookup(l walk.Leaf, key string) element {
	for _, e := range elements(l) {
		if e.key == key {
			return e
		}
	}
	return element{}
}

// of returns the conversion of a collection, or nil if it is not converted.
func (o *operations) of(namespace string) *convert.Conversion {
	if conv, ok := o.conversions[namespace]; ok {
		return conv
	}
	database, name, _ := strings.Cut(namespace, ".")
	var conv *convert.Conversion
	if role := o.Selection.role(&dump.Collection{Database: database, Name: name}); role == Converted {
		c := o.Conversion
		c.Judge = o.Decisions.For(namespace).Judge(c.From.Order)
		conv = &c
	}
	o.conversions[namespace] = conv
	return conv
}

// operation converts an operation: an entry, or one of the operations of a transaction.
func (o *operations) operation(doc walk.Leaf) {
	op, _ := bson.Raw(doc.Value).Lookup("op").StringValueOK()
	namespace, _ := bson.Raw(doc.Value).Lookup("ns").StringValueOK()
	object := lookup(doc, "o")
	if !object.isDocument() {
		return
	}
	switch op {
	case "n": // nothing is done
		return
	case "c":
		o.command(object.Leaf)
		return
	}
	conv := o.of(namespace)
	if conv == nil {
		return
	}
	if id := lookup(doc, "o2"); id.isDocument() {
		o.fields(conv, "", id.Leaf)
	}
	if op != "u" {
		o.fields(conv, "", object.Leaf)
		return
	}
	list := elements(object.Leaf)
	replacement := len(list) == 0 || !strings.HasPrefix(list[0].key, "$")
	for _, e := range list {
		switch {
		case replacement:
			o.value(conv, e.key, e.Leaf)
		case e.key == "$set" && e.isDocument():
			for _, set := range elements(e.Leaf) {
				if !o.part(conv, set.key, set.Leaf) {
					o.value(conv, set.key, set.Leaf)
				}
			}
		case e.key == "diff" && e.isDocument():
			o.diff(conv, "", e.Leaf)
		default:
			if e.isDocument() {
				for _, changed := range elements(e.Leaf) {
					o.part(conv, changed.key, changed.Leaf)
				}
			}
			o.unknown("o", e.Leaf, "an update of a kind that is not converted")
		}
	}
}

// part reports whether an update of the field changes a part of a document that the conversion
// replaces as a whole, and lists it.
func (o *operations) part(conv *convert.Conversion, field string, v walk.Leaf) bool {
	if !conv.IsStruct() {
		return false
	}
	for i := range len(field) {
		if field[i] == '.' && o.selected(conv, field[:i]) {
			o.left = append(o.left, convert.LeftWhole(field, v, inPart))
			return true
		}
	}
	return false
}

const inPart = "an update of a part of a document of a Go struct, which is another value after the conversion"

// selected reports whether the conversion applies to the field of an update.
func (o *operations) selected(conv *convert.Conversion, field string) bool {
	return slices.ContainsFunc(names(field), conv.SelectsField)
}

// command converts the operations of a transaction.
func (o *operations) command(object walk.Leaf) {
	operations := lookup(object, "applyOps")
	if operations.Type != bson.TypeArray {
		o.unknown("o", object, "a constant in a command of the oplog, which is copied as it is")
		return
	}
	for _, one := range elements(operations.Leaf) {
		if one.isDocument() {
			o.operation(one.Leaf)
		}
	}
}

// fields converts the values of a document whose fields are below the field prefix.
func (o *operations) fields(conv *convert.Conversion, prefix string, doc walk.Leaf) {
	for _, e := range elements(doc) {
		o.value(conv, below(prefix, e.key), e.Leaf)
	}
}

func below(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// value converts a value of a field, and those in it.
func (o *operations) value(conv *convert.Conversion, field string, v walk.Leaf) {
	edit, left, ok := conv.Value(names(field), v)
	switch {
	case ok && left.Reason == "":
		o.edits = append(o.edits, edit)
		o.c.Values++
		o.res.Values++
		if _, ok := o.c.Fields[field]; !ok && len(o.c.Fields) >= maxFields {
			field = convert.Others
		}
		o.c.Fields[field]++
		return
	case ok:
		left.Path = field
		o.left = append(o.left, left)
	}
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		o.fields(conv, field, v)
	case bson.TypeArray:
		for _, one := range elements(v) {
			o.value(conv, field, one.Leaf)
		}
	}
}

// names returns the names that a field may have in a decision. The paths of updates do not tell
// positions in an array from names that are numbers.
func names(field string) []string {
	var plain, data []string
	uncertain := false
	for _, name := range strings.Split(field, ".") {
		if strings.Trim(name, "0123456789") == "" && name != "" {
			uncertain = true
			data = append(data, "*")
			continue
		}
		if walk.IsData(name) {
			name = "*"
		}
		plain, data = append(plain, name), append(data, name)
	}
	out := []string{strings.Join(plain, ".")}
	if uncertain {
		out = append(out, strings.Join(data, "."))
	}
	return out
}

// diff converts the values of the description of an update of version 2: u and i have the new values
// of fields, and a name that begins with s has the changes below a field. In the description of an
// array, u and s are followed by a position.
func (o *operations) diff(conv *convert.Conversion, field string, d walk.Leaf) {
	array, _ := bson.Raw(d.Value).Lookup("a").BooleanOK()
	if conv.IsStruct() && field != "" && !array && o.selected(conv, field) {
		o.left = append(o.left, convert.LeftWhole(field, d, inPart))
		return
	}
	for _, e := range elements(d) {
		switch key := e.key; {
		case array && strings.HasPrefix(key, "u"):
			o.value(conv, field, e.Leaf)
		case array && strings.HasPrefix(key, "s") && e.isDocument():
			o.diff(conv, field, e.Leaf)
		case (key == "u" || key == "i") && e.isDocument():
			o.fields(conv, field, e.Leaf)
		case strings.HasPrefix(key, "s") && e.isDocument():
			o.diff(conv, below(field, key[1:]), e.Leaf)
		}
	}
}

// unknown lists the values that are in a part of an operation whose fields are not known.
func (o *operations) unknown(path string, v walk.Leaf, reason string) {
	if left, ok := o.Conversion.Left(path, v, reason); ok {
		o.left = append(o.left, left)
		return
	}
	if v.Type == bson.TypeEmbeddedDocument || v.Type == bson.TypeArray {
		for _, e := range elements(v) {
			o.unknown(below(path, e.key), e.Leaf, reason)
		}
	}
}
