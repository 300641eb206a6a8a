package walk

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Edit replaces the value at Offset, the position of a Leaf in its document, by another one.
type Edit struct {
	Offset int
	Type   bson.Type
	Value  []byte // encoded in BSON, without type and key
}

// Splice returns a copy of doc with the edits, which are sorted by offset. The error wraps
// [ErrCorrupt]. It also occurs if an edit is not at the position of a value.
func Splice(doc []byte, edits []Edit) ([]byte, error) {
	size := len(doc)
	for _, e := range edits {
		size += len(e.Value)
	}
	s := splicer{doc: doc, out: make([]byte, 0, size), edits: edits}
	end, err := s.document(0, len(doc), 0)
	if err == nil && (end != len(doc) || len(s.edits) > 0) {
		err = fmt.Errorf("%w: a change is not at a value", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return s.out, nil
}

type splicer struct {
	doc, out []byte
	edits    []Edit
}

// document copies the document or array that begins at pos, and returns the position of its end.
func (s *splicer) document(pos, limit, depth int) (int, error) {
	if depth > maxDepth {
		return 0, fmt.Errorf("%w: nested deeper than %d levels", ErrCorrupt, maxDepth)
	}
	w := walker{doc: s.doc}
	end, err := w.end(pos, limit)
	if err != nil {
		return 0, err
	}
	start, last := len(s.out), end-1
	s.out = append(s.out, 0, 0, 0, 0)
	for pos += 4; pos < last; {
		typ := bson.Type(s.doc[pos])
		key, err := keyAt(s.doc, pos+1, last)
		if err != nil {
			return 0, err
		}
		value := pos + 1 + len(key) + 1
		size, err := sizeAt(typ, s.doc, value, last)
		if err != nil {
			return 0, err
		}
		next := value + size
		switch {
		case len(s.edits) > 0 && s.edits[0].Offset == value: // first, because a null has no bytes
			s.out = append(append(append(append(s.out, byte(s.edits[0].Type)), key...), 0), s.edits[0].Value...)
			s.edits = s.edits[1:]
		case len(s.edits) == 0 || s.edits[0].Offset >= next:
			s.out = append(s.out, s.doc[pos:next]...)
		case typ == bson.TypeEmbeddedDocument || typ == bson.TypeArray:
			s.out = append(s.out, s.doc[pos:value]...)
			if _, err := s.document(value, next, depth+1); err != nil {
				return 0, err
			}
		default:
			return 0, fmt.Errorf("%w: a change is not at a value", ErrCorrupt)
		}
		pos = next
	}
	s.out = append(s.out, 0)
	binary.LittleEndian.PutUint32(s.out[start:], uint32(len(s.out)-start))
	return end, nil
}

// keyAt returns the key that begins at pos and ends before limit.
func keyAt(doc []byte, pos, limit int) ([]byte, error) {
	n := bytes.IndexByte(doc[pos:limit], 0)
	if n < 0 {
		return nil, fmt.Errorf("%w: unterminated key", ErrCorrupt)
	}
	return doc[pos : pos+n], nil
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
