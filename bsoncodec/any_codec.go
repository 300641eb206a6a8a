package bsoncodec

import (
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/uuidrep"
)

// binaryValue is the type that the type map has for binary values. The driver looks up its decoder
// and stores what that sets in the any: a UUID for one subtype and a bson.Binary for the next,
// which no single type of the map could do. Values of other BSON types do not pass through it, so
// they cost nothing extra.
type binaryValue any

var tBinaryValue = reflect.TypeFor[binaryValue]()

// registerImplicit makes targets of type any receive UUIDs as the type of own.
func registerImplicit(reg *bson.Registry, own *uuidCodec) {
	c := &binaryValueDecoder{conversion: own.conversion, own: own, other: tBinary}
	if other, err := reg.LookupTypeMapEntry(bson.TypeBinary); err == nil {
		c.other = other
	}
	reg.RegisterTypeMapEntry(bson.TypeBinary, tBinaryValue)
	reg.RegisterTypeDecoder(tBinaryValue, c)
	if driver.HasOwnDecoder(reg, tAny) && driver.HasOwnDecoder(reg, tD) {
		reg.RegisterTypeDecoder(tD, &dDecoder{binary: c, driver: driver.Decoder(tD)})
	}
}

// binaryValueDecoder decodes a binary value for an any.
type binaryValueDecoder struct {
	noEncoder
	*conversion
	own   *uuidCodec   // of the type that a UUID becomes
	other reflect.Type // what the type map had for other binary values
	found onFirstUse[anyDecoders]
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
		if dec, err := dc.LookupDecoder(c.own.t); err == nil && dec != c.own {
			d.uuid = dec
		}
		if dec, err := dc.LookupDecoder(tAny); err == nil {
			d.plain.RegisterTypeDecoder(tAny, dec)
		}
		return d
	})
}

// DecodeValue is the ValueDecoder of binaryValue.
func (c *binaryValueDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanSet() || val.Type() != tBinaryValue {
		return bson.ValueDecoderError{Name: "BinaryValueDecodeValue", Types: []reflect.Type{tBinaryValue}, Received: val}
	}
	v, err := c.read(dc, vr, new(asSlice))
	if err != nil {
		return err
	}
	if v == nil { // what the decoder of an interface type may leave
		val.SetZero()
		return nil
	}
	val.Set(reflect.ValueOf(v))
	return nil
}

// read returns the binary value at vr as an any receives it.
func (c *binaryValueDecoder) read(dc bson.DecodeContext, vr bson.ValueReader, known *asSlice) (any, error) {
	d := c.decoders(dc)
	if d.binary || d.uuid != nil {
		return c.readOther(dc, vr, known, d)
	}
	octets, subtype, err := vr.ReadBinary()
	if err != nil {
		return nil, err
	}
	if rep, ok := c.isImplicit(subtype, octets); ok {
		return c.implicitUUID(rep, octets), nil
	}
	return c.sliceOrBinary(dc, bson.Binary{Subtype: subtype, Data: octets}, known), nil
}

// readOther reads a binary value if decoders of the caller decide about it. They get the value as
// it was: there is more than one way to write a subtype 2.
func (c *binaryValueDecoder) readOther(dc bson.DecodeContext, vr bson.ValueReader, known *asSlice, d anyDecoders) (any, error) {
	var rv bson.RawValue
	if err := driver.Decoder(tRawValue).DecodeValue(dc, vr, reflect.ValueOf(&rv).Elem()); err != nil {
		return nil, err
	}
	t := c.other
	if subtype, octets, ok := rv.BinaryOK(); ok {
		if rep, ok := c.isImplicit(subtype, octets); ok {
			if d.uuid == nil {
				return c.implicitUUID(rep, octets), nil
			}
			t = c.own.t
		}
	}
	v := reflect.New(t)
	if err := rv.UnmarshalWithContext(&dc, v.Interface()); err != nil {
		return nil, err
	}
	if b, ok := v.Interface().(*bson.Binary); ok {
		return c.sliceOrBinary(dc, *b, known), nil
	}
	return v.Elem().Interface(), nil
}

// sliceOrBinary returns b as an any receives it, which the option BinaryAsSlice decides.
func (c *binaryValueDecoder) sliceOrBinary(dc bson.DecodeContext, b bson.Binary, known *asSlice) any {
	if (b.Subtype == bson.TypeBinaryGeneric || b.Subtype == bson.TypeBinaryBinaryOld) && c.asSlice(dc, known) {
		return b.Data
	}
	return b
}

// isImplicit reports whether a binary value is a UUID to an any, and in which representation.
func (c *binaryValueDecoder) isImplicit(subtype byte, octets []byte) (uuidrep.Representation, bool) {
	rep := c.implicit.representation(subtype)
	return rep, rep != uuidrep.Unspecified && len(octets) == 16
}

// implicitUUID returns the 16 bytes as the UUID that an any receives.
func (c *binaryValueDecoder) implicitUUID(rep uuidrep.Representation, octets []byte) any {
	u := rep.Permute([16]byte(octets))
	if c.own.t == tUUID {
		return uuid.UUID(u)
	}
	v := reflect.New(c.own.t).Elem()
	copy(c.own.octets(v).Bytes(), u[:])
	return v.Interface()
}

// asSlice keeps the result of binaryValueDecoder.asSlice for one document: 0 is unknown, 1 is false,
// 2 is true.
type asSlice uint8

// noOctets is the empty binary value of subtype 0.
var noOctets = bson.RawValue{Type: bson.TypeBinary, Value: []byte{0, 0, 0, 0, bson.TypeBinaryGeneric}}

// asSlice reports whether the option BinaryAsSlice is set. The driver does not export it, so asSlice
// decodes a binary value in the same context with the driver's own codecs and looks at the result.
func (c *binaryValueDecoder) asSlice(dc bson.DecodeContext, known *asSlice) bool {
	if *known == 0 {
		*known = 1
		dc.Registry = c.decoders(dc).plain
		var v any
		if err := noOctets.UnmarshalWithContext(&dc, &v); err == nil {
			if _, ok := v.([]byte); ok {
				*known = 2
			}
		}
	}
	return *known == 2
}

// dDecoder decodes documents into bson.D as the driver does, except that it reads binary values
// itself, without the look-ups of the type map and of its decoder.
type dDecoder struct {
	binary *binaryValueDecoder
	driver bson.ValueDecoder
	other  onFirstUse[bool] // any or its binary values have another decoder since Build
}

// DecodeValue is the ValueDecoder of bson.D.
func (c *dDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vrType := vr.Type(); !val.CanSet() || val.Type() != tD || (vrType != 0 && vrType != bson.TypeEmbeddedDocument) {
		return c.driver.DecodeValue(dc, vr, val)
	}
	other := c.other.get(func() bool {
		t, err := dc.LookupTypeMapEntry(bson.TypeBinary)
		return err != nil || t != tBinaryValue || !driver.HasOwnDecoder(dc.Registry, tAny)
	})
	if other {
		return c.driver.DecodeValue(dc, vr, val)
	}
	dr, err := vr.ReadDocument()
	if err != nil {
		return err
	}
	anyDecoder, err := dc.LookupDecoder(tAny)
	if err != nil {
		return err
	}
	target := val.Addr().Interface().(*bson.D)
	d := (*target)[:0]
	if *target == nil {
		d = bson.D{}
	} else {
		*target = d
	}
	var known asSlice
	for {
		key, elem, err := dr.ReadElement()
		if err == bson.ErrEOD {
			*target = d
			return nil
		}
		if err != nil {
			return err
		}
		d = append(d, bson.E{Key: key})
		value := &d[len(d)-1].Value
		if elem.Type() == bson.TypeBinary {
			*value, err = c.binary.read(dc, elem, &known)
		} else {
			err = anyDecoder.DecodeValue(dc, elem, reflect.ValueOf(value).Elem())
		}
		if err != nil {
			return err
		}
	}
}
