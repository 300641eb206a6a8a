package convert

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Change is one value of a document.
type Change struct {
	Path     string // with array positions: items.0.id
	Field    string // without: items[].id
	Old, New [16]byte
}

// Plan is what is to change in one document.
type Plan struct {
	ID      bson.RawValue // the document's own memory
	Changes []Change
	InID    []Change // in _id, which no update can change
	Skipped []string // why values are left as they are

	kept  []Change // what an earlier line of the undo log has changed: written down again, not changed again
	again bool     // an earlier line of the undo log about the document is void
}

// Plan looks for what the conversion has to change in doc. A value whose octets are the same in both kinds, and its
// subtype too, needs no change. The plan shares no memory with doc. The error wraps walk.ErrCorrupt.
func (c Conversion) Plan(doc bson.Raw) (Plan, error) {
	var p Plan
	err := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		old, _, ok := c.wants(path, l)
		if !ok {
			return nil
		}
		change := Change{Path: path.Dotted(), Field: string(path.AppendField(nil)), Old: old, New: c.octets(old)}
		switch {
		case c.SameSubtype() && change.New == change.Old:
		case path.Top() == "_id":
			p.InID = append(p.InID, change)
		default:
			if err := path.Addressable(); err != nil {
				p.Skipped = append(p.Skipped, err.Error())
			} else if path.Repeated(doc) {
				p.Skipped = append(p.Skipped, "a field name stands twice in one document, and an update reaches only the first: "+change.Path)
			} else {
				p.Changes = append(p.Changes, change)
			}
		}
		return nil
	})
	if err != nil {
		return Plan{}, err
	}
	id, err := doc.LookupErr("_id")
	if err != nil && len(p.Changes) > 0 {
		// A document without _id cannot be addressed; only the oplog and views have such.
		return Plan{Skipped: []string{"the document has no _id"}}, nil
	}
	p.ID = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
	return p, nil
}

// Rewrite returns doc with every value converted, those in _id too, and how many there were; fields counts them by field
// where it isn't nil. Old and new octets have the same length, so everything else stays octet for octet.
func (c Conversion) Rewrite(doc bson.Raw, fields Tally) (bson.Raw, int, error) {
	out, n := slices.Clone(doc), 0
	err := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if old, offset, ok := c.wants(path, l); ok {
			fresh := c.octets(old)
			out[offset] = c.To.Subtype
			copy(out[offset+1:], fresh[:])
			n++
			if fields != nil {
				fields.add(string(path.AppendField(nil)), 1)
			}
		}
		return nil
	})
	return out, n, err
}

// maxMixed is how many values in one _id are tried in both kinds.
const maxMixed = 6

// sources returns the _ids of which the conversion makes id. There are several where values of both kinds may stand in one
// _id; where they are more than maxMixed, only the _ids are returned that have all of one kind.
func (c Conversion) sources(id bson.RawValue) ([]bson.RawValue, error) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	back := Conversion{From: c.To, To: c.From, Fields: c.Fields}
	var offsets []int
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if _, offset, ok := back.wants(path, l); ok {
			offsets = append(offsets, offset)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	step, all := 1, 1<<min(len(offsets), maxMixed)-1
	if len(offsets) > maxMixed {
		step = all
	}
	var out []bson.RawValue
	for set := 0; set <= all; set += step {
		old := slices.Clone(doc)
		for i, offset := range offsets {
			if set>>min(i, maxMixed-1)&1 == 1 {
				octets := back.octets([16]byte(doc[offset+1:]))
				old[offset] = c.From.Subtype
				copy(old[offset+1:], octets[:])
			}
		}
		if again, _, err := c.Rewrite(old, nil); err != nil {
			return nil, err
		} else if bytes.Equal(again, doc) {
			out = append(out, bson.Raw(old).Lookup("_id"))
		}
	}
	return out, nil
}

// at returns the subtype and octets of the value that path leads to in doc.
func at(doc bson.Raw, path string) (subtype byte, octets [16]byte, ok bool) {
	v, err := doc.LookupErr(strings.Split(path, ".")...)
	if err != nil {
		return 0, octets, false
	}
	subtype, data, ok := v.BinaryOK()
	if !ok || len(data) != 16 {
		return 0, octets, false
	}
	return subtype, [16]byte(data), true
}

// keep notes those of the changes in an earlier line of the undo log whose new values stand in doc, of the subtype to: the
// line that makes it void has to put them back too.
func (p *Plan) keep(doc bson.Raw, earlier []Change, to byte) {
	for _, done := range earlier {
		if slices.ContainsFunc(p.Changes, func(ch Change) bool { return ch.Path == done.Path }) {
			continue
		}
		if subtype, octets, ok := at(doc, done.Path); ok && subtype == to && octets == done.New {
			p.kept = append(p.kept, done)
		}
	}
}

// key is an _id as a map key.
func key(id bson.RawValue) string { return string(byte(id.Type)) + string(id.Value) }
