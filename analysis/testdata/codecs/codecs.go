// Package codecs has hand-written codecs for UUIDs. // want package:`driver: `
package codecs

import (
	"errors"
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

var tUUID = reflect.TypeOf(uuid.UUID{})

func registry() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(tUUID, bson.ValueEncoderFunc(encodeReflected))
	reg.RegisterTypeDecoder(reflect.TypeFor[uuid.UUID](), bson.ValueDecoderFunc(decodeReflected))
	reg.RegisterTypeDecoder(tUUID, literal)
	reg.RegisterTypeEncoder(tUUID, codec{})
	reg.RegisterTypeDecoder(tUUID, &codec{})
	reg.RegisterTypeEncoder(tUUID, textCodec{})
	reg.RegisterTypeDecoder(tUUID, textCodec{})
	reg.RegisterTypeDecoder(reflect.TypeFor[blob](), bson.ValueDecoderFunc(decodeBlob))
	reg.RegisterTypeDecoder(tUUID, bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
		data, subtype, err := vr.ReadBinary() // want `a hand-written codec for a UUID, which reads any length: bsoncodec`
		if subtype != bson.TypeBinaryUUID {
			return errors.New("no UUID")
		}
		reflect.Copy(v, reflect.ValueOf(data))
		return err
	}))
	return reg
}

func encodeReflected(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	return vw.WriteBinary(v.Bytes()) // want `which writes subtype 0, which other drivers do not read`
}

func decodeReflected(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	data, _, err := vr.ReadBinary() // want `which reads any subtype and reads any length`
	reflect.Copy(v, reflect.ValueOf(data))
	return err
}

var literal = bson.ValueDecoderFunc(func(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	data, _, err := vr.ReadBinary() // want `which reads any subtype and reads any length`
	v.SetBytes(data[:16])
	return err
})

// A codec for text that this package registers, and a function that writes the text of a UUID.
type textCodec struct{}

func (textCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	s, err := v.Interface().(uuid.UUID).MarshalText()
	if err != nil {
		return err
	}
	return vw.WriteString(string(s)) // want `a hand-written codec for a UUID, which writes text, as EncodeAsString does: bsoncodec`
}

func (textCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	s, err := vr.ReadString() // want `a hand-written codec for a UUID, which reads text, as AlsoDecodeString does: bsoncodec`
	if err != nil {
		return err
	}
	u, err := uuid.Parse(s)
	v.Set(reflect.ValueOf(u))
	return err
}

func writeText(vw bson.ValueWriter, u uuid.UUID, name string) error {
	if err := vw.WriteString(name); err != nil {
		return err
	}
	return vw.WriteString(u.String()) // want `which writes text, as EncodeAsString does`
}

func readText(vr bson.ValueReader) (uuid.UUID, error) {
	s, err := vr.ReadString() // no codec
	if err != nil {
		return uuid.Nil, err
	}
	return uuid.Parse(s)
}

type blob []byte

func decodeBlob(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	data, _, err := vr.ReadBinary()
	v.SetBytes(data)
	return err
}

type codec struct{}

func (codec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	u := v.Interface().(uuid.UUID)
	b, err := u.MarshalBinary()
	if err != nil {
		return err
	}
	if u == uuid.Nil {
		return vw.WriteBinaryWithSubtype(b, bson.TypeBinaryUUIDOld) // want `which writes subtype 3 in the order of pythonLegacy`
	}
	return vw.WriteBinaryWithSubtype(u[:], 4) // want `a hand-written codec for a UUID: bsoncodec`
}

func (*codec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	var data []byte
	var subtype byte
	var err error
	switch vr.Type() {
	case bson.TypeBinary:
		if data, subtype, err = vr.ReadBinary(); err != nil { // want `a hand-written codec for a UUID: bsoncodec`
			return err
		}
		if subtype != bson.TypeBinaryUUID {
			return errors.New("no UUID")
		}
	}
	u, err := uuid.FromBytes(data)
	v.Set(reflect.ValueOf(u))
	return err
}

// Lenient reads any subtype and any length.
type Lenient [16]byte

func (l *Lenient) UnmarshalBSONValue(t byte, data []byte) error { // want `which reads any subtype and reads any length`
	copy(l[:], data[5:])
	return nil
}

func (l Lenient) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeBinary), append([]byte{16, 0, 0, 0, 3}, l[:]...), nil // want `which writes subtype 3`
}

// Generic writes subtype 0.
type Generic struct{ uuid.UUID }

func (g Generic) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeBinary), bsoncore.AppendBinary(nil, 0, g.UUID[:]), nil // want `which writes subtype 0`
}

func (g *Generic) UnmarshalBSONValue(_ byte, data []byte) error {
	_, octets, _, ok := bsoncore.ReadBinary(data) // want `which reads any subtype and reads any length`
	if !ok {
		return errors.New("no binary value")
	}
	g.UUID = uuid.UUID(octets)
	return nil
}

// Raw uses a RawValue.
type Raw struct{ uuid.UUID }

func (r *Raw) UnmarshalBSONValue(t byte, data []byte) (err error) {
	_, octets, ok := bson.RawValue{Type: bson.Type(t), Value: data}.BinaryOK() // want `a hand-written codec for a UUID, which reads any subtype: bsoncodec`
	if !ok {
		return errors.New("no binary value")
	}
	r.UUID, err = uuid.FromBytes(octets)
	return err
}

// Strict checks both.
type Strict [16]byte

func (s *Strict) UnmarshalBSONValue(t byte, data []byte) error {
	if bson.Type(t) != bson.TypeBinary || len(data) != 21 || data[4] != 4 {
		return errors.New("no UUID")
	}
	copy(s[:], data[5:])
	return nil
}

// Careful checks both, too.
type Careful struct{ uuid.UUID }

func (s *Careful) UnmarshalBSONValue(t byte, data []byte) error {
	subtype, octets, _, ok := bsoncore.ReadBinary(data)
	if !ok || subtype != 4 || len(octets) != 16 {
		return errors.New("no UUID")
	}
	copy(s.UUID[:], octets)
	return nil
}

func (s Careful) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeBinary), bsoncore.AppendBinary(nil, 4, s.UUID[:]), nil
}

// Text is stored as text.
type Text [16]byte

func (s *Text) UnmarshalBSONValue(t byte, data []byte) error {
	u, err := uuid.ParseBytes(data[4 : len(data)-1])
	*s = Text(u)
	return err
}

// Sum is no UUID, and its octets are.
type Sum [32]byte

func (s *Sum) UnmarshalBSONValue(t byte, data []byte) error {
	copy(s[:], data[5:])
	return nil
}

func read(rv bson.RawValue) uuid.UUID {
	_, data := rv.Binary() // no codec
	return uuid.UUID(data)
}
