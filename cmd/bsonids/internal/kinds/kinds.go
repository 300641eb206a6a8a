// Package kinds has the ways to store a UUID, in one table, and reads UUIDs that are stored in each.
package kinds

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// Kind is a way to store a UUID: a binary subtype and a byte order, or a form that is not binary. Kinds
// can be compared with ==. The zero value is no kind.
type Kind struct {
	Name   string
	stored Stored
	// Subtype is that of the values. A kind that is not binary has a number in its place that is none:
	// BSON gives meanings to 0 to 9, and leaves those from 128 on to users.
	Subtype byte
	Form    Form
	Order   uuidrep.Representation // has the byte order of the values
	note    string                 // what a list of names says about the kind
	// Calls has the functions of shells that write such a value of a UUID. The first one is that
	// of mongosh and Compass, others are those of uuidhelpers.js and of graphical clients.
	Calls string
	// Default names the programs that wrote the kind unless they were told otherwise.
	Default string
}

// The names of the kinds that have a meaning of their own.
const (
	Standard = "standard" // the only kind that its subtype determines
	Generic  = "generic"  // what Go programs write without a codec
	OfText   = "text"
	GoStruct = "goStruct"
	// OfBinaryText is the kind of binary values whose bytes are the text of a UUID. PHP's Doctrine, Mongoose's Buffer and
	// old versions of Spring write it.
	OfBinaryText = "binaryText"
	// OfMalformed is the kind of values that say that they are UUIDs and are none. A conversion lists them, and changes none.
	OfMalformed = "malformed"
)

var table = []Kind{
	{Name: Standard, stored: Subtype4, Subtype: bson.TypeBinaryUUID, Order: uuidrep.Standard, Calls: "UUID GUID"},
	{Name: "csharpLegacy", stored: Subtype3, Subtype: bson.TypeBinaryUUIDOld, Order: uuidrep.CSharpLegacy,
		Calls: "LegacyCSharpUUID CSUUID CSGUID NUUID", Default: "C# until 2.x"},
	{Name: "javaLegacy", stored: Subtype3, Subtype: bson.TypeBinaryUUIDOld, Order: uuidrep.JavaLegacy,
		Calls: "LegacyJavaUUID JUUID JGUID", Default: "Java until 3.x"},
	{Name: "pythonLegacy", stored: Subtype3, Subtype: bson.TypeBinaryUUIDOld, Order: uuidrep.PythonLegacy,
		Calls: "LegacyPythonUUID PYUUID PYGUID", Default: "PyMongo until 3.x"},
	{Name: Generic, stored: Subtype0, Subtype: bson.TypeBinaryGeneric, Order: uuidrep.Standard, note: "subtype 0, network order"},
	{Name: OfText, stored: OfText, Subtype: 127, Form: Text, Order: uuidrep.Standard},
	{Name: GoStruct, stored: GoStruct, Subtype: 126, Form: Struct, Order: uuidrep.Standard, note: "{uuid: …, valid: …}"},
	{Name: OfBinaryText, stored: OfBinaryText, Subtype: 125, Form: BinaryText, Order: uuidrep.Standard, note: "the characters of a UUID in a binary value"},
	{Name: OfMalformed, stored: OfMalformed, Subtype: 124, Form: Malformed, Order: uuidrep.Standard},
}

// All returns all kinds.
func All() []Kind { return slices.Clone(table) }

// Where returns the kinds for which is is true.
func Where(is func(Kind) bool) []Kind {
	return slices.DeleteFunc(All(), func(k Kind) bool { return !is(k) })
}

// Names returns the names of the kinds.
func Names(kinds []Kind) []string {
	var names []string
	for _, k := range kinds {
		names = append(names, k.Name)
	}
	return names
}

// Parse returns the kind with the name s. The case of s is ignored.
func Parse(s string) (Kind, error) {
	for _, k := range table {
		if strings.EqualFold(s, k.Name) {
			return k, nil
		}
	}
	return Kind{}, fmt.Errorf("invalid representation %q: must be %s", s, list())
}

// list returns the names of the kinds of UUIDs for a reader: a, b, or c.
func list() string {
	uuids := Where(func(k Kind) bool { return k.Form != Malformed })
	names := Names(uuids)
	for i, k := range uuids {
		if k.note != "" {
			names[i] += " (" + k.note + ")"
		}
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + ", or " + names[last]
}

// bySubtype returns the first kind of the subtype, or with the number in its place.
func bySubtype(subtype byte) (k Kind, ok bool) {
	for i := range table {
		if table[i].Subtype == subtype {
			return table[i], true
		}
	}
	return k, false
}

// Read returns how a value is stored, and the UUID, whose bytes are in network order only if it is not binary.
// ok is false if the value is none.
func Read(l walk.Leaf) (stored Stored, s Spelled, ok bool) {
	switch n := len(l.Value); l.Type {
	case bson.TypeBinary:
		subtype, data, _, _ := l.Binary()
		if len(data) != 16 {
			if s, ok = ParseBinaryText(l); !ok {
				return "", s, false
			}
			return OfBinaryText, s, true
		}
		k, ok := bySubtype(subtype)
		return k.stored, Spelled{UUID: [16]byte(data), Certain: k.BySubtype()}, ok && k.IsBinary()
	case bson.TypeString:
		s, _, ok = Text.Parse(l)
		return OfText, s, ok
	case bson.TypeEmbeddedDocument:
		if n == 32 || n == 40 { // no document of the form has another size
			s, _, ok = ParseStruct(l.Value)
		}
		return GoStruct, s, ok
	}
	return "", s, false
}

// NameOf returns the name of the values of the subtype that have the byte order of r. It is that of a
// kind if there is one.
func NameOf(subtype byte, r uuidrep.Representation) string {
	for _, k := range table {
		if k.Subtype == subtype && network(k.Order) == network(r) {
			return k.Name
		}
	}
	program := ""
	for _, k := range table {
		if k.Order == r && k.Default != "" {
			program, _, _ = strings.Cut(k.Default, " ")
		}
	}
	return fmt.Sprintf("subtype %d in %s order", subtype, program)
}

// network returns standard for the representations in network byte order, which have the same order.
func network(r uuidrep.Representation) uuidrep.Representation {
	if r == uuidrep.PythonLegacy {
		return uuidrep.Standard
	}
	return r
}

// IsBinary reports whether the values of the kind are binary.
func (k Kind) IsBinary() bool { return k.Form == Binary }

// BySubtype reports whether the subtype of a value alone tells that it is of the kind.
func (k Kind) BySubtype() bool { return k.Name == Standard }

// NeedsField reports whether a value that looks like one of the kind may be something else, so that
// only named fields are converted.
func (k Kind) NeedsField() bool { return !k.IsBinary() || k.Name == Generic }

// String returns the name of the kind, with the subtype if it has one.
func (k Kind) String() string {
	if !k.IsBinary() {
		return k.Name
	}
	return fmt.Sprintf("%s (subtype %d)", k.Name, k.Subtype)
}

// Has reports whether a value may be one of the kind: a binary value of 16 bytes and of its subtype, or
// a value of the BSON type of its form.
func (k Kind) Has(l walk.Leaf) bool {
	if !k.IsBinary() {
		return k.Form.Applies(l)
	}
	subtype, data, _, ok := l.Binary()
	return ok && len(data) == 16 && subtype == k.Subtype
}

// Stored is how values are stored, without their byte order.
type Stored string

// The ways in which binary values are stored.
const (
	Subtype4 Stored = "subtype 4"
	Subtype3 Stored = "subtype 3"
	Subtype0 Stored = "subtype 0"
)

// Stored returns how the values of the kind are stored.
func (k Kind) Stored() Stored { return k.stored }

// StoredAs returns how binary values of the subtype of a kind are stored.
func StoredAs(subtype byte) Stored {
	k, _ := bySubtype(subtype)
	return k.stored
}

// AllStored returns the names of the ways in which values are stored.
func AllStored() []string {
	var all []string
	for _, k := range table {
		if s := string(k.Stored()); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// IsBinary reports whether the values are binary.
func (s Stored) IsBinary() bool {
	for i := range table { // a copy of the table for each value would be slow
		if table[i].stored == s {
			return table[i].Form == Binary
		}
	}
	return false
}

// Kinds returns the kinds whose values are stored so.
func (s Stored) Kinds() []Kind { return Where(func(k Kind) bool { return k.Stored() == s }) }
