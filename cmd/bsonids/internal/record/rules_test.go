package record

import (
	"errors"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// run returns an unfinished conversion of the collection c that has written.
func run(epoch int64, conversion string, change ...func(*Run)) *Run {
	r := &Run{ID: id("c", epoch), Kind: Convert, Task: kinds.Task{Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy"}}}, Epoch: epoch, Conversion: conversion,
		Started: begun, Updated: begun, BatchTimeout: time.Minute}
	for _, f := range change {
		f(r)
	}
	return r
}

func ended(outcome string) func(*Run) { return func(r *Run) { r.Ended, r.Outcome = &begun, outcome } }
func updated(after time.Duration) func(*Run) {
	return func(r *Run) { r.Updated = begun.Add(after) }
}
func undo(r *Run)                       { r.Kind = Undo }
func over(e ...int64) func(*Run)        { return func(r *Run) { r.TakesOver = e } }
func lost(ago time.Duration) func(*Run) { return func(r *Run) { r.Lost = ago } }
func of(uuid string) func(*Run)         { return func(r *Run) { r.UUID = collectionUUID(uuid) } }
func lock(l string) func(*Run)          { return func(r *Run) { r.Lock = l } }

func TestJudge(t *testing.T) {
	away := func(r *Run) { r.By.PID, r.By.Host = 1, "web" } // a process of this name may run anywhere
	for name, tt := range map[string]struct {
		runs     []*Run
		want     *Run
		takeOver bool
		after    time.Duration
		refused  bool
		over     int
		wait     time.Duration // how long it waits
	}{
		"first":                            {want: run(0, "a")},
		"after one that has ended":         {runs: []*Run{run(1, "a", ended(Done))}, want: run(0, "b")},
		"beside one":                       {runs: []*Run{run(1, "a")}, want: run(0, "b"), refused: true},
		"beside one, the same process id":  {runs: []*Run{run(1, "a", away)}, want: run(0, "b", away), refused: true},
		"after one whose lease is over":    {runs: []*Run{run(1, "a")}, want: run(0, "b"), after: lease + 1, over: 1},
		"after another of the name":        {runs: []*Run{run(1, "a", of("1"))}, want: run(0, "b", of("2")), after: 1e5 * time.Hour, over: 1},
		"beside another of the name":       {runs: []*Run{run(1, "a", of("1"))}, want: run(0, "b", of("2")), refused: true},
		"take over without the files":      {runs: []*Run{run(1, "a")}, want: run(0, "b"), takeOver: true, over: 1},
		"another one of the directory":     {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "b", lock("f")), over: 1},
		"another one of another directory": {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "b", lock("g")), refused: true},
		"another one, no lock is known":    {runs: []*Run{run(1, "a")}, want: run(0, "b", lock("f")), refused: true},
		"go on with the file":              {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", lock("f")), over: 1},
		"go on with a copy of it":          {runs: []*Run{run(1, "a", lock("f"), away)}, want: run(0, "a", lock("g"), away), refused: true},
		"go on with a copy, much later":    {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", lock("g")), after: time.Hour, over: 1},
		"take over with a copy of it":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", lock("g")), takeOver: true, over: 1},
		"undo of a killed run":             {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), over: 1, wait: time.Minute},
		"undo of one killed long ago":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), after: time.Hour, over: 1},
		"undo of one killed 30 s ago":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), after: 30 * time.Second, over: 1, wait: time.Minute - 30*time.Second + lease},
		"undo beside another run":          {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "b", undo, lock("g")), refused: true},
		"undo beside an undo elsewhere":    {runs: []*Run{run(1, "a", undo)}, want: run(0, "a", undo), refused: true},
		"after an undo that was killed":    {runs: []*Run{run(1, "a", undo, lock("f"))}, want: run(0, "b", lock("f")), over: 1, wait: time.Minute},
		"after one that was taken over": {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Done))}, want: run(0, "a", undo),
			after: 20 * time.Second, wait: 40 * time.Second},
		"after one that was taken over by one that was killed, and inserted late": {runs: []*Run{run(1, "a", updated(50*time.Second)), run(2, "a", undo, over(1))}, want: run(0, "a", undo), takeOver: true,
			after: 60 * time.Second, over: 1, wait: time.Minute - 4*time.Second},
		"after one that was taken over by one that lived on": {runs: []*Run{run(1, "a", updated(10*time.Second)), run(2, "a", over(1), updated(12*time.Second))}, want: run(0, "a", undo), takeOver: true,
			after: 30 * time.Second, over: 1, wait: time.Minute - 12*time.Second},
		"after one that was taken over, later":     {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Done))}, want: run(0, "a", undo), after: time.Hour},
		"go on after one that was taken over":      {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Stopped))}, want: run(0, "a")},
		"undo of one that ended without answer":    {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a", undo), after: 20 * time.Second, wait: 30 * time.Second},
		"go on with one that ended without it":     {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a")},
		"undo of one without answer, limit passed": {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a", undo), after: 51 * time.Second},
	} {
		now := begun.Add(tt.after)
		v, err := admit(tt.runs, tt.want, tt.takeOver, now)
		if tt.refused != errors.Is(err, ErrHeld) || !tt.refused && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var wait time.Duration
		for _, w := range v.wait {
			wait = max(wait, w.until.Sub(now))
		}
		if err == nil && (len(v.takesOver) != tt.over || wait != tt.wait) {
			t.Errorf("%s: takes over %v, waits for %v, want %d, %v", name, v.takesOver, wait, tt.over, tt.wait)
		}
	}
}
