package bsoncodec

import (
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// RegisterDocumentType makes t a document, as the driver encodes a struct. The type must be a struct
// around a UUID, which is {uuid: …} if it embeds a [uuid.UUID], or a UUID that can be null, which is
// {uuid: …, valid: …} if it is [uuid.NullUUID]; another type is an error of Build, and so is one that
// is registered with [RegistryBuilder.RegisterUUIDType]. The UUID in the document is encoded and
// decoded as any other.
//
// What is stored otherwise is read too: a UUID, and null. So programs that write the document and
// programs that write the UUID can run at the same time: first every program gets this option, then
// RegisterUUIDType or [RegistryBuilder.RegisterNullUUIDType] replaces it, of which the second is in
// force for uuid.NullUUID.
//
// Without a codec and without a registration a struct around a UUID is refused inside a document, in
// both directions, with an [*UnregisteredTypeError]. Such a struct has one field besides those named _
// and those tagged bson:"-". The field is a UUID without a struct tag, and it is embedded, or it is not
// exported and the struct has a method MarshalText or MarshalJSON. A UUID that can be null is refused
// in the same way: a struct of two fields without struct tags, as RegisterNullUUIDType takes it, with a
// method Scan. Types with marshaling methods of the driver, and those with a codec or hook of the
// caller, are not. A field with the tag inline is refused too if its struct is around a UUID that is not
// exported and the struct is registered or has such a method, or if it has methods for BSON that are not
// those of a UUID with a struct tag: the driver stores nothing then, or does not call them.
func (b *RegistryBuilder) RegisterDocumentType(t reflect.Type) *RegistryBuilder {
	if !slices.Contains(b.documents, t) {
		b.documents = append(b.documents, t)
	}
	if newNullUUIDCodec(t) != nil {
		b.RegisterNullUUIDType(t)
	}
	return b
}

// canBeDocument reports whether RegisterDocumentType takes t.
func canBeDocument(t reflect.Type) bool {
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	if newNullUUIDCodec(t) != nil {
		return true
	}
	f, ok := soleField(t, true) // with "json" struct tags no other field is left out
	if ok && f.Type.Kind() == reflect.Pointer {
		f.Type = f.Type.Elem()
	}
	return ok && (canBeUUID(f.Type) || newNullUUIDCodec(f.Type) != nil)
}

// registerDocuments is called when [RegistryBuilder.registerNulls] is, for the same reason.
func (b *RegistryBuilder) registerDocuments(reg *bson.Registry, u *conversion) {
	for _, t := range b.documents {
		if driver.HasOwnEncoder(reg, t) {
			reg.RegisterTypeEncoder(t, documentEncoder{})
		}
		if canBeUUID(t) && driver.HasOwnDecoder(reg, t) {
			reg.RegisterTypeDecoder(t, documentDecoder{newUUIDCodec(u, t)})
		}
	}
}

// anyStruct finds the registry's codecs for structs: no codec is registered for this very type.
type anyStruct struct{}

var tAnyStruct = reflect.TypeFor[anyStruct]()

// documentEncoder is the encoder of the types that RegisterDocumentType registers. It is the one that
// the registry has for all structs.
type documentEncoder struct{}

// EncodeValue is the ValueEncoder of a struct around a UUID.
func (documentEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	return encoderOf(ec.Registry, tAnyStruct).EncodeValue(ec, vw, val)
}

// EncoderFor returns the codec that reg has for structs.
func (documentEncoder) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	return encoderOf(reg, tAnyStruct)
}

// documentDecoder is the decoder of a struct around a UUID: the registry's decoder of structs reads
// documents, and uuid everything else.
type documentDecoder struct{ uuid *uuidCodec }

// DecodeValue is the ValueDecoder of a struct around a UUID.
func (c documentDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vrType := vr.Type(); vrType != bson.TypeEmbeddedDocument && vrType != 0 {
		return c.uuid.DecodeValue(dc, vr, val)
	}
	return decoderOf(dc.Registry, tAnyStruct).DecodeValue(dc, vr, val)
}
