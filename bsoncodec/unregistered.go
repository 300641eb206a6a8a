package bsoncodec

import (
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// UnregisteredTypeError is the error of encoding or decoding a value of a type that holds a UUID,
// as far as the registry can tell, and that the registry has no codec for. The driver alone would
// write such a value as binary subtype 0, or as a document that nothing else reads. It is also the
// error of a type of driver version 1, such as primitive.ObjectID, which version 2 takes for another
// one; of a struct that has a marshaling method from a field that it embeds, if that method would
// lose its other fields; and of a value whose marshaling method writes a UUID as binary subtype 0.
// Match it with [errors.As] and a variable of type *UnregisteredTypeError.
type UnregisteredTypeError struct {
	Type reflect.Type

	// Path is where the value is in the document that was encoded, its keys and indexes with dots
	// between them; those in the scope of code follow the key of the code. It is empty if the value is
	// the whole document, or was not found. After decoding it is empty too: the Keys of a
	// [bson.DecodeError], which wraps this error, tell the path.
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

// treatment is what a registry does with the types of kind [16]byte that have no codec of their
// own.
type treatment uint8

const (
	refuse treatment = iota
	asUUID
	asBytes
)

// RegisterBytesType makes t plain bytes, a checksum for example: a value of this type is encoded
// and decoded as the driver does it, as binary subtype 0. Methods, hooks and codecs for t keep
// their precedence.
//
// The kind of t must be [16]byte. Another kind, and a type that is a UUID too, are errors of Build.
func (b *RegistryBuilder) RegisterBytesType(t reflect.Type) *RegistryBuilder {
	b.bytes = append(b.bytes, t)
	return b
}

// UnregisteredAsUUID makes every type of kind [16]byte a UUID, as
// [RegistryBuilder.RegisterUUIDType] does for one type, unless the type has marshaling methods, a
// hook or a codec of its own, or [RegistryBuilder.RegisterBytesType] names it. A kind codec of the
// caller for arrays stays in force. UnregisteredAsUUID and [RegistryBuilder.UnregisteredAsBytes] on
// one builder are an error of Build.
func (b *RegistryBuilder) UnregisteredAsUUID() *RegistryBuilder {
	b.unregistered = append(b.unregistered, asUUID)
	return b
}

// UnregisteredAsBytes keeps the driver's behavior for the types of kind [16]byte that are not
// registered: they are encoded as binary subtype 0, and decoded from the subtypes 0 and 2. A UUID
// type that nobody registered is then written as subtype 0 without an error. UnregisteredAsBytes
// and [RegistryBuilder.UnregisteredAsUUID] on one builder are an error of Build.
func (b *RegistryBuilder) UnregisteredAsBytes() *RegistryBuilder {
	b.unregistered = append(b.unregistered, asBytes)
	return b
}

// treatment returns what the registry does with types that are not registered.
func (b *RegistryBuilder) treatment() treatment {
	if len(b.unregistered) == 0 {
		return refuse
	}
	return b.unregistered[0]
}

func typeSet(types []reflect.Type) map[reflect.Type]bool {
	set := make(map[reflect.Type]bool, len(types))
	for _, t := range types {
		set[t] = true
	}
	return set
}

// arrayCodec stands before the driver's codec for arrays and decides about types of kind [16]byte.
// The driver takes marshaling methods, hooks and type codecs first, so that only types without any
// of them arrive here.
type arrayCodec struct {
	*conversion
	rules        *typeRules
	encoder      bson.ValueEncoder // the driver's
	decoder      bson.ValueDecoder
	implicitType reflect.Type // what a UUID in an any becomes
	known        sync.Map     // of reflect.Type to *octetsType
}

// octetsType is what an arrayCodec does with one type of kind [16]byte. Without a codec or an
// error, that is what the driver does.
type octetsType struct {
	uuid      *uuidCodec
	encodeErr error
	decodeErr error
}

// isOctets reports whether the driver takes t for binary data of 16 bytes.
func isOctets(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem() == tByte
}

// isUUIDKind reports whether t can be registered as a UUID. An array of 16 elements of a defined
// byte type can, although the driver takes it for an array of integers.
func isUUIDKind(t reflect.Type) bool {
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem().Kind() == reflect.Uint8
}

// octetsType returns what c does with the type t.
func (c *arrayCodec) octetsType(t reflect.Type) *octetsType {
	if known, ok := c.known.Load(t); ok {
		return known.(*octetsType)
	}
	o := new(octetsType)
	if !c.rules.bytes[t] {
		o.encodeErr, o.decodeErr = errV1Marshaler(t), errV1Unmarshaler(t)
		if o.encodeErr == nil && c.rules.unregistered != asBytes {
			o.encodeErr = errPointerReceiver(t)
		}
		switch c.rules.unregistered {
		case asUUID:
			o.uuid = newUUIDCodec(c.conversion, t)
		case refuse:
			if o.encodeErr == nil {
				o.encodeErr = errNotRegistered(t, false)
			}
			if o.decodeErr == nil {
				o.decodeErr = errNotRegistered(t, true)
			}
		}
	}
	kept, _ := c.known.LoadOrStore(t, o)
	return kept.(*octetsType)
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

// EncodeValue is the ValueEncoder of arrays.
func (c *arrayCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || !isOctets(val.Type()) {
		if val.IsValid() {
			if err := errV1Type(val.Type(), false); err != nil {
				return err
			}
		}
		return c.encoder.EncodeValue(ec, vw, val)
	}
	switch o := c.octetsType(val.Type()); {
	case o.encodeErr != nil:
		return o.encodeErr
	case o.uuid != nil:
		return o.uuid.EncodeValue(ec, vw, val)
	default:
		return c.encoder.EncodeValue(ec, vw, val)
	}
}

// DecodeValue is the ValueDecoder of arrays.
func (c *arrayCodec) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	switch {
	case !val.IsValid():
		return c.decoder.DecodeValue(dc, vr, val)
	case val.Kind() == reflect.Array && val.Type().Elem() == tAny && val.CanSet() && vr.Type() == bson.TypeArray:
		return decodeAnyArray(c.decoder, c.implicitType, dc, vr, val)
	case !isOctets(val.Type()):
		if err := errV1Type(val.Type(), true); err != nil {
			return err
		}
		return c.decoder.DecodeValue(dc, vr, val)
	}
	switch o := c.octetsType(val.Type()); {
	case o.decodeErr != nil:
		return o.decodeErr
	case o.uuid != nil:
		return o.uuid.DecodeValue(dc, vr, val)
	default:
		return c.decoder.DecodeValue(dc, vr, val)
	}
}
