package structcodec

import (
	"bufio"
	"bytes"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxUnseen is the length of the longest document that is read at once although the stream may hold less than that. The
// driver allocates the stated length before it reads.
const maxUnseen = 64 << 10

// wholeDocument reports whether the document at vr, which is at the top level, can be read at once: it is in the memory
// of the stream, or not longer than maxUnseen. It reports false if its length is not known, which is so for the first
// document of most streams, and for one that starts at the end of the buffer.
func wholeDocument(vr bson.ValueReader) bool {
	shape := streamShape()
	if shape == nil {
		return false
	}
	br := reflect.ValueOf(vr).Elem().Field(shape.source).Elem()
	if br.Kind() != reflect.Pointer || br.Type().Elem() != shape.sourceType {
		return false
	}
	br = br.Elem().Field(shape.buffered)
	if br.IsNil() {
		return false
	}
	br = br.Elem()
	seen := br.Field(shape.buffer).Bytes()[br.Field(shape.start).Int():br.Field(shape.end).Int()]
	ahead, inMemory := shape.rest(br.Field(shape.reader))
	first := seen
	if len(seen) == 0 {
		first = ahead
	}
	if len(first) < 4 {
		return false
	}
	n := int64(int32At(first))
	if n < 5 {
		return false
	}
	return n <= int64(len(seen))+int64(len(ahead)) || !inMemory && n <= maxUnseen
}

// A readerShape is where the driver's reader of streams keeps what it has read. The indexes are of fields.
type readerShape struct {
	source     int          // of the reader: an interface
	sourceType reflect.Type // the type of the struct in it, by pointer
	buffered   int          // of the source: a *bufio.Reader
	// Of the bufio.Reader.
	buffer, start, end, reader int
	memory                     []memoryShape
}

// A memoryShape is where a reader of the standard library keeps its bytes.
type memoryShape struct {
	t             reflect.Type // a pointer
	octets, start int
}

// rest returns the bytes that rd, an interface, still holds. It reports false if it is not known to hold all in memory.
func (s *readerShape) rest(rd reflect.Value) ([]byte, bool) {
	rd = rd.Elem()
	for _, m := range s.memory {
		if rd.IsValid() && rd.Type() == m.t && !rd.IsNil() {
			octets := rd.Elem().Field(m.octets).Bytes()
			start := rd.Elem().Field(m.start).Int()
			return octets[min(start, int64(len(octets))):], true
		}
	}
	return nil, false
}

// streamShape returns the shape of the driver's reader, or nil if it is not the one of the version that this package was
// written for. The driver has no exported way to see a length before it is read. Nothing is written.
var streamShape = sync.OnceValue(func() *readerShape {
	vr := reflect.ValueOf(bson.NewDocumentReader(bytes.NewReader(nil)))
	if vr.Kind() != reflect.Pointer || vr.Elem().Kind() != reflect.Struct {
		return nil
	}
	s := new(readerShape)
	ok := true
	field := func(t reflect.Type, name string, kind reflect.Kind) int {
		f, found := t.FieldByName(name)
		if !found || f.Type.Kind() != kind || len(f.Index) != 1 {
			ok = false
			return 0
		}
		return f.Index[0]
	}
	s.source = field(vr.Type().Elem(), "src", reflect.Interface)
	if !ok {
		return nil
	}
	source := vr.Elem().Field(s.source).Elem()
	if source.Kind() != reflect.Pointer || source.Type().Elem().Kind() != reflect.Struct {
		return nil
	}
	s.sourceType = source.Type().Elem()
	s.buffered = field(s.sourceType, "br", reflect.Pointer)
	buffered := reflect.TypeFor[*bufio.Reader]()
	if !ok || s.sourceType.Field(s.buffered).Type != buffered {
		return nil
	}
	s.buffer = field(buffered.Elem(), "buf", reflect.Slice)
	s.start = field(buffered.Elem(), "r", reflect.Int)
	s.end = field(buffered.Elem(), "w", reflect.Int)
	s.reader = field(buffered.Elem(), "rd", reflect.Interface)
	reader, buffer := reflect.TypeFor[*bytes.Reader](), reflect.TypeFor[*bytes.Buffer]()
	s.memory = []memoryShape{
		{reader, field(reader.Elem(), "s", reflect.Slice), field(reader.Elem(), "i", reflect.Int64)},
		{buffer, field(buffer.Elem(), "buf", reflect.Slice), field(buffer.Elem(), "off", reflect.Int)},
	}
	if !ok {
		return nil
	}
	return s
})
