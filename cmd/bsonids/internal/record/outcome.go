package record

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// CheckUndone returns an [*Error] that wraps [ErrUndone] if an undo of the conversion has begun.
func CheckUndone(ctx context.Context, db *mongo.Database, name, conversion string) error {
	undos, err := find[*Run](ctx, collection(db), bson.D{{Key: "collection", Value: name}, {Key: "conversion", Value: conversion}, {Key: "kind", Value: Undo}})
	if len(undos) > 0 {
		return errUndone(undos[0])
	}
	return err
}

func errUndone(undo *Run) error {
	return &Error{Text: "the conversion was undone: " + undo.String(), Err: ErrUndone, Remedy: "; make a plan in a new directory", Run: undo}
}

// OfLog returns the runs that convert with the undo log of a conversion, or undo it. Either name may be empty.
func OfLog(ctx context.Context, db *mongo.Database, name, conversion, undoID string) ([]*Run, error) {
	runs, err := read(ctx, collection(db), name)
	want := &Run{Conversion: conversion, UndoID: undoID}
	return slices.DeleteFunc(runs, func(r *Run) bool { return r.Switches() || !same(r, want) || r.UndoID == "" }), err
}

// Stands reports whether the run is one that has converted values, and was not undone.
func (r *Run) Stands() bool {
	return r.Kind == Convert && (r.UndoSize > 0 || r.Progress.Changed > 0) && (r.Undone == nil || !r.Undone.Complete)
}

// Since returns the last conversion that began after the undo of the log which want has, and was not undone: its values
// look like those of the log. It returns nil if there is none.
func Since(ctx context.Context, db *mongo.Database, want Run) (since *Run, err error) {
	runs, err := history(ctx, db, want.Collection, want.UUID)
	if err != nil {
		return nil, err
	}
	var first *Run // of the log
	undone := false
	for _, r := range runs {
		switch {
		case r.UndoID == want.UndoID:
			if first == nil {
				first = r
			}
			undone = undone || r.Kind == Undo
		case undone && r.Stands() && overlap(r.Pairs, first.Pairs):
			since = r
		}
	}
	return since, nil
}

// Beside returns the undo logs of other conversions of the collection that want describes that were not undone. own are the ids of the undo logs that are not those of others.
func Beside(ctx context.Context, db *mongo.Database, want Run, own []string) (logs []string, err error) {
	runs, err := read(ctx, collection(db), want.Collection)
	for _, r := range runs {
		other := r.Into == "" && r.UndoLog != "" && !slices.Contains(own, r.UndoID) && sameCollection(r, &want)
		if r.Stands() && other && !slices.Contains(logs, r.UndoLog) {
			logs = append(logs, r.UndoLog)
		}
	}
	return logs, err
}

// MarkUndone records in the documents of the conversion that this run, an undo, has restored the
// values, or has begun to.
func (l *Lock) MarkUndone(ctx context.Context, complete bool) error {
	_, err := l.coll.UpdateMany(ctx, bson.D{{Key: "collection", Value: l.run.Collection}, {Key: "conversion", Value: l.run.Conversion}, {Key: "kind", Value: Convert}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "undone", Value: Undone{Complete: complete, By: l.run.ID}}}}})
	return err
}

// MarkVerified records a proof in the last ended run of the conversion that want describes, if
// there is one.
func MarkVerified(ctx context.Context, db *mongo.Database, want Run, proven bool, version string) error {
	coll := collection(db)
	runs, err := read(ctx, coll, want.Collection)
	if err != nil {
		return err
	}
	var last *Run
	for _, r := range runs {
		if r.Kind == Convert && r.like(&want) {
			last = r
		}
	}
	if last == nil || last.Ended == nil {
		return nil
	}
	now, err := Now(ctx, db)
	if err != nil {
		return err
	}
	me := whoAmI(version)
	_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: last.ID}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "verified", Value: Verified{At: now, Proven: proven, By: me.User + "@" + me.Host}}}}})
	return err
}

// like reports whether both runs convert the same values of the same collection.
func (r *Run) like(want *Run) bool {
	return sameCollection(r, want) && r.Filter == want.Filter && r.Into == want.Into && slices.EqualFunc(r.Pairs, want.Pairs, kinds.Pair.Equal)
}
