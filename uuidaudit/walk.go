package uuidaudit

import (
	"bytes"
	"encoding/binary"
	"iter"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// maxDepth is more than a server stores. Deeper values are not looked at.
const maxDepth = 200

// A collector gathers the findings of one command or reply.
type collector struct {
	foreign *[256]bool
	text    bool // strings are looked at, in the parts that compare
	part    string
	path    []byte
	counts  map[place]*int
	order   []place
}

type place struct {
	part    string
	path    string
	subtype byte
	text    bool
}

// value looks at a value and at what it contains. Bytes that are not BSON end the walk: whoever
// reads them reports them.
func (c *collector) value(v bson.RawValue, depth int) {
	switch v.Type {
	case bson.TypeEmbeddedDocument:
		c.members(v.Value, false, depth)
	case bson.TypeArray:
		c.members(v.Value, true, depth)
	case bson.TypeBinary:
		if len(v.Value) == 4+1+16 && c.foreign[v.Value[4]] {
			c.found(v.Value[4], false)
		}
	case bson.TypeCodeWithScope:
		c.scope(v.Value, depth)
	case bson.TypeString:
		if c.comparesText() && len(v.Value) == 4+36+1 && uuid.Validate(string(v.Value[4:4+36])) == nil {
			c.found(0, true)
		}
	}
}

// comparesText reports whether strings are looked at in this part.
func (c *collector) comparesText() bool {
	return c.text && (c.part == inFilter || c.part == inArrayFilter || c.part == inPipeline)
}

// scope looks at the scope of code: an int32, the length of the whole, a string and a document.
func (c *collector) scope(code []byte, depth int) {
	if len(code) < 4 {
		return
	}
	length, ok := size(bson.TypeString, code[4:])
	if !ok {
		return
	}
	n := len(c.path)
	if n > 0 {
		c.path = append(c.path, '.')
	}
	c.path = append(c.path, "$scope"...)
	c.members(code[4+length:], false, depth+1)
	c.path = c.path[:n]
}

func (c *collector) found(subtype byte, text bool) {
	if n := c.counts[place{c.part, string(c.path), subtype, text}]; n != nil {
		*n++
		return
	}
	if c.counts == nil {
		c.counts = map[place]*int{}
	}
	p, n := place{c.part, string(c.path), subtype, text}, 1
	c.counts[p] = &n
	c.order = append(c.order, p)
}

func (c *collector) members(doc []byte, array bool, depth int) {
	if depth > maxDepth {
		return
	}
	for key, v := range elements(doc) {
		switch v.Type {
		case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeBinary, bson.TypeCodeWithScope:
		case bson.TypeString:
			if !c.comparesText() {
				continue
			}
		default:
			continue
		}
		n := len(c.path)
		if n > 0 {
			c.path = append(c.path, '.')
		}
		if array {
			c.path = append(c.path, '*')
		} else {
			c.appendKey(key)
		}
		c.value(v, depth+1)
		c.path = c.path[:n]
	}
}

// appendKey appends a key to the path: "*" if it may be data. A key with dots is a path if it stands
// in a filter or below an operator.
func (c *collector) appendKey(key []byte) {
	isPath := c.part == inFilter || c.part == inArrayFilter ||
		(c.part == inUpdate || c.part == inPipeline) && bytes.IndexByte(c.path, '$') >= 0
	if isPath && bytes.IndexByte(key, '.') >= 0 {
		c.appendPath(key)
		return
	}
	if !plausible(key) {
		key = []byte("*")
	}
	c.path = append(c.path, key...)
}

// appendPath appends a path of the caller's to the path. An index or a positional operator in it is "*", and so is the
// whole if it may be data.
func (c *collector) appendPath(key []byte) {
	n := len(c.path)
	for segment := range bytes.SplitSeq(key, []byte(".")) {
		if len(c.path) > n {
			c.path = append(c.path, '.')
		}
		switch {
		case len(bytes.Trim(segment, "0123456789")) == 0 && len(segment) > 0, bytes.HasPrefix(segment, []byte("$")):
			c.path = append(c.path, '*')
		case plausible(segment):
			c.path = append(c.path, segment...)
		default:
			c.path = append(c.path[:n], '*')
			return
		}
	}
}

// plausible reports whether a key can be shown: whether it looks like the name of a field, and not
// like data, which programs use as the keys of maps.
func plausible(key []byte) bool {
	if len(key) == 0 || len(key) > 40 {
		return false
	}
	digits, hexadecimal := 0, len(key) >= 12
	for i, b := range key {
		switch {
		case b >= '0' && b <= '9':
			if digits++; i == 0 || digits > 4 {
				return false
			}
		case b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F':
		case b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b == '_' || b == '$' && i == 0:
			hexadecimal = false
		default:
			return false
		}
	}
	return !hexadecimal
}

// elements iterates over the keys and values of a document, which are parts of doc. It ends at
// bytes that are not BSON.
func elements(doc []byte) iter.Seq2[[]byte, bson.RawValue] {
	return func(yield func(key []byte, value bson.RawValue) bool) {
		if len(doc) < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(len(doc)) {
			return
		}
		rest := doc[4 : len(doc)-1]
		for len(rest) > 0 {
			end := bytes.IndexByte(rest[1:], 0)
			if end < 0 {
				return
			}
			t, key := bson.Type(rest[0]), rest[1:1+end]
			rest = rest[end+2:]
			n, ok := size(t, rest)
			if !ok || n > len(rest) {
				return
			}
			if !yield(key, bson.RawValue{Type: t, Value: rest[:n]}) {
				return
			}
			rest = rest[n:]
		}
	}
}

// size returns how many bytes a value of type t at the beginning of b takes, as the BSON
// specification defines it; ok is false for an unknown type or for bytes that are not enough.
func size(t bson.Type, b []byte) (n int, ok bool) {
	prefixed := func(extra int) (int, bool) {
		if len(b) < 4 {
			return 0, false
		}
		n := int64(binary.LittleEndian.Uint32(b)) + int64(extra)
		return int(n), n >= 4 && n <= int64(len(b))
	}
	switch t {
	case bson.TypeNull, bson.TypeUndefined, bson.TypeMinKey, bson.TypeMaxKey:
		return 0, true
	case bson.TypeBoolean:
		return 1, true
	case bson.TypeInt32:
		return 4, true
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return 8, true
	case bson.TypeObjectID:
		return 12, true
	case bson.TypeDecimal128:
		return 16, true
	case bson.TypeEmbeddedDocument, bson.TypeArray, bson.TypeCodeWithScope:
		return prefixed(0)
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return prefixed(4)
	case bson.TypeBinary:
		return prefixed(5)
	case bson.TypeDBPointer:
		return prefixed(4 + 12)
	case bson.TypeRegex:
		pattern := bytes.IndexByte(b, 0)
		if pattern < 0 {
			return 0, false
		}
		options := bytes.IndexByte(b[pattern+1:], 0)
		return pattern + options + 2, options >= 0
	}
	return 0, false
}
