package convert

import (
	"bytes"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Rewrite returns a copy of doc with every value converted, including those in _id, and the number
// of converted values. If fields is not nil, Rewrite counts the values in it by field. Nothing else
// in the document changes, except for the lengths of the documents and arrays around a value whose
// length changes.
func (c Conversion) Rewrite(doc bson.Raw, fields Tally) (bson.Raw, int, error) {
	return c.rewrite(doc, fields, func(Left) {})
}

// rewrite is Rewrite. It calls leave for each value that is left unchanged.
func (c Conversion) rewrite(doc bson.Raw, fields Tally, leave func(Left)) (bson.Raw, int, error) {
	if !c.inPlace() {
		return c.splice(doc, fields, leave)
	}
	out, n := slices.Clone(doc), 0
	var name [128]byte
	err := walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if old, offset, ok := c.wants(path, l); ok {
			field := path.AppendField(name[:0])
			if reason := c.Judge.Value(field, old); reason != "" {
				leave(Left{Path: path.Dotted(), Old: old, Reason: reason})
				return nil
			}
			fresh := c.octets(old)
			out[offset] = c.To.Subtype
			copy(out[offset+1:], fresh[:])
			n++
			if fields != nil {
				fields.add(string(field), 1)
			}
		}
		return nil
	})
	return out, n, err
}

// splice is rewrite for values whose length changes.
func (c Conversion) splice(doc bson.Raw, fields Tally, leave func(Left)) (bson.Raw, int, error) {
	var edits []walk.Edit
	err := c.edits(doc, func(e walk.Edit, ch Change) {
		edits = append(edits, e)
		if fields != nil {
			fields.add(ch.Field, 1)
		}
	}, leave)
	if err != nil {
		return nil, 0, err
	}
	out, err := walk.Splice(doc, edits)
	return out, len(edits), err
}

// edits calls edit for each value of doc that is converted, in the order of the document, and leave for
// each value that is left unchanged.
func (c Conversion) edits(doc []byte, edit func(walk.Edit, Change), leave func(Left)) error {
	var name [128]byte
	return c.walk(doc, func(path *walk.Path, l walk.Leaf) error {
		v, ok := c.find(path, l)
		if !ok {
			return nil
		}
		field := path.AppendField(name[:0])
		change := Change{Path: path.Dotted(), Field: string(field), Old: v.octets, OldValue: v.value}
		if reason := c.judge(field, v); reason != "" {
			leave(change.left(reason))
			return nil
		}
		change.New, change.NewValue = c.fresh(v)
		edit(c.edit(l.Offset, change.New, change.NewValue), change)
		return nil
	})
}

// maxMixed is the maximum number of values in one _id that are tried in every combination of both
// kinds.
const maxMixed = 6

// sources returns the _ids that the conversion turns into id. There are several if values of both
// kinds may be in one _id. If id has more than maxMixed values, sources tries only the _ids whose
// values all have one kind.
func (c Conversion) sources(id bson.RawValue) ([]bson.RawValue, error) {
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return nil, err
	}
	back := Conversion{From: c.To, To: c.From, Fields: c.Fields}
	var edits []walk.Edit
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		if v, ok := back.find(path, l); ok && v.unfit == "" {
			octets, value := back.fresh(v)
			edits = append(edits, back.edit(l.Offset, octets, value))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	step, all := 1, 1<<min(len(edits), maxMixed)-1
	if len(edits) > maxMixed {
		step = all
	}
	var out []bson.RawValue
	for set := 0; set <= all; set += step {
		var some []walk.Edit
		for i, e := range edits {
			if set>>min(i, maxMixed-1)&1 == 1 {
				some = append(some, e)
			}
		}
		old, err := walk.Splice(doc, some)
		if err != nil {
			return nil, err
		}
		if again, _, err := c.Rewrite(old, nil); err != nil {
			return nil, err
		} else if bytes.Equal(again, doc) {
			out = append(out, bson.Raw(old).Lookup("_id"))
		}
	}
	return out, nil
}
