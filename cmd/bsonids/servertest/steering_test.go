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
	m := newMixedShop(t, s, 20)
	dir, pause := m.dir, filepath.Join(m.dir, "pause")
	for _, args := range [][]string{{"apply", dir, "--collections-at-once", "1"}, {"undo", dir}} {
		put(t, pause, "")
		batches := 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if (r.name() != "update" && r.name() != "insert") || r.documents < 2 || strings.HasPrefix(r.on(), "bsonids.") { // a probe has one at most
				return pass()
			}
			if _, err := os.Lstat(pause); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s writes to %s during the pause", args[0], r.on())
			}
			if batches++; batches == 2 {
				put(t, pause, "")
			}
			return pass()
		})
		log := &watch{texts: []string{"paused: ", "going on", "paused: ", "going on"}, then: func(text string) {
			if text != "paused: " {
				return
			}
			command(t, s, "status", dir).prints(t, "Paused: ")
			removed(t, pause)
		}}
		cmd := startLogged(t, p, log, append(args, "--write", "--batch", "5")...)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v: %s", args[0], err, &log.all)
		}
		if len(log.texts) > 0 || batches < 3 {
			t.Errorf("%s: %d batches, and %q was not said: %s", args[0], batches, log.texts, &log.all)
		}
		if args[0] == "apply" {
			whole(t, m.db, m.want)
		} else {
			whole(t, m.db, m.before)
		}
	}
}

// A rate that is set while apply waits holds without a restart.
func TestRate(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 20)
	setRate(t, m.dir, "1")
	command(t, s, "status", m.dir).want(t, failure.ExitOK).prints(t, "at most 1 documents per second")
	largest := 0
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if (r.name() == "update" || r.name() == "insert") && r.documents > 0 && !strings.HasPrefix(r.on(), "bsonids.") { // no probe
			if largest == 0 && r.documents != 1 {
				t.Errorf("a batch of %d documents with a rate of 1", r.documents)
			}
			if largest = max(largest, r.documents); largest == 1 {
				setRate(t, m.dir, "as fast as you can")
				setRate(t, m.dir, "0")
			}
		}
		return pass()
	})
	command(t, p, "apply", m.dir, "--write", "--collections-at-once", "1").want(t, failure.ExitOK)
	if largest < 2 {
		t.Error("the rate was not raised")
	}
	whole(t, m.db, m.want)
}
