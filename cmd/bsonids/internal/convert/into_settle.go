package convert

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// maxPasses is the maximum number of comparisons. After that, the source is reported as still
// changing.
const maxPasses = 5

// settle compares the two collections and updates the copy with what changed in the source, until
// a pass finds no difference or maxPasses is reached.
func (c *copier) settle(ctx context.Context) error {
	for range maxPasses {
		r, err := c.repair(ctx)
		if err != nil {
			return err
		}
		if r.Changed() == 0 {
			if err := c.there.check(ctx); err != nil {
				return err
			}
			c.res.Verified = c.res.Proof.Holds(false)
			return nil
		}
		c.report()
	}
	return nil
}

// repair compares the two collections once and updates the copy. A comparison that fails is made again
// from its beginning: the proof is one complete comparison.
func (c *copier) repair(ctx context.Context) (r mirror.Result, err error) {
	err = c.Patience.Pass(ctx, func(progress func(int)) (err error) {
		c.met = Verified{Fields: rule.Tally{}}
		c.m.Progress = func(documents int) {
			progress(documents)
			c.Progress(documents)
		}
		again, err := c.m.All(ctx)
		if r = r.Then(again); err == nil {
			err = refusal(r)
		}
		return err
	})
	c.res.Proof = c.met.with(r)
	return r, err
}

// refusal returns the error of a document that the server refuses, if there is one.
func refusal(r mirror.Result) error {
	for _, f := range r.Stuck {
		if f.Refused {
			return &documents.Error{ID: f.ID, Reason: f.Reason}
		}
	}
	return nil
}

// with adds what a comparison has proven. What it changed is not proven.
func (v Verified) with(r mirror.Result) Verified {
	v.Read, v.Proven, v.Wrong, v.Extra = r.Documents, r.Equal, r.Stays, r.Extra
	v.add(r.Found)
	v.add(r.Stuck)
	return v
}

// add adds findings.
func (v *Verified) add(found []mirror.Finding) {
	for _, f := range found {
		v.find(f.ID, "%s", f.Reason)
	}
}

// VerifyInto verifies that target has the converted documents of source, byte for byte, and no document that is in no
// source. The error is a [*LostError] if one of the two was dropped, renamed or replaced meanwhile.
func VerifyInto(ctx context.Context, source, target *mongo.Collection, conv rule.Conversion, patient *patience.Patience, progress func(int)) (v Verified, err error) {
	there, err := watch(ctx, patient, source, target)
	if err != nil {
		return v, err
	}
	met, values := Verified{Fields: rule.Tally{}}, newCounter(conv, nil)
	index := new(mirror.Index)
	defer func() { _ = index.Close() }()
	m := &mirror.Mirror{Conversion: conv, Old: source, New: target, Index: index, Batch: batchSize, Patience: patient, Progress: progress,
		Met: func(doc bson.Raw) error { return values.count(&met, doc) }}
	r, err := m.All(ctx)
	v = met.with(r)
	v.Missing, v.Wrong, v.Extra = r.Inserted, v.Wrong+r.Replaced, r.Deleted
	return v, there.after(ctx, err)
}
