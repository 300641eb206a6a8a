// Package constants finds the UUIDs in the definitions of a database: in the pipelines of views, in validators, and in the
// filters of partial indexes. No conversion of documents changes them.
package constants

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Of is what a definition defines.
type Of string

// The kinds of definitions.
const (
	Validator Of = "validator"
	Index     Of = "index"
	View      Of = "view"
)

// Definition is one definition that may have constants.
type Definition struct {
	Of    Of
	Name  string        // of the collection, or of the view
	Index string        // its name
	On    string        // the collection or the view that a view shows
	Is    bson.RawValue // a document, or the array of a pipeline
	// All is the whole index as listIndexes has it, or the options of the collection as listCollections has them.
	All bson.Raw
}

// String names the definition.
func (d Definition) String() string {
	switch d.Of {
	case Index:
		return fmt.Sprintf("index %q of %q", d.Index, d.Name)
	case View:
		return fmt.Sprintf("view %q", d.Name)
	}
	return fmt.Sprintf("%s of %q", d.Of, d.Name)
}

// Constant is a UUID in a definition.
type Constant struct {
	Stored kinds.Stored
	Value  bson.RawValue
	// Collection and Path are those of the field that the constant is compared with, without the brackets of arrays. Path is
	// empty if that cannot be told.
	Collection, Path string
}

// Definitions are those of a database.
type Definitions []Definition

// Replace returns a definition in which each constant is what by returns, or itself if that is nil. The bounds of a binary
// subtype that a validator refuses are no constants.
func (all Definitions) Replace(d Definition, by func(Constant) *bson.RawValue) bson.RawValue {
	w := &walker{all: all, by: by, validator: d.Of == Validator}
	var out any
	switch d.Of {
	case View:
		from := w.source(d.On, 0)
		out, _ = w.pipeline(d.Is, from)
	default:
		out = w.query(d.Is, field{collection: d.Name, told: true})
	}
	t, b, err := bson.MarshalValue(out)
	if err != nil {
		return d.Is
	}
	return bson.RawValue{Type: t, Value: b}
}

// Without returns the filter of an index with null in the places of its UUIDs, and other values as they are.
func Without(filter bson.RawValue) bson.RawValue {
	if filter.Type != bson.TypeEmbeddedDocument {
		return filter
	}
	null := bson.RawValue{Type: bson.TypeNull}
	return Definitions{}.Replace(Definition{Of: Index, Is: filter}, func(Constant) *bson.RawValue { return &null })
}

// walker walks through definitions.
type walker struct {
	all       Definitions
	by        func(Constant) *bson.RawValue
	validator bool
	negated   bool // the documents that match are those that the validator refuses
}

// not calls do with what matches negated.
func (w *walker) not(do func() any) any {
	w.negated = !w.negated
	defer func() { w.negated = !w.negated }()
	return do()
}

// refuses reports whether a condition is one of the two by which a validator refuses the UUIDs of a subtype: values from the
// first one on, or up to the last one. With the bounds of another subtype, it would refuse what it is there for.
func (w *walker) refuses(operator string, v bson.RawValue) bool {
	if !w.validator || !w.negated || v.Type != bson.TypeBinary {
		return false
	}
	bound := byte(0)
	switch operator {
	case "$gt", "$gte":
	case "$lt", "$lte":
		bound = 0xff
	default:
		return false
	}
	_, data := v.Binary()
	return !slices.ContainsFunc(data, func(b byte) bool { return b != bound })
}

// field is the field that a value is compared with.
type field struct {
	collection, path string
	told             bool
	made             map[string]bool // fields at the top level that stages before have made
}

func (f field) in(name string) field {
	if f.path != "" {
		name = f.path + "." + name
	}
	f.path = name
	return f
}

// unknown returns a field of which nothing is known.
func (f field) unknown() field { return field{} }

// value replaces a value that is compared with the field: itself, or what is in it.
func (w *walker) value(v bson.RawValue, f field) any {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		return w.fields(v, func(key string, v bson.RawValue) any { return w.value(v, f.in(key)) })
	case bson.TypeArray:
		return w.elements(v, func(v bson.RawValue) any { return w.value(v, f) })
	}
	stored, _, ok := kinds.Read(walk.Leaf{Type: v.Type, Value: v.Value})
	if !ok {
		return v
	}
	c := Constant{Stored: stored, Value: v, Collection: f.collection}
	top, _, _ := strings.Cut(f.path, ".")
	if f.told && !f.made[top] {
		c.Path = plain(f.path)
	}
	if by := w.by(c); by != nil {
		return *by
	}
	return v
}

// plain returns a path without the positions of arrays.
func plain(path string) string {
	var names []string
	for i, name := range strings.Split(path, ".") {
		if i > 0 && name != "" && strings.Trim(name, "0123456789") == "" {
			continue
		}
		names = append(names, name)
	}
	return strings.Join(names, ".")
}

func (w *walker) fields(v bson.RawValue, of func(key string, v bson.RawValue) any) any {
	elements, err := v.Document().Elements()
	if err != nil {
		return v
	}
	d := bson.D{}
	for _, e := range elements {
		d = append(d, bson.E{Key: e.Key(), Value: of(e.Key(), e.Value())})
	}
	return d
}

func (w *walker) elements(v bson.RawValue, of func(v bson.RawValue) any) any {
	all, err := v.Array().Values()
	if err != nil {
		return v
	}
	a := bson.A{}
	for _, v := range all {
		a = append(a, of(v))
	}
	return a
}

// operators reports whether a value is a document of operators.
func operators(v bson.RawValue) bool {
	doc, ok := v.DocumentOK()
	if !ok {
		return false
	}
	elements, err := doc.Elements()
	return err == nil && len(elements) > 0 && strings.HasPrefix(elements[0].Key(), "$")
}
