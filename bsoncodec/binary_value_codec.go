package bsoncodec

import (
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// binaryValue is the type that the type map has for binary values. The driver looks up its decoder
// and stores what that sets in the any: a UUID for one subtype and a bson.Binary for the next,
// which no single type of the map could do. Values of other BSON types do not pass through it, so
// they cost nothing extra.
type binaryValue any

var tBinaryValue = reflect.TypeFor[binaryValue]()

// binaryValueDecoder decodes a binary value for an any.
type binaryValueDecoder struct {
	noEncoder
	*conversion
	own    *uuidCodec   // of the type that a UUID becomes
	byFunc *funcCodec   // that makes a value of this type, or nil
	other  reflect.Type // what the type map had for other binary values
	found  onFirstUse[anyDecoders]
}

// anyDecoders are the registry's decoders that decide what an any receives for a binary value.
type anyDecoders struct {
	uuid   bson.ValueDecoder // the caller's, nil if a UUID is decoded by this package
	binary bool              // the type map or the decoder for other binary values is the caller's
	plain  *bson.Registry    // the driver's, with the registry's decoder of any
}

func (c *binaryValueDecoder) decoders(dc bson.DecodeContext) anyDecoders {
	return c.found.get(func() anyDecoders {
		d := anyDecoders{
			binary: c.other != tBinary || !driver.HasOwnDecoder(dc.Registry, tBinary),
			plain:  bson.NewRegistry(),
		}
		var own bson.ValueDecoder = c.own
		if c.byFunc != nil {
			own = c.byFunc
		}
		if dec := decoderOf(dc.Registry, c.own.t); dec != own {
			d.uuid = dec
		}
		d.plain.RegisterTypeDecoder(tAny, decoderOf(dc.Registry, tAny))
		return d
	})
}

// DecodeValue is the ValueDecoder of binaryValue.
func (c *binaryValueDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != tBinaryValue {
		return bson.ValueDecoderError{Name: "BinaryValueDecodeValue", Types: []reflect.Type{tBinaryValue}, Received: val}
	}
	v, err := c.read(dc, vr)
	if err != nil {
		return err
	}
	if v != nil { // the decoder of an interface type may leave it so
		val.Set(reflect.ValueOf(v))
	}
	return nil
}

// read returns the binary value at vr as an any receives it.
func (c *binaryValueDecoder) read(dc bson.DecodeContext, vr bson.ValueReader) (any, error) {
	d := c.decoders(dc)
	if d.binary || d.uuid != nil {
		return c.readOther(dc, vr)
	}
	octets, subtype, err := vr.ReadBinary()
	if err != nil {
		return nil, err
	}
	if rep, ok := c.isImplicit(subtype, octets); ok {
		return c.implicitUUID(rep, octets)
	}
	return c.sliceOrBinary(dc, bson.Binary{Subtype: subtype, Data: octets}), nil
}

// readOther reads a binary value if decoders of the caller decide about it. They get the value as
// it was: there is more than one way to write a subtype 2.
func (c *binaryValueDecoder) readOther(dc bson.DecodeContext, vr bson.ValueReader) (any, error) {
	var rv bson.RawValue
	if err := driver.Decoder(tRawValue).DecodeValue(dc, vr, reflect.ValueOf(&rv).Elem()); err != nil {
		return nil, err
	}
	t := c.other
	if subtype, octets, ok := rv.BinaryOK(); ok {
		if _, ok := c.isImplicit(subtype, octets); ok {
			t = c.own.t
		}
	}
	v := reflect.New(t)
	if err := rv.UnmarshalWithContext(&dc, v.Interface()); err != nil {
		return nil, err
	}
	if b, ok := v.Interface().(*bson.Binary); ok {
		return c.sliceOrBinary(dc, *b), nil
	}
	return v.Elem().Interface(), nil
}

// sliceOrBinary returns b as an any receives it, which the option BinaryAsSlice decides.
func (c *binaryValueDecoder) sliceOrBinary(dc bson.DecodeContext, b bson.Binary) any {
	if (b.Subtype == bson.TypeBinaryGeneric || b.Subtype == bson.TypeBinaryBinaryOld) && c.asSlice(dc) {
		return b.Data
	}
	return b
}

// isImplicit reports whether a binary value is a UUID to an any, and in which representation.
func (c *binaryValueDecoder) isImplicit(subtype byte, octets []byte) (uuidrep.Representation, bool) {
	rep := c.implicit[subtype]
	return rep, rep != uuidrep.Unspecified && len(octets) == 16
}

// implicitUUID returns the 16 bytes as the UUID that an any receives.
func (c *binaryValueDecoder) implicitUUID(rep uuidrep.Representation, octets []byte) (any, error) {
	u := rep.Permute([16]byte(octets))
	if c.own.t == tUUID {
		return uuid.UUID(u), nil
	}
	v := reflect.New(c.own.t).Elem()
	if c.byFunc != nil {
		if err := c.byFunc.set(v, u, true); err != nil {
			return nil, err
		}
		return v.Interface(), nil
	}
	copy(c.own.octets(v).Bytes(), u[:])
	return v.Interface(), nil
}

// noOctets is the empty binary value of subtype 0.
var noOctets = bson.RawValue{Type: bson.TypeBinary, Value: []byte{0, 0, 0, 0, bson.TypeBinaryGeneric}}

// asSlice reports whether the option BinaryAsSlice is set. The driver does not export it, so asSlice
// decodes a binary value in the same context with the driver's own codecs and looks at the result.
func (c *binaryValueDecoder) asSlice(dc bson.DecodeContext) bool {
	dc.Registry = c.decoders(dc).plain
	var v any
	_ = noOctets.UnmarshalWithContext(&dc, &v)
	_, ok := v.([]byte)
	return ok
}

// DecoderFor returns c, or a decoder that is not a ValueCodec if decoders of the caller decide about binary values.
func (c *binaryValueDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if d := c.decoders(bson.DecodeContext{Registry: reg}); d.binary || d.uuid != nil {
		return bson.ValueDecoderFunc(c.DecodeValue)
	}
	return c
}

// DecoderIn returns c, or what decodes binary values into slices if dc says so.
func (c *binaryValueDecoder) DecoderIn(dc bson.DecodeContext) structcodec.ValueCodec {
	if c.asSlice(dc) {
		return binarySlicePlan{c}
	}
	return c
}

// ReadValue sets v to what an any receives for a binary value.
func (c *binaryValueDecoder) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	return setBinaryValue(v, t, data, c.ReadAny)
}

// ReadAny returns what an any receives for a binary value.
func (c *binaryValueDecoder) ReadAny(t bson.Type, data []byte) (any, error) {
	if t != bson.TypeBinary || data[4] == bson.TypeBinaryBinaryOld {
		return nil, ErrNotPlain
	}
	subtype, octets := data[4], data[5:]
	if rep, ok := c.isImplicit(subtype, octets); ok {
		return c.implicitUUID(rep, octets)
	}
	return bson.Binary{Subtype: subtype, Data: append(make([]byte, 0, len(octets)), octets...)}, nil
}

// A binarySlicePlan is a binaryValueDecoder for contexts with the option BinaryAsSlice.
type binarySlicePlan struct{ *binaryValueDecoder }

// ReadValue sets v to what an any receives for a binary value.
func (c binarySlicePlan) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	return setBinaryValue(v, t, data, c.ReadAny)
}

// ReadAny returns what an any receives for a binary value.
func (c binarySlicePlan) ReadAny(t bson.Type, data []byte) (any, error) {
	if t == bson.TypeBinary && data[4] == bson.TypeBinaryGeneric {
		if _, ok := c.isImplicit(data[4], data[5:]); !ok {
			return append(make([]byte, 0, len(data)-5), data[5:]...), nil
		}
	}
	return c.binaryValueDecoder.ReadAny(t, data)
}

// setBinaryValue sets v to what read returns for a binary value.
func setBinaryValue(v reflect.Value, t bson.Type, data []byte, read func(bson.Type, []byte) (any, error)) error {
	if v.Type() != tBinaryValue {
		return ErrNotPlain
	}
	x, err := read(t, data)
	if err == nil {
		*v.Addr().Interface().(*binaryValue) = x
	}
	return err
}
