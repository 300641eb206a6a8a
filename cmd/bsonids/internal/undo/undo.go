// Package undo restores what the conversions of a plan have changed.
package undo

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Options describe an undo.
type Options struct {
	Write        bool
	AllowChanged bool // values that cannot be restored are accepted, and the undo is complete
	Batch        int

	own []string // the ids of the other undo logs of a plan
}

// undo restores the values of one undo log.
type undo struct {
	*migration.Session
	Options
	what migration.Described
	path string
	log  *convert.UndoReader
	coll *mongo.Collection
	spec *mongo.CollectionSpecification
}

// restore restores the values in the undo log at path of a conversion, or finds what it would restore. The result, which
// lacks the step, is valid with an error, too.
func restore(ctx context.Context, s *migration.Session, o Options, what migration.Described, state *convert.State, path string) (u report.UndoneStep, err error) {
	log, err := convert.ReadUndoLog(path)
	if err != nil {
		return u, migration.FileError(err)
	}
	defer func() { _ = log.Close() }()
	namespace := what.Database + "." + what.Task.Collection
	s.About(namespace)
	w := &undo{Session: s, Options: o, what: what, path: path, log: log, coll: s.Client.Database(what.Database).Collection(what.Task.Collection)}
	expected := migration.LogOf(what.Task.Collection, state)
	for _, f := range []func() error{
		func() (err error) {
			if w.spec, err = server.FindCollection(ctx, w.coll); err != nil || !w.Write {
				return err
			}
			return migration.NotFenced(ctx, w.coll.Database(), w.coll.Name())
		},
		func() (err error) {
			if expected, err = expected.InRecord(ctx, w.coll.Database()); err != nil {
				return err
			}
			if err := log.Covers(expected.ID, expected.Size); err != nil {
				return migration.IncompleteLogs("values would stay converted", err)
			}
			return nil
		},
		func() error {
			return last(ctx, w.coll, w.spec.UUID, record.Run{UndoID: log.ID}, path)
		},
	} {
		if err := w.Do(ctx, f); err != nil {
			return u, err
		}
	}
	of := convert.Options{Selection: what.Selection, Batch: w.Batch, Pace: w.Pace, Patience: w.Patience, UUID: w.spec.UUID}
	var run *migration.Claim
	if w.Write {
		err = w.Do(ctx, func() (err error) {
			run, err = w.begin(ctx, expected.Conversion)
			return err
		})
		if err != nil {
			return u, err
		}
		defer func() { err = errors.Join(err, run.End(err)) }()
		of.Check = run.Check
		// The ledger has it before the first value is restored, so that the conversion is not resumed,
		// whatever happens next.
		state.Undone = time.Now().UTC().Format(time.RFC3339)
		if err := state.Save(); err != nil {
			return u, migration.FileError(err)
		}
	}
	u.Begun = true
	bar := w.Progress(-1, "restoring", namespace)
	of.Progress, of.BatchTimeout, of.Halves = bar.Add, w.BatchTimeout, w.Halves
	u.Result, err = convert.Undo(ctx, w.coll, log, of, w.Write)
	bar.Done()
	if err == nil && u.Result.Gone > 0 && expected.Replaced(w.spec) {
		err = migration.ReplacedError(namespace)
	}
	if err == nil && u.Result.Foreign > 0 {
		err = w.Do(ctx, func() error { return w.beside(ctx) })
	}
	u.Result.Accepted = w.AllowChanged
	if !w.Write {
		return u, err
	}
	run.Restored(u.Result.Restored, u.Result.Unrestored)
	if err != nil {
		return u, err
	}
	all := u.Result.Left == 0 || w.AllowChanged
	return u, w.Do(ctx, func() error { return run.MarkUndone(ctx, all) })
}

// last returns an error if a later conversion may have made the values of the collection that the log of a run restores.
func last(ctx context.Context, coll *mongo.Collection, uuid *bson.Binary, of record.Run, path string) error {
	of.Collection, of.UUID = coll.Name(), uuid
	since, err := record.Since(ctx, coll.Database(), of)
	switch {
	case migration.Denied(err) || err == nil && since == nil:
		return nil
	case err != nil:
		return err
	}
	return failure.Usagef("%s is the log of an earlier conversion: since then, %s has converted values, and has its files in %s; undo that one first",
		path, since, since.Directory)
}

// beside warns about other conversions, which may have written the values that the log does not have.
func (w *undo) beside(ctx context.Context) error {
	logs, err := record.Beside(ctx, w.coll.Database(), record.Run{Task: w.what.Task, UUID: w.spec.UUID}, append(slices.Clone(w.own), w.log.ID))
	if migration.Denied(err) {
		return nil
	}
	for _, l := range logs {
		w.Warn("another conversion has converted values of the collection, and was not undone: its undo log is %s", l)
	}
	return err
}

// begin begins the undo in the record, and records there that the conversion is no longer in
// effect.
func (w *undo) begin(ctx context.Context, conversion string) (*migration.Claim, error) {
	run := record.Run{Kind: record.Undo, Task: w.what.Task, UUID: w.spec.UUID, Conversion: conversion, UndoLog: migration.Absolute(w.path), UndoID: w.log.ID}
	c, err := w.Claim(ctx, w.coll.Database(), record.Request{Run: run, LogSize: w.log.Size()})
	if err != nil {
		return nil, err
	}
	if err := c.MarkUndone(ctx, false); err != nil {
		return nil, errors.Join(err, c.End(err))
	}
	return c, nil
}
