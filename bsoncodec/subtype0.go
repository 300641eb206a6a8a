package bsoncodec

import (
	"bytes"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// A method that calls bson.Marshal or bson.MarshalValue for a value with a UUID, as a generic Optional[T] does, returns
// binary subtype 0: the registry of these functions has no codec for UUIDs. What tells such octets from other data is that
// they are those of a UUID in the value whose method it is.

// octetsOfSubtype0 are the length and the subtype of 16 bytes of subtype 0.
var octetsOfSubtype0 = []byte{16, 0, 0, 0, bson.TypeBinaryGeneric}

// errSubtype0 is the error of returned, what the method m of val returned, if there is a UUID of val in it as subtype 0. It
// is nil if there is none. t is the type of val without pointers.
func (r *typeRules) errSubtype0(val reflect.Value, t reflect.Type, m method, returned bson.RawValue) error {
	if !bytes.Contains(returned.Value, octetsOfSubtype0) {
		return nil // most values
	}
	var found func([16]byte) bool
	var octets *[16]byte
	eachSubtype0(returned, func(u [16]byte) bool {
		if found == nil {
			found = r.octetsIn(val)
		}
		if found(u) {
			octets = &u
		}
		return octets == nil
	})
	if octets == nil {
		return nil
	}
	return &UnregisteredTypeError{Type: t, method: true, only: func(v reflect.Value) bool { return r.octetsIn(v)(*octets) }, reason: "its method " + m.name() + " writes a UUID as binary subtype 0, " +
		"as bson.Marshal and bson.MarshalValue do: use bsoncodec.Marshal or bsoncodec.MarshalValue with a registry of your own in it, " +
		"or a field type of package uuidrep; if this is meant, call AllowSubtype0OfMethods of the RegistryBuilder"}
}

// eachSubtype0 calls f with the octets of each binary value of subtype 0 and 16 octets in v, until f returns false.
func eachSubtype0(v bson.RawValue, f func([16]byte) bool) bool {
	switch v.Type {
	case bson.TypeBinary:
		if len(v.Value) == 21 && bytes.HasPrefix(v.Value, octetsOfSubtype0) {
			return f([16]byte(v.Value[5:]))
		}
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, _ := bson.Raw(v.Value).Elements() // those before what is malformed
		for _, e := range elements {
			if !eachSubtype0(e.Value(), f) {
				return false
			}
		}
	case bson.TypeCodeWithScope:
		if _, scope, ok := v.CodeWithScopeOK(); ok {
			return eachSubtype0(bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: scope}, f)
		}
	}
	return true
}

// octetsIn returns what tells whether octets are those of a UUID in val, in the order of any representation, and not plain
// bytes in val, too. For a value with a lock, which must not be read, its type tells whether all octets are.
func (r *typeRules) octetsIn(val reflect.Value) func([16]byte) bool {
	for val.Kind() == reflect.Pointer || val.Kind() == reflect.Interface {
		val = val.Elem()
	}
	if val.Kind() == reflect.Struct && isShared(val.Type()) {
		held := r.canHoldUUID(val.Type(), true)
		return func([16]byte) bool { return held }
	}
	s := octetsSearch{rules: r, uuids: map[[16]byte]bool{}, plain: map[[16]byte]bool{}, seen: map[visited]bool{}, values: maxSearched}
	s.search(val, 0)
	return func(u [16]byte) bool { return s.uuids[u] && !s.plain[u] }
}

// An octetsSearch collects the octets in a value, that in fields that are not exported included.
type octetsSearch struct {
	rules        *typeRules
	uuids, plain map[[16]byte]bool
	seen         map[visited]bool
	values       int // that may still be looked at
}

// A visited is a pointer or a map that was looked at.
type visited struct {
	at uintptr
	t  reflect.Type
}

func (s *octetsSearch) search(v reflect.Value, depth int) {
	if s.values--; s.values < 0 || depth > maxSearchedDepth || !v.IsValid() {
		return
	}
	t := v.Type()
	switch t.Kind() {
	case reflect.Pointer, reflect.Map:
		at := visited{v.Pointer(), t}
		if v.IsNil() || s.seen[at] {
			return
		}
		s.seen[at] = true
	case reflect.Array, reflect.Slice, reflect.Struct, reflect.Interface, reflect.String:
	default:
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		s.search(v.Elem(), depth+1)
	case reflect.String:
		if v.Len() == len(uuid.UUID{}.String()) {
			if u, err := uuid.Parse(v.String()); err == nil {
				s.addUUID(u)
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			s.search(it.Key(), depth+1)
			s.search(it.Value(), depth+1)
		}
	case reflect.Array, reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			s.addOctets(v)
			return
		}
		for i := range v.Len() {
			s.search(v.Index(i), depth+1)
		}
	case reflect.Struct:
		if isShared(t) {
			return
		}
		for i := range t.NumField() {
			s.search(v.Field(i), depth+1)
		}
	}
}

// addOctets adds v, an array or a slice of bytes, if it has 16.
func (s *octetsSearch) addOctets(v reflect.Value) {
	if v.Len() != 16 {
		return
	}
	var u [16]byte
	for i := range u {
		u[i] = byte(v.Index(i).Uint())
	}
	if v.Kind() == reflect.Array && s.rules.isOctetsOfUUID(v.Type()) {
		s.addUUID(u)
	} else {
		s.plain[u] = true
	}
}

func (s *octetsSearch) addUUID(u [16]byte) {
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy} {
		var ordered [16]byte
		permute(ordered[:], u[:], rep)
		s.uuids[ordered] = true
	}
}

// isShared reports whether other goroutines may change a struct of type t while it is read, as a service to which the value
// has a pointer: whether it has a lock, a channel or a function.
func isShared(t reflect.Type) bool {
	for i := range t.NumField() {
		ft := t.Field(i).Type
		if path := ft.PkgPath(); path == "sync" || path == "sync/atomic" {
			return true
		}
		switch ft.Kind() {
		case reflect.Chan, reflect.Func, reflect.UnsafePointer:
			return true
		}
	}
	return false
}
