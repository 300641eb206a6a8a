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
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli/histories"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

var (
	manyHistories = flag.Int("histories", 6, "random histories of migrations")
	historyOf     = flag.Uint64("history-seed", 0, "the first of the histories")
)

// inMemory is a server in memory, in whose process the commands run. Of those that are killed, nothing has an effect that they do
// after a command to the server: neither there nor in their directories.
type inMemory struct {
	testing.TB
	*memory.Server
	before *atomic.Pointer[func() memory.Fault] // called before each command; nil if no process is killed
}

// startedInMemory starts such a server.
func startedInMemory(t testing.TB) inMemory {
	s := inMemory{t, memory.Start(t), new(atomic.Pointer[func() memory.Fault])}
	s.Before = func(string, bson.Raw) (f memory.Fault) {
		if before := s.before.Load(); before != nil {
			f = (*before)()
		}
		return f
	}
	return s
}

func (s inMemory) run(r *rand.Rand, kill bool, lines ...[]string) []histories.Result {
	var mu sync.Mutex
	at, n, lost, killed := 1+r.IntN([]int{10, 40, 120}[r.IntN(3)]), 0, r.IntN(2) == 0, false
	held := make(map[string][]byte)
	if kill {
		before := func() (f memory.Fault) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at {
				killed = true
				for _, path := range s.files(lines) {
					if b, err := os.ReadFile(path); err == nil { // it may be removed meanwhile
						held[path] = b
					}
				}
				f.Lost = lost
			}
			if n > at || n == at && !lost {
				f.Code = 91 // ShutdownInProgress
			}
			return f
		}
		s.before.Store(&before)
	}
	all := make([]histories.Result, len(lines))
	var running sync.WaitGroup
	for i, line := range lines {
		running.Go(func() {
			var out, errs bytes.Buffer
			code := Run(context.Background(), append(slices.Clone(line), "--uri", s.URI), &out, &errs)
			all[i] = histories.Result{Code: code, Stdout: out.String(), Stderr: errs.String()}
		})
	}
	running.Wait()
	s.before.Store(nil)
	mu.Lock() // a command of a killed process may still be on its way to the server
	defer mu.Unlock()
	if killed {
		for i := range all {
			all[i].Killed = true
		}
		s.putBack(lines, held)
	}
	return all
}

// files returns the paths of the files of the directories that commands use, without locks.
func (s inMemory) files(lines [][]string) (paths []string) {
	for _, line := range lines {
		more, err := filepath.Glob(filepath.Join(line[1], "*"))
		if err != nil {
			s.Error(err)
		}
		paths = append(paths, more...)
	}
	return slices.DeleteFunc(paths, func(path string) bool { return strings.HasSuffix(path, ".lock") })
}

// putBack makes the directories what they were.
func (s inMemory) putBack(lines [][]string, held map[string][]byte) {
	for _, path := range s.files(lines) {
		if _, was := held[path]; !was {
			if err := os.Remove(path); err != nil {
				s.Error(err)
			}
		}
	}
	for path, b := range held {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			s.Error(err)
		}
	}
}

// See package histories. Here, two commands at once are two goroutines.
func TestHistories(t *testing.T) {
	n := *manyHistories
	if testing.Short() {
		n = min(n, 2)
	}
	for i := range uint64(n) {
		t.Run(fmt.Sprint(*historyOf+i), func(t *testing.T) {
			t.Parallel()
			s := startedInMemory(t)
			s.FerretDB = "v1.24.0" // which is not asked whether it enforces limits
			histories.Live(t, histories.Server{DB: s.Client.Database("shop"), Run: s.run, Settle: func() {}}, *historyOf+i, 20)
		})
	}
}
