package servertest

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli/histories"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
)

var (
	manyHistories = flag.Int("histories", 3, "random histories of migrations; 1 in a short run")
	historyOf     = flag.Uint64("history-seed", 0, "the first of the histories")
)

// historied is a server behind proxies, which each command of a history reaches through one of its own.
type historied struct {
	*testing.T
	s      *mongotest.Server
	serial bool // the server may lose one of two updates at the same time

	writing sync.Mutex // held while the server writes, if it is serial
	mu      sync.Mutex
	open    sync.WaitGroup // commands of processes that were killed; added to while mu is held
}

// carryOut makes the server carry a command out.
func (s *historied) carryOut(r request, pass func() []byte) []byte {
	if s.serial && slices.Contains([]string{"insert", "update", "delete", "drop"}, r.name()) {
		s.writing.Lock()
		defer s.writing.Unlock()
	}
	return pass()
}

// process is a command in a process of its own. One that is to die does so at its command number at to the server: before the server
// gets it, or before the answer. A batch of changes may then arrive late, within its limit. It may also be killed after some time.
type process struct {
	at       int
	answered bool
	late     time.Duration
	after    time.Duration

	n    int // of commands, while mu of the server is held
	dead bool
	kill chan struct{}
}

func (s *historied) process(r *rand.Rand) *process {
	p := &process{at: 1 + r.IntN([]int{10, 40, 120}[r.IntN(3)]), answered: r.IntN(2) == 0, kill: make(chan struct{}, 1)}
	switch r.IntN(4) {
	case 0:
		p.at, p.after = 0, time.Duration(r.IntN(1000))*time.Millisecond
	case 1, 2:
		p.late = time.Duration(r.IntN(1200)) * time.Millisecond // 2 seconds after an intent are not over, which may be half a second old
	}
	return p
}

// handle handles a command of the process.
func (s *historied) handle(p *process, r request, pass func() []byte) []byte {
	s.mu.Lock()
	if p.dead {
		s.mu.Unlock()
		return nil
	}
	if !r.greets() {
		p.n++
	}
	dies := p.n == p.at && !r.greets()
	p.dead = dies
	s.open.Add(1)
	defer s.open.Done()
	s.mu.Unlock()
	if !dies {
		return s.carryOut(r, pass)
	}
	switch late := p.late > 0 && r.name() == "update" && isBatch(r) && r.on() != record.Name; {
	case late:
		p.kill <- struct{}{}
		time.Sleep(p.late) // the network does so
		s.carryOut(r, pass)
	case p.answered:
		s.carryOut(r, pass)
		p.kill <- struct{}{}
	default:
		p.kill <- struct{}{}
	}
	return nil
}

// run is the Run of a [histories.Server].
func (s *historied) run(r *rand.Rand, kill bool, lines ...[]string) []histories.Result {
	all := make([]histories.Result, len(lines))
	var running sync.WaitGroup
	for i, line := range lines {
		p := &process{kill: make(chan struct{}, 1)}
		if kill {
			p = s.process(r)
		}
		running.Go(func() { all[i] = s.one(p, line) })
	}
	running.Wait()
	return all
}

// one runs a command in its process.
func (s *historied) one(p *process, line []string) (res histories.Result) {
	proxy := startProxy(s, host(s, s.s), func(r request, pass func() []byte) []byte { return s.handle(p, r, pass) })
	var out bytes.Buffer
	cmd := startLogged(s.T, uriTarget(proxy.URI()+"&serverSelectionTimeoutMS=60000"), &out, line...)
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	var timer <-chan time.Time
	if p.after > 0 {
		timer = time.After(p.after)
	}
	select {
	case <-ended:
	case <-timer:
		res.Killed = true
	case <-p.kill:
		res.Killed = true
	}
	if res.Killed {
		s.mu.Lock()
		p.dead = true
		s.mu.Unlock()
		_ = cmd.Process.Kill()
		<-ended
	}
	res.Code, res.Stderr = cmd.ProcessState.ExitCode(), out.String()
	return res
}

// See package histories. Here each command is a process, and is killed by SIGKILL.
func TestHistories(t *testing.T) {
	n := *manyHistories
	if testing.Short() {
		n = min(n, 1)
	}
	for i := range uint64(n) {
		t.Run(fmt.Sprint(*historyOf+i), func(t *testing.T) {
			t.Parallel()
			h := &historied{T: t, s: mongotest.Start(t)}
			h.serial = !h.s.Has(t, mongotest.AtomicUpdates)
			proxy := startProxy(t, host(t, h.s), h.carryOut)
			db := dial(t, proxy.URI()+"&serverSelectionTimeoutMS=60000").Database(h.s.Database())
			histories.Live(t, histories.Server{DB: db, Run: h.run, Settle: h.open.Wait}, *historyOf+i, 20)
		})
	}
}
