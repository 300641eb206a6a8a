package faults

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/uuidrep"
)

const codeMaxTimeMSExpired = 50

// TestDeadline uses contexts that expire or are cancelled at every stage of a call, over a
// connection with latency.
func TestDeadline(t *testing.T) {
	const count, rounds = 20, 60
	for _, op := range inserts {
		for _, cancelled := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/%s", op.name, map[bool]string{false: "expired", true: "cancelled"}[cancelled]), func(t *testing.T) {
				s, ctx := newServer(t)
				direct := newClient(t, s.addr, uuidrep.Standard, nil)
				src := newSource(t)
				p := newProxy(t, s)
				p.add(toxic{"latency", "upstream", map[string]any{"latency": 4, "jitter": 3}})
				p.add(toxic{"latency", "downstream", map[string]any{"latency": 4, "jitter": 3}})
				p.add(toxic{"slicer", "upstream", map[string]any{"average_size": 700, "size_variation": 300, "delay": 100}})
				l := newLedger()
				c := newClient(t, p.p.Listen, uuidrep.Standard, l)
				// Each round has its own collection, because an update takes FerretDB a time that
				// grows with the collection.
				collection := func(round int32) string {
					name := fmt.Sprintf("c%d", round)
					if err := direct.Database("db").CreateCollection(ctx, name); err != nil {
						t.Fatal(err)
					}
					return name
				}
				// Measure the duration of the second call. The first call connects.
				var took time.Duration
				for i := range int32(2) {
					began := time.Now()
					coll := autoid.Wrap(c.Database("db").Collection(collection(rounds+i)), src)
					if _, err := op.do(ctx, coll, newBatch(src, (rounds+i)*count, count)); err != nil {
						t.Fatal(err)
					}
					took = time.Since(began)
				}

				failed, tries := 0, 0
				for i := range int32(rounds) {
					coll := autoid.Wrap(c.Database("db").Collection(collection(i)), src)
					b := newBatch(src, i*count, count)
					after := took * 2 * time.Duration(i) / rounds
					short, cancel := context.WithTimeout(ctx, after)
					want := context.DeadlineExceeded
					if cancelled {
						cancel()
						short, cancel = context.WithCancel(ctx)
						time.AfterFunc(after, cancel)
						want = context.Canceled
					}
					ns, err := op.do(short, coll, b)
					cancel()
					l.acknowledge(ns...)
					if err != nil {
						failed++
						// The server also knows the deadline. If it has done the writes but they
						// are not durable by then, it answers with a write concern error. The
						// driver does not report this error of a bulk write as a timeout.
						var answer mongo.BulkWriteException
						late := !cancelled && errors.As(err, &answer) && answer.HasErrorCode(codeMaxTimeMSExpired)
						if !late && !errors.Is(err, want) {
							t.Errorf("after %v: %v, want %v", after, err, want)
						}
						if !late && !cancelled && !mongo.IsTimeout(err) {
							t.Errorf("after %v: %v is no timeout", after, err)
						}
					}
					n, err := again(ctx, l, op.do, coll, b)
					if err != nil {
						t.Fatal(err)
					}
					tries += n
					n = l.checkOf(ctx, t, direct.Database("db").Collection(coll.Name()), i*count, (i+1)*count)
					if n != count {
						t.Errorf("the server holds %d documents, want %d", n, count)
					}
				}
				if failed == 0 || failed == rounds || l.again == 0 {
					t.Errorf("%d of %d contexts ended before the call: that tests too little", failed, rounds)
				}
				t.Logf("%d contexts; %d calls failed; %d calls to make up for it; %d documents sent again", rounds, failed, tries, l.again)
			})
		}
	}
}
