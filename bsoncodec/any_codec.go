package bsoncodec

import (
	"reflect"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// binaryValue is the type that the type map names for binary values. The driver looks its decoder up and puts what that
// sets into the any: a UUID for one subtype and a bson.Binary for the next, which no single type of the map could do.
// Values of other BSON types never come near it, so they cost what they cost without it.
type binaryValue any

var tBinaryValue = reflect.TypeFor[binaryValue]()

// registerImplicit makes targets of type any receive UUIDs as type t.
func registerImplicit(reg, stock *bson.Registry, u *conversion, t reflect.Type) {
	c := &binaryValueDecoder{conversion: u, t: t, other: tBinary, own: !isStockDecoder(reg, stock, tBinary), plain: bson.NewRegistry()}
	if other, err := reg.LookupTypeMapEntry(bson.TypeBinary); err == nil {
		c.other, c.own = other, c.own || other != tBinary
	}
	anyDecoder, err := reg.LookupDecoder(tAny)
	if err == nil {
		c.plain.RegisterTypeDecoder(tAny, anyDecoder)
	}
	reg.RegisterTypeMapEntry(bson.TypeBinary, tBinaryValue)
	reg.RegisterTypeDecoder(tBinaryValue, c)
	if isStockDecoder(reg, stock, tAny) && isStockDecoder(reg, stock, tD) {
		driver, _ := reg.LookupDecoder(tD)
		reg.RegisterTypeDecoder(tD, &dDecoder{binary: c, driver: driver})
	}
}

// binaryValueDecoder decodes a binary value for an any.
type binaryValueDecoder struct {
	*conversion
	t     reflect.Type   // what a UUID becomes
	other reflect.Type   // what the type map had for other binary values
	own   bool           // that or its decoder is the caller's
	plain *bson.Registry // decodes them as the driver does
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
	if c.own {
		return c.readOther(dc, vr, known)
	}
	octets, subtype, err := vr.ReadBinary()
	if err != nil {
		return nil, err
	}
	if u, ok := c.implicitUUID(subtype, octets); ok {
		return u, nil
	}
	return c.sliceOrBinary(dc, bson.Binary{Subtype: subtype, Data: octets}, known), nil
}

// readOther is read where the caller's type map names another type for binary values, or the caller has a decoder for
// [bson.Binary]. That gets the value as it was: there is more than one way to write a subtype 2.
func (c *binaryValueDecoder) readOther(dc bson.DecodeContext, vr bson.ValueReader, known *asSlice) (any, error) {
	raw, err := c.plain.LookupDecoder(tRawValue)
	if err != nil {
		return nil, err
	}
	var rv bson.RawValue
	if err := raw.DecodeValue(dc, vr, reflect.ValueOf(&rv).Elem()); err != nil {
		return nil, err
	}
	if subtype, octets, ok := rv.BinaryOK(); ok {
		if u, ok := c.implicitUUID(subtype, octets); ok {
			return u, nil
		}
	}
	v := reflect.New(c.other)
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

// implicitUUID returns the UUID that a binary value is to an any, if it is one.
func (c *binaryValueDecoder) implicitUUID(subtype byte, octets []byte) (any, bool) {
	rep := c.implicit.representation(subtype)
	if rep == uuidrep.Unspecified || len(octets) != 16 {
		return nil, false
	}
	u := rep.Permute([16]byte(octets))
	if c.t == tUUID {
		return uuid.UUID(u), true
	}
	v := reflect.New(c.t).Elem()
	copy(v.Bytes(), u[:])
	return v.Interface(), true
}

// asSlice remembers the answer of binaryValueDecoder.asSlice for one document: 0 for not asked, 1 for no, 2 for yes.
type asSlice uint8

// noOctets is the empty binary value of subtype 0.
var noOctets = bson.RawValue{Type: bson.TypeBinary, Value: []byte{0, 0, 0, 0, bson.TypeBinaryGeneric}}

// asSlice reports whether the option BinaryAsSlice is in force, which the decode context keeps to itself: it decodes a
// binary value in the same context, with the driver's own codecs, and looks at what comes out.
func (c *binaryValueDecoder) asSlice(dc bson.DecodeContext, known *asSlice) bool {
	if *known == 0 {
		*known = 1
		dc.Registry = c.plain
		var v any
		if err := noOctets.UnmarshalWithContext(&dc, &v); err == nil {
			if _, ok := v.([]byte); ok {
				*known = 2
			}
		}
	}
	return *known == 2
}

// dDecoder decodes documents into bson.D as the driver does, and reads binary values itself: the way through the type
// map would cost them what a UUID saves.
type dDecoder struct {
	binary *binaryValueDecoder
	driver bson.ValueDecoder
}

// DecodeValue is the ValueDecoder of bson.D.
func (c *dDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vrType := vr.Type(); !val.CanSet() || val.Type() != tD || (vrType != 0 && vrType != bson.TypeEmbeddedDocument) {
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
