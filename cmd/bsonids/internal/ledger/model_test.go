package ledger

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The model has two machines, each with a directory: a ledger and an undo log. Runs begin, send
// batches, die, and lose what was not synced; the directories are copied, moved and restored from a
// backup, at every moment. A batch is correct if the log of its run has every batch that was ever
// sent: otherwise values would be converted twice, and could not be restored.

// directory is a ledger and an undo log as they are on a disk. TestCrashes shows that a ledger has a run
// when the call returns, whatever happens next.
type directory struct {
	runs   []string // in the ledger
	synced int      // the number of them that a failure of the machine does not take
	log    []int    // the batches
	here   Place
	alone  bool // it was never copied, and never restored
}

func (d directory) copy(to Place) directory {
	return directory{slices.Clone(d.runs), len(d.runs), slices.Clone(d.log), to, false}
}

// The steps of a run.
const (
	dead    = iota
	waits   // for a copy that may be in use
	judged  // may begin
	known   // its id is in the ledger
	running // its id is in the record
	logged  // a batch is in the undo log, and not in the record
	sized   // the size of the undo log is in the record
	ledgerAfter
)

type run struct {
	step   int
	id     string
	judged Record // as it was then
}

type world struct {
	dirs   [2]directory
	backup *directory
	runs   [2]run
	record Record
	sent   []int // the batches
	n      int   // runs and batches so far
	trace  []string
}

// clone returns a copy that shares nothing that changes.
func (w *world) clone() *world {
	c := *w
	for i, d := range w.dirs {
		c.dirs[i].runs, c.dirs[i].log = slices.Clone(d.runs), slices.Clone(d.log)
	}
	c.sent, c.trace = slices.Clone(w.sent), slices.Clone(w.trace)
	return &c
}

func (w *world) have(i int) Have {
	d := w.dirs[i]
	return Have{&Ledger{runs: d.runs}, d.here, int64(len(d.log))}
}

// action is something that may happen next. It reports whether it did.
type action struct {
	name string
	do   func(w *world, bad *[]string) bool
}

// rules may be broken, to show that the model finds it.
type rules struct {
	ledgerLast bool // the id of a run is in the record before the ledger has it
	noWait     bool // a copy does not wait
	noSize     bool // the size of the undo log is not compared
	noSync     bool // the id of a run is in the record before it is on the disk
	noCompare  bool // a run writes to the record although it changed since it was judged
}

func actions(rules rules) (out []action) {
	for i := range 2 {
		add := func(name string, do func(w *world, r *run, d *directory, bad *[]string) bool) {
			out = append(out, action{fmt.Sprintf("%s %d", name, i), func(w *world, bad *[]string) bool {
				return w.dirs[i].here != "" && do(w, &w.runs[i], &w.dirs[i], bad)
			}})
		}
		add("begin", func(w *world, r *run, d *directory, bad *[]string) bool {
			if r.step != dead {
				return false
			}
			w.n++
			*r = run{judged, fmt.Sprint("r", w.n), w.record}
			wait, err := judge(rules, w.have(i), w.record)
			switch {
			case err != nil:
				if d.alone {
					*bad = append(*bad, fmt.Sprintf("%v: %s", err, strings.Join(w.trace, ", ")))
				}
				return false
			case wait && !rules.noWait:
				r.step = waits
			}
			return true
		})
		add("waited", func(w *world, r *run, _ *directory, _ *[]string) bool {
			if r.step != waits {
				return false
			}
			// A run that lives writes to the record while this one waits.
			for o := range w.runs {
				if o != i && w.runs[o].step >= running && w.record.Run == w.runs[o].id {
					w.record.Moves++
				}
			}
			if err := Again(w.have(i), r.judged, w.record); err != nil {
				*r = run{}
				return true
			}
			r.step, r.judged = judged, w.record
			return true
		})
		add("ledger", func(_ *world, r *run, d *directory, _ *[]string) bool {
			if r.step != judged {
				return false
			}
			r.step = known
			if rules.ledgerLast {
				return true
			}
			d.runs = append(d.runs, r.id)
			if !rules.noSync {
				d.synced = len(d.runs)
			}
			return true
		})
		add("record", func(w *world, r *run, d *directory, _ *[]string) bool {
			if r.step != known {
				return false
			}
			if w.record.Moves != r.judged.Moves && !rules.noCompare { // it was written meanwhile
				*r = run{}
				return true
			}
			w.record = Record{Run: r.id, Place: d.here, Size: w.record.Size, Moves: w.record.Moves + 1}
			r.step = running
			if rules.ledgerLast {
				r.step = ledgerAfter
			}
			return true
		})
		add("ledger later", func(_ *world, r *run, d *directory, _ *[]string) bool { // if the rule is broken
			if r.step != ledgerAfter {
				return false
			}
			d.runs = append(d.runs, r.id)
			d.synced, r.step = len(d.runs), running
			return true
		})
		add("log", func(w *world, r *run, d *directory, _ *[]string) bool {
			if r.step != running || len(w.sent) > 2 {
				return false
			}
			w.n++
			d.log = append(d.log, w.n)
			r.step = logged
			return true
		})
		add("size", func(w *world, r *run, d *directory, _ *[]string) bool {
			if r.step != logged {
				return false
			}
			if w.record.Run != r.id { // another run took over
				*r = run{}
				return true
			}
			w.record.Size, w.record.Moves = max(w.record.Size, int64(len(d.log))), w.record.Moves+1
			r.step = sized
			return true
		})
		add("send", func(w *world, r *run, d *directory, bad *[]string) bool {
			if r.step != sized {
				return false
			}
			r.step = running
			for _, b := range w.sent {
				if !slices.Contains(d.log, b) {
					*bad = append(*bad, fmt.Sprintf("a run that lacks batch %d sends %d: %s", b, d.log[len(d.log)-1], strings.Join(w.trace, ", ")))
				}
			}
			w.sent = append(w.sent, d.log[len(d.log)-1])
			return true
		})
		add("kill", func(_ *world, r *run, _ *directory, _ *[]string) bool {
			if r.step == dead {
				return false
			}
			*r = run{}
			return true
		})
		add("power", func(_ *world, r *run, d *directory, _ *[]string) bool {
			if r.step == dead {
				return false
			}
			*r, d.runs = run{}, d.runs[:d.synced]
			return true
		})
	}
	return append(out,
		action{"copy", func(w *world, _ *[]string) bool { // to the other machine, while runs go on
			if w.runs[1].step != dead {
				return false
			}
			w.dirs[1] = w.dirs[0].copy("m1")
			w.dirs[0].alone = false
			return true
		}},
		action{"back up", func(w *world, _ *[]string) bool {
			if w.backup != nil {
				return false
			}
			b := w.dirs[0].copy(w.dirs[0].here)
			w.backup = &b
			return true
		}},
		action{"restore", func(w *world, _ *[]string) bool { // to the same file
			if w.backup == nil || w.runs[0].step != dead {
				return false
			}
			w.dirs[0] = w.backup.copy(w.dirs[0].here)
			return true
		}})
}

func judge(rules rules, h Have, r Record) (bool, error) {
	if rules.noSize {
		r.Size = 0
	}
	return Judge(h, r)
}

// explore does everything that may happen, up to a number of actions and of worlds, and returns what
// went wrong first.
func explore(rules rules, depth, most int) (bad []string, worlds int) {
	all := actions(rules)
	seen := make(map[string]bool)
	now := []*world{{dirs: [2]directory{{here: "m0", alone: true}}}}
	for range depth {
		var next []*world
		for _, w := range now {
			for _, a := range all {
				to := w.clone()
				to.trace = append(to.trace, a.name)
				if !a.do(to, &bad) {
					if len(bad) > 0 {
						return bad, len(seen)
					}
					continue
				}
				if len(bad) > 0 || len(seen) >= most {
					return bad, len(seen)
				}
				if key := to.key(); !seen[key] {
					seen[key] = true
					next = append(next, to)
				}
			}
		}
		now = next
	}
	return bad, len(seen)
}

// key describes a world without its history.
func (w *world) key() string {
	k := fmt.Sprint(w.record, w.sent, w.n, w.dirs, w.runs)
	if w.backup != nil {
		k += fmt.Sprint(*w.backup)
	}
	return k
}

// No run that lacks a batch ever sends one, and the only directory is never refused.
func TestModel(t *testing.T) {
	most := 40_000
	if testing.Short() {
		most = 20_000
	}
	bad, worlds := explore(rules{}, 40, most)
	if len(bad) > 0 {
		t.Error(bad[0])
	}
	if worlds < 10_000 {
		t.Errorf("only %d worlds", worlds)
	}
	t.Logf("%d worlds", worlds)
}

// The model finds a fault if one of the rules is broken.
func TestModelFindsFaults(t *testing.T) {
	for name, rules := range map[string]rules{
		"ledger last": {ledgerLast: true}, "no wait": {noWait: true}, "no size": {noSize: true},
		"no sync": {noSync: true}, "no compare": {noCompare: true},
	} {
		bad, worlds := explore(rules, 40, 300_000)
		if len(bad) == 0 {
			t.Errorf("%s: no fault in %d worlds", name, worlds)
			continue
		}
		t.Logf("%s: %s", name, bad[0])
	}
}
