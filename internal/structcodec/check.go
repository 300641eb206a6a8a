package structcodec

import (
	"bytes"
	"encoding/binary"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxDepth is how deep the documents may nest that are read by a plan. The server allows 100 levels.
const maxDepth = 200

// The sizes of values that are not fixed.
const (
	sizeUnknown  = -1 - iota // not a BSON type
	sizeString               // int32 length, bytes, 0
	sizeDocument             // int32 length, which counts itself
	sizeBinary
	sizeRegex
	sizePointer
	sizeScope
)

// sizes is the number of bytes of a value of each BSON type, or what its size is found from.
var sizes = func() (s [256]int8) {
	for i := range s {
		s[i] = sizeUnknown
	}
	for t, size := range map[bson.Type]int8{
		bson.TypeDouble: 8, bson.TypeString: sizeString, bson.TypeEmbeddedDocument: sizeDocument,
		bson.TypeArray: sizeDocument, bson.TypeBinary: sizeBinary, bson.TypeUndefined: 0, bson.TypeObjectID: 12,
		bson.TypeBoolean: 1, bson.TypeDateTime: 8, bson.TypeNull: 0, bson.TypeRegex: sizeRegex,
		bson.TypeDBPointer: sizePointer, bson.TypeJavaScript: sizeString, bson.TypeSymbol: sizeString,
		bson.TypeCodeWithScope: sizeScope, bson.TypeInt32: 4, bson.TypeTimestamp: 8, bson.TypeInt64: 8,
		bson.TypeDecimal128: 16, bson.TypeMinKey: 0, bson.TypeMaxKey: 0,
	} {
		s[t] = size
	}
	return s
}()

// int32At returns the int32 at the start of b, which has 4 bytes or more, as an int.
func int32At(b []byte) int { return int(int32(binary.LittleEndian.Uint32(b))) }

// validDocument reports whether all lengths, types and terminators in doc agree. Then a reader that walks through doc
// never leaves it, and every value ends where its size says.
func validDocument(doc []byte, depth int) bool {
	if len(doc) < 5 || int32At(doc) != len(doc) || doc[len(doc)-1] != 0 || depth > maxDepth {
		return false
	}
	for i := 4; ; {
		t := doc[i]
		if t == 0 {
			return i == len(doc)-1
		}
		for i++; doc[i] != 0; i++ { // the last byte is 0
		}
		i++
		n := int(sizes[t])
		if n < 0 {
			n = checkVariable(n, doc[i:], depth)
		}
		if n < 0 || n >= len(doc)-i {
			return false
		}
		i += n
	}
}

// countElements returns the number of elements of doc, which is a document if one does not look into its elements, and
// how many bytes the shortest of them has, or -1.
func countElements(doc []byte) (n, least int) {
	least = len(doc)
	for at := 4; ; n++ {
		t := doc[at]
		if t == 0 {
			if at != len(doc)-1 {
				return -1, 0
			}
			return n, least
		}
		start := at
		for at++; doc[at] != 0; at++ { // the last byte is 0
		}
		at++
		size := shallowSize(t, doc[at:])
		if size < 0 {
			return -1, 0
		}
		at += size
		least = min(least, at-start)
	}
}

// shallowSize returns the size of the value of type t at the start of b, which ends with a zero byte that is not part of
// it, or -1. It does not look into documents and arrays.
func shallowSize(t byte, b []byte) int {
	n := int(sizes[t])
	switch {
	case n == sizeDocument && len(b) > 4: // as checkVariable, without a call
		if n = int32At(b); n < 5 || n >= len(b) || b[n-1] != 0 {
			return -1
		}
		return n
	case n < 0:
		n = checkVariable(n, b, shallow)
	}
	if n >= len(b) {
		return -1
	}
	return n
}

// hasKey reports whether the key of the element at the start of b is name.
func hasKey(b []byte, name string) bool {
	return len(b) > 1+len(name) && b[1+len(name)] == 0 && string(b[1:1+len(name)]) == name
}

// keyEnd returns the index of the zero byte after the key of the element at the start of b, or -1. Most keys are so
// short that a loop is faster than [bytes.IndexByte], and those of arrays often have one digit.
func keyEnd(b []byte) int {
	if len(b) > 2 && b[2] == 0 && b[1] != 0 {
		return 2
	}
	return longKeyEnd(b)
}

func longKeyEnd(b []byte) int {
	for i := 1; i < len(b) && i < 16; i++ {
		if b[i] == 0 {
			return i
		}
	}
	if len(b) <= 16 {
		return -1
	}
	i := bytes.IndexByte(b[16:], 0)
	if i < 0 {
		return -1
	}
	return i + 16
}

// checkValue returns the size of the valid value of type t at the start of b. The result is negative, or greater than
// len(b), if the value is not valid.
func checkValue(t byte, b []byte, depth int) int {
	if size := int(sizes[t]); size >= 0 {
		return size
	}
	return checkVariable(int(sizes[t]), b, depth)
}

// shallow is the depth for which checkVariable does not look into documents and arrays.
const shallow = -1

// checkVariable is checkValue of a type whose size is not fixed.
func checkVariable(size int, b []byte, depth int) int {
	if size == sizeRegex {
		return regexSize(b)
	}
	if size == sizeUnknown || len(b) < 4 {
		return -1
	}
	n := int32At(b)
	switch size {
	case sizeString:
		if n < 1 || n > len(b)-4 || b[3+n] != 0 {
			return -1
		}
		return 4 + n
	case sizeDocument:
		if n < 5 || n > len(b) || b[n-1] != 0 || depth != shallow && !validDocument(b[:n], depth+1) {
			return -1
		}
		return n
	case sizeBinary:
		if n < 0 || n > len(b)-5 {
			return -1
		}
		// The old binary subtype repeats its length.
		if b[4] == bson.TypeBinaryBinaryOld && n > 4 && int32At(b[5:]) != n-4 {
			return -1
		}
		return 5 + n
	case sizePointer:
		if n < 1 || n > len(b)-4-12 || b[3+n] != 0 {
			return -1
		}
		return 4 + n + 12
	default: // sizeScope
		if n < 4+4+1+5 || n > len(b) {
			return -1
		}
		code := int32At(b[4:])
		if code < 1 || code > n-8-5 || b[7+code] != 0 || !validDocument(b[8+code:n], depth+1) {
			return -1
		}
		return n
	}
}

// regexSize returns the size of the two strings at the start of b, or -1.
func regexSize(b []byte) int {
	pattern := bytes.IndexByte(b, 0)
	options := bytes.IndexByte(b[pattern+1:], 0) // -1, too, if the pattern does not end
	if options < 0 {
		return -1
	}
	return pattern + options + 2
}

// valueSize returns the size of the value of type t at the start of b, which is part of a valid document.
func valueSize(t byte, b []byte) int {
	if size := int(sizes[t]); size >= 0 {
		return size
	}
	return variableSize(int(sizes[t]), b)
}

// variableSize is valueSize of a type whose size is not fixed.
func variableSize(size int, b []byte) int {
	switch size {
	case sizeString:
		return 4 + int32At(b)
	case sizeDocument, sizeScope:
		return int32At(b)
	case sizeBinary:
		return 5 + int32At(b)
	case sizePointer:
		return 4 + int32At(b) + 12
	default: // sizeRegex
		return regexSize(b)
	}
}
