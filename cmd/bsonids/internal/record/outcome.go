package record

import (
	"context"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// CheckUndone returns an [*Error] that wraps [ErrUndone] if an undo of the conversion has begun.
func CheckUndone(ctx context.Context, db *mongo.Database, name, conversion string) error {
	var u Run
	err := collection(db).FindOne(ctx, bson.D{{Key: "collection", Value: name}, {Key: "conversion", Value: conversion}, {Key: "kind", Value: Undo}},
		options.FindOne().SetProjection(bson.D{{Key: "decisions", Value: 0}})).Decode(&u)
	switch err {
	case nil:
		return errUndone(&u)
	case mongo.ErrNoDocuments:
		return nil
	}
	return err
}

func errUndone(undo *Run) error {
	return &Error{Text: "the conversion was undone: " + undo.String(), Err: ErrUndone, Remedy: StartAnew, Run: undo}
}

// Log is what the record has about the undo log of a conversion.
type Log struct {
	Conversion string       // the name of the conversion
	ID         string       // empty if no run of the conversion has an undo log
	Size       int64        // in bytes, at least
	Path       string       // where the last run had it
	UUID       *bson.Binary // of the collection that was converted last; nil if the server gave none
}

// LogOf returns what the record has about the undo log of the conversion. Either name may be empty.
func LogOf(ctx context.Context, db *mongo.Database, name, conversion, undoID string) (l Log, err error) {
	runs, err := read(ctx, collection(db), name)
	if err != nil {
		return l, err
	}
	want := &Run{Conversion: conversion, UndoID: undoID}
	for _, r := range runs {
		if (r.Kind != Convert && r.Kind != Undo) || !same(r, want) || r.UndoID == "" {
			continue
		}
		if r.Kind == Convert || l.ID == "" {
			l.Conversion, l.ID = r.Conversion, r.UndoID
		}
		l.add(r)
	}
	return l, nil
}

func (l *Log) add(r *Run) {
	l.Size = max(l.Size, r.UndoSize)
	if r.Kind == Convert {
		l.Path, l.UUID = r.UndoLog, r.UUID
	}
}

// Since returns the last conversion of fields of the log's conversion that began after the undo of the log,
// and was not undone, or nil if there is none. Values that it converted look like those of the log.
func Since(ctx context.Context, db *mongo.Database, name, undoID string) (since *Run, err error) {
	runs, err := read(ctx, collection(db), name)
	if err != nil {
		return nil, err
	}
	var undo *Run // the first one of the log
	for _, r := range runs {
		switch {
		case r.Kind == Undo && r.UndoID == undoID && undo == nil:
			undo = r
		case undo == nil, r.Kind != Convert, r.Into != "", r.UndoID == undoID, r.Progress.Changed == 0 && r.UndoSize == 0:
		case r.Undone != nil && r.Undone.Complete, !sameCollection(r, undo), !overlap(r.Pairs, undo.Pairs), apart(r, undo):
		default:
			since = r
		}
	}
	return since, nil
}

// Beside returns the undo logs of other conversions of the collection that want describes, to the same
// representation, that were not undone. own are the ids of the undo logs that are not those of others.
func Beside(ctx context.Context, db *mongo.Database, want Run, own []string) (logs []string, err error) {
	runs, err := read(ctx, collection(db), want.Collection)
	for _, r := range runs {
		switch {
		case r.Kind != Convert, r.Into != "", r.UndoLog == "", slices.Contains(own, r.UndoID), !slices.ContainsFunc(r.Pairs, want.writes), r.Progress.Changed == 0 && r.UndoSize == 0:
		case r.Undone != nil && r.Undone.Complete, !sameCollection(r, &want), apart(r, &want), slices.Contains(logs, r.UndoLog):
		default:
			logs = append(logs, r.UndoLog)
		}
	}
	return logs, err
}

// writes reports whether a pair of the run converts to the kind to which p converts.
func (r *Run) writes(p kinds.Pair) bool {
	return slices.ContainsFunc(r.Pairs, func(o kinds.Pair) bool { return o.To == p.To })
}

// MarkUndone records in the documents of the conversion that this run, an undo, has restored the
// values, or has begun to.
func (l *Lock) MarkUndone(ctx context.Context, complete bool) error {
	now, err := serverTime(ctx, l.coll.Database())
	if err != nil {
		return err
	}
	_, err = l.coll.UpdateMany(ctx, bson.D{{Key: "collection", Value: l.run.Collection}, {Key: "conversion", Value: l.run.Conversion}, {Key: "kind", Value: Convert}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "undone", Value: Undone{At: now, Complete: complete, By: l.run.ID}}}}})
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
	last := lastOf(runs, &want)
	if last == nil || last.Ended == nil {
		return nil
	}
	now, err := serverTime(ctx, db)
	if err != nil {
		return err
	}
	me := whoAmI(version)
	_, err = coll.UpdateOne(ctx, bson.D{{Key: "_id", Value: last.ID}},
		bson.D{{Key: "$set", Value: bson.D{{Key: "verified", Value: Verified{At: now, Proven: proven, By: me.User + "@" + me.Host}}}}})
	return err
}

// lastOf returns the last run that converted what want describes, or nil.
func lastOf(runs []*Run, want *Run) (last *Run) {
	for _, r := range runs {
		if r.Kind == Convert && slices.EqualFunc(r.Pairs, want.Pairs, kinds.Pair.Equal) && r.Into == want.Into && r.Query == want.Query && r.Part == want.Part && sameCollection(r, want) {
			last = r
		}
	}
	return last
}
