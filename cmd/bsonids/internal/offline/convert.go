package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Job is a conversion of a dump.
type Job struct {
	Input       *dump.Input
	Collections map[string]Treatment // by namespace
	Digest      string               // of the dump, as of [Survey]
	Temp        string               // directory for temporary files
	Progress    func(documents int)
	Output      *dump.Output      // nil for a dry run
	SkipList    *convert.SkipList // nil for none
}

// Treatment is how a collection is converted.
type Treatment struct {
	Conversion rule.Conversion // empty if a person has decided that nothing is converted
	InID       bool            // values in _id are converted
}

// Result is what a conversion did, or would do.
type Result struct {
	Documents   int64                  `json:"documentsRead"` // all, also those of other collections
	Left        int64                  `json:"-"`             // values
	Constants   int64                  `json:"-"`             // left in options, indexes and views
	Collections map[string]*Collection `json:"-"`             // by namespace
}

// Complete reports whether nothing was left that the conversion applies to.
func (r *Result) Complete() bool { return r.Left == 0 && r.Constants == 0 }

// Collection is the result for one collection.
type Collection struct {
	Namespace       string
	Documents       int64      // that were read
	Values, Changed int64      // values that were changed, and documents with them
	Left, Skipped   int64      // values that were left, and documents with them
	SkippedFor      rule.Tally // these values by reason
	Compared

	role     role
	rewriter *rule.Rewriter // nil if nothing is planned about the collection
	inID     bool
	number   int
}

// role is what a conversion does with a collection.
type role int

const (
	copied  role = iota
	buckets      // of a time series: copied, and values in it are listed
	converted
)

// run is a Job that is under way.
type run struct {
	*Job
	res    Result
	of     map[*dump.Collection]*Collection
	write  func(*dump.Item) error
	ids    *identities // nil for a proof
	digest digest
	all    rule.Conversion // of all values that any collection has converted, in whatever field
	within Reading         // selects the databases in which something is converted
	id     []byte          // of the document that is converted
}

func newRun(j *Job) *run {
	r := &run{Job: j, res: Result{Collections: make(map[string]*Collection)}, of: make(map[*dump.Collection]*Collection), digest: digest{}, write: func(*dump.Item) error { return nil }}
	for name, p := range j.Collections {
		for _, c := range p.Conversion {
			db, _, _ := strings.Cut(name, ".")
			r.within.Databases = append(r.within.Databases, db)
			if !slices.ContainsFunc(r.all, func(o rule.Pair) bool { return o.From.Stored() == c.From.Stored() }) {
				r.all = append(r.all, rule.Pair{From: c.From})
			}
		}
	}
	return r
}

// Convert reads the dump, converts it, and writes it to the output, which it commits.
func Convert(ctx context.Context, j Job) (res Result, err error) {
	r := newRun(&j)
	r.ids = newIdentities(j.Temp)
	defer func() { err = errors.Join(err, r.ids.Close()) }()
	if j.Output != nil {
		r.write = j.Output.Write
	}
	if err = r.pass(ctx); err == nil {
		err = r.distinct(ctx)
	}
	if err != nil || j.Output == nil {
		return r.res, err
	}
	if err := errors.Join(ctx.Err(), j.SkipList.Sync()); err != nil {
		return r.res, err
	}
	return r.res, j.Output.Commit()
}

// pass converts the dump.
func (r *run) pass(ctx context.Context) (err error) {
	d := source.OpenDump(r.Input, r.Progress)
	defer func() { err = errors.Join(err, d.Close()) }()
	for err == nil {
		if err = d.NextItem(ctx); err == nil {
			err = r.item(d)
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if r.digest.sum() != r.Digest {
		return errors.New("it is not the dump that the plan was made of: its documents are others, or in another order")
	}
	return nil
}

// item converts an item of the dump.
func (r *run) item(d *source.Dump) (err error) {
	item := &d.Item
	if item.Collection != nil && item.Collection.Oplog() {
		return ErrOplog
	}
	switch item.Kind {
	case dump.Document:
		err = r.document(r.collection(item.Collection), item)
	case dump.Metadata:
		r.constants(r.collection(item.Collection), item.Text)
	}
	if errors.Is(err, walk.ErrCorrupt) {
		err = d.Damaged(err)
	}
	if err == nil {
		err = r.SkipList.Err()
	}
	if err == nil {
		err = r.write(item)
	}
	return err
}

// collection returns the result for a collection.
func (r *run) collection(coll *dump.Collection) *Collection {
	if c := r.of[coll]; c != nil {
		return c
	}
	c := r.named(coll.String())
	r.of[coll] = c
	planned, ok := r.Collections[c.Namespace]
	switch {
	case c.role == converted: // the dump has another one with its name
	case ok && len(planned.Conversion) == 0, !r.within.selects(coll):
	case coll.TimeSeries():
		c.role = buckets
	default:
		c.role, c.inID = converted, planned.InID
		if ok {
			c.rewriter, c.SkippedFor = rule.NewRewriter(planned.Conversion), rule.Tally{}
		}
	}
	return c
}

// named returns the result for the collection with the name.
func (r *run) named(name string) *Collection {
	c := r.res.Collections[name]
	if c == nil {
		c = &Collection{Namespace: name, number: len(r.res.Collections)}
		r.res.Collections[name] = c
	}
	return c
}

// document converts a document.
func (r *run) document(c *Collection, item *dump.Item) error {
	r.res.Documents++
	c.Documents++
	r.digest.add(item.Collection, item.Bytes)
	switch {
	case c.role == copied:
		return nil
	case c.role == buckets:
		return r.bucket(c, item.Bytes)
	case c.rewriter == nil:
		return check(item.Bytes)
	}
	id := bson.Raw(item.Bytes).Lookup("_id") // as it is before the conversion
	if c.inID {
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
		c.Values += int64(values)
	}
	if len(left) > 0 {
		c.Skipped++
		c.Left += int64(len(left))
		for _, l := range left {
			c.SkippedFor.Add(l.Reason, 1)
		}
		r.leave(c, id, left...)
	}
	if c.inID && r.ids != nil {
		return r.ids.add(c, bson.Raw(doc).Lookup("_id"))
	}
	return nil
}

// leave counts and lists values of one document that are left as they are.
func (r *run) leave(c *Collection, id bson.RawValue, left ...rule.Left) {
	r.res.Left += int64(len(left))
	r.SkipList.Add(c.Namespace, id, left)
}

// wanted calls leave with the values that any conversion would change in a document. They are left for the reason.
// Only those in one of the top-level fields count, if any are given.
func (r *run) wanted(doc bson.Raw, reason string, leave func(left ...rule.Left), tops ...string) error {
	var left []rule.Left
	err := r.all.Wants(doc, func(_ *walk.Path, l rule.Left) {
		if top, _, _ := strings.Cut(l.Path, "."); len(tops) == 0 || slices.Contains(tops, top) {
			l.Reason = reason
			left = append(left, l)
		}
	})
	if err == nil {
		leave(left...)
	}
	return err
}

const typeColumn = 7 // the binary subtype of compressed measurements

// bucket counts what a bucket of a time series holds.
func (r *run) bucket(c *Collection, doc bson.Raw) error {
	const reason = "the buckets of a time series are not converted: copy the measurements into a collection first"
	leave := func(left ...rule.Left) { r.leave(c, doc.Lookup("_id"), left...) }
	if err := r.wanted(doc, reason, leave); err != nil {
		return err
	}
	compressed := false
	err := walk.Document(doc, func(_ *walk.Path, l walk.Leaf) error {
		subtype, _, _, ok := l.Binary()
		compressed = compressed || ok && subtype == typeColumn
		return nil
	})
	if err == nil && compressed {
		leave(rule.Left{Document: true, Reason: "the bucket holds compressed measurements, which are not read: " + reason})
	}
	return err
}

// constants lists the values of the old kind in the metadata of a collection, which is copied as it is: in a
// validator, a partial index, or the pipeline of a view.
func (r *run) constants(c *Collection, text []byte) {
	if c.role == copied || len(bytes.TrimSpace(text)) == 0 {
		return
	}
	leave := func(left ...rule.Left) {
		r.res.Constants += int64(len(left))
		r.SkipList.Add(c.Namespace, bson.RawValue{}, left)
	}
	var doc bson.Raw
	err := bson.UnmarshalExtJSON(text, false, &doc)
	if err == nil { // other text in it is the UUID of the collection
		err = r.wanted(doc, "a constant in the options or indexes of the collection, which is copied as it is", leave, "options", "indexes")
	}
	if err != nil {
		leave(rule.Left{Document: true, Reason: fmt.Sprintf("the metadata could not be read, so its constants were not looked at: %v", err)})
	}
}
