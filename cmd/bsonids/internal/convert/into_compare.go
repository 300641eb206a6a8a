package convert

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/bulk"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// maxPasses is the maximum number of comparisons. After that, the source is reported as still
// changing.
const maxPasses = 5

// settle compares the two collections and updates the target with what changed in the source, until
// a pass finds no difference or maxPasses is reached.
func (c *copier) settle(ctx context.Context) error {
	for c.res.Passes = 1; c.res.Passes <= maxPasses; c.res.Passes++ {
		proof, err := c.repair(ctx)
		if err != nil {
			return err
		}
		if proof.repaired == 0 {
			if err := c.still(ctx); err != nil {
				return err
			}
			c.res.Verified = proof.Holds(false)
			return nil
		}
		c.res.Followed += proof.repaired
		c.report()
	}
	c.res.Passes = maxPasses
	return nil
}

// repair compares the two collections once and updates the target. A pass that fails is made again
// from its beginning: the proof is one complete comparison.
func (c *copier) repair(ctx context.Context) (comparison, error) {
	var proof comparison
	report := c.Progress
	defer func() { c.Progress = report }()
	err := c.Patience.Pass(ctx, func(progress func(int)) (err error) {
		c.Progress = func(documents int) {
			progress(documents)
			report(documents)
		}
		repaired := proof.repaired
		proof, err = c.pass(ctx, true)
		proof.repaired += repaired
		return err
	})
	c.res.Proof = proof.Verified
	return proof, err
}

type comparison struct {
	Verified
	repaired int64
	failed   []bson.RawValue // the _ids of copies that could not be updated, and may be later
	extra    []bson.RawValue // the first _ids of copies without a source
}

// fail counts a copy that could not be updated because of another one.
func (c *comparison) fail(id bson.RawValue, reason string) {
	c.Wrong++
	c.find(id, "%s", reason)
	c.failed = append(c.failed, id)
}

// pass compares every document of the source with its copy and then counts the documents of the
// target. If repair is set, it updates the copies.
func (c *copier) pass(ctx context.Context, repair bool) (comparison, error) {
	res := comparison{Verified: Verified{Fields: Tally{}}}
	if c.ids = nil; c.Conversion.MergesIDs() {
		c.ids = hashset.New()
	}
	var mine int64
	p := &documents.Pages{Collection: c.source, Size: int64(c.Batch)}
	err := p.Each(ctx, c.steady, func(docs []bson.Raw) error {
		want, err := c.converted(docs, repair)
		if err != nil {
			return err
		}
		mine += int64(len(want))
		if want, err = c.unmerged(want, &res); err != nil {
			return err
		}
		res.Read += int64(len(docs))
		c.Progress(len(docs))
		return c.compare(ctx, want, &res, repair)
	})
	if err != nil {
		return res, err
	}
	if !c.Part.Whole() {
		// The total is checked by bsonids verify when every part is done.
		if repair {
			return res, c.extras(ctx, &res, true)
		}
		return res, nil
	}
	var n int64
	err = c.steady.Do(ctx, func() (err error) {
		n, err = c.target.CountDocuments(ctx, bson.D{})
		return err
	})
	if err != nil {
		return res, err
	}
	if n != mine {
		err = c.extras(ctx, &res, repair)
		// Without a difference, every document of the source has a copy, and some have the same one.
		if err == nil && n < mine && res.repaired == 0 && res.Wrong+res.Missing+res.Extra == 0 {
			res.Wrong += mine - n
			res.find(bson.RawValue{Type: bson.TypeNull}, "%d documents of the source have the same _id and the same values as others after the conversion", mine-n)
		}
	}
	return res, err
}

// merged counts a document of the source whose _id another one has after the conversion.
func (v *Verified) merged(id bson.RawValue) {
	v.Wrong++
	v.find(id, "two documents of the source have the same _id after the conversion")
}

// converted returns the converted documents of the part. If listed is set, the values that stay as
// they are can be listed with leave until the next call.
func (c *copier) converted(docs []bson.Raw, listed bool) ([]bson.Raw, error) {
	var want []bson.Raw
	clear(c.left)
	for _, doc := range docs {
		if !c.Part.Has(doc.Lookup("_id")) {
			continue
		}
		var left []Left
		fresh, _, err := c.Conversion.rewrite(doc, nil, func(l Left) { left = append(left, l) })
		if err != nil {
			return nil, err
		}
		want = append(want, fresh)
		name := documents.Key(fresh.Lookup("_id"))
		if _, ok := c.left[name]; listed && len(left) > 0 && !ok {
			c.left[name] = leftIn{doc.Lookup("_id"), left}
		}
	}
	return want, nil
}

// unmerged adds the _ids of converted documents to c.ids, unless it is nil, and leaves out the
// documents whose _id is there already.
func (c *copier) unmerged(want []bson.Raw, res *comparison) ([]bson.Raw, error) {
	if c.ids == nil {
		return want, nil
	}
	var err error
	return slices.DeleteFunc(want, func(doc bson.Raw) bool {
		id := doc.Lookup("_id")
		if c.ids.Add([]byte(documents.Key(id))) {
			return false
		}
		if c.ids.Full() {
			err = fmt.Errorf("the collection has more than %d documents, whose converted _ids cannot be compared", hashset.Most)
		}
		res.merged(id)
		return true
	}), err
}

// differing is a converted document and the copy that differs from it.
type differing struct{ want, got bson.Raw }

// compare compares converted documents with their copies. If repair is set, it updates the copies.
func (c *copier) compare(ctx context.Context, want []bson.Raw, res *comparison, repair bool) error {
	if len(want) == 0 {
		return nil
	}
	if repair {
		writing, cancel, err := c.mayBegin(ctx)
		if err != nil {
			return err
		}
		defer cancel()
		ctx = writing
	}
	var held map[string]bson.Raw
	err := c.steady.Do(ctx, func() (err error) {
		held, err = c.held(ctx, want)
		return err
	})
	if err != nil {
		return err
	}
	var missing []bson.Raw
	var differ []differing
	listed := false
	for _, doc := range want {
		id := doc.Lookup("_id")
		got, ok := held[documents.Key(id)]
		switch {
		case ok && bytes.Equal(got, doc):
			res.Proven++
			if repair {
				c.own.Add(got)
			}
			if err := res.document(got, c.Conversion); err != nil {
				return err
			}
		case !repair && !ok:
			res.Missing++
			res.find(id, "missing in the copy")
		case !repair:
			res.Wrong++
			res.find(id, "the copy differs from the converted source")
		case !ok:
			missing = append(missing, doc)
			listed = c.leave(id) || listed
		case bytes.Equal(got, filledIn(doc, got)):
			res.Wrong++
			res.find(id, "the document has an empty timestamp at its top level, which the server sets when a document is inserted")
			res.failed = append(res.failed, id)
		default:
			differ = append(differ, differing{doc, got})
			listed = c.leave(id) || listed
		}
	}
	// The values are listed first: a run that is killed in between finds nothing to write the next
	// time, and so nothing to list.
	if listed {
		if err := c.SkipList.Sync(); err != nil {
			return err
		}
	}
	if err := c.replace(ctx, differ, res); err != nil || len(missing) == 0 {
		return err
	}
	conflicts, err := c.insert(ctx, missing)
	for _, s := range conflicts {
		res.fail(s.ID, s.Reason)
	}
	res.repaired += int64(len(missing) - len(conflicts))
	return err
}

// replace replaces copies. The filters have the values that were read. If a copy changes meanwhile,
// its filter does not match, and the next pass compares it again.
func (c *copier) replace(ctx context.Context, differ []differing, res *comparison) error {
	if len(differ) == 0 {
		return nil
	}
	wanted := make([]bson.Raw, len(differ))
	for i, d := range differ {
		wanted[i] = d.want
	}
	two, err := c.conflicts(ctx, wanted)
	if err != nil {
		return err
	}
	differ = slices.DeleteFunc(differ, func(d differing) bool {
		id := d.want.Lookup("_id")
		if two[documents.Key(id)] {
			res.merged(id)
			res.failed = append(res.failed, id)
			return true
		}
		return false
	})
	invalid, err := c.replaceMany(ctx, differ, res, false)
	if err != nil || len(invalid) == 0 {
		return err
	}
	_, err = c.replaceMany(ctx, invalid, res, true)
	return err
}

// replaceMany returns the documents that the validator of the target rejects, if these may be
// written despite it.
func (c *copier) replaceMany(ctx context.Context, differ []differing, res *comparison, bypass bool) (invalid []differing, err error) {
	if len(differ) == 0 {
		return nil, nil
	}
	models := make([]mongo.WriteModel, len(differ))
	for i, d := range differ {
		models[i] = mongo.NewReplaceOneModel().SetFilter(replaced(d.got, bulk.MaxUpdate-len(d.want))).SetReplacement(d.want)
	}
	matched, refused, err := bulk.Update(ctx, c.target, models, bypass)
	if err != nil {
		return nil, err
	}
	not := make(map[int]bool, len(refused))
	for _, f := range refused {
		not[f.Index] = true
		id := differ[f.Index].want.Lookup("_id")
		switch {
		case f.Duplicate:
			// The copy that has the value may be updated after this one. The next pass then
			// succeeds.
			res.fail(id, "the converted document has the same value as another copy, and an index is unique")
		case f.Invalid && c.Follow != nil && !bypass:
			invalid = append(invalid, differ[f.Index])
		default:
			return nil, &DocumentError{id, f.Reason}
		}
	}
	unmatched := int(matched) != len(differ)-len(refused)
	for i, d := range differ {
		if not[i] {
			continue
		}
		id := d.want.Lookup("_id")
		c.own.Add(d.want)
		res.repaired++
		if unmatched { // one of them changed meanwhile
			res.failed = append(res.failed, id)
		}
	}
	return invalid, nil
}

// leave counts and lists the unchanged values of a document that is to be written to the target, and
// reports whether there are any. id is the _id of the copy.
func (c *copier) leave(id bson.RawValue) bool {
	l, ok := c.left[documents.Key(id)]
	if ok {
		c.SkipList.add(l.id, c.Conversion.From.Subtype, l.left)
		c.note(l)
	}
	return ok
}

// filledIn returns doc with its empty timestamps replaced by those of got if a server fills them
// in. A server does so at the top level of a document, except in _id.
func filledIn(doc, got bson.Raw) bson.Raw {
	elements, err := doc.Elements()
	if err != nil || len(doc) != len(got) {
		return doc
	}
	out := slices.Clone(doc)
	at := 4
	for _, e := range elements {
		at += len(e)
		if t, i, ok := e.Value().TimestampOK(); ok && t == 0 && i == 0 && e.Key() != "_id" {
			copy(out[at-8:at], got[at-8:at])
		}
	}
	return out
}

// replaced returns a filter that matches doc by its top-level values. It omits the values that a
// query cannot name and those that do not fit into room bytes.
func replaced(doc bson.Raw, room int) bson.D {
	id := doc.Lookup("_id")
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: id}}}}
	room -= len(id.Value) + 64
	elements, err := doc.Elements()
	if err != nil {
		return filter
	}
	for _, e := range elements {
		switch v := e.Value(); v.Type {
		case bson.TypeString, bson.TypeInt32, bson.TypeInt64, bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeEmbeddedDocument:
			// The filter has the element and a document with $eq around its value.
			if k := e.Key(); k != "_id" && k != "" && k[0] != '$' && !bytes.ContainsRune([]byte(k), '.') && len(e)+32 < room {
				room -= len(e) + 32
				filter = append(filter, bson.E{Key: k, Value: bson.D{{Key: "$eq", Value: v}}})
			}
		}
	}
	return filter
}

// VerifyInto verifies that target has the converted documents of source, byte for byte, and no
// other documents. The error is a [*LostError] if one of the two was dropped, renamed or replaced
// meanwhile.
func VerifyInto(ctx context.Context, source, target *mongo.Collection, conv Conversion, patient *patience.Patience, progress func(int)) (Verified, error) {
	c := &copier{Options: Options{Conversion: conv, Progress: progress, Batch: batchSize}, source: source, target: target, steady: patient}
	there, err := watch(ctx, patient, source, target)
	if err != nil {
		return Verified{}, err
	}
	res, err := c.pass(ctx, false)
	return res.Verified, there.after(ctx, err)
}
