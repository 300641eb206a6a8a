package offline

import (
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
	changed     int
	left        []convert.Left
}

// maxFields is the maximum number of fields that are counted apart.
const maxFields = 2000

func newOperations(r *run) *operations {
	return &operations{run: r, conversions: make(map[string]*convert.Conversion)}
}

// entry converts an entry.
func (o *operations) entry(c *Collection, doc bson.Raw) error {
	if err := walk.Document(doc, func(*walk.Path, walk.Leaf) error { return nil }); err != nil {
		return err
	}
	o.c, o.changed, o.left = c, 0, o.left[:0]
	if c.Fields == nil {
		c.Fields = convert.Tally{}
	}
	o.operation(doc)
	if o.changed > 0 {
		c.Changed++
		o.res.Changed++
	}
	if len(o.left) > 0 {
		o.leave(c, doc.Lookup("ts"), o.left)
	}
	return nil
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
		c.Judge = o.Decisions.For(namespace).Judge(c.From.Order())
		conv = &c
	}
	o.conversions[namespace] = conv
	return conv
}

// operation converts an operation: an entry, or one of the operations of a transaction.
func (o *operations) operation(doc bson.Raw) {
	op, _ := doc.Lookup("op").StringValueOK()
	namespace, _ := doc.Lookup("ns").StringValueOK()
	object, ok := doc.Lookup("o").DocumentOK()
	if !ok {
		return
	}
	switch op {
	case "n": // nothing is done
		return
	case "c":
		o.command(object)
		return
	}
	conv := o.of(namespace)
	if conv == nil {
		return
	}
	if id, ok := doc.Lookup("o2").DocumentOK(); ok {
		o.fields(conv, "", id)
	}
	if op != "u" {
		o.fields(conv, "", object)
		return
	}
	elements, _ := object.Elements() // the document is whole
	replacement := len(elements) == 0 || !strings.HasPrefix(elements[0].Key(), "$")
	for _, e := range elements {
		below, isDoc := e.Value().DocumentOK()
		switch {
		case replacement:
			o.value(conv, e.Key(), e.Value())
		case e.Key() == "$set" && isDoc:
			o.fields(conv, "", below)
		case e.Key() == "diff" && isDoc:
			o.diff(conv, "", below)
		default:
			o.unknown("o", e.Value(), "an update of a kind that is not converted")
		}
	}
}

// command converts the operations of a transaction.
func (o *operations) command(object bson.Raw) {
	operations, ok := object.Lookup("applyOps").ArrayOK()
	if !ok {
		o.unknown("o", bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: object}, "a constant in a command of the oplog, which is copied as it is")
		return
	}
	values, _ := operations.Values()
	for _, v := range values {
		if one, ok := v.DocumentOK(); ok {
			o.operation(one)
		}
	}
}

// fields converts the values of a document whose fields are below the field prefix.
func (o *operations) fields(conv *convert.Conversion, prefix string, doc bson.Raw) {
	elements, _ := doc.Elements()
	for _, e := range elements {
		o.value(conv, below(prefix, e.Key()), e.Value())
	}
}

func below(prefix, name string) string {
	if prefix == "" {
		return name
	}
	return prefix + "." + name
}

// value converts a value of a field, and those in it.
func (o *operations) value(conv *convert.Conversion, field string, v bson.RawValue) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		o.fields(conv, field, v.Document())
	case bson.TypeArray:
		values, _ := v.Array().Values()
		for _, one := range values {
			o.value(conv, field, one)
		}
	case bson.TypeBinary:
		reason, ok := conv.Value(names(field), v.Value[4:])
		switch {
		case !ok:
		case reason != "":
			o.left = append(o.left, convert.Left{Path: field, Old: [16]byte(v.Value[5:]), Reason: reason})
		default:
			o.changed++
			o.c.Values++
			o.res.Values++
			if _, ok := o.c.Fields[field]; !ok && len(o.c.Fields) >= maxFields {
				field = convert.Others
			}
			o.c.Fields[field]++
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
func (o *operations) diff(conv *convert.Conversion, field string, d bson.Raw) {
	array, _ := d.Lookup("a").BooleanOK()
	elements, _ := d.Elements()
	for _, e := range elements {
		key, v := e.Key(), e.Value()
		doc, isDoc := v.DocumentOK()
		switch {
		case array && strings.HasPrefix(key, "u"):
			o.value(conv, field, v)
		case array && strings.HasPrefix(key, "s") && isDoc:
			o.diff(conv, field, doc)
		case (key == "u" || key == "i") && isDoc:
			o.fields(conv, field, doc)
		case strings.HasPrefix(key, "s") && isDoc:
			o.diff(conv, below(field, key[1:]), doc)
		}
	}
}

// unknown lists the values that are in a part of an operation whose fields are not known.
func (o *operations) unknown(path string, v bson.RawValue, reason string) {
	switch v.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, _ := bson.Raw(v.Value).Elements()
		for _, e := range elements {
			o.unknown(below(path, e.Key()), e.Value(), reason)
		}
	case bson.TypeBinary:
		if b := v.Value[4:]; len(b) == 17 && b[0] == o.Conversion.From.Subtype {
			o.left = append(o.left, convert.Left{Path: path, Old: [16]byte(b[1:]), Reason: reason})
		}
	}
}
