package offline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	Reading
	// Steps has the conversions of each collection, by namespace. Each converts other values.
	Steps map[string][]rule.Conversion
	InID  map[string]bool // the collections whose _ids have values that are converted
	// Left has the collections about which a person has decided that nothing is converted.
	Left     map[string]bool
	Digest   string            // of the dump, as of [Survey]; empty if it does not matter
	Output   *dump.Output      // nil for a dry run
	SkipList *convert.SkipList // nil for none
}

// anywhere returns conversions of all values that any collection has converted, in whatever field.
func (j *Job) anywhere() (out []rule.Conversion) {
	for _, name := range slices.Sorted(maps.Keys(j.Steps)) {
		for _, c := range j.Steps[name] {
			if !slices.ContainsFunc(out, func(o rule.Conversion) bool { return o.From.Stored() == c.From.Stored() }) {
				out = append(out, rule.Conversion{From: c.From, To: c.To})
			}
		}
	}
	return out
}

// ErrAnother is the error for a dump that is not the one of the digest.
var ErrAnother = errors.New("it is not the dump that the plan was made of: its documents are others, or in another order")

// Result is what a conversion did, or would do.
type Result struct {
	Documents   int64 // all, also those of other collections
	Changed     int64 // documents
	Values      int64 // that changed
	Skipped     int64 // documents with values that are left as they are
	Left        int64 // values
	Constants   int64 // left in options, indexes and views
	Collections []*Collection
}

// Complete reports whether nothing was left that the conversion applies to.
func (r *Result) Complete() bool { return r.Left == 0 && r.Constants == 0 }

// Collection is the result for one collection.
type Collection struct {
	Namespace string
	Role      Role
	Documents int64
	Constants int64
	Steps     []Done // as those of the job

	rewriters []*rule.Rewriter
	begun     bool
	ids       bool // values in _id are converted
	number    int
	seen      *dump.Collection
}

// Of returns what the conversions of a collection did, of which there are n.
func (r *Result) Of(namespace string, n int) []Done {
	for _, c := range r.Collections {
		if c.Namespace == namespace && len(c.Steps) == n {
			return c.Steps
		}
	}
	return make([]Done, n) // there was no document
}

// Done is what one conversion of a collection did.
type Done struct {
	Values, Documents int64      // changed
	Left, Skipped     int64      // values that were left, and the documents that have them
	SkippedFor        rule.Tally // these values by reason; nil if there are none
}

// run is a Job that is under way.
type run struct {
	*Job
	res         Result
	collections map[*dump.Collection]*Collection
	ids         *identities // nil for a proof
	digest      *digest     // nil if it does not matter
	all         []rule.Conversion
	id          []byte // of the document that is converted
}

// Convert reads the dump, converts it, and writes it to the output, which it commits. If the
// conversion makes two _ids of a collection equal, the error is an *EqualIDs.
func Convert(ctx context.Context, j Job) (res Result, err error) {
	r := newRun(&j)
	r.ids = newIdentities(j.Temp)
	defer func() { err = errors.Join(err, r.ids.close()) }()
	if err := r.items(ctx); err != nil {
		return r.res, err
	}
	if err := r.missing(); err != nil {
		return r.res, err
	}
	if err := r.another(); err != nil {
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
	return r.res, r.Output.Commit()
}

func newRun(j *Job) *run {
	r := &run{Job: j, res: Result{Collections: []*Collection{}}, collections: make(map[*dump.Collection]*Collection), all: j.anywhere()}
	if j.Digest != "" {
		r.digest = newDigest()
	}
	return r
}

// another returns ErrAnother if the documents were not those of the digest.
func (r *run) another() error {
	if r.digest != nil && r.digest.sum() != r.Digest {
		return ErrAnother
	}
	return nil
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
	if !c.begun { // the metadata, which names the collection, may come after its beginning
		c.Namespace, c.Role = coll.String(), r.Selection.role(coll)
		if c.Role == Converted && r.Left[c.Namespace] {
			c.Role = Unselected
		}
	}
	return c
}

// begin prepares the conversion of the documents of a collection.
func (r *run) begin(c *Collection) {
	for _, conv := range r.Steps[c.Namespace] {
		c.rewriters = append(c.rewriters, rule.NewRewriter(conv))
	}
	c.ids = r.InID[c.Namespace]
	c.Steps, c.begun = make([]Done, len(c.rewriters)), true
}

func (r *run) document(c *Collection, item *dump.Item) (err error) {
	r.res.Documents++
	c.Documents++
	r.digest.add(item)
	switch c.Role {
	case Unselected, System:
		return nil
	case TimeSeries:
		return r.bucket(c, item.Bytes)
	}
	if !c.begun {
		r.begin(c)
	}
	if len(c.rewriters) == 0 { // only walked, so that damage is found
		return walk.Document(item.Bytes, func(*walk.Path, walk.Leaf) error { return nil })
	}
	id := bson.RawValue{} // before the conversion
	if c.ids {
		id = bson.Raw(item.Bytes).Lookup("_id")
		r.id = append(r.id[:0], id.Value...)
		id.Value = r.id
	}
	changed, skipped := false, false
	for i, w := range c.rewriters {
		doc, values, left, err := w.Document(item.Bytes)
		if err != nil {
			return err
		}
		item.Bytes = doc
		done := &c.Steps[i]
		if values > 0 {
			changed = true
			done.Documents++
			done.Values += int64(values)
			r.res.Values += int64(values)
		}
		if len(left) > 0 {
			skipped = true
			done.Skipped++
			done.Left += int64(len(left))
			if done.SkippedFor == nil {
				done.SkippedFor = rule.Tally{}
			}
			for _, l := range left {
				done.SkippedFor.Add(l.Reason, 1)
			}
			if !c.ids {
				id = bson.Raw(item.Bytes).Lookup("_id")
			}
			r.leave(c, id, w.From().Subtype, left)
		}
	}
	if changed {
		r.res.Changed++
	}
	if skipped {
		r.res.Skipped++
	}
	if c.ids && r.ids != nil {
		return r.ids.add(c.number, c.Documents-1, bson.Raw(item.Bytes).Lookup("_id"))
	}
	return nil
}

// leave counts and lists values of one document, of the subtype, that are left as they are.
func (r *run) leave(c *Collection, id bson.RawValue, subtype byte, left []rule.Left) {
	r.res.Left += int64(len(left))
	r.SkipList.Add(c.Namespace, id, subtype, left)
}

const typeColumn = 7 // the binary subtype of compressed measurements

// bucket counts what a bucket of a time series holds.
func (r *run) bucket(c *Collection, doc bson.Raw) error {
	const reason = "the buckets of a time series are not converted: copy the measurements into a collection first"
	skipped := false
	leave := func(subtype byte, left ...rule.Left) {
		skipped = true
		r.leave(c, doc.Lookup("_id"), subtype, left)
	}
	for _, conv := range r.all {
		var left []rule.Left
		err := conv.Wants(doc, func(_ *walk.Path, l rule.Left) {
			l.Reason = reason
			left = append(left, l)
		})
		if err != nil {
			return err
		}
		if len(left) > 0 {
			leave(conv.From.Subtype, left...)
		}
	}
	compressed, err := hasColumn(doc)
	if err == nil && compressed {
		leave(0, rule.Left{Document: true, Reason: "the bucket holds compressed measurements, which are not read: " + reason})
	}
	if skipped {
		r.res.Skipped++
	}
	return err
}
