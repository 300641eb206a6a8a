package walk

import (
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
	out, copied := make([]byte, 0, size), 0 // copied bytes of doc are in out
	replace := func(p *Path, l Leaf) (replaced bool, err error) {
		if len(edits) == 0 || edits[0].Offset != l.Offset {
			return false, nil
		}
		e := edits[0]
		edits = edits[1:]
		typ := l.Offset - len(p.segments[len(p.segments)-1].key) - 2
		out = append(out, doc[copied:typ]...)
		for i := range p.levels {
			at := &p.levels[i]
			if at.copied == 0 { // the first change in it
				at.copied = len(out) - (typ - at.start) + 1
			}
			length := out[at.copied-1:]
			binary.LittleEndian.PutUint32(length, binary.LittleEndian.Uint32(length)+uint32(len(e.Value)-len(l.Value)))
		}
		out = append(append(append(out, byte(e.Type)), doc[typ+1:l.Offset]...), e.Value...)
		copied = l.Offset + len(l.Value)
		return true, nil
	}
	err := Documents(doc, replace, func(p *Path, l Leaf) error {
		_, err := replace(p, l)
		return err
	})
	if err == nil && len(edits) > 0 {
		err = fmt.Errorf("%w: a change is not at a value", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	return append(out, doc[copied:]...), nil
}
