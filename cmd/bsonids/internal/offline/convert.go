package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Job is a conversion of a dump.
type Job struct {
	Reading
	Conversion rule.Conversion // its judge is not used
	Decisions  *Decisions
	Output     *dump.Output      // nil for a dry run
	SkipList   *convert.SkipList // nil for none
	SkipPath   string            // the name that the list gets when the dump is whole
	Examples   int               // documents of each collection, at most; -1 for all
}

// Result is what a conversion did, or would do.
type Result struct {
	Documents   int64         `json:"documents"` // all, also those of other collections
	Changed     int64         `json:"documentsChanged"`
	Values      int64         `json:"valuesChanged"`
	Skipped     int64         `json:"documentsSkipped"` // with values that are left as they are
	Left        int64         `json:"valuesSkipped"`
	Constants   int64         `json:"constantsLeft"` // in options, indexes and views
	Collections []*Collection `json:"collections"`   // in the order of the dump
}

// Complete reports whether nothing was left that the conversion applies to.
func (r *Result) Complete() bool { return r.Left == 0 && r.Constants == 0 }

// Collection is the result for one collection.
type Collection struct {
	Namespace  string           `json:"collection"`
	Role       Role             `json:"role"`
	Documents  int64            `json:"documents"`
	Changed    int64            `json:"documentsChanged"`
	Values     int64            `json:"valuesChanged"`
	Fields     rule.Tally       `json:"fields,omitempty"` // values that changed
	Skipped    int64            `json:"documentsSkipped"`
	Left       int64            `json:"valuesSkipped"`
	SkippedFor rule.Tally       `json:"skippedFor,omitempty"`
	Constants  []Constant       `json:"constantsLeft,omitempty"`
	Decision   *decide.Decision `json:"decision,omitempty"`
	Examples   []Example        `json:"-"`

	rewriter *rule.Rewriter
	ids      bool // values in _id are converted
	number   int
	seen     *dump.Collection
}

// Example is a changed value of a document.
type Example struct {
	ID bson.RawValue // before the conversion
	rule.Change
}

// run is a Job that is under way.
type run struct {
	*Job
	res         Result
	collections map[*dump.Collection]*Collection
	ids         *identities // nil for a proof
	id          []byte      // of the document that is converted
}

// Convert reads the dump, converts it, and writes it to the output, which it commits. If the
// conversion makes two _ids of a collection equal, the error is an *EqualIDs.
func Convert(ctx context.Context, j Job) (res Result, err error) {
	r := &run{Job: &j, res: Result{Collections: []*Collection{}}, collections: make(map[*dump.Collection]*Collection), ids: newIdentities(j.Temp)}
	defer func() { err = errors.Join(err, r.ids.close()) }()
	if err := r.items(ctx); err != nil {
		return r.res, err
	}
	for _, c := range r.res.Collections {
		if c.rewriter != nil {
			c.Fields = c.rewriter.Fields()
		}
	}
	if err := r.missing(); err != nil {
		return r.res, err
	}
	if err := r.ids.distinct(ctx, r); err != nil {
		return r.res, err
	}
	if r.Output == nil {
		return r.res, nil
	}
	if err := errors.Join(ctx.Err(), r.SkipList.Sync()); err != nil {
		return r.res, err
	}
	if !r.SkipList.Begun() {
		return r.res, r.Output.Commit()
	}
	// The list has its name first, so that no dump is without it.
	if err := dump.Publish(r.SkipList.Path(), r.SkipPath); err != nil {
		return r.res, err
	}
	if err := r.Output.Commit(); err != nil {
		return r.res, errors.Join(err, os.Remove(r.SkipPath))
	}
	return r.res, nil
}

// items converts the items of the dump.
func (r *run) items(ctx context.Context) (err error) {
	d, err := source.OpenDump(r.Input, r.Progress)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	for {
		err := d.NextItem(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.item(&d.Item)
		}
		if errors.Is(err, walk.ErrCorrupt) {
			err = d.Damaged(err)
		}
		if err != nil {
			return err
		}
	}
}

// Missing is the error for a database or a collection that is not in the dump.
type Missing struct{ Databases, Collections []string }

func (e *Missing) Error() string {
	var s []string
	for _, name := range e.Databases {
		s = append(s, fmt.Sprintf("database %q does not exist", name))
	}
	for _, name := range e.Collections {
		s = append(s, fmt.Sprintf("collection %q does not exist", name))
	}
	return strings.Join(s, " and ")
}

func (r *run) missing() error {
	seen := make([]*dump.Collection, 0, len(r.res.Collections))
	for _, c := range r.res.Collections {
		seen = append(seen, c.seen)
	}
	return r.Selection.Check(seen)
}

func (r *run) item(item *dump.Item) error {
	if item.Collection != nil {
		if item.Collection.Oplog() {
			return ErrOplog
		}
		c := r.collection(item.Collection)
		switch item.Kind {
		case dump.Document:
			if err := r.document(c, item); err != nil {
				return err
			}
		case dump.Metadata:
			r.constants(c, item)
		}
		if err := r.SkipList.Err(); err != nil {
			return err
		}
	}
	if r.Output == nil {
		return nil
	}
	return r.Output.Write(item)
}

// collection returns the result for a collection.
func (r *run) collection(coll *dump.Collection) *Collection {
	c := r.collections[coll]
	if c == nil {
		c = &Collection{number: len(r.res.Collections), seen: coll}
		r.collections[coll] = c
		r.res.Collections = append(r.res.Collections, c)
	}
	if c.rewriter == nil { // the metadata, which names the collection, may come after its beginning
		c.Namespace, c.Role = coll.String(), r.Selection.role(coll)
	}
	return c
}

// begin prepares the conversion of the documents of a collection.
func (r *run) begin(c *Collection) {
	d := r.Decisions.For(c.Namespace)
	conv := r.Conversion
	conv.Judge = d.Judge(conv.From.Order)
	c.rewriter, c.Decision = rule.NewRewriter(conv), d
	c.ids = d.BySubtype
	for _, f := range d.Fields {
		if f.Converted() && (f.Path == "_id" || f.Path == decide.Others || strings.HasPrefix(f.Path, "_id.") || strings.HasPrefix(f.Path, "_id[")) {
			c.ids = true
		}
	}
}

func (r *run) document(c *Collection, item *dump.Item) (err error) {
	r.res.Documents++
	c.Documents++
	switch c.Role {
	case Unselected, System:
		return nil
	case TimeSeries:
		return r.bucket(c, item.Bytes)
	}
	if c.rewriter == nil {
		r.begin(c)
	}
	c.rewriter.Each = nil
	if r.Examples < 0 || len(c.Examples) < r.Examples {
		id := bson.Raw(item.Bytes).Lookup("_id")
		id.Value = slices.Clone(id.Value)
		c.rewriter.Each = func(ch rule.Change) { c.Examples = append(c.Examples, Example{id, ch}) }
	}
	id := bson.RawValue{} // before the conversion
	if c.ids {
		id = bson.Raw(item.Bytes).Lookup("_id")
		r.id = append(r.id[:0], id.Value...)
		id.Value = r.id
	}
	doc, values, left, err := c.rewriter.Document(item.Bytes)
	if err != nil {
		return err
	}
	item.Bytes = doc
	if values > 0 {
		c.Changed++
		r.res.Changed++
		c.Values += int64(values)
		r.res.Values += int64(values)
	}
	if len(left) > 0 {
		if !c.ids {
			id = bson.Raw(item.Bytes).Lookup("_id")
		}
		r.leave(c, id, left)
	}
	if c.ids && r.ids != nil {
		return r.ids.add(c.number, c.Documents-1, bson.Raw(item.Bytes).Lookup("_id"))
	}
	return nil
}

// leave counts and lists values of one document that are left as they are.
func (r *run) leave(c *Collection, id bson.RawValue, left []rule.Left) {
	if c.SkippedFor == nil {
		c.SkippedFor = rule.Tally{}
	}
	c.Skipped++
	r.res.Skipped++
	c.Left += int64(len(left))
	r.res.Left += int64(len(left))
	for _, l := range left {
		c.SkippedFor[l.Reason]++
	}
	r.SkipList.Add(c.Namespace, id, r.Conversion.From.Subtype, left)
}

const typeColumn = 7 // the binary subtype of compressed measurements

// bucket counts what a bucket of a time series holds.
func (r *run) bucket(c *Collection, doc bson.Raw) error {
	const reason = "the buckets of a time series are not converted: copy the measurements into a collection first"
	var left []rule.Left
	err := r.Conversion.Wants(doc, func(_ *walk.Path, l rule.Left) {
		l.Reason = reason
		left = append(left, l)
	})
	if err != nil {
		return err
	}
	if len(left) > 0 {
		r.leave(c, doc.Lookup("_id"), left)
	}
	compressed, err := hasColumn(doc)
	if err == nil && compressed {
		r.leave(c, doc.Lookup("_id"), []rule.Left{{Document: true, Reason: "the bucket holds compressed measurements, which are not read: " + reason}})
	}
	return err
}
