// Package walk visits the values of a BSON document at every depth without decoding it, and reports
// the path of each value and its position in the document.
package walk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ErrCorrupt is wrapped by the error of Document if its argument is not a BSON document.
var ErrCorrupt = errors.New("walk: not a BSON document")

// maxDepth is twice the depth that a server stores.
const maxDepth = 200

// Leaf is a value that is not a document or an array. Its Value is a slice of the document.
type Leaf struct {
	Type   bson.Type
	Value  []byte // encoded in BSON, without type and key
	Offset int    // position of Value in the document
}

// Binary returns the subtype and the data of a binary value, and the position of the subtype in the
// document. The data follows the subtype. ok is false for other types, and for subtype 2 with its
// second length.
func (l Leaf) Binary() (subtype byte, data []byte, offset int, ok bool) {
	if l.Type != bson.TypeBinary || l.Value[4] == bson.TypeBinaryBinaryOld {
		return 0, nil, 0, false
	}
	return l.Value[4], l.Value[5:], l.Offset + 4, true
}

// Text returns the bytes of a string without the terminating NUL. ok is false for other types.
func (l Leaf) Text() (text []byte, ok bool) {
	if l.Type != bson.TypeString {
		return nil, false
	}
	return l.Value[4 : len(l.Value)-1], true
}

// Document calls visit for every leaf of doc, depth first and in document order. The path is valid
// until visit returns. An error of visit ends the walk and is returned. The scope of JavaScript
// code is not visited, because an update cannot change it.
func Document(doc []byte, visit func(*Path, Leaf) error) error {
	return Documents(doc, nil, visit)
}

// Documents is like Document, and calls enter for every document in doc, but not for arrays, before
// its values. If enter returns true, its values are not visited. A nil enter enters every document.
func Documents(doc []byte, enter func(*Path, Leaf) (skip bool, err error), visit func(*Path, Leaf) error) error {
	w := walkers.Get().(*walker)
	w.doc, w.enter, w.visit = doc, enter, visit
	end, err := w.document(0, len(doc), false)
	w.doc, w.enter, w.visit, w.path.segments, w.path.levels = nil, nil, nil, w.path.segments[:0], w.path.levels[:0]
	walkers.Put(w)
	if err == nil && end != len(doc) {
		return fmt.Errorf("%w: %d bytes after the end", ErrCorrupt, len(doc)-end)
	}
	return err
}

// walkers are walkers that can be used again.
var walkers = sync.Pool{New: func() any { return new(walker) }}

type walker struct {
	doc   []byte
	path  Path
	enter func(*Path, Leaf) (bool, error)
	visit func(*Path, Leaf) error
}

// document walks the document or array that begins at pos and must end at or before limit. It
// returns the position of its end.
func (w *walker) document(pos, limit int, array bool) (int, error) {
	if len(w.path.segments) > maxDepth {
		return 0, fmt.Errorf("%w: nested deeper than %d levels", ErrCorrupt, maxDepth)
	}
	end, err := w.end(pos, limit)
	if err != nil {
		return 0, err
	}
	last := end - 1
	if w.doc[last] != 0 {
		return 0, fmt.Errorf("%w: no terminating NUL", ErrCorrupt)
	}
	w.path.levels = append(w.path.levels, level{start: pos})
	defer func() { w.path.levels = w.path.levels[:len(w.path.levels)-1] }()
	pos += 4
	for i := 0; pos < last; i++ {
		typ := bson.Type(w.doc[pos])
		n := bytes.IndexByte(w.doc[pos+1:last], 0)
		if n < 0 {
			return 0, fmt.Errorf("%w: unterminated key", ErrCorrupt)
		}
		key := w.doc[pos+1 : pos+1+n]
		pos += n + 2
		w.path.push(segment{key: key, index: i, array: array})
		switch typ {
		case bson.TypeEmbeddedDocument, bson.TypeArray:
			var skip bool
			if w.enter != nil && typ == bson.TypeEmbeddedDocument {
				var inner int
				if inner, err = w.end(pos, last); err == nil {
					skip, err = w.enter(&w.path, Leaf{Type: typ, Value: w.doc[pos:inner], Offset: pos})
				}
				if skip {
					pos = inner
				}
			}
			if err == nil && !skip {
				pos, err = w.document(pos, last, typ == bson.TypeArray)
			}
		default:
			var size int
			if size, err = valueSize(typ, w.doc[pos:last]); err == nil {
				err = w.visit(&w.path, Leaf{Type: typ, Value: w.doc[pos : pos+size], Offset: pos})
				pos += size
			}
		}
		if err != nil {
			return 0, err
		}
		w.path.pop()
	}
	return end, nil
}

func (w *walker) end(pos, limit int) (int, error) {
	if limit-pos < 5 {
		return 0, fmt.Errorf("%w: truncated", ErrCorrupt)
	}
	n := int(int32(binary.LittleEndian.Uint32(w.doc[pos:])))
	if n < 5 || n > limit-pos {
		return 0, fmt.Errorf("%w: length %d exceeds the %d bytes left", ErrCorrupt, n, limit-pos)
	}
	return pos + n, nil
}

// valueSize returns the size in bytes of the value of type typ at the start of b.
func valueSize(typ bson.Type, b []byte) (int, error) {
	fixed := func(n int) (int, error) {
		if len(b) < n {
			return 0, fmt.Errorf("%w: truncated value of type %v", ErrCorrupt, typ)
		}
		return n, nil
	}
	// counted returns the size of a value that begins with a length, which does not include extra
	// bytes.
	counted := func(extra, least int) (int, error) {
		if len(b) < 4 {
			return fixed(4)
		}
		n := int(int32(binary.LittleEndian.Uint32(b)))
		if n < least || n > len(b)-extra {
			return 0, fmt.Errorf("%w: invalid length %d of a value of type %v", ErrCorrupt, n, typ)
		}
		return n + extra, nil
	}
	switch typ {
	case bson.TypeUndefined, bson.TypeNull, bson.TypeMinKey, bson.TypeMaxKey:
		return 0, nil
	case bson.TypeBoolean:
		return fixed(1)
	case bson.TypeInt32:
		return fixed(4)
	case bson.TypeDouble, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt64:
		return fixed(8)
	case bson.TypeObjectID:
		return fixed(12)
	case bson.TypeDecimal128:
		return fixed(16)
	case bson.TypeString, bson.TypeJavaScript, bson.TypeSymbol:
		return counted(4, 1)
	case bson.TypeBinary:
		return counted(5, 0)
	case bson.TypeCodeWithScope:
		return counted(0, 14)
	case bson.TypeDBPointer:
		n, err := counted(4, 1)
		if err != nil {
			return 0, err
		}
		return fixed(n + 12)
	case bson.TypeRegex:
		n := 0
		for range 2 {
			i := bytes.IndexByte(b[n:], 0)
			if i < 0 {
				return 0, fmt.Errorf("%w: unterminated regular expression", ErrCorrupt)
			}
			n += i + 1
		}
		return n, nil
	}
	return 0, fmt.Errorf("%w: type 0x%02x", ErrCorrupt, byte(typ))
}

type segment struct {
	key   []byte
	index int  // index in the document or array
	array bool // the parent is an array
}

// Path is the path of a value. It is not safe for concurrent use.
type Path struct {
	segments []segment
	levels   []level // the parent of each segment
}

func (p *Path) push(s segment) { p.segments = append(p.segments, s) }
func (p *Path) pop()           { p.segments = p.segments[:len(p.segments)-1] }

// Dotted returns the path in dot notation, with array indexes as numbers: items.0.id.
func (p *Path) Dotted() string {
	var b []byte
	for i, s := range p.segments {
		if i > 0 {
			b = append(b, '.')
		}
		if s.array {
			b = strconv.AppendInt(b, int64(s.index), 10)
		} else {
			b = append(b, s.key...)
		}
	}
	return string(b)
}

// AppendField appends the name of the field that the value belongs to. It is the same for all
// elements of an array and for all documents: items[].id. A key that looks like data, such as an
// identifier, a number or the empty one, is written as *: only a map has such keys.
func (p *Path) AppendField(b []byte) []byte {
	for i, s := range p.segments {
		switch {
		case s.array:
			b = append(b, "[]"...)
			continue
		case i > 0:
			b = append(b, '.')
		}
		if isData(s.key) {
			b = append(b, '*')
		} else {
			b = append(b, s.key...)
		}
	}
	return b
}

// Top returns the key at the top level of the document.
func (p *Path) Top() string { return string(p.segments[0].key) }

// isData reports whether key looks like data rather than a name: a number, an ObjectID, a UUID, or nothing.
func isData(key []byte) bool {
	digits := true
	for i, c := range key {
		switch {
		case c >= '0' && c <= '9':
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			digits = false
		case c == '-' && len(key) == 36 && (i == 8 || i == 13 || i == 18 || i == 23):
			digits = false
		default:
			return false
		}
	}
	return digits || len(key) == 24 || len(key) == 32 || len(key) == 36
}

// ErrUnaddressable is wrapped by the errors of Addressable.
var ErrUnaddressable = errors.New("an update cannot address this path")

// Addressable returns nil if an update of the dotted path changes the value and nothing else.
func (p *Path) Addressable() error {
	for i, s := range p.segments {
		if s.array {
			continue
		}
		key := string(s.key)
		switch {
		case key == "":
			return fmt.Errorf("%w: empty field name", ErrUnaddressable)
		case bytes.IndexByte(s.key, '.') >= 0:
			return fmt.Errorf("%w: the field name %q contains a dot", ErrUnaddressable, key)
		case key[0] == '$' && (i == 0 || key != "$ref" && key != "$id" && key != "$db"):
			return fmt.Errorf("%w: the field name %q begins with a dollar sign", ErrUnaddressable, key)
		}
	}
	return nil
}

// Namable reports whether a [Pattern] can select the path by its names: none has an empty part before,
// between or after dots.
func (p *Path) Namable() bool {
	for _, s := range p.segments {
		if !s.array && !isData(s.key) && slices.Contains(strings.Split(string(s.key), "."), "") {
			return false
		}
	}
	return true
}

// Repeated reports whether a field name on the path occurs twice in its document, so that an update
// would change only the first one. doc is the document that is walked.
func (p *Path) Repeated(doc []byte) bool {
	for i, s := range p.segments {
		if !s.array && p.levels[i].repeats(doc, s.key) {
			return true
		}
	}
	return false
}

// level is a document or array on the path to a value.
type level struct {
	start  int // position in the document that is walked
	copied int // 1 + position in the copy that [Splice] makes; 0 if it is not known yet
	asked  int
	names  map[string]int // number of occurrences of each name, set after manyTimes queries
}

const manyTimes = 16

func (l *level) repeats(doc []byte, name []byte) bool {
	if l.asked++; l.asked < manyTimes {
		n := 0
		eachName(doc, l.start, func(other []byte) {
			if bytes.Equal(other, name) {
				n++
			}
		})
		return n > 1
	}
	if l.names == nil {
		l.names = make(map[string]int)
		eachName(doc, l.start, func(name []byte) { l.names[string(name)]++ })
	}
	return l.names[string(name)] > 1
}

// eachName calls f for each field name of the document that begins at pos.
func eachName(doc []byte, pos int, f func(name []byte)) {
	limit := pos + int(binary.LittleEndian.Uint32(doc[pos:])) - 1
	for pos += 4; pos < limit; {
		typ := bson.Type(doc[pos])
		n := bytes.IndexByte(doc[pos+1:limit], 0)
		if n < 0 {
			return // the rest of the document is corrupt, so the walk will fail there
		}
		f(doc[pos+1 : pos+1+n])
		pos += n + 2
		size, err := sizeAt(typ, doc, pos, limit)
		if err != nil {
			return
		}
		pos += size
	}
}

// sizeAt returns the size in bytes of the value of type typ at pos, which may be a document.
func sizeAt(typ bson.Type, doc []byte, pos, limit int) (int, error) {
	if typ != bson.TypeEmbeddedDocument && typ != bson.TypeArray {
		return valueSize(typ, doc[pos:limit])
	}
	w := walker{doc: doc}
	end, err := w.end(pos, limit)
	return end - pos, err
}
