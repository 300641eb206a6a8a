package servertest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

// fault is what happens to a command while it runs.
type fault struct {
	cut     bool // the server is lost at the command number at
	kill    bool // the process is killed at that moment
	answer  bool // the server carries the command out before
	cancel  int  // the user interrupts at this command; 0 if not
	at      int
	process bool // a real process is killed after some time
	after   time.Duration
}

func (f *fault) String() string {
	if f == nil {
		return "without a fault"
	}
	return fmt.Sprintf("%+v", *f)
}

// fault invents a fault, or none.
func (w *world) fault() *fault {
	at := 1 + w.r.IntN(3)*w.r.IntN(24)
	switch k := w.r.IntN(100); {
	case k < 20:
		w.mistake("killed")
		return &fault{cut: true, kill: true, answer: k%2 == 0, at: at}
	case k < 28:
		w.mistake("server lost")
		return &fault{cut: true, answer: k%2 == 0, at: at}
	case k < 34:
		w.mistake("interrupted")
		return &fault{cancel: at}
	case k < 37 && runtime.GOOS != "windows":
		w.mistake("killed, a process")
		return &fault{process: true, after: time.Duration(50+w.r.IntN(300)) * time.Millisecond}
	}
	return nil
}

// command runs the command through a proxy that makes the fault. A command that is killed leaves
// its files as they were at that moment.
func (f *fault) command(w *world, dir string, args []string) (result, bool) {
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	var mu sync.Mutex
	n, cut := 0, false
	held := make(map[string][]byte)
	p := startProxy(w.t, host(w.t, w.s), func(r request, pass func() []byte) []byte {
		switch r.name() {
		case "find", "insert", "update", "delete", "getMore", "aggregate", "create":
		default:
			mu.Lock()
			defer mu.Unlock()
			if cut {
				return nil
			}
			return pass()
		}
		mu.Lock()
		if cut {
			mu.Unlock()
			return nil
		}
		n++
		if f.cancel == n {
			cancel()
		}
		if !f.cut || n != f.at {
			mu.Unlock()
			return pass()
		}
		cut = true
		for _, pattern := range []string{"*r", "*.state", "*"} { // the ledgers first: what they count on is then in the others
			for _, path := range w.files(dir, pattern) {
				if b, err := os.ReadFile(path); err == nil && held[path] == nil {
					held[path] = b
				}
			}
		}
		mu.Unlock()
		if f.answer {
			pass()
		}
		return nil
	})
	res := w.command(ctx, uriTarget(p.URI()+"&serverSelectionTimeoutMS=300"), args)
	mu.Lock() // a request may still be on its way
	killed := f.kill && cut
	mu.Unlock()
	if !killed {
		return res, false
	}
	for _, path := range w.files(dir, "*") {
		var err error
		if b, ok := held[path]; ok {
			err = os.WriteFile(path, b, 0o600)
		} else {
			err = os.Remove(path)
		}
		if err != nil {
			w.t.Error(err)
		}
	}
	return res, true
}
