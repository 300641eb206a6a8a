package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

var (
	histories = flag.Int("histories", 6, "random histories of migrations")
	historyOf = flag.Uint64("history-seed", 0, "the first of the histories")
)

// history is a migration of a collection from several directories that decide the same, in which anything is killed, and
// files, data and the record are damaged, lost and put back.
type history struct {
	*testing.T
	r      *rand.Rand
	s      *memory.Server
	coll   *mongo.Collection
	old    []bson.Raw // the documents before the migration
	want   []bson.Raw // converted
	dirs   []string
	aged   map[string][]byte // what files had before
	record []bson.Raw        // what the record had before
	told   []string
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{T: t, r: rand.New(rand.NewPCG(seed, 5)), s: memory.Start(t), aged: make(map[string][]byte)}
	h.s.FerretDB = "v1.24.0" // which is not asked whether it enforces limits
	h.coll = h.s.Client.Database("shop").Collection("orders")
	for i := range 24 {
		u, err := uuid.NewRandomFromReader(reader{h.r})
		if err != nil {
			t.Fatal(err)
		}
		// Only an undo log knows how a text was spelled.
		spelled := []string{"{" + strings.ToUpper(u.String()) + "}", "urn:uuid:" + u.String(), u.String(), strings.ToUpper(u.String())}[h.r.IntN(4)]
		doc := func(a, b any) bson.Raw {
			return kindstest.Marshal(t, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: a}, {Key: "list", Value: bson.A{b, "x"}}})
		}
		fresh := kindstest.Stored(u, "standard")
		h.old, h.want = append(h.old, doc(spelled, kindstest.Stored(u, "javaLegacy"))), append(h.want, doc(fresh, fresh))
	}
	h.s.Put(h.coll, h.old...)
	top := t.TempDir()
	for i := range 2 { // a second one is another migration
		dir := filepath.Join(top, fmt.Sprint(i))
		h.run("plan", dir, "--db", "shop").want(t, failure.ExitOK)
		p, err := plan.ReadFile(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Collections {
			for j := range c.Fields {
				if c.Fields[j].Stored == kinds.OfText {
					c.Fields[j].Decision, c.Fields[j].Trust = plan.Convert("text"), true
				}
			}
		}
		if err := os.WriteFile(filepath.Join(dir, plan.PlanFile), p.Text(), 0o600); err != nil {
			t.Fatal(err)
		}
		h.dirs = append(h.dirs, dir)
	}
	copied := filepath.Join(top, "copy") // on another machine
	if err := os.CopyFS(copied, os.DirFS(h.dirs[0])); err != nil {
		t.Fatal(err)
	}
	h.dirs = append(h.dirs, copied)
	return h
}

// run runs a command, which is killed at one of its commands to the server, perhaps: nothing that it does after that has an effect.
func (h *history) run(args ...string) result {
	h.Helper()
	if args[0] != "plan" {
		args = append(args, "--retry-for", "0s")
	}
	args = append(args, "--uri", h.s.URI)
	var out, errs bytes.Buffer
	code := Run(context.Background(), args, &out, &errs)
	h.told = append(h.told, fmt.Sprintf("%s: %d %s", strings.Join(args[:len(args)-2], " "), code, errs.String()))
	return result{code, out.String(), errs.String()}
}

// killed runs a command that is killed at a random command to the server.
func (h *history) killed(args ...string) {
	at, n, lost := 1+h.r.IntN(60), 0, h.r.IntN(2) == 0
	h.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if n++; n == at && lost {
			f.Lost = true
		} else if n >= at {
			f.Code = 91 // ShutdownInProgress
		}
		return f
	}
	h.run(args...)
	h.s.Before = nil
}

func (h *history) docs() []bson.Raw { return h.s.Documents(h.coll) }

// index returns that of the document, whose _id is a number.
func index(doc bson.Raw) int { return int(doc.Lookup("_id").Int32()) }

// check fails the test unless each value is an old one or the converted one.
func (h *history) check(converted bool) {
	h.Helper()
	for _, doc := range h.docs() {
		i := index(doc)
		for _, path := range [][]string{{"a"}, {"list", "0"}} {
			is, was, want := doc.Lookup(path...), h.old[i].Lookup(path...), h.want[i].Lookup(path...)
			if !is.Equal(want) && (converted || !is.Equal(was)) {
				h.Fatalf("%v of document %d is %v, want %v\n%s", path, i, is, want, strings.Join(h.told, "\n"))
			}
		}
	}
}

// logged returns the changes that undo logs of the directory have whose new values are there, by document and path: of logs that
// neither the record nor they themselves call undone.
func (h *history) logged(dir string) map[string]bool {
	logs, _, err := undolog.In(dir)
	if err != nil {
		h.Fatal(err)
	}
	defer undolog.Logs(logs).Close()
	there := make(map[string]bool)
	docs := h.docs()
	runs, err := record.Runs(context.Background(), h.coll.Database())
	if err != nil {
		h.Fatal(err)
	}
	for _, u := range logs {
		if u.Undone != nil || slices.ContainsFunc(runs, func(r *record.Run) bool { return r.By.Token == u.Run && r.Restored() }) {
			continue
		}
		if err := undolog.Of(u).Each(func(e undolog.Entry) error {
			for _, ch := range e.Changes {
				i := slices.IndexFunc(docs, func(doc bson.Raw) bool { return doc.Lookup("_id").Equal(e.ID) })
				if i >= 0 && docs[i].Lookup(strings.Split(ch.Path, ".")...).Equal(ch.New.Raw()) {
					there[fmt.Sprint(index(docs[i]), " ", ch.Path)] = true
				}
			}
			return nil
		}); err != nil {
			continue // a damaged log has nothing for certain
		}
	}
	return there
}

// damage damages a file of a directory, or puts an older one in its place.
func (h *history) damage(dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.undo"))
	lists, err2 := filepath.Glob(filepath.Join(dir, "*.jsonl*"))
	if files = append(files, lists...); err != nil || err2 != nil || len(files) == 0 {
		return
	}
	path := files[h.r.IntN(len(files))]
	b, err := os.ReadFile(path)
	if err != nil || len(b) == 0 {
		return
	}
	was, to := h.aged[path], bytes.Clone(b)
	h.aged[path] = b
	switch h.r.IntN(4) {
	case 0:
		h.told = append(h.told, "removed "+path)
		if err := os.Remove(path); err != nil {
			h.Fatal(err)
		}
		return
	case 1:
		to = to[:h.r.IntN(len(to))]
	case 2:
		to[h.r.IntN(len(to))] ^= 1 << h.r.IntN(8)
	default:
		to = was
	}
	h.told = append(h.told, fmt.Sprintf("%s has %d bytes of %d", path, len(to), len(b)))
	if err := os.WriteFile(path, to, 0o600); err != nil {
		h.Fatal(err)
	}
}

// step does something at random.
func (h *history) step() {
	dir := h.dirs[h.r.IntN(len(h.dirs))]
	write := []string{"--write", "--batch", fmt.Sprint(2 + h.r.IntN(9)), "--batch-timeout", "1s", "--take-over"}
	apply, undo := append([]string{"apply", dir}, write...), append([]string{"undo", dir}, write...)
	if h.r.IntN(3) == 0 {
		undo = append(undo, "--without-lost-logs", "--without-record")
	}
	records := h.s.Client.Database("shop").Collection(record.Name)
	switch h.r.IntN(11) {
	case 0, 1:
		if h.run(apply...).code == failure.ExitOK {
			h.check(true)
		}
	case 2, 3, 4:
		h.killed(apply...)
	case 5:
		there := h.logged(dir)
		if r := h.run(undo...); r.code == failure.ExitOK {
			for at := range there {
				i, path, _ := strings.Cut(at, " ")
				for _, doc := range h.docs() {
					if fmt.Sprint(index(doc)) == i && !doc.Lookup(strings.Split(path, ".")...).Equal(h.old[index(doc)].Lookup(strings.Split(path, ".")...)) {
						h.Fatalf("undo calls it done, and %s of document %s is not restored\n%s", path, i, strings.Join(h.told, "\n"))
					}
				}
			}
		}
	case 6:
		h.killed(undo...)
	case 7:
		if h.run("verify", dir).code == failure.ExitOK {
			h.check(true)
		}
	case 8:
		h.damage(dir)
	case 9:
		h.told = append(h.told, "half of the data is restored")
		docs := h.docs()
		for i, doc := range docs {
			if h.r.IntN(2) == 0 {
				docs[i] = h.old[index(doc)]
			}
		}
		h.s.Put(h.coll, docs...)
	case 10:
		now := h.s.Documents(records)
		h.s.Drop(records)
		if h.r.IntN(2) == 0 && len(h.record) > 0 {
			h.told = append(h.told, "the record is as it was")
			h.s.Put(records, h.record...)
		} else {
			h.told = append(h.told, "the record is dropped")
		}
		h.record = now
	}
	h.check(false)
}

// Whatever happens to the directories, the data and the record of a migration, no value is ever anything but the old or the
// converted one. After an apply with exit code 0, every value is converted. An undo with exit code 0 restores every value that is
// in a log of its directory, and at the end no old value is lost that is in a log.
func TestHistories(t *testing.T) {
	n := *histories
	if testing.Short() {
		n = min(n, 2)
	}
	for i := range uint64(n) {
		t.Run(fmt.Sprint(*historyOf+i), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, *historyOf+i)
			for range 14 {
				h.step()
			}
			there := make(map[string]bool)
			for _, dir := range h.dirs {
				for at := range h.logged(dir) {
					there[at] = true
				}
			}
			for range 2 { // what one directory restores may be what another one has
				for _, dir := range h.dirs {
					h.run("undo", dir, "--write", "--batch-timeout", "1s", "--take-over", "--without-lost-logs", "--without-record", "--allow-changed")
					h.check(false)
				}
			}
			for at := range there {
				i, path, _ := strings.Cut(at, " ")
				for _, doc := range h.docs() {
					if is := doc.Lookup(strings.Split(path, ".")...); fmt.Sprint(index(doc)) == i && !is.Equal(h.old[index(doc)].Lookup(strings.Split(path, ".")...)) {
						t.Errorf("%s of document %s is in a log, and was not restored: %v\n%s", path, i, is, strings.Join(h.told, "\n"))
					}
				}
			}
			h.run("apply", h.dirs[0], "--write", "--batch-timeout", "1s", "--take-over").want(t, failure.ExitOK)
			h.check(true)
		})
	}
}
