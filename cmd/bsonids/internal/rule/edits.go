package rule

import (
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Change is the change of one value of a document.
type Change struct {
	Path     string // with array positions: items.0.id
	Old, New Value
}

// back returns the change that undoes ch, at the path.
func (ch Change) back(path string) Change {
	return Change{Path: path, Old: ch.New, New: ch.Old}
}

// Left returns the old value of the change as one that is left unchanged.
func (ch Change) Left(reason string) Left {
	return Left{Path: ch.Path, Value: ch.Old, Reason: reason}
}

// Edits lists the changes to one document.
type Edits struct {
	ID      bson.RawValue
	Changes []Change
	InID    []Change // values in _id, which an update cannot change
	Skipped []Left   // values that are left unchanged
	// Key has the values of the whole shard key as they were read, by path, if changes are about it. A server changes it
	// only if the query has them all, and in a transaction of the one update.
	Key bson.D
}

// Left is a value that is left unchanged, or a document if Document is set.
type Left struct {
	Path     string // may be empty: the value of a field without a name
	Value    Value
	Document bool // the reason is not about a value
	Reason   string
}

// Edits returns the changes that the conversion makes to doc. The edits share no memory with doc. The error
// wraps walk.ErrCorrupt.
func (c Conversion) Edits(doc bson.Raw) (Edits, error) { return NewEditor(c).Edits(doc) }

// Editor makes the edits of documents one after the other. It is not safe for concurrent use.
type Editor struct {
	conversion Conversion
	visit      func(*walk.Path, walk.Leaf) error
	ruling     Ruling
	doc        bson.Raw
	edits      Edits
}

// NewEditor returns an Editor for the conversion.
func NewEditor(c Conversion) *Editor {
	e := &Editor{conversion: c}
	e.visit = e.value
	return e
}

// Edits is like [Conversion.Edits].
func (e *Editor) Edits(doc bson.Raw) (Edits, error) {
	e.doc, e.edits = doc, Edits{}
	if err := e.conversion.Walk(doc, e.visit); err != nil {
		return Edits{}, err
	}
	p := e.edits
	id, err := doc.LookupErr("_id")
	if err != nil && len(p.Changes) > 0 {
		// A document without an _id cannot be addressed. Only the oplog and views have such
		// documents.
		return Edits{Skipped: []Left{{Document: true, Reason: "the document has no _id"}}}, nil
	}
	p.ID = bson.RawValue{Type: id.Type, Value: slices.Clone(id.Value)}
	return p, nil
}

// value adds a value to the edits if the conversion applies to it.
func (e *Editor) value(path *walk.Path, l walk.Leaf) error {
	r := &e.ruling
	if !e.conversion.Rule(r, path, l) {
		return nil
	}
	change, reason := r.change(), r.Reason
	inID := path.Top() == "_id"
	if reason == "" && !inID {
		reason = r.onlyCopied(e.doc)
	}
	switch p := &e.edits; {
	case reason != "":
		p.Skipped = append(p.Skipped, change.Left(reason))
	case inID:
		p.InID = append(p.InID, change)
	default:
		p.Changes = append(p.Changes, change)
	}
	return nil
}

// Paths returns the paths of the values in p.
func (p *Edits) Paths() map[string]bool {
	paths := make(map[string]bool)
	for _, ch := range p.Changes {
		paths[ch.Path] = true
	}
	for _, ch := range p.InID {
		paths[ch.Path] = true
	}
	for _, l := range p.Skipped {
		paths[l.Path] = true
	}
	return paths
}
