// Package histories makes random histories of migrations, for tests on any server: several directories convert one database, and
// everything that can be killed, lost, damaged or put back is. Whatever happens, each value is an old one or one that a
// decision makes of it.
package histories

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Server is where a history happens.
type Server struct {
	DB *mongo.Database // which nothing else uses
	// Run runs command lines at the same time, and returns when all have ended. Those that change something have the
	// directory as their second word. If kill is set, each is killed at a random moment, unless it ends before.
	Run func(r *rand.Rand, kill bool, lines ...[]string) []Result
	// Settle waits until the server has carried out what commands have sent that were killed.
	Settle func()
}

// Result is how a command has ended. The code of one that was killed does not count.
type Result struct {
	Code           int
	Killed         bool
	Stdout, Stderr string
}

// history is one history.
type history struct {
	testing.TB
	Server
	r *rand.Rand

	truth  map[string]map[int32]*document // by collection and _id
	nextID int32
	differ bool // the directories decide differently
	listed bool // a malformed value is listed, so that no apply ends with 0
	dirs   []string
	plans  map[string][]byte            // the last plan of each directory that is as a person has written it
	first  map[string][]byte            // the plan that was written first
	edited map[string]bool              // directories whose plan was edited after it was made
	aged   map[string][]byte            // what files had before
	whole  map[string]map[string][]byte // what directories had before, by path
	record []bson.Raw                   // what the record had before
	// loose is set when the record was not whole, or was told to forget values: another order may have been decided then.
	loose  bool
	told   []string
	killed bool            // a command was killed
	ran    map[string]bool // the migrations of which a command has converted something since the last check, or was killed before
	counts map[string]int  // of commands, by how they have ended
}

// Live makes a history of some steps, and fails the test if a value is lost or wrong, or a command says what does not hold.
func Live(t testing.TB, s Server, seed uint64, steps int) {
	t.Helper()
	h := &history{TB: t, Server: s, r: rand.New(rand.NewPCG(seed, 5)), truth: make(map[string]map[int32]*document), plans: make(map[string][]byte), first: make(map[string][]byte),
		edited: make(map[string]bool), aged: make(map[string][]byte), whole: make(map[string]map[string][]byte), ran: make(map[string]bool), counts: make(map[string]int)}
	h.differ, h.listed = h.r.IntN(3) == 0, h.r.IntN(5) == 0
	h.seed()
	h.planned()
	for range steps {
		h.step()
		h.check(nil)
		if h.killed && h.r.IntN(3) == 0 {
			h.Settle()
			h.check(nil)
			h.killed = false
		}
		if !h.killed { // the last batch of what was killed may arrive late
			clear(h.ran)
		}
	}
	h.end()
	h.Log(h.counts)
}

// tell notes what happens.
func (h *history) tell(format string, args ...any) {
	h.told = append(h.told, fmt.Sprintf("%d. ", len(h.told)+1)+fmt.Sprintf(format, args...))
}

// fail fails the test with the story so far.
func (h *history) fail(format string, args ...any) {
	h.Helper()
	h.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(h.told, "\n"))
}

func (h *history) try(err error) {
	h.Helper()
	if err != nil {
		h.fail("%v", err)
	}
}

// run runs one command to its end.
func (h *history) run(line ...string) Result {
	return h.atOnce(false, line)[0]
}

// atOnce runs commands at the same time.
func (h *history) atOnce(kill bool, lines ...[]string) []Result {
	for i, line := range lines {
		if line[0] != "status" {
			lines[i] = append(line, "--retry-for", "0s")
		}
	}
	for _, line := range lines {
		if line[0] == "apply" {
			h.ran[h.migration(line[1])] = true
		}
	}
	all := h.Run(h.r, kill, lines...)
	h.killed = h.killed || kill
	for i, r := range all {
		how := fmt.Sprint("exit code ", r.Code)
		if r.Killed {
			how = "killed"
		}
		h.counts[lines[i][0]+", "+how]++
		h.tell("%s: %s\n%s%s", strings.Join(lines[i], " "), how, r.Stdout, r.Stderr)
	}
	return all
}

// step does something at random.
func (h *history) step() {
	dir := h.dirs[h.r.IntN(1+h.r.IntN(len(h.dirs)))] // the first one more often
	switch h.r.IntN(22) {
	case 0, 1, 2:
		h.apply(dir)
	case 3, 4, 5:
		h.atOnce(true, h.applying(dir))
	case 6, 7:
		h.undo(dir)
	case 8, 9:
		h.atOnce(true, h.undoing(dir))
	case 10, 11:
		h.verify(dir)
	case 12:
		h.rehearse(dir)
	case 13, 14, 15:
		h.damage(dir)
	case 16:
		h.restoreData()
	case 17:
		h.damageRecord()
	case 18:
		h.together()
	case 19, 20:
		h.serve()
	case 21:
		h.edit(dir)
	}
}

// write returns flags of a command that writes.
func (h *history) write() []string {
	flags := []string{"--write", "--batch", fmt.Sprint(2 + h.r.IntN(9)), "--batch-timeout", "2s"}
	if h.r.IntN(4) > 0 { // it waits for the lock of a run that was killed otherwise
		flags = append(flags, "--take-over")
	}
	return flags
}

func (h *history) applying(dir string) []string {
	return append([]string{"apply", dir, "--workers", fmt.Sprint(1 + h.r.IntN(2))}, h.write()...)
}

func (h *history) undoing(dir string) []string {
	line := append([]string{"undo", dir}, h.write()...)
	if h.r.IntN(3) == 0 {
		h.loose = true // what a lost log had stays converted
		line = append(line, "--without-lost-logs", "--without-record")
	}
	return line
}

// apply applies a plan. If it has found nothing that is left, then nothing is; if it has left values, they are listed.
func (h *history) apply(dir string) {
	decided, ok := h.decisions(dir)
	r := h.run(h.applying(dir)...)
	h.Settle() // nothing that was sent before may come after it
	switch {
	case r.Killed:
	case !ok && r.Code != failure.ExitUsage:
		h.fail("exit code %d with a plan that cannot be read", r.Code)
	case r.Code == failure.ExitOK:
		h.check(&claim{dir: dir, decided: decided})
	case r.Code == failure.ExitIncomplete:
		h.check(&claim{dir: dir, decided: decided, but: h.skipped(dir)})
	case r.Code == failure.ExitUsage && h.r.IntN(2) == 0:
		h.mend(dir, r.Stderr)
	}
}

// undo undoes a migration. If it says that it is done, each value is restored that its logs have. It refuses, by their names, if
// logs are lost.
func (h *history) undo(dir string) {
	there, lost, before := h.logged(dir), h.lost(dir), h.all()
	migration, line := h.migration(dir), h.undoing(dir)
	r := h.run(line...)
	h.Settle() // nothing that was sent before may come after it
	if without := line[len(line)-1] == "--without-record"; len(lost) > 0 && !without {
		if r.Code == failure.ExitOK || r.Code == failure.ExitIncomplete {
			h.fail("undo ends with the exit code %d without %v", r.Code, lost)
		}
		if r.Code == failure.ExitFailed && !strings.Contains(r.Stderr, "since the record was read") {
			for _, name := range lost {
				if !strings.Contains(r.Stderr, name) {
					h.fail("undo does not name %s", name)
				}
			}
			if h.all() != before {
				h.fail("undo refuses, and has changed something")
			}
		}
	}
	if r.Code == failure.ExitOK {
		if h.restored(there); !h.loose {
			h.undone(migration)
		}
	}
}

// verify verifies a migration. A proof is not given for what does not hold, and a value in another order than its line in a log says
// is an error.
func (h *history) verify(dir string) {
	decided, ok := h.decisions(dir)
	misread, lost := h.misread(dir), h.lost(dir)
	r := h.run("verify", dir)
	switch {
	case r.Code == failure.ExitIncomplete && len(misread) > 0 && !strings.Contains(r.Stdout, "converted from another byte order"):
		h.fail("verify does not name what is in another order than its line says: %v", misread)
	case r.Code != failure.ExitOK:
	case len(lost) > 0:
		h.fail("verify calls it proven without %v", lost)
	case len(misread) > 0:
		h.fail("verify calls it proven, and values are in another order than their lines say: %v", misread)
	case ok && !h.edited[dir]:
		h.check(&claim{dir: dir, decided: decided, rest: true})
	}
}

// rehearse runs what changes nothing. The status and the rehearsal name each log that is lost.
func (h *history) rehearse(dir string) {
	before, lost := h.all(), h.lost(dir)
	_, ok := h.decisions(dir)
	for _, line := range [][]string{{"status", dir, "--checksums"}, {"apply", dir}, {"undo", dir}} {
		verb, r := line[0], h.run(line...)
		if r.Code == failure.ExitOK && len(lost) > 0 {
			h.fail("%s ends with the exit code 0 without %v", verb, lost)
		}
		for _, name := range lost {
			if r.Code == failure.ExitFailed && ok && !strings.Contains(r.Stdout+r.Stderr, name) {
				h.fail("%s does not name %s", verb, name)
			}
		}
	}
	if h.all() != before {
		h.fail("what only looks has changed something")
	}
}

// together runs two commands at the same time. The directories may be the same.
func (h *history) together() {
	var lines [][]string
	var dirs []string
	for i := range 2 {
		dir := h.dirs[h.r.IntN(len(h.dirs))]
		dirs = append(dirs, dir)
		if i > 0 && h.r.IntN(2) == 0 {
			lines = append(lines, h.undoing(dir))
		} else {
			lines = append(lines, h.applying(dir))
		}
	}
	decided := make([]decisions, 2)
	ok := make([]bool, 2)
	for i, dir := range dirs {
		decided[i], ok[i] = h.decisions(dir)
	}
	all := h.atOnce(h.r.IntN(3) == 0, lines...)
	for i, r := range all {
		if ok[i] && !r.Killed && r.Code == failure.ExitOK && lines[1][0] == "apply" { // no other converted values were restored since
			h.check(&claim{dir: dirs[i], decided: decided[i]})
		}
	}
}

// end undoes everything: no old value is lost that is in a log. Then a new plan converts everything.
func (h *history) end() {
	var there []kept
	for _, dir := range h.dirs {
		h.writePlan(dir, h.plans[dir])
		there = append(there, h.logged(dir)...)
		h.loose = h.loose || len(h.lost(dir)) > 0 // what they had stays converted
	}
	h.tell("the end: %d values in logs", len(there))
	for range 2 { // what one directory restores may be what another one has
		for _, dir := range h.dirs {
			h.run(append([]string{"undo", dir, "--without-lost-logs", "--without-record", "--allow-changed"}, h.write()...)...)
			h.check(nil)
		}
	}
	h.restored(there)
	dir := filepath.Join(filepath.Dir(h.dirs[0]), "last")
	h.made(dir)
	h.change(dir, func(p *plan.Plan) {
		each(p, func(f *plan.Field) { _, f.Trust = f.Decision.From() }) // too few values may be left to prove an order
	})
	r := h.run(h.applying(dir)...)
	for _, order := range []string{"javaLegacy", "csharpLegacy"} {
		if !h.differ || r.Code != failure.ExitUsage || !strings.Contains(r.Stderr, "has converted it from") {
			break
		}
		h.change(dir, func(p *plan.Plan) { // values of the other order stay, because their log is lost
			each(p, func(f *plan.Field) {
				if _, ok := f.Decision.From(); ok && f.Plain() == "hash" {
					f.Decision = plan.Convert(order)
				}
			})
		})
		r = h.run(h.applying(dir)...)
	}
	decided, _ := h.decisions(dir)
	c := &claim{dir: dir, decided: decided}
	switch {
	case r.Code == failure.ExitIncomplete && h.listed:
		c.but = h.skipped(dir)
	case r.Code == failure.ExitUsage && strings.Contains(r.Stderr, "every field is left"):
		return
	case r.Code != failure.ExitOK:
		h.fail("the exit code of the last apply is %d", r.Code)
	}
	h.check(c)
}

// records returns the collection of the record.
func (h *history) records() *mongo.Collection { return h.DB.Collection(record.Name) }
