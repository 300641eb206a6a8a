package migrate

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// GiveUp records, if write is set, and then reports whether it has, that the undo logs of a migration are lost: its values stay converted, and forbid nothing any
// more. It is an undo without undo logs, and waits for the runs of the migration as any undo does; a log that is found later
// restores what it has. The error is a usage error if the record has no such migration, if a directory that the record names, or
// dir, is that of the migration and can undo it, or if a cutover of one of its copies has not ended.
func GiveUp(ctx context.Context, s *session.Session, database, dir, migration string, write bool) (given bool, err error) {
	recorded, err := ReadRecord(ctx, s, database)
	if err != nil {
		return false, err
	}
	var last *record.Run
	tasks := make(map[string]kinds.Task) // by conversion
	stands := false
	for _, run := range recorded.Runs {
		if run.Migration != migration {
			continue
		}
		if last = run; run.Remains() || run.Copied() && run.Undone == nil {
			tasks[run.Conversion] = run.Task
		}
		stands = stands || run.Stands()
	}
	if last == nil {
		return false, failure.Usagef("the record of %s has no migration %q: bsonids status --db %s prints their ids", database, migration, database)
	}
	for _, there := range []string{dir, last.Directory} {
		if p, err := plan.ReadFile(there); stands && err == nil && p.Migration == migration {
			return false, failure.Usagef("the directory of the migration %s is %s, and it is there: give bsonids undo", migration, there)
		}
	}
	for name, t := range tasks {
		switch _, c := recorded.Exchange(name); {
		case c == nil:
		case c.Open():
			return false, failure.Usagef("a cutover of %s is in the state %q: finish it or roll it back with bsonids cutover --db %s %s first", t.Collection, c.State, database, c.Conversion())
		default: // it was released
			delete(tasks, name)
		}
	}
	of := *s
	of.Migration, of.Directory, of.Lock = migration, last.Directory, ""
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		t := tasks[name]
		what := "the undo logs of the migration " + migration + " in " + last.Directory + " are lost: the values of " + database + "." + t.Collection + " that were converted " + kinds.Describe(t.Pairs) + " stay converted, and there is no way back for them"
		if t.Into != "" {
			what = "the copy " + database + "." + t.Into + " of " + t.Collection + " stays until you drop it"
		}
		if !write {
			s.Warn("%s; to give this up, add --write", what)
			continue
		}
		if err := leave(ctx, &of, database, t, name, record.Undone{Complete: true, Lost: t.Into == "", GivenUp: true}); err != nil {
			if held := (*record.Error)(nil); errors.As(err, &held) {
				held.Remedy = "; wait for it" // plan takes over from no run that is in progress
			}
			return given, err
		}
		given = true
		s.Warn("given up: %s", what)
	}
	if len(tasks) == 0 {
		s.Warn("nothing of the migration %s can be given up: it was undone, released, or given up before", migration)
	}
	return given, nil
}

// leave records that what a conversion has changed or made is left as it is.
func leave(ctx context.Context, s *session.Session, database string, t kinds.Task, conversion string, as record.Undone) error {
	db := s.Client.Database(database)
	var run *session.Claim
	err := s.Do(ctx, func() (err error) {
		run, err = s.Claim(ctx, db, record.Request{Run: record.Run{Kind: record.Undo, Task: t, Conversion: conversion}})
		return err
	})
	if err != nil {
		return &failure.CollectionError{Collection: t.Collection, Err: err}
	}
	err = s.Do(ctx, func() error {
		runs, err := record.Runs(ctx, db) // none can begin any more
		if err != nil {
			return err
		}
		var ids []string
		for _, r := range runs {
			if r.Kind == record.Convert && r.Conversion == conversion && !r.Restored() {
				ids = append(ids, r.By.Token)
			}
		}
		return run.MarkUndone(ctx, ids, as)
	})
	if err = errors.Join(err, run.End(err)); err != nil {
		return &failure.CollectionError{Collection: t.Collection, Err: err}
	}
	return nil
}
