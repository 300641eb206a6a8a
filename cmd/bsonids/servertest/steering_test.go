package servertest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// watch is output that calls a function once for each text, in their order, when the text was written.
type watch struct {
	mu    sync.Mutex
	all   bytes.Buffer
	seen  int // bytes of all that are before what is waited for
	texts []string
	then  func(text string)
}

func (w *watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all.Write(p)
	for len(w.texts) > 0 {
		i := strings.Index(w.all.String()[w.seen:], w.texts[0])
		if i < 0 {
			break
		}
		w.seen += i + len(w.texts[0])
		w.then(w.texts[0])
		w.texts = w.texts[1:]
	}
	return len(p), nil
}

// A pause that is there at the beginning, and one that begins while the work goes on, stop apply and undo
// before the next batch. They go on when it ends.
func TestPause(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	before := make(map[string]map[string]bson.Raw)
	for name := range want {
		if docs := all(t, db.Collection(name)); len(docs) > 0 { // not a copy, which undo keeps
			before[name] = docs
		}
	}
	file := planned(t, s)
	edit(t, file, mixed...)
	dir := filepath.Dir(file)
	pause := filepath.Join(dir, "pause")
	run := func(verb string, flags ...string) {
		t.Helper()
		if err := os.WriteFile(pause, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		batches := 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			of, _ := r.command.Lookup(r.name()).StringValueOK()
			if (r.name() != "update" && r.name() != "insert") || r.documents < 2 || strings.HasPrefix(of, "bsonids.") { // a probe has one at most
				return pass()
			}
			if _, err := os.Lstat(pause); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s writes to %s during the pause", verb, of)
			}
			if batches++; batches == 2 {
				if err := os.WriteFile(pause, nil, 0o600); err != nil {
					t.Error(err)
				}
			}
			return pass()
		})
		end := func() {
			r := command(t, s, "status", dir) // in a goroutine that must not end
			if r.code != failure.ExitOK || !strings.Contains(r.stdout, "Paused: ") {
				t.Errorf("status says nothing of the pause: %s%s", r.stdout, r.stderr)
			}
			if err := os.Remove(pause); err != nil {
				t.Error(err)
			}
		}
		log := &watch{texts: []string{"paused: ", "going on", "paused: ", "going on"}, then: func(text string) {
			if text == "paused: " {
				end()
			}
		}}
		cmd := startLogged(t, p, log, append([]string{verb, dir, "--write", "--batch", "5"}, flags...)...)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v: %s", verb, err, &log.all)
		}
		if len(log.texts) > 0 || batches < 3 {
			t.Errorf("%s: %d batches, and %q was not said: %s", verb, batches, log.texts, &log.all)
		}
	}
	run("apply", "--collections-at-once", "1")
	whole(t, db, want)
	run("undo")
	whole(t, db, before)
}

// A rate that is set while apply waits holds without a restart.
func TestRate(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := shop(t, db, 20)
	file := planned(t, s)
	edit(t, file, mixed...)
	dir := filepath.Dir(file)
	rate := filepath.Join(dir, "rate")
	set := func(text string) {
		if err := os.WriteFile(rate, []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	set("1")
	r := command(t, s, "status", dir).want(t, failure.ExitOK)
	if !strings.Contains(r.stdout, "at most 1 documents per second") {
		t.Error(r.stdout)
	}
	largest := 0
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		of, _ := r.command.Lookup(r.name()).StringValueOK()
		if (r.name() == "update" || r.name() == "insert") && r.documents > 0 && !strings.HasPrefix(of, "bsonids.") { // no probe
			if largest == 0 && r.documents != 1 {
				t.Errorf("a batch of %d documents with a rate of 1", r.documents)
			}
			if largest = max(largest, r.documents); largest == 1 {
				set("as fast as you can")
				set("0")
			}
		}
		return pass()
	})
	command(t, p, "apply", dir, "--write", "--collections-at-once", "1").want(t, failure.ExitOK)
	if largest < 2 {
		t.Error("the rate was not raised")
	}
	whole(t, db, want)
}
