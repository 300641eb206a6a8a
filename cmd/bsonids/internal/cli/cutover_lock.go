package cli

import (
	"context"
	"errors"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/cutover"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// locks are the runs of a command in the record, one for each collection.
type locks []*claim

func (l locks) check(ctx context.Context) error {
	for _, c := range l {
		if err := c.check(ctx, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l locks) end(failed error) error {
	var errs []error
	for _, c := range l {
		errs = append(errs, c.end(failed))
	}
	return errors.Join(errs...)
}

// lock begins a run for each collection of the cutover.
func (o *switchFlags) lock(ctx context.Context, db *mongo.Database, c *record.Cutover, kind string) (l locks, err error) {
	for _, x := range c.Collections {
		run := record.Run{Kind: kind, Collection: x.Name, UUID: x.OldID, Conversion: c.Conversion(), Into: x.New}
		var one *claim
		err := o.load.patience.Do(ctx, func() (err error) {
			one, err = o.claim(ctx, db, &o.recordFlags, run, 0, nil)
			return err
		})
		if err != nil {
			return nil, errors.Join(err, l.end(err))
		}
		one.patience = o.load.patience
		l = append(l, one)
	}
	return l, nil
}

// server returns the database of a cutover.
func (o *switchFlags) server(db *mongo.Database, l locks, conversions map[string]convert.Conversion, batch int) *cutover.Server {
	return &cutover.Server{DB: db, Conversions: conversions, Batch: batch, Patience: o.load.patience, Timeout: o.batchTimeout, Check: l.check,
		Notice: func(text string) { o.warn("%s", text) },
		Progress: func(doing, name string, total int64) (func(int), func()) {
			bar := o.progress(total, doing, o.database+"."+name)
			return bar.Add, bar.Done
		}}
}

// explainSwitch names the privileges that a cutover needs.
func explainSwitch(err error, uri string) error {
	if err == nil || errors.Is(err, failure.ErrIncomplete) {
		return err
	}
	if e := failure.Explain(err, uri); e.Kind == failure.Denied {
		return &failure.Error{Kind: e.Kind, Err: err, Text: e.Text + "; a cutover needs the roles readWrite and dbAdmin on the database: collMod, renameCollectionSameDB and " +
			"bypassDocumentValidation on the collections, and find, insert, update and remove on " + record.Name}
	}
	return err
}
