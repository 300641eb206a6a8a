package record

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
)

var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// run returns an unfinished conversion of the collection c that has written.
func run(epoch int64, conversion string, change ...func(*Run)) *Run {
	r := &Run{ID: id("c", epoch), Kind: Convert, Task: kinds.Task{Collection: "c", Pairs: []kinds.Pair{{From: "javaLegacy"}}}, Epoch: epoch, Conversion: conversion,
		Started: begun, Updated: begun, BatchTimeout: time.Minute, UndoID: "log " + conversion, UndoSize: 100 * epoch}
	for _, f := range change {
		f(r)
	}
	return r
}

func ended(outcome string) func(*Run)   { return func(r *Run) { r.Ended, r.Outcome = &begun, outcome } }
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
		"go on with a copy, much later":    {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", lock("g")), after: time.Hour, refused: true},
		"take over with a copy of it":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", lock("g")), takeOver: true, over: 1},
		"undo of a killed run":             {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), over: 1, wait: time.Minute},
		"undo of one killed long ago":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), after: time.Hour, over: 1},
		"undo of one killed 30 s ago":      {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "a", undo, lock("f")), after: 30 * time.Second, over: 1, wait: time.Minute - 30*time.Second + lease},
		"undo beside another run":          {runs: []*Run{run(1, "a", lock("f"))}, want: run(0, "b", undo, lock("g")), refused: true},
		"undo beside an undo elsewhere":    {runs: []*Run{run(1, "a", undo)}, want: run(0, "a", undo), refused: true},
		"after an undo that was killed":    {runs: []*Run{run(1, "a", undo, lock("f"))}, want: run(0, "b", lock("f")), over: 1, wait: time.Minute},
		"after one that was taken over": {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Done))}, want: run(0, "a", undo),
			after: 20 * time.Second, wait: 40 * time.Second},
		"after one that was taken over, later":     {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Done))}, want: run(0, "a", undo), after: time.Hour},
		"go on after one that was taken over":      {runs: []*Run{run(1, "a"), run(2, "a", over(1), ended(Stopped))}, want: run(0, "a")},
		"undo of one that ended without answer":    {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a", undo), after: 20 * time.Second, wait: 30 * time.Second},
		"go on with one that ended without it":     {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a")},
		"undo of one without answer, limit passed": {runs: []*Run{run(1, "a", ended(Stopped), lost(10*time.Second))}, want: run(0, "a", undo), after: 51 * time.Second},
	} {
		now := begun.Add(tt.after)
		v, err := judge(tt.runs, tt.want, tt.takeOver, now)
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
	v, err := judge([]*Run{run(1, "a", ended(Stopped)), run(2, "b", ended(Done)), run(3, "a", ended(Stopped))}, run(0, "a"), false, begun)
	if err != nil || v.undoSize != 300 {
		t.Errorf("the undo log must hold %d octets, %v", v.undoSize, err)
	}
}

// A conversion does not go on after an undo of it has begun. Another one, and the undo itself, may.
func TestUndone(t *testing.T) {
	for name, tt := range map[string]struct {
		runs []*Run
		want *Run
		err  error
	}{
		"first":                   {nil, run(0, "a"), nil},
		"go on":                   {[]*Run{run(1, "a", ended(Stopped))}, run(0, "a"), nil},
		"the same again":          {[]*Run{run(1, "a", ended(Done)), run(2, "a", undo, ended(Done))}, run(0, "a"), ErrUndone},
		"undone in part":          {[]*Run{run(1, "a", ended(Done)), run(2, "a", undo, ended(Stopped))}, run(0, "a"), ErrUndone},
		"an undo that is killed":  {[]*Run{run(1, "a", ended(Done)), run(2, "a", undo)}, run(0, "a"), ErrUndone},
		"another one":             {[]*Run{run(1, "a", ended(Done)), run(2, "a", undo, ended(Done))}, run(0, "b"), nil},
		"an undo of another one":  {[]*Run{run(1, "a", ended(Done)), run(2, "b", undo, ended(Done))}, run(0, "a"), nil},
		"undo again":              {[]*Run{run(1, "a", ended(Done)), run(2, "a", undo, ended(Stopped))}, run(0, "a", undo), nil},
		"the same values, by two": {[]*Run{run(1, "a", ended(Done))}, run(0, "b"), nil},
	} {
		if err := undone(tt.runs, tt.want); !errors.Is(err, tt.err) || tt.err == nil && err != nil {
			t.Errorf("%s: %v, want %v", name, err, tt.err)
		}
	}
}

// runsOf is a ledger that knows runs.
type runsOf []string

func (r runsOf) Knows(run string) bool { return slices.Contains(r, run) }
func (r runsOf) Begin(string) error    { return nil }

// A ledger that lacks the last run of its conversion is an older copy. Runs of other conversions, and undos,
// do not count.
func TestOlderCopy(t *testing.T) {
	run := func(kind, conversion, token string) *Run {
		return &Run{Kind: kind, Conversion: conversion, By: Who{Token: token}, Lock: "here"}
	}
	runs := []*Run{run(Convert, "c", "a"), run(Convert, "d", "x"), run(Undo, "c", "u"), run(Convert, "c", "b")}
	want := run(Convert, "c", "new")
	for _, tt := range []struct {
		ledger Ledger
		older  bool
	}{
		{runsOf{"a", "b"}, false}, {runsOf{"a", "b", "c"}, false}, {runsOf{"a"}, true}, {runsOf{"b"}, false}, {runsOf(nil), true},
	} {
		r, last := standing(runs, want)
		if wait, err := ledger.Judge(ledger.Have{Ledger: tt.ledger, Place: "here"}, r); errors.Is(err, ledger.ErrOlder) != tt.older || wait || last != runs[3] {
			t.Errorf("%v: %v, %v", tt.ledger, wait, err)
		}
	}
}

// A ledger that is not the file of the last run waits, unless that run has ended, and is refused if the
// record was written meanwhile, also by another run of the conversion.
func TestMayBeCopy(t *testing.T) {
	at := time.UnixMilli(1)
	run := func(lock string) *Run {
		return &Run{Kind: Convert, Conversion: "c", By: Who{Token: "a"}, Lock: lock, Updated: at, UndoSize: 10}
	}
	ended := run("there")
	ended.Ended = &at
	for name, tt := range map[string]struct {
		last, want *Run
		wait       bool
	}{
		"the same directory":  {run("here"), run("here"), false},
		"another directory":   {run("there"), run("here"), true},
		"not known":           {run(""), run(""), true},
		"not known here":      {run("there"), run(""), true},
		"ended":               {ended, run("here"), false},
		"ended and not known": {ended, run(""), false},
	} {
		h := ledger.Have{Ledger: runsOf{"a", "b"}, Place: ledger.Place(tt.want.Lock), Size: 10}
		r, _ := standing([]*Run{tt.last}, tt.want)
		if wait, err := ledger.Judge(h, r); wait != tt.wait || err != nil {
			t.Errorf("%s: %v, %v", name, wait, err)
		}
		if _, err := ledger.Judge(ledger.Have{Ledger: h.Ledger, Place: h.Place, Size: 9}, r); !errors.Is(err, ledger.ErrMore) {
			t.Errorf("%s: %v", name, err)
		}
		if err := ledger.Again(h, r, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		lives := *tt.last
		lives.Updated = at.Add(2 * time.Second)
		another := *tt.want
		another.By.Token, another.Updated = "b", at
		for _, runs := range [][]*Run{{&lives}, {tt.last, &another}} {
			is, _ := standing(runs, tt.want)
			if err := ledger.Again(h, r, is); !errors.Is(err, ledger.ErrMoved) || !strings.Contains(refuseLedger(err, tt.last).Error(), "end that run first") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
