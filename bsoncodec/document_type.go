package bsoncodec

import (
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// RegisterDocumentType makes t a document of its exported fields, as the driver encodes a struct. The type must be a struct
// that is refused without: a struct around a UUID, which is {uuid: …} if it embeds a [uuid.UUID], a
// UUID that can be null, which is {uuid: …, valid: …} if it is [uuid.NullUUID], a struct of which a
// UUID is lost, itself or by what it has inline, or a struct that has its methods for BSON from a field that it embeds
// beside others. Another type is an error of Build, and so is one that is registered with
// [RegistryBuilder.RegisterUUIDType]. The UUID in the document is encoded and decoded as any other; one
// in a field that is not exported is left out.
//
// Methods for BSON of t are not called then. There is one place where only the driver decides: it calls MarshalBSON and
// UnmarshalBSON of a whole document, which a collection inserts or a cursor decodes, without asking a registry. The
// functions of this package and a collection of package autoid do not. If an embedded field has these two methods, give it
// a name.
//
// If t can be registered as a UUID, what is stored otherwise is read too: a UUID, and null. So programs
// that write the document and programs that write the UUID can run at the same time: first every program
// gets this option, then RegisterUUIDType or [RegistryBuilder.RegisterNullUUIDType] replaces it, of which
// the second is in force for uuid.NullUUID.
//
// Without a codec and without a registration these structs are refused, in both directions, with an
// [*UnregisteredTypeError]. Fields named _ and those tagged bson:"-" do not count:
//
//   - a struct of which the driver stores no field at all, if a UUID is in it or can be reached from it through fields,
//     pointers, arrays, slices and maps, such as struct{ id uuid.UUID };
//   - a struct of a UUID that is not exported and a bool;
//   - a struct that embeds a type that is not exported with the tag inline, if there is a UUID in that;
//   - a struct with such a struct inline, or with a struct inline that is around a UUID and has methods for BSON, unless
//     they are those of a UUID with a struct tag: the driver does not call them;
//   - a struct with a method for BSON that is that of an embedded field, if it has other fields that the driver would store;
//   - inside a document, a struct whose only field is an embedded UUID without a struct tag;
//   - inside a document, a struct of a UUID and a bool Valid without struct tags, with a method Scan.
//
// Types with marshaling methods of the driver that it calls for the value, and those with a codec or
// hook of the caller, are not refused. What is left out next to a field that is stored is left out on purpose.
func (b *RegistryBuilder) RegisterDocumentType(t reflect.Type) *RegistryBuilder {
	if !slices.Contains(b.documents, t) {
		b.documents = append(b.documents, t)
	}
	if canBeNull(t) {
		b.RegisterNullUUIDType(t)
	}
	return b
}

// canBeDocument reports whether RegisterDocumentType takes t: without that it would be refused for some client at least.
func (r *typeRules) canBeDocument(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	if nullFieldsOf(t) != nil || r.isLost(t) {
		return true
	}
	for _, jsonTags := range []bool{false, true} {
		for _, decode := range []bool{false, true} {
			if r.errInline(t, decode, jsonTags, 0) != nil {
				return true
			}
			for _, whole := range []bool{false, true} {
				if _, lost := (method{decode, whole}).promoted(t, true, jsonTags, 0); len(lost) > 0 {
					return true
				}
			}
		}
	}
	f, ok := soleField(t, true) // with "json" struct tags no other field is left out
	if ok && f.Type.Kind() == reflect.Pointer {
		f.Type = f.Type.Elem()
	}
	return ok && (canBeUUID(f.Type) || nullFieldsOf(f.Type) != nil)
}

// isLost reports whether the driver loses the UUIDs of t by some struct tags.
func (r *typeRules) isLost(t reflect.Type) bool {
	return r.lost(t, false, false) != "" || r.lost(t, false, true) != ""
}

// documentEncoder is the encoder of the types that RegisterDocumentType registers. It is the one that
// the registry has for all structs.
type documentEncoder struct{}

// EncodeValue is the ValueEncoder of a document type.
func (documentEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	return encoderOf(ec.Registry, tAnyStruct).EncodeValue(ec, vw, val)
}

// EncoderFor returns the codec that reg has for structs.
func (documentEncoder) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	return encoderOf(reg, tAnyStruct)
}

// documentDecoder is the decoder of the types that RegisterDocumentType registers: the registry's decoder of structs reads
// documents. Everything else is read by uuid, if the type is a struct around a UUID or a UUID that can be null.
type documentDecoder struct{ uuid bson.ValueDecoder }

// DecodeValue is the ValueDecoder of a document type.
func (c documentDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vrType := vr.Type(); c.uuid != nil && vrType != bson.TypeEmbeddedDocument && vrType != 0 {
		return c.uuid.DecodeValue(dc, vr, val)
	}
	return decoderOf(dc.Registry, tAnyStruct).DecodeValue(dc, vr, val)
}

// DecoderFor returns the codec that reg has for structs, if that reads everything.
func (c documentDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if c.uuid != nil {
		return c
	}
	return decoderOf(reg, tAnyStruct)
}

// document returns the value in val, without pointers and interfaces around it, if its type is registered as a document.
func (r *typeRules) document(val reflect.Value) (reflect.Value, bool) {
	if len(r.documents) == 0 {
		return val, false
	}
	for val.Kind() == reflect.Pointer || val.Kind() == reflect.Interface {
		val = val.Elem()
	}
	return val, val.IsValid() && r.documents[val.Type()]
}
