package driver

import (
	"bytes"
	"encoding/binary"
	"math"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// The driver's reader from memory goes back when it skips a value of negative length, and may never
// come to an end then. It adds the size of what is before the value to a length, too, and the sum
// can be negative. Its reader of streams returns an error instead, but allocates what a length says.

// MaxBeyond is how many bytes beyond the end of a document a length may be that a reader of streams is given: it
// allocates what the length says.
const MaxBeyond = 16 << 10

// Skips reports whether the driver can go back when it skips a part of the value of type t in data, and how
// many bytes a length in it is beyond its end at most. Both tell of malformed values only.
func Skips(t bson.Type, data []byte) (back bool, beyond int) {
	s := skips{doc: data}
	switch t {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		if nests(data, 0) {
			return false, 0
		}
		s.todo = append(s.todo, 4)
	case bson.TypeCodeWithScope:
		s.within(byte(t), 0)
	}
	s.walk()
	return s.back, s.beyond
}

// maxNesting is how deep documents nest that nests looks into.
const maxNesting = 200

// nests reports whether all elements of doc, and of the documents within it, end where these end.
func nests(doc []byte, depth int) bool {
	if len(doc) < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(len(doc)) || depth > maxNesting {
		return false
	}
	for at := 4; at < len(doc); {
		t := doc[at]
		if t == 0 {
			return at == len(doc)-1
		}
		n := bytes.IndexByte(doc[at+1:], 0)
		if n < 0 {
			return false
		}
		at += n + 2
		size := skipSize(t, doc[at:])
		if size < 0 || size > len(doc)-at {
			return false
		}
		switch bson.Type(t) {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			if !nests(doc[at:at+size], depth+1) {
				return false
			}
		case bson.TypeCodeWithScope:
			return false // rare, and not worth a look
		}
		at += size
	}
	return false
}

// skips walks through a document as the driver does that skips a value, and as it does that reads
// one: beyond the end of a document whose length is wrong.
type skips struct {
	doc  []byte
	seen []uint64 // the indexes of elements, a bit each
	todo []int    // the indexes where elements start

	back   bool
	beyond int
}

// walk walks through the elements that start at the indexes in todo, and through those within them.
func (s *skips) walk() {
	for len(s.todo) > 0 {
		at := s.todo[len(s.todo)-1]
		s.todo = s.todo[:len(s.todo)-1]
		for at < len(s.doc) && s.doc[at] != 0 && s.visit(at) {
			n := bytes.IndexByte(s.doc[at+1:], 0)
			if n < 0 {
				break
			}
			value := at + 1 + n + 1
			s.within(s.doc[at], value)
			size := skipSize(s.doc[at], s.doc[value:])
			s.back = s.back || size == goesBack
			if size < 0 || size > len(s.doc)-value {
				s.ends(int64(size - (len(s.doc) - value)))
				break
			}
			at = value + size
		}
	}
}

// within notes where the elements of the value of type t at the index at start, and where the driver
// goes on that reads a value whose two lengths contradict each other.
func (s *skips) within(t byte, at int) {
	rest := s.doc[min(at, len(s.doc)):]
	switch bson.Type(t) {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		s.todo = append(s.todo, at+4)
	case bson.TypeBinary: // int32 length, subtype; the old one repeats the length
		if len(rest) >= 9 && rest[4] == bson.TypeBinaryBinaryOld {
			s.later(at+9, rest[5:])
		}
	case bson.TypeCodeWithScope: // int32 length, int32 length of the code, code, scope
		if len(rest) >= 8 {
			n := int64(int32(binary.LittleEndian.Uint32(rest[4:])))
			switch scope := 8 + n; {
			case n < 0:
			case scope+4 <= int64(len(rest)):
				s.todo = append(s.todo, at+int(scope)+4)
				s.later(at+int(scope), rest[scope:])
			default:
				s.ends(scope + 4 - int64(len(rest)))
			}
		}
	}
}

// later notes the index that is behind at by the int32 at the start of length.
func (s *skips) later(at int, length []byte) {
	switch n := int64(int32(binary.LittleEndian.Uint32(length))); {
	case n < 0:
	case n < int64(len(s.doc)-at):
		s.todo = append(s.todo, at+int(n))
	default:
		s.ends(n + 1 - int64(len(s.doc)-at))
	}
}

// ends notes a value that ends n bytes beyond the end, if n is positive.
func (s *skips) ends(n int64) { s.beyond = max(s.beyond, int(min(n, math.MaxInt32))) }

// visit reports whether the index at is seen for the first time.
func (s *skips) visit(at int) bool {
	if s.seen == nil {
		s.seen = make([]uint64, len(s.doc)/64+1)
	}
	bit := uint64(1) << (at % 64)
	if s.seen[at/64]&bit != 0 {
		return false
	}
	s.seen[at/64] |= bit
	return true
}

const (
	stops    = -1 // the driver stops with an error
	goesBack = -2
)

// skipSize returns the size of the value of type t at the start of rest, as the driver finds it that
// skips the value: stops, goesBack, or a size that can be greater than the length of rest.
func skipSize(t byte, rest []byte) int {
	length := func(more int32) int {
		if len(rest) < 4 {
			return stops
		}
		n := int32(binary.LittleEndian.Uint32(rest))
		if n < 0 || n > math.MaxInt32-more {
			return goesBack
		}
		return int(n + more)
	}
	switch bson.Type(t) {
	case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		return length(0)
	case bson.TypeBinary:
		return length(4 + 1)
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return length(4)
	case bson.TypeDBPointer:
		return length(4 + 12)
	case bson.TypeRegex:
		i := bytes.IndexByte(rest, 0)
		if i < 0 {
			return stops
		}
		j := bytes.IndexByte(rest[i+1:], 0)
		if j < 0 {
			return stops
		}
		return i + j + 2
	case bson.TypeBoolean:
		return 1
	case bson.TypeInt32:
		return 4
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return 8
	case bson.TypeObjectID:
		return 12
	case bson.TypeDecimal128:
		return 16
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0
	}
	return stops
}
