package bsoncodec

import (
	"fmt"
	"reflect"
)

// In version 1 of the driver, marshaling methods have the type bsontype.Type where those of version
// 2 have byte:
//
//	MarshalBSONValue() (bsontype.Type, []byte, error)
//	UnmarshalBSONValue(bsontype.Type, []byte) error
//
// Version 2 does not call such methods, so that the value is stored in a form that its author did
// not mean.

var (
	tBytes = reflect.TypeFor[[]byte]()
	tError = reflect.TypeFor[error]()
)

// hasV1Marshaler reports whether t or *t has the method MarshalBSONValue of driver version 1.
func hasV1Marshaler(t reflect.Type) bool {
	m, ok := reflect.PointerTo(t).MethodByName("MarshalBSONValue")
	return ok && m.Type.NumIn() == 1 && m.Type.NumOut() == 3 &&
		isNamedByte(m.Type.Out(0)) && m.Type.Out(1) == tBytes && m.Type.Out(2) == tError
}

// hasV1Unmarshaler reports whether t or *t has the method UnmarshalBSONValue of driver version 1.
func hasV1Unmarshaler(t reflect.Type) bool {
	m, ok := reflect.PointerTo(t).MethodByName("UnmarshalBSONValue")
	return ok && m.Type.NumIn() == 3 && m.Type.NumOut() == 1 &&
		isNamedByte(m.Type.In(1)) && m.Type.In(2) == tBytes && m.Type.Out(0) == tError
}

// isNamedByte reports whether t can be bsontype.Type, which is not imported, or bson.Type in its
// place.
func isNamedByte(t reflect.Type) bool { return t.Kind() == reflect.Uint8 && t != tByte }

// errV1Marshaler is the error of encoding a t that has the method of driver version 1, nil if it
// has none.
func errV1Marshaler(t reflect.Type) error {
	if !hasV1Marshaler(t) {
		return nil
	}
	return &UnregisteredTypeError{Type: t, reason: v1Reason("MarshalBSONValue() (byte, []byte, error)", "returns a byte")}
}

// errV1Unmarshaler is the error of decoding into a t that has the method of driver version 1, nil
// if it has none.
func errV1Unmarshaler(t reflect.Type) error {
	if !hasV1Unmarshaler(t) {
		return nil
	}
	return &UnregisteredTypeError{Type: t, decode: true, reason: v1Reason("UnmarshalBSONValue(byte, []byte) error", "takes a byte")}
}

func v1Reason(method, does string) string {
	return fmt.Sprintf("the driver does not call its method, which has the form of driver version 1: change it to %s, "+
		"which %s in place of a BSON type, or register a codec for the type", method, does)
}

// holdsUUID reports whether a value of type t can hold a UUID: whether it is of kind [16]byte, or
// has a field, an element or a key that is, at any depth.
func holdsUUID(t reflect.Type) bool {
	return leadsTo(t, allFields, func(t reflect.Type) answer {
		if isUUIDKind(t) {
			return yes
		}
		return look
	})
}

// The types of driver version 1 compile in programs of version 2, which does not know them. It writes
// primitive.ObjectID as a binary value, primitive.Binary as {subtype: …, data: …}, and primitive.D as
// an array of {key: …, value: …}.

var v1Path = "go.mongodb.org/mongo-driver/" // tests replace it

// v1Name returns the name that t, a type of driver version 1, has in version 2, "" for any other type,
// and for those that are stored alike. Driver version 1 is not imported.
func v1Name(t reflect.Type) string {
	name := t.Name()
	switch t.PkgPath() {
	case v1Path + "bson/primitive":
		if name != "M" && name != "A" {
			return "bson." + name
		}
	case v1Path + "bson":
		switch name {
		case "Raw", "RawValue", "RawElement":
			return "bson." + name
		}
	case v1Path + "x/bsonx/bsoncore":
		switch name {
		case "Document":
			return "bson.Raw"
		case "Array":
			return "bson.RawArray"
		case "Element":
			return "bson.RawElement"
		case "Value":
			return "bson.RawValue"
		}
	}
	return ""
}

// errV1Type is the error of a type of driver version 1, nil for any other type.
func errV1Type(t reflect.Type, decode bool) error {
	name := v1Name(t)
	if name == "" {
		return nil
	}
	return &UnregisteredTypeError{Type: t, decode: decode, reason: "it is a type of driver version 1, which version 2 takes for " +
		"another value: use " + name + " of go.mongodb.org/mongo-driver/v2/bson"}
}
