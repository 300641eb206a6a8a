package bsoncodec

import (
	"encoding/binary"
	"reflect"
	"sync"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// Slices of UUIDs cross to the driver's writer, and from its reader, as one value of this layout (bsonspec.org):
//
//	int32 length of all · elements · 0x00
//	element: 0x05 · index in decimal digits · 0x00 · int32 16 · subtype · 16 octets
const elementTail = 4 + 1 + 16 // an element after its key

// sliceEncoder encodes slices of one UUID type.
type sliceEncoder struct {
	*conversion
	t      reflect.Type // the slice's
	driver bson.ValueEncoder
	raw    bson.ValueEncoder // the driver's for bson.RawValue
}

// arrayBuffers holds the arrays that were written; longer ones than maxPooled octets are left to the garbage collector.
var arrayBuffers = sync.Pool{New: func() any { return new([]byte) }}

const maxPooled = 1 << 20

// EncodeValue is the ValueEncoder of slices of UUIDs. The driver's own encodes what is not plain.
func (c *sliceEncoder) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	if !val.IsValid() || val.Type() != c.t || val.IsNil() || c.rep == uuidrep.Unspecified {
		return c.driver.EncodeValue(ec, vw, val)
	}
	buf := arrayBuffers.Get().(*[]byte)
	w := arrayWriter{array: append((*buf)[:0], 0, 0, 0, 0), rep: c.rep, subtype: c.subtype}
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
	binary.LittleEndian.PutUint32(array, uint32(len(array)))
	err := c.raw.EncodeValue(ec, vw, reflect.ValueOf(bson.RawValue{Type: bson.TypeArray, Value: array}))
	if cap(array) <= maxPooled {
		*buf = array
		arrayBuffers.Put(buf)
	}
	return err
}

// arrayWriter appends elements to an array. What stands before the octets is the same from one element to the next but
// for the key, which counts up in place: formatting each key anew would take half of the time.
type arrayWriter struct {
	array   []byte
	rep     uuidrep.Representation
	subtype byte
	head    [1 + 19 + 6]byte // of the next element: type, key, zero, length, subtype
	digits  int              // of the key
}

// startHead sets the key to the least number of so many digits, 0 for one digit.
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
	hi, lo := w.rep.PermuteWords(binary.BigEndian.Uint64(octets[:8]), binary.BigEndian.Uint64(octets[8:]))
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

// uuidSlice returns val as what it is if it is a []uuid.UUID: its elements need no reflection then.
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

// sliceDecoder decodes into slices of one UUID type.
type sliceDecoder struct {
	*conversion
	t      reflect.Type // the slice's
	driver bson.ValueDecoder
	raw    bson.ValueDecoder // the driver's for bson.RawValue
}

// DecodeValue is the ValueDecoder of slices of UUIDs. An array that holds anything but UUIDs that its elements would
// read goes through the driver's own decoder, so that results and errors are the driver's.
func (c *sliceDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
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
	if val.IsNil() || val.Cap() < n {
		val.Set(reflect.MakeSlice(c.t, n, n))
	} else {
		val.SetLen(n)
	}
	elements := array.Value[4:]
	if ids, ok := uuidSlice(val); ok {
		for i := range ids {
			elements = c.nextElement(elements, ids[i][:])
		}
	} else {
		for i := range n {
			elements = c.nextElement(elements, val.Index(i).Bytes())
		}
	}
	return nil
}

// count returns how many elements array has, and whether every one is a binary value that a UUID field reads.
func (c *sliceDecoder) count(array []byte) (n int, plain bool) {
	if len(array) < 5 || uint64(binary.LittleEndian.Uint32(array)) != uint64(len(array)) {
		return 0, false
	}
	elements := array[4:]
	for ; elements[0] == byte(bson.TypeBinary); n++ {
		tail, ok := afterKey(elements)
		if !ok || len(tail) < elementTail+1 {
			return 0, false
		}
		if binary.LittleEndian.Uint32(tail) != 16 || c.typed.representation(tail[4]) == uuidrep.Unspecified {
			return 0, false
		}
		elements = tail[elementTail:]
	}
	return n, len(elements) == 1 && elements[0] == 0
}

// nextElement sets octets to the UUID of the first of elements, which count has checked, and returns the others.
func (c *sliceDecoder) nextElement(elements, octets []byte) []byte {
	tail, _ := afterKey(elements)
	permute(octets, tail[5:elementTail], c.typed.representation(tail[4]))
	return tail[elementTail:]
}

// afterKey returns what follows the type and the key of the first of elements. Keys are a few digits: a loop finds
// their end sooner than bytes.IndexByte.
func afterKey(elements []byte) (tail []byte, ok bool) {
	for i := 1; i < len(elements); i++ {
		if elements[i] == 0 {
			return elements[i+1:], true
		}
	}
	return nil, false
}

// slowSlice takes a value that was read already through a decoder of the driver: the driver has no exported way to make
// the reader that one needs, but makes it for the decoder of this type.
type slowSlice struct {
	driver bson.ValueDecoder
	val    reflect.Value
}

var tSlowSlice = reflect.TypeFor[slowSlice]()

// decodeSlowSlice is the ValueDecoderFunc of slowSlice.
func decodeSlowSlice(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if !val.CanAddr() || val.Type() != tSlowSlice {
		return bson.ValueDecoderError{Name: "SlowSliceDecodeValue", Types: []reflect.Type{tSlowSlice}, Received: val}
	}
	s := val.Addr().Interface().(*slowSlice)
	return s.driver.DecodeValue(dc, vr, s.val)
}
