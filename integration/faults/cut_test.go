package faults

import (
	"context"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo/readpref"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestCut breaks the connection during InsertMany and BulkWrite: after each twentieth of the bytes
// sent, after each twelfth of the bytes received, and in each direction with a reset and with a
// timeout. Then it repeats the call over a healthy connection, from the same client and from a new
// one.
func TestCut(t *testing.T) {
	const count = 60 // documents
	for _, op := range inserts {
		t.Run(op.name, func(t *testing.T) {
			s, ctx := newServer(t)
			direct := newClient(t, s.addr, uuidrep.Standard, nil)
			src := newSource(t)

			// The number of bytes that one such call sends and receives, without the handshake.
			p := newProxy(t, s)
			c := newClient(t, p.p.Listen, uuidrep.Standard, nil)
			if err := c.Ping(ctx, readpref.Primary()); err != nil {
				t.Fatal(err)
			}
			written, read := c.dialer.written.Load(), c.dialer.read.Load()
			if _, err := op.do(ctx, autoid.Wrap(c.Database("db").Collection("measured"), src), newBatch(src, 0, count)); err != nil {
				t.Fatal(err)
			}
			written, read = c.dialer.written.Load()-written, c.dialer.read.Load()-read
			c.disconnect()

			var faults []toxic
			for i := range int64(21) {
				faults = append(faults, toxic{"limit_data", "upstream", map[string]any{"bytes": written * i / 20}})
			}
			for i := range int64(13) {
				faults = append(faults, toxic{"limit_data", "downstream", map[string]any{"bytes": read * i / 12}})
			}
			for _, direction := range []string{"upstream", "downstream"} {
				faults = append(faults,
					toxic{"reset_peer", direction, map[string]any{"timeout": 0}},
					toxic{"reset_peer", direction, map[string]any{"timeout": 3}},
					toxic{"timeout", direction, map[string]any{"timeout": 0}}, // no data passes any more
					toxic{"timeout", direction, map[string]any{"timeout": 20}},
				)
			}

			failed, lost, kept, sentAgain := 0, 0, 0, 0
			for i, fault := range faults {
				l := newLedger()
				name := fmt.Sprintf("c%d", i)
				coll := direct.Database("db").Collection(name)
				if err := coll.Database().CreateCollection(ctx, name); err != nil {
					t.Fatal(err)
				}
				c := newClient(t, p.p.Listen, uuidrep.Standard, l)
				if err := c.Ping(ctx, readpref.Primary()); err != nil {
					t.Fatal(err)
				}
				b := newBatch(src, 0, count)

				p.add(fault)
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				ns, err := op.do(short, autoid.Wrap(c.Database("db").Collection(name), src), b)
				cancel()
				l.acknowledge(ns...)
				p.heal()
				stored := l.check(ctx, t, coll)
				if err != nil {
					failed++
					if stored == 0 {
						lost++
					} else {
						kept++
					}
				}

				if i%4 != 0 {
					c.disconnect()
					c = newClient(t, p.p.Listen, uuidrep.Standard, l)
				}
				if tries, err := again(ctx, l, op.do, autoid.Wrap(c.Database("db").Collection(name), src), b); err != nil {
					t.Errorf("after %v: %d tries on a healthy connection: %v", fault, tries, err)
				}
				if n := l.check(ctx, t, coll); n != count {
					t.Errorf("after %v and a second try the server holds %d documents, want %d", fault, n, count)
				}
				sentAgain += l.again
				c.disconnect()
			}
			// The faults must have had an effect, both before and after the work of the server.
			if failed < len(faults)/2 || lost == 0 || kept == 0 || sentAgain == 0 {
				t.Errorf("of %d faults %d failed a call, %d with nothing stored, %d with something: that tests too little",
					len(faults), failed, lost, kept)
			}
			t.Logf("%d faults; %d calls failed, %d with nothing stored, %d with something; %d documents sent again",
				len(faults), failed, lost, kept, sentAgain)
		})
	}
}
