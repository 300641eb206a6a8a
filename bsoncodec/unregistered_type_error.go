package bsoncodec

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// UnregisteredTypeError says that a value was not encoded or decoded because the driver would store it in
// a form that nothing else reads, or lose a part of it:
//
//   - The type holds a UUID, as far as the registry can tell, and the registry has no codec for it. The
//     driver would write binary subtype 0, or a document.
//   - The type is one of driver version 1, such as primitive.ObjectID. Version 2 takes it for another one.
//   - The type is a struct that has a marshaling method from a field that it embeds, and the method would
//     lose its other fields.
//   - The marshaling method of the value writes a UUID as binary subtype 0.
//
// Match it with [errors.As] and a variable of type *UnregisteredTypeError.
type UnregisteredTypeError struct {
	Type reflect.Type

	// Path says where the value is in the document that was encoded: the keys and indexes with dots
	// between them. For a value in the scope of code, the key of the code comes first. Path is empty if
	// the value is the whole document, or if it was not found. It is also empty after decoding: then the
	// Keys of the [bson.DecodeError] that wraps this error tell the path.
	Path string

	decode         bool
	notAddressable bool                     // a value that is addressable is encoded
	method         bool                     // the method of a value or of a pointer to it is refused
	only           func(reflect.Value) bool // reports whether a value is refused, nil if all of the type are
	reason         string
}

func (e *UnregisteredTypeError) Error() string {
	verb := "encode"
	if e.decode {
		verb = "decode a value into"
	}
	at := ""
	if e.Path != "" {
		at = " at " + strconv.Quote(e.Path)
	}
	return fmt.Sprintf("bsoncodec: cannot %s %s%s: %s", verb, qualified(e.Type), at, e.reason)
}

// typeFor returns the Go expression for the reflect.Type t, as far as the name of t tells.
func typeFor(t reflect.Type) string { return "reflect.TypeFor[" + typeName(t) + "]()" }

// typeName returns the name of t as Go code writes it, as far as the reflect.Type tells.
func typeName(t reflect.Type) string {
	var name strings.Builder
	start := 0 // of the last identifier or import path
	s := t.String()
	for i := range len(s) {
		switch s[i] {
		case '[', ']', ',', '*', ' ', '{', '}':
			name.WriteString(s[start : i+1])
			start = i + 1
		case '/':
			start = i + 1
		}
	}
	name.WriteString(s[start:])
	return name.String()
}

// qualified returns the name of t with the import path of its package.
func qualified(t reflect.Type) string {
	if t.PkgPath() == "" {
		return t.String()
	}
	return t.PkgPath() + "." + t.Name()
}

// errNotRegistered is the error of a t of kind [16]byte that is not registered.
func errNotRegistered(t reflect.Type, decode bool) error {
	return &UnregisteredTypeError{Type: t, decode: decode, reason: fmt.Sprintf("its kind is [16]byte and it is not registered: "+
		"call RegisterUUIDType(%s) of the RegistryBuilder if it is a UUID, or RegisterBytesType if it is plain bytes", typeFor(t))}
}

// errPointerReceiver is the error of encoding a t that has marshaling methods: it comes to an
// arrayCodec only if they have a pointer receiver and the value is not addressable. The error is
// nil if t has none. A value that is decoded into is always addressable.
func errPointerReceiver(t reflect.Type) error {
	if p := reflect.PointerTo(t); !p.Implements(tValueMarshaler) && !p.Implements(tMarshaler) {
		return nil
	}
	return &UnregisteredTypeError{Type: t, notAddressable: true, reason: "its marshaling method has a pointer receiver, and the driver calls " +
		"that for addressable values only: give the method a value receiver, or encode a pointer"}
}
