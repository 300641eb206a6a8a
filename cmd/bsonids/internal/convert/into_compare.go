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

// follow compares the two collections and updates the target with what changed in the source, until
// a pass finds no difference or maxPasses is reached.
func (c *copier) follow(ctx context.Context) error {
	for c.res.Passes = 1; c.res.Passes <= maxPasses; c.res.Passes++ {
		var proof comparison
		// A pass that fails is made again from its beginning: the proof is one complete comparison.
		err := c.Patience.Do(ctx, func() (err error) {
			repaired := proof.repaired
			proof, err = c.pass(ctx, true)
			proof.repaired += repaired
			return err
		})
		c.res.Proof = proof.Verified
		if err != nil {
			return err
		}
		if proof.repaired == 0 {
			c.res.Verified = proof.Holds(false)
			return nil
		}
		c.res.Followed += proof.repaired
	}
	c.res.Passes = maxPasses
	return nil
}

type comparison struct {
	Verified
	repaired int64
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
	for {
		var docs []bson.Raw
		err := c.steady.Do(ctx, func() (err error) {
			docs, err = p.Next(ctx)
			return err
		})
		if err != nil {
			return res, err
		}
		if len(docs) == 0 {
			break
		}
		var want []bson.Raw
		clear(c.left)
		for _, doc := range docs {
			if !c.Part.Has(doc.Lookup("_id")) {
				continue
			}
			var left []Left
			fresh, _, err := c.Conversion.rewrite(doc, nil, func(l Left) { left = append(left, l) })
			if err != nil {
				return res, err
			}
			mine++
			if id := fresh.Lookup("_id"); c.ids != nil && !c.ids.Add([]byte(documents.Key(id))) {
				if c.ids.Full() {
					return res, fmt.Errorf("the collection has more than %d documents, whose converted _ids cannot be compared", hashset.Most)
				}
				res.merged(id)
				continue
			}
			want = append(want, fresh)
			if repair && len(left) > 0 {
				c.left[documents.Key(fresh.Lookup("_id"))] = leftIn{doc.Lookup("_id"), left}
			}
		}
		res.Read += int64(len(docs))
		c.Progress(len(docs))
		if err := c.compare(ctx, want, &res, repair); err != nil {
			return res, err
		}
	}
	var err error
	if !c.Part.Whole() {
		// The total is checked by bsonids verify when every part is done.
		if repair {
			err = c.extras(ctx, &res, true)
		}
		return res, err
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
			c.leave(id)
		case bytes.Equal(got, filledIn(doc, got)):
			res.Wrong++
			res.find(id, "the document has an empty timestamp at its top level, which the server sets when a document is inserted")
		default:
			conflict, err := c.isConflict(ctx, doc)
			if err != nil {
				return err
			}
			if conflict {
				res.merged(id)
				continue
			}
			// The filter has the values that were read. If the copy changes meanwhile, it does not
			// match, and the next pass compares it again.
			_, err = c.target.ReplaceOne(ctx, replaced(got, bulk.MaxUpdate-len(doc)), doc)
			if mongo.IsDuplicateKeyError(err) {
				// The copy that has the value may be updated after this one. The next pass then
				// succeeds.
				res.Wrong++
				res.find(id, "the converted document has the same value as another copy, and an index is unique")
				continue
			}
			if err != nil {
				return err
			}
			c.own.Add(doc)
			res.repaired++
			c.leave(id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	conflicts, err := c.insert(ctx, missing)
	for _, s := range conflicts {
		res.Wrong++
		res.find(s.ID, "%s", s.Reason)
	}
	res.repaired += int64(len(missing) - len(conflicts))
	return err
}

// leave counts and lists the unchanged values of a document that is written to the target. id is
// the _id of the copy.
func (c *copier) leave(id bson.RawValue) {
	if l, ok := c.left[documents.Key(id)]; ok {
		c.SkipList.add(l.id, c.Conversion.From.Subtype, l.left)
		c.note(l)
	}
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
// other documents. patient is as for [VerifyInPlace].
func VerifyInto(ctx context.Context, source, target *mongo.Collection, conv Conversion, patient *patience.Patience, progress func(int)) (Verified, error) {
	c := &copier{Options: Options{Conversion: conv, Progress: progress, Batch: batchSize}, source: source, target: target, steady: patient}
	res, err := c.pass(ctx, false)
	return res.Verified, err
}
