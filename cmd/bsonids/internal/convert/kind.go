package convert

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/forms"
	"github.com/bsonids/bsonids/uuidrep"
)

// Kind is a way to store a UUID: a binary subtype and a byte order, or a form that is not binary.
type Kind struct {
	Name    string
	Subtype byte // if Form is not Binary, a number that is no subtype
	Form    forms.Form
	order   uuidrep.Representation
}

// Order returns the representation that has the byte order of k.
func (k Kind) Order() uuidrep.Representation { return k.order }

// generic is the name of the kind that Go programs write without a codec.
const generic = "generic"

// ParseKind returns the kind with the name s: a representation, or generic for subtype 0 in network
// byte order. The case of s is ignored.
func ParseKind(s string) (Kind, error) {
	if strings.EqualFold(s, generic) {
		return Kind{Name: generic, Subtype: bson.TypeBinaryGeneric, order: uuidrep.Standard}, nil
	}
	r, err := uuidrep.Parse(s)
	if err != nil || r == uuidrep.Unspecified {
		return Kind{}, fmt.Errorf("invalid representation %q: must be standard, csharpLegacy, javaLegacy, pythonLegacy, or generic (subtype 0)", s)
	}
	subtype, err := r.Subtype()
	return Kind{Name: r.String(), Subtype: subtype, order: r}, err
}
