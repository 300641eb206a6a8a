package structcodec

import (
	"encoding/binary"
	"math"
	"reflect"
	"strconv"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// An anyReader reads values for targets of type any. What the type map of the registry names is looked up for every
// value, as the driver does, since it can be changed at any time.
type anyReader struct {
	*decodeMode
	dec    bson.ValueDecoder // of any
	usable bool              // it is the driver's
	plain  [256]reflect.Type // the type of each BSON type that is read here, if its decoder is the driver's
	// The types of documents and arrays that are read here, if their decoders are the driver's.
	isD, isM, isMap, isA bool

	values sync.Map // reflect.Type to ValueCodec, of the types in the type map
}

func (c *decodeMode) newAnyReader() *anyReader {
	r := &anyReader{decodeMode: c}
	var err error
	r.dec, err = c.decoderOf(tAny)
	r.usable = err == nil && knownDecoder(r.dec) == knownAny
	for t, k := range map[bson.Type]struct {
		t reflect.Type
		k known
	}{
		bson.TypeDouble:     {reflect.TypeFor[float64](), knownFloat},
		bson.TypeString:     {reflect.TypeFor[string](), knownString},
		bson.TypeObjectID:   {tObjectID, knownObjectID},
		bson.TypeBoolean:    {reflect.TypeFor[bool](), knownBool},
		bson.TypeDateTime:   {tDateTime, knownDateTime},
		bson.TypeInt32:      {reflect.TypeFor[int32](), knownInt},
		bson.TypeInt64:      {reflect.TypeFor[int64](), knownInt},
		bson.TypeTimestamp:  {reflect.TypeFor[bson.Timestamp](), knownTimestamp},
		bson.TypeDecimal128: {tDecimal128, knownDecimal128},
		bson.TypeBinary:     {tBinary, knownBinary},
	} {
		if dec, err := c.decoderOf(k.t); err == nil && knownDecoder(dec) == k.k {
			r.plain[t] = k.t
		}
	}
	is := func(t reflect.Type, k known) bool {
		dec, err := c.decoderOf(t)
		return err == nil && knownDecoder(r.resolveDecoder(dec, t)) == k
	}
	r.isD, r.isA = is(tD, knownD), is(tA, knownSlice)
	r.isM, r.isMap = is(tM, knownMap), is(tMap, knownMap)
	return r
}

// read returns the value of type t in data as an any receives it. It reports false if the driver must decode it.
func (r *anyReader) read(t byte, data []byte) (any, bool, error) {
	if !r.usable {
		return nil, false, nil
	}
	goType := r.documentType
	if goType == nil || bson.Type(t) != bson.TypeEmbeddedDocument {
		var err error
		if goType, err = r.reg.LookupTypeMapEntry(bson.Type(t)); err != nil {
			return nil, bson.Type(t) == bson.TypeNull, nil
		}
	}
	switch bson.Type(t) {
	case bson.TypeEmbeddedDocument:
		switch {
		case goType == tD && r.isD:
			d, err := r.readD(data, nil)
			return d, true, err
		case goType == tM && r.isM:
			m := make(bson.M, anyEntriesAhead(data))
			return m, true, r.readEntries(data, m)
		case goType == tMap && r.isMap:
			m := make(map[string]any, anyEntriesAhead(data))
			return m, true, r.readEntries(data, m)
		}
		return nil, false, nil
	case bson.TypeArray:
		if goType != tA || !r.isA {
			return nil, false, nil
		}
		a, err := r.readA(data)
		return a, true, err
	}
	if goType != r.plain[t] {
		if vc := r.codecOf(goType); vc != nil {
			if a, ok := vc.(anyCodec); ok {
				x, err := a.ReadAny(bson.Type(t), data)
				if err == r.notPlain {
					return nil, false, nil
				}
				return x, true, err
			}
			v := reflect.New(goType).Elem()
			err := vc.ReadValue(bson.Type(t), data, v)
			if err == r.notPlain {
				return nil, false, nil
			}
			return v.Interface(), true, err
		}
		return nil, false, nil
	}
	switch bson.Type(t) {
	case bson.TypeDouble:
		return math.Float64frombits(binary.LittleEndian.Uint64(data)), true, nil
	case bson.TypeString:
		return string(data[4 : len(data)-1]), true, nil
	case bson.TypeObjectID:
		return bson.ObjectID(data), true, nil
	case bson.TypeBoolean:
		return data[0] == 1, data[0] <= 1, nil
	case bson.TypeDateTime:
		return bson.DateTime(binary.LittleEndian.Uint64(data)), true, nil
	case bson.TypeInt32:
		return int32(binary.LittleEndian.Uint32(data)), true, nil
	case bson.TypeInt64:
		return int64(binary.LittleEndian.Uint64(data)), true, nil
	case bson.TypeTimestamp:
		return readTimestamp(data), true, nil
	case bson.TypeDecimal128:
		return readDecimal128(data), true, nil
	default: // bson.TypeBinary
		b := readBinary(data)
		if r.BinaryAsSlice && (b.Subtype == bson.TypeBinaryGeneric || b.Subtype == bson.TypeBinaryBinaryOld) {
			return b.Data, true, nil
		}
		return b, true, nil
	}
}

// An anyCodec is a ValueCodec of an interface type. ReadAny returns what ReadValue puts into the interface.
type anyCodec interface {
	ReadAny(t bson.Type, data []byte) (any, error)
}

// codecOf returns the decoder of t if it takes part in plans, or nil.
func (r *anyReader) codecOf(t reflect.Type) ValueCodec {
	if vc, ok := r.values.Load(t); ok {
		return vc.(ValueCodec)
	}
	dec, _ := r.decoderOf(t) // nil takes part in no plan
	vc := r.decodeMode.valueCodec(r.resolveDecoder(dec, t))
	if vc == nil {
		return nil
	}
	r.values.Store(t, vc)
	return vc
}

// value is read, by way of the driver's decoder if need be.
func (r *anyReader) value(t byte, data []byte) (any, error) {
	x, ok, err := r.read(t, data)
	if ok || err != nil {
		return x, err
	}
	var v any
	err = r.decodeRaw(r.dec, t, data, reflect.ValueOf(&v).Elem())
	return v, err
}

// readD appends the elements of doc to d, and returns a D that is not nil unless there is an error.
func (r *anyReader) readD(doc []byte, d bson.D) (bson.D, error) {
	if d == nil {
		n, _ := countElements(doc) // an E takes at most maxAhead times the bytes of its element
		d = make(bson.D, 0, n)
	}
	for rest := doc[4:]; rest[0] != 0; {
		t := rest[0]
		end := keyEnd(rest)
		key := string(rest[1:end])
		rest = rest[end+1:]
		size := valueSize(t, rest)
		x, err := r.value(t, rest[:size])
		if err != nil {
			return nil, err
		}
		d = append(d, bson.E{Key: key, Value: x})
		rest = rest[size:]
	}
	return d, nil
}

// anyEntriesAhead returns how many entries are allocated for the elements of doc before they are read.
func anyEntriesAhead(doc []byte) int {
	n, least := countElements(doc)
	return entriesAhead(n, least, slotSize(tMap))
}

// readEntries sets the elements of doc in m.
func (r *anyReader) readEntries(doc []byte, m map[string]any) error {
	for rest := doc[4:]; rest[0] != 0; {
		t := rest[0]
		end := keyEnd(rest)
		key := string(rest[1:end])
		rest = rest[end+1:]
		size := valueSize(t, rest)
		x, err := r.value(t, rest[:size])
		if err != nil {
			return wrapKey(key, err)
		}
		m[key] = x
		rest = rest[size:]
	}
	return nil
}

func (r *anyReader) readA(array []byte) (bson.A, error) {
	n, _ := countElements(array)
	a := make(bson.A, n)
	rest := array[4:]
	for i := range a {
		t := rest[0]
		end := keyEnd(rest)
		rest = rest[end+1:]
		size := valueSize(t, rest)
		x, err := r.value(t, rest[:size])
		if err != nil {
			return nil, wrapKey(strconv.Itoa(i), err)
		}
		a[i] = x
		rest = rest[size:]
	}
	return a, nil
}

func readTimestamp(data []byte) bson.Timestamp {
	return bson.Timestamp{T: binary.LittleEndian.Uint32(data[4:]), I: binary.LittleEndian.Uint32(data)}
}

func readDecimal128(data []byte) bson.Decimal128 {
	return bson.NewDecimal128(binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data))
}

func readBinary(data []byte) bson.Binary {
	subtype, octets := data[4], data[5:]
	if subtype == bson.TypeBinaryBinaryOld && len(octets) > 4 {
		octets = octets[4:]
	}
	return bson.Binary{Subtype: subtype, Data: append(make([]byte, 0, len(octets)), octets...)}
}
