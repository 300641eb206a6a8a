package bsoncodec

import (
	"encoding/binary"
	"reflect"
	"sync"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/byteorder"
	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// A slice of UUIDs is given to the driver's writer, and taken from its reader, as one raw value. Its
// layout is that of an array (bsonspec.org):
//
//	int32 length of all · elements · 0x00
//	element: 0x05 · index in decimal digits · 0x00 · int32 16 · subtype · 16 bytes
const elementTail = 4 + 1 + 16 // an element after its key

// sliceEncoder encodes slices of one UUID type.
type sliceEncoder struct {
	noDecoder
	*conversion
	t      reflect.Type // the slice's
	elem   *uuidCodec
	driver bson.ValueEncoder
	raw    bson.ValueEncoder // the driver's for bson.RawValue
	other  onFirstUse[bson.ValueEncoder]
}

// arrayBuffers holds buffers for arrays. A buffer of more than maxPooled bytes is not put back.
var arrayBuffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooled = 1 << 20

// EncodeValue is the ValueEncoder of slices of UUIDs. The driver's own encodes nil slices, and UUIDs
// that are not written as binary values.
func (c *sliceEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	other := c.other.get(func() bson.ValueEncoder { return otherEncoder(ec.Registry, tAnySlice, c.elem.t, c.elem) })
	if other != nil {
		return other.EncodeValue(ec, vw, val)
	}
	if !val.IsValid() || val.Type() != c.t || val.IsNil() || !c.binary() {
		return c.driver.EncodeValue(ec, vw, val)
	}
	buf := arrayBuffers.Get().(*[]byte)
	array := c.appendArray((*buf)[:0], val)
	err := c.raw.EncodeValue(ec, vw, reflect.ValueOf(bson.RawValue{Type: bson.TypeArray, Value: array}))
	if cap(array) <= maxPooled {
		*buf = array
		arrayBuffers.Put(buf)
	}
	return err
}

// appendArray appends the array of the UUIDs in val to dst.
func (c *sliceEncoder) appendArray(dst []byte, val reflect.Value) []byte {
	start := len(dst)
	w := arrayWriter{array: append(dst, make([]byte, 4)...), rep: c.rep, subtype: c.subtype}
	w.startHead(1)
	if ids, ok := uuidSlice(val); ok {
		for i := range ids {
			w.append(ids[i][:])
		}
	} else {
		for i := range val.Len() {
			w.append(val.Index(i).Bytes())
		}
	}
	array := append(w.array, 0)
	putLength(array, start)
	return array
}

// arrayWriter appends elements to an array. The bytes before the UUID are the same in each element,
// except for the key, which is incremented in place: formatting each key would take half of the time.
type arrayWriter struct {
	array   []byte
	rep     uuidrep.Representation
	subtype byte
	head    [1 + 19 + 6]byte // of the next element: type, key, zero, length, subtype
	digits  int              // of the key
}

// startHead sets the key to the smallest number with the given number of digits.
func (w *arrayWriter) startHead(digits int) {
	w.digits = digits
	head := append(w.head[:0], byte(bson.TypeBinary))
	for range digits {
		head = append(head, '0')
	}
	if digits > 1 {
		head[1] = '1'
	}
	_ = append(head, 0, 16, 0, 0, 0, w.subtype)
}

func (w *arrayWriter) append(octets []byte) {
	hi, lo := byteorder.Words(uint8(w.rep), binary.BigEndian.Uint64(octets[:8]), binary.BigEndian.Uint64(octets[8:]))
	w.array = append(w.array, w.head[:w.digits+7]...)
	w.array = binary.BigEndian.AppendUint64(w.array, hi)
	w.array = binary.BigEndian.AppendUint64(w.array, lo)

	for i := w.digits; i > 0; i-- {
		if w.head[i] != '9' {
			w.head[i]++
			return
		}
		w.head[i] = '0'
	}
	w.startHead(w.digits + 1)
}

// uuidSlice returns val as a []uuid.UUID if that is its type: its elements need no reflection then.
func uuidSlice(val reflect.Value) ([]uuid.UUID, bool) {
	if val.CanAddr() {
		if p, ok := val.Addr().Interface().(*[]uuid.UUID); ok {
			return *p, true
		}
		return nil, false
	}
	ids, ok := val.Interface().([]uuid.UUID)
	return ids, ok
}

// putLength sets the length of the array that starts at start and ends with dst.
func putLength(dst []byte, start int) {
	binary.LittleEndian.PutUint32(dst[start:], uint32(len(dst)-start))
}

// sliceDecoder decodes into slices of one UUID type.
type sliceDecoder struct {
	noEncoder
	*conversion
	t      reflect.Type // the slice's
	elem   *uuidCodec
	driver bson.ValueDecoder
	raw    bson.ValueDecoder // the driver's for bson.RawValue
	other  onFirstUse[bson.ValueDecoder]
}

// DecodeValue is the ValueDecoder of slices of UUIDs. The driver's own decodes an array with any
// other value than the UUIDs that a UUID field reads, so that results and errors are the driver's.
func (c *sliceDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	other := c.other.get(func() bson.ValueDecoder { return otherDecoder(dc.Registry, tAnySlice, c.elem.t, c.elem) })
	if other != nil {
		return other.DecodeValue(dc, vr, val)
	}
	if !val.CanSet() || val.Type() != c.t || vr.Type() != bson.TypeArray {
		return c.driver.DecodeValue(dc, vr, val)
	}
	var array bson.RawValue
	if err := c.raw.DecodeValue(dc, vr, reflect.ValueOf(&array).Elem()); err != nil {
		return err
	}
	n, plain := c.count(array.Value)
	if !plain {
		return array.UnmarshalWithContext(&dc, &slowSlice{driver: c.driver, val: val})
	}
	c.setElements(array.Value, n, val)
	return nil
}

// setElements sets val to the n UUIDs of array, which count has checked.
func (c *sliceDecoder) setElements(array []byte, n int, val reflect.Value) {
	if val.IsNil() || val.Cap() < n {
		val.Set(reflect.MakeSlice(c.t, n, n))
	} else {
		val.SetLen(n)
	}
	elements := array[4:]
	if ids, ok := uuidSlice(val); ok {
		for i := range ids {
			elements = c.nextElement(elements, ids[i][:])
		}
	} else {
		for i := range n {
			elements = c.nextElement(elements, val.Index(i).Bytes())
		}
	}
}

// count returns whether every element of array is a binary value that a UUID field reads, and how many
// they are then.
func (c *sliceDecoder) count(array []byte) (n int, plain bool) {
	if len(array) < 5 || uint64(binary.LittleEndian.Uint32(array)) != uint64(len(array)) {
		return n, false
	}
	elements := array[4:]
	for ; elements[0] == byte(bson.TypeBinary); n++ {
		tail, ok := afterKey(elements)
		if !ok || len(tail) < elementTail+1 {
			return n, false
		}
		if binary.LittleEndian.Uint32(tail) != 16 || c.typed[tail[4]] == uuidrep.Unspecified {
			return n, false
		}
		elements = tail[elementTail:]
	}
	return n, len(elements) == 1 && elements[0] == 0
}

// nextElement sets octets to the UUID of the first element, which count has checked, and returns the
// elements after it.
func (c *sliceDecoder) nextElement(elements, octets []byte) []byte {
	tail, _ := afterKey(elements)
	permute(octets, tail[5:elementTail], c.typed[tail[4]])
	return tail[elementTail:]
}

// afterKey returns what follows the type and the key of the first element. A loop is faster than
// bytes.IndexByte for keys of a few digits.
func afterKey(elements []byte) (tail []byte, ok bool) {
	for i := 1; i < len(elements); i++ {
		if elements[i] == 0 {
			return elements[i+1:], true
		}
	}
	return nil, false
}

// slowSlice decodes a raw value with a decoder of the driver. The driver does not export the reader
// of raw values, but UnmarshalWithContext gives one to the decoder of this type.
type slowSlice struct {
	driver bson.ValueDecoder
	val    reflect.Value
}

var tSlowSlice = reflect.TypeFor[slowSlice]()

// decodeSlowSlice is the ValueDecoderFunc of slowSlice.
func decodeSlowSlice(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	s := val.Addr().Interface().(*slowSlice)
	return s.driver.DecodeValue(dc, vr, s.val)
}

// EncoderFor returns c, or another codec if reg has one for slices or for the UUIDs.
func (c *sliceEncoder) EncoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueEncoder {
	if other := otherEncoder(reg, tAnySlice, c.elem.t, c.elem); other != nil {
		return other
	}
	// The codec of slices of an mgo registry does not write a nil slice as null.
	if !c.binary() || !driver.HasDefaultSettings(c.driver, c.t) {
		return c.driver
	}
	return c
}

// EncoderIn returns c, or what leaves slices that are nil to EncodeValue if they may not be null in ec.
func (c *sliceEncoder) EncoderIn(ec bson.EncodeContext) structcodec.ValueCodec {
	if o, ok := driver.EncodeOptions(ec); !ok || o.NilSliceAsEmpty {
		return nilSlicePlan{c}
	}
	return c
}

// AppendValue appends an array of UUIDs, or nothing for null.
func (c *sliceEncoder) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	switch {
	case v.Type() != c.t:
		return 0, dst, ErrNotPlain
	case v.IsNil():
		return bson.TypeNull, dst, nil
	}
	return bson.TypeArray, c.appendArray(dst, v), nil
}

// A nilSlicePlan is a sliceEncoder for contexts in which a slice that is nil can be an empty array.
type nilSlicePlan struct{ *sliceEncoder }

// AppendValue appends an array of UUIDs, unless it is nil.
func (c nilSlicePlan) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	if v.Kind() == reflect.Slice && v.IsNil() {
		return 0, dst, ErrNotPlain
	}
	return c.sliceEncoder.AppendValue(dst, v)
}

// DecoderFor returns c, or another codec if reg has one for slices or for the UUIDs.
func (c *sliceDecoder) DecoderFor(reg *bson.Registry, _ reflect.Type) bson.ValueDecoder {
	if other := otherDecoder(reg, tAnySlice, c.elem.t, c.elem); other != nil {
		return other
	}
	return c
}

// DecoderIn returns c: what is not plain is decoded by DecodeValue.
func (c *sliceDecoder) DecoderIn(bson.DecodeContext) structcodec.ValueCodec { return c }

// ReadValue sets v to the UUIDs of an array.
func (c *sliceDecoder) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if v.Type() != c.t || t != bson.TypeArray {
		return ErrNotPlain
	}
	n, plain := c.count(data)
	if !plain {
		return ErrNotPlain
	}
	c.setElements(data, n, v)
	return nil
}

// ReadsAgain says that reading a value twice has the result of reading it once.
func (*sliceDecoder) ReadsAgain() {}
