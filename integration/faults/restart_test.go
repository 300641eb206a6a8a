package faults

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestServerGoesAway inserts from four goroutines while the server stops and restarts with its data
// three times.
func TestServerGoesAway(t *testing.T) {
	const writers, restarts, count, most = 4, 3, 10, 2000 // documents per batch, batches per writer
	s, ctx := newServer(t)
	src := newSource(t)
	p := newProxy(t, s)
	l := newLedger()
	c := newClient(t, p.p.Listen, uuidrep.JavaLegacy, l)

	writing, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var mu sync.Mutex
	batches, failed := 0, 0
	for w := range int32(writers) {
		wg.Go(func() {
			coll := autoid.Wrap(c.Database("db").Collection(fmt.Sprintf("c%d", w)), src)
			op := inserts[int(w)%len(inserts)].do
			for i := int32(0); i < most && writing.Err() == nil; i++ {
				b := newBatch(src, (w*most+i)*count, count)
				// A started batch is completed, also after the last restart.
				for {
					short, cancel := context.WithTimeout(ctx, 2*time.Second)
					ns, err := op(short, coll, b)
					cancel()
					l.acknowledge(ns...)
					mu.Lock()
					if err == nil {
						batches++
						mu.Unlock()
						break
					}
					failed++
					mu.Unlock()
					if ctx.Err() != nil {
						t.Error(err)
						return
					}
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	// progress waits until further documents are acknowledged.
	progress := func() {
		t.Helper()
		for from := l.acknowledged(); l.acknowledged() < from+10*count; time.Sleep(time.Millisecond) {
			if ctx.Err() != nil {
				t.Fatal("no progress")
			}
		}
	}
	for range restarts {
		progress()
		p.cut()
		if err := s.restart(ctx); err != nil {
			t.Fatal(err)
		}
		p.connect(s)
	}
	progress()
	stop()
	wg.Wait()

	direct := newClient(t, s.addr, uuidrep.JavaLegacy, nil)
	total := 0
	for w := range writers {
		total += l.checkOf(ctx, t, direct.Database("db").Collection(fmt.Sprintf("c%d", w)), int32(w*most*count), int32((w+1)*most*count))
	}
	if total != batches*count {
		t.Errorf("the server holds %d documents, want %d", total, batches*count)
	}
	// Within the time of a call, the driver sends a batch again until a server is there.
	if failed == 0 && l.again == 0 {
		t.Error("no call failed, and no document was sent again: that tests too little")
	}
	t.Logf("%d restarts; %d batches, %d calls failed, %d documents sent again", restarts, batches, failed, l.again)
}
