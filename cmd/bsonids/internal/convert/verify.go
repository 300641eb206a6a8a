package convert

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Verified is the result of a verification.
type Verified struct {
	Read int64 `json:"documentsRead"`
	// Old counts the values of the old kind that the conversion should have changed.
	Old  int64 `json:"oldValues"`
	InID int64 `json:"oldValuesInId"`
	New  int64 `json:"newValues"`
	// Left counts the values that the saved decision leaves unchanged.
	Left int64 `json:"valuesLeft"`
	// Unlogged counts, if both kinds have the same subtype, the values that are neither in the undo
	// log nor left unchanged by the decision.
	Unlogged int64 `json:"valuesNotInUndoLog"`
	// Foreign counts, if the kinds have different subtypes, the new values that are not in the undo
	// log.
	Foreign int64 `json:"newValuesNotInUndoLog"`
	Fields  Tally `json:"oldValuesByField,omitempty"`
	// Proven counts the documents whose new values match the undo log or the source, and Wrong
	// those whose new values do not.
	Proven int64 `json:"documentsProven"`
	Wrong  int64 `json:"documentsWrong"`
	Gone   int64 `json:"documentsGone"` // deleted since the conversion
	// Changed counts the documents that another program changed to unknown values.
	Changed  int64  `json:"changedSince"`
	Missing  int64  `json:"documentsMissing"`             // missing in the copy
	Extra    int64  `json:"documentsExtra"`               // in the copy and not in the source
	Finished *bool  `json:"conversionFinished,omitempty"` // from the state file; nil without one
	Skips    []Skip `json:"findings,omitempty"`
}

// Holds reports whether the verification succeeded. If allowChanged is set, other programs may have
// changed or deleted what the conversion wrote. If the state file also says that the conversion is
// finished, values that are not in the undo log are attributed to other programs.
func (v Verified) Holds(allowChanged bool) bool {
	finished := v.Finished != nil && *v.Finished
	return v.Old == 0 && v.Wrong == 0 && v.Missing == 0 && v.Extra == 0 && (v.Finished == nil || finished) &&
		(v.Unlogged == 0 || allowChanged && finished) && (allowChanged || v.Gone == 0 && v.Changed == 0)
}

func (v *Verified) find(id bson.RawValue, format string, args ...any) {
	if len(v.Skips) < maxListed {
		v.Skips = append(v.Skips, Skip{id, fmt.Sprintf(format, args...)})
	}
}

// VerifyInPlace reads the documents of the part that match the query, which may be nil, for values
// that should have been converted, and compares the values in the undo log with the documents. It
// counts the values that the judge of c leaves unchanged separately. The undo log may be nil if the
// old and the new values have different subtypes. Otherwise the error is [ErrNeedsUndoLog]. While the
// server is lost, each read is tried again for as long as patient says, which may be nil.
func VerifyInPlace(ctx context.Context, coll *mongo.Collection, c Conversion, part Part, query bson.D, u *UndoReader, patient *patience.Patience, progress func(int)) (Verified, error) {
	v := Verified{Fields: Tally{}}
	if c.SameSubtype() && u == nil {
		return v, ErrNeedsUndoLog
	}
	var l *logged
	if u != nil {
		l = &logged{set: hashset.New()}
		err := entries(u, batchSize, func(b []Entry) error {
			ids := make([]bson.RawValue, len(b))
			for i, e := range b {
				ids[i] = e.ID
			}
			var docs map[string]bson.Raw
			err := patient.Do(ctx, func() (err error) {
				docs, err = documents.ByID(ctx, coll, ids, nil)
				return err
			})
			if err != nil {
				return err
			}
			for _, e := range b {
				v.entry(docs, e, c)
				l.add(e)
			}
			return nil
		})
		if err != nil {
			return v, err
		}
		if l.set.Full() {
			return v, fmt.Errorf("the undo log has more than %d values; verify each part of the conversion", hashset.Most)
		}
	}
	p := &documents.Pages{Collection: coll, Projection: c.Projection(), Filter: query, Size: batchSize}
	for {
		var docs []bson.Raw
		err := patient.Do(ctx, func() (err error) {
			docs, err = p.Next(ctx)
			return err
		})
		if err != nil || len(docs) == 0 {
			return v, err
		}
		progress(len(docs))
		for _, doc := range docs {
			if !part.Has(doc.Lookup("_id")) {
				continue
			}
			v.Read++
			if err := v.values(doc, c, l); err != nil {
				return v, err
			}
		}
	}
}

func (v *Verified) entry(docs map[string]bson.Raw, e Entry, c Conversion) {
	for _, ch := range e.Changes {
		octets, value := c.fresh(c.reread(ch.Old, ch.OldValue))
		if e.from != c.From.Subtype || e.to != c.To.Subtype && ch.NewValue != null || octets != ch.New || value != ch.NewValue {
			v.Wrong++
			v.find(e.ID, "the undo log has a change at %s that does not belong to this conversion", ch.Path)
			return
		}
	}
	doc, ok := docs[documents.Key(e.ID)]
	switch {
	case !ok:
		v.Gone++
	case holdsNew(doc, e):
		v.Proven++
	case holdsOld(doc, e):
		v.Wrong++
		v.find(e.ID, "not converted")
	default:
		v.Changed++
		v.find(e.ID, "another program changed the document after the conversion")
	}
}

// document counts the values of both kinds in doc if the kinds have different subtypes.
func (v *Verified) document(doc bson.Raw, c Conversion) error {
	if c.SameSubtype() {
		return nil
	}
	return v.values(doc, c, nil)
}

// values counts the values of both kinds in doc. l is nil if there is no undo log.
func (v *Verified) values(doc bson.Raw, c Conversion, l *logged) error {
	id := doc.Lookup("_id")
	old, unlogged := "", ""
	var name [128]byte
	err := c.walk(doc, func(path *walk.Path, leaf walk.Leaf) error {
		value, ok := c.find(path, leaf)
		octets := value.octets
		switch {
		case !ok:
			octets, is, ok := c.isNew(path, leaf)
			if !ok {
				return nil
			}
			v.New++
			if l != nil && !l.has(id, path.Dotted(), octets, is) {
				v.Foreign++
			}
		case c.SameSubtype() && c.octets(octets) == octets: // for example the Nil UUID
		case c.SameSubtype() && l.has(id, path.Dotted(), octets, ""):
			v.New++
		case c.judge(path.AppendField(name[:0]), value) != "":
			v.Left++
		case c.SameSubtype():
			v.Unlogged++
			unlogged = path.Dotted()
		default:
			v.Old++
			v.Fields.add(string(path.AppendField(name[:0])), 1)
			if path.Top() == "_id" {
				v.InID++
			}
			old = path.Dotted()
		}
		return nil
	})
	id = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
	if err == nil && old != "" {
		v.find(id, "not converted: %s", old)
	}
	if err == nil && unlogged != "" {
		v.find(id, "missing in the undo log: %s is not converted, or another program wrote it", unlogged)
	}
	return err
}

// logged is the set of the new values in an undo log, each with its document and path.
type logged struct {
	set *hashset.Set
	key []byte
}

func (l *logged) add(e Entry) {
	for _, ch := range e.Changes {
		l.set.Add(l.name(e.ID, ch.Path, ch.New, ch.NewValue))
	}
}

func (l *logged) has(id bson.RawValue, path string, octets [16]byte, value Value) bool {
	return l.set.Has(l.name(id, path, octets, value))
}

func (l *logged) name(id bson.RawValue, path string, octets [16]byte, value Value) []byte {
	l.key = binary.LittleEndian.AppendUint32(append(l.key[:0], byte(id.Type)), uint32(len(id.Value)))
	l.key = append(append(append(append(l.key, id.Value...), path...), octets[:]...), value...)
	return l.key
}
