package structcodec

import (
	"bufio"
	"bytes"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxCopied is the length of the longest document that is copied out of a stream that is not in memory. The driver allocates
// the stated length before it reads, and what it decodes from a stream on its own needs little memory beside the values.
const maxCopied = 24 << 10

// A stream is the source of the driver's reader of streams, which is at the start of a document.
type stream struct {
	buffered *bufio.Reader
	doc      []byte // in the memory of the stream; nil if the document must be copied out of it
}

// streamAt returns the stream of vr, which is at the top level, if the document there can be read at once: it is in the
// memory of the stream, or not longer than maxCopied. It reports false if its length is not known, which is so for the
// first document of most streams, and for one that starts at the end of the buffer.
func streamAt(vr bson.ValueReader) (s stream, ok bool) {
	shape := streamShape()
	if shape == nil {
		return s, false
	}
	source := reflect.ValueOf(vr).Elem().Field(shape.source).Elem()
	if !source.IsValid() || source.Type() != shape.sourceType {
		return s, false
	}
	s.buffered = (*bufio.Reader)(source.Elem().Field(shape.buffered).UnsafePointer()) // the type is that of the field
	if s.buffered == nil {
		return s, false
	}
	seen, _ := s.buffered.Peek(s.buffered.Buffered()) // which reads nothing
	all, at, inMemory := shape.memoryOf(reflect.ValueOf(s.buffered).Elem().Field(shape.reader))
	first := seen
	if len(seen) == 0 {
		first = all[at:]
	}
	if len(first) < 4 {
		return s, false
	}
	n := int32At(first)
	switch {
	case n < 5:
		return s, false
	case n <= len(seen):
		s.doc = seen[:n:n]
		return s, true
	case n <= len(seen)+len(all)-at && at >= len(seen) && bytes.Equal(seen, all[at-len(seen):at]):
		s.doc = all[at-len(seen):][:n:n]
		return s, true
	}
	return s, n <= maxCopied && (!inMemory || n <= len(seen)+len(all)-at)
}

// skip moves the driver's reader behind the document, which is in memory. What it has in its buffer stays there until
// more is read.
func (s stream) skip() { _, _ = s.buffered.Discard(len(s.doc)) }

// A readerShape is where the driver's reader of streams keeps what it has read. The indexes are of fields.
type readerShape struct {
	source     int          // of the reader: an interface
	sourceType reflect.Type // of what is in it: a pointer to a struct
	buffered   int          // of the source: a *bufio.Reader
	reader     int          // of the bufio.Reader: an interface
	memory     []memoryShape
}

// A memoryShape is where a reader of the standard library keeps its bytes.
type memoryShape struct {
	t             reflect.Type // a pointer
	octets, start int
}

// memoryOf returns the bytes that rd, an interface, holds in memory, and the index of those that it has not read. It
// reports false if rd is not known to hold all in memory.
func (s *readerShape) memoryOf(rd reflect.Value) (all []byte, at int, inMemory bool) {
	rd = rd.Elem()
	for _, m := range s.memory {
		if rd.IsValid() && rd.Type() == m.t && !rd.IsNil() {
			all = rd.Elem().Field(m.octets).Bytes()
			start := rd.Elem().Field(m.start).Int()
			return all, int(min(start, int64(len(all)))), true
		}
	}
	return nil, 0, false
}

// streamShape returns the shape of the driver's reader, or nil if it is not the one of the version that this package was
// written for. The driver has no exported way to see a length before it is read, and allocates what it says; and none to
// pass over a document but to read it. No memory is written but by methods of the bufio.Reader.
// TestDriverReaderShowsItsBuffer notices a version of the driver whose reader has another shape.
//
// Without this, a document could only be read element by element, so that it takes no more memory than it has: for
// Cursor.Decode, 1.5 times the time for an order of 12 fields, 1.7 times for a bson.D of it, and 2.3 times for a flat document
// of 37.
var streamShape = sync.OnceValue(func() *readerShape {
	return shapeOf(reflect.ValueOf(bson.NewDocumentReader(bytes.NewReader(nil))))
})

// shapeOf is streamShape for the reader vr.
func shapeOf(vr reflect.Value) *readerShape {
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
	s.sourceType = source.Type()
	s.buffered = field(s.sourceType.Elem(), "br", reflect.Pointer)
	buffered := reflect.TypeFor[*bufio.Reader]()
	if !ok || s.sourceType.Elem().Field(s.buffered).Type != buffered {
		return nil
	}
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
}
