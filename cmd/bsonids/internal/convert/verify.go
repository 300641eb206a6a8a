package convert

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
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
	// Foreign counts the new values that are not in the undo log.
	Foreign int64      `json:"newValuesNotInUndoLog"`
	Fields  rule.Tally `json:"oldValuesByField,omitempty"`
	// Proven counts the documents whose new values match the undo log or the source, and Wrong
	// those whose new values do not.
	Proven int64 `json:"documentsProven"`
	Wrong  int64 `json:"documentsWrong"`
	Gone   int64 `json:"documentsGone"` // deleted since the conversion
	// Changed counts the documents that another program changed to unknown values.
	Changed  int64  `json:"changedSince"`
	Missing  int64  `json:"documentsMissing"`             // missing in the copy
	Extra    int64  `json:"documentsExtra"`               // in the copy and not in the source
	Finished *bool  `json:"conversionFinished,omitempty"` // by the record and the undo logs; nil for a dump
	Skips    []Skip `json:"findings,omitempty"`
}

// Holds reports whether the verification succeeded. If allowChanged is set, other programs may have
// changed or deleted what the conversion wrote.
func (v Verified) Holds(allowChanged bool) bool {
	return v.Old == 0 && v.Wrong == 0 && v.Missing == 0 && v.Extra == 0 && (v.Finished == nil || *v.Finished) &&
		(allowChanged || v.Gone == 0 && v.Changed == 0)
}

func (v *Verified) find(id bson.RawValue, format string, args ...any) {
	if len(v.Skips) < maxListed {
		v.Skips = append(v.Skips, Skip{bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}, fmt.Sprintf(format, args...)})
	}
}

// Verification verifies a conversion in place.
type Verification struct {
	Selection
	UUID     *bson.Binary // as in Options
	Undo     undolog.Logs
	Patience *patience.Patience // as in Options
	Progress func(documents int)
}

// Verify reads the documents for values that should have been converted, and for the new values of
// the undo log. It counts the values that the judge leaves unchanged separately. If an entry of the
// log is not met, it asks for the document again. The error is a [*LostError] if the collection was dropped, renamed
// or replaced meanwhile.
func (p *Verification) Verify(ctx context.Context, coll *mongo.Collection) (v Verified, err error) {
	v.Fields = rule.Tally{}
	there := &presence{patience: p.Patience, now: time.Now}
	there.add(coll, p.UUID)
	defer func() { err = there.after(ctx, err) }()
	l, err := p.logged(&v)
	if err != nil {
		return v, err
	}
	values := newCounter(p.Conversion, l)
	err = p.each(ctx, coll, p.Patience, p.Progress, func(doc bson.Raw) error {
		v.Read++
		return values.count(&v, doc)
	})
	if err != nil {
		return v, err
	}
	return v, p.entries(ctx, coll, &v, l)
}

// logged returns the values of the undo logs. It lists the entries that no conversion has made.
func (p *Verification) logged(v *Verified) (*logged, error) {
	l := &logged{set: hashset.New()}
	err := p.Undo.Each(func(e undolog.Entry) error {
		if ch, ok := foreign(e, p.Conversion); ok {
			v.Wrong++
			v.find(e.ID, "the undo log has a change at %s that does not belong to this conversion", ch.Path)
		} else {
			l.entries++
		}
		for _, ch := range e.Changes {
			l.set.Add(l.name(e.ID, ch.Path, ch.New))
		}
		return nil
	})
	if err == nil && l.set.Full() {
		err = fmt.Errorf("the undo log has more than %d values", hashset.Most)
	}
	return l, err
}

// entries compares the entries of the log with the values that were met, and asks for the documents of
// the others.
func (p *Verification) entries(ctx context.Context, coll *mongo.Collection, v *Verified, l *logged) error {
	if l.set.AllMarked() {
		v.Proven = l.entries
		return nil
	}
	var left []unmet
	var asked []undolog.Entry
	ask := func() error {
		found, err := patience.Ask(ctx, p.Patience, func() (map[undolog.Place][]unmet, error) { return eachIn(ctx, coll, asked, unmetOf) })
		if err != nil {
			return err
		}
		for _, e := range asked {
			more, ok := found[e.At]
			switch {
			case !ok:
				v.Gone++
			case len(more) == 0:
				v.Proven++
			}
			left = append(left, more...)
		}
		asked = asked[:0]
		return nil
	}
	err := p.Undo.Each(func(e undolog.Entry) error {
		if _, ok := foreign(e, p.Conversion); ok {
			return nil
		}
		if l.met(e) {
			v.Proven++
			return nil
		}
		if asked = append(asked, e); len(asked) == batchSize || large(asked[:1], e) {
			return ask()
		}
		return nil
	})
	if err == nil {
		err = ask()
	}
	if err != nil {
		return err
	}
	if left, err = stillUnmet(p.Undo, left); err != nil {
		return err
	}
	listed := make(map[string]bool) // by document and finding
	for _, s := range v.Skips {
		listed[documents.Key(s.ID)+s.Reason] = true
	}
	wrong := make(map[undolog.Place]bool) // by the place of the entry
	for _, u := range left {
		wrong[u.at] = wrong[u.at] || u.reason == notConverted || u.reason == otherOrder
		if finding := u.path + ": " + u.reason; !listed[documents.Key(u.id)+finding] {
			v.find(u.id, "%s", finding)
		}
	}
	for _, is := range wrong {
		if is {
			v.Wrong++
		} else {
			v.Changed++
		}
	}
	return nil
}

// The reasons for which a value is wrong that the log has.
const (
	notConverted = "not converted"
	otherOrder   = "converted from another byte order than the undo log says"
)

// misread reports whether a document has, at the path of a change, its old value as it is if it is read in another order.
func misread(ch rule.Change, held rule.Held) bool {
	now, ok := held.At(ch.Path)
	return ok && ch.Misread(now)
}

// foreign returns a change of the entry that the conversion would not make.
func foreign(e undolog.Entry, c rule.Conversion) (rule.Change, bool) {
	for _, ch := range e.Changes {
		if !c.Makes(ch) {
			return ch, true
		}
	}
	return rule.Change{}, false
}

// unmetOf returns the changes of the entry that doc does not have.
func unmetOf(e undolog.Entry, doc bson.Raw) (left []unmet) {
	held := rule.HeldBy(doc, len(e.Changes))
	for _, ch := range e.Changes {
		switch {
		case held.HasNew(ch):
		case held.HasOld(ch):
			left = append(left, unmet{e.ID, ch.Path, e.At, notConverted})
		case misread(ch, held):
			left = append(left, unmet{e.ID, ch.Path, e.At, otherOrder})
		default:
			left = append(left, unmet{e.ID, ch.Path, e.At, changedSince})
		}
	}
	return left
}

// counter counts the values of documents, one after the other. It is not safe for concurrent use.
type counter struct {
	conversion rule.Conversion
	logged     *logged // nil if there is no undo log
	visit      func(*walk.Path, walk.Leaf) error
	ruling     rule.Ruling
	to         *Verified
	id         bson.RawValue
}

func newCounter(c rule.Conversion, l *logged) *counter {
	n := &counter{conversion: c, logged: l}
	n.visit = n.value
	return n
}

// count adds the old and the new values in doc to v.
func (n *counter) count(v *Verified, doc bson.Raw) error {
	n.to, n.id = v, doc.Lookup("_id")
	return n.conversion.Walk(doc, n.visit)
}

func (n *counter) value(path *walk.Path, leaf walk.Leaf) error {
	r, v := &n.ruling, n.to
	switch ok := n.conversion.Rule(r, path, leaf); {
	case !ok:
		if !n.conversion.IsNew(path, leaf) {
			return nil
		}
		v.New++
		if n.logged != nil && !n.logged.has(n.id, path.Dotted(), rule.ValueOf(leaf.Type, leaf.Value)) {
			v.Foreign++
		}
	case r.Reason != "":
		v.Left++
	default:
		v.Old++
		v.Fields.Add(string(r.Field), 1)
		if path.Top() == "_id" {
			v.InID++
		}
		n.to.find(n.id, "%s: %s", path.Dotted(), notConverted)
	}
	return nil
}

// logged has the new values in undo logs, each with its document and path. One that a document has is marked.
type logged struct {
	set     *hashset.Set
	entries int64 // of the undo log that this conversion has made
	key     []byte
}

// has reports whether the value is in the log, and marks it.
func (l *logged) has(id bson.RawValue, path string, v rule.Value) bool {
	return l.set.Mark(l.name(id, path, v))
}

// met reports whether all new values of the entry are marked.
func (l *logged) met(e undolog.Entry) bool {
	return !slices.ContainsFunc(e.Changes, func(ch rule.Change) bool { return !l.set.Marked(l.name(e.ID, ch.Path, ch.New)) })
}

func (l *logged) name(id bson.RawValue, path string, v rule.Value) []byte {
	l.key = binary.LittleEndian.AppendUint32(append(l.key[:0], byte(id.Type)), uint32(len(id.Value)))
	l.key = undolog.AppendValue(append(append(l.key, id.Value...), path...), v)
	return l.key
}
