package servertest

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// losses are what another program does to a collection while it is converted, and what the error says.
var losses = map[string]struct {
	do   func(ctx context.Context, c *mongo.Collection) error
	text string
}{
	"dropped": {func(ctx context.Context, c *mongo.Collection) error { return c.Drop(ctx) }, "dropped or renamed"},
	"renamed": {func(ctx context.Context, c *mongo.Collection) error {
		name := c.Database().Name() + "." + c.Name()
		return c.Database().Client().Database("admin").RunCommand(ctx, bson.D{{Key: "renameCollection", Value: name}, {Key: "to", Value: name + "_away"}}).Err()
	}, "renamed"},
	"replaced": {func(ctx context.Context, c *mongo.Collection) error {
		if err := c.Drop(ctx); err != nil {
			return err
		}
		_, err := c.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}})
		return err
	}, "another collection now"},
}

// A collection that disappears while it is converted in place is an error, and the conversion is not done.
func TestCollectionLost(t *testing.T) {
	for name, loss := range losses {
		for _, batch := range []int{1, 6} {
			t.Run(fmt.Sprint(name, "/", batch), func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				c := db.Collection("c")
				seed(t, c, 60, uuidrep.JavaLegacy, uuidrep.Standard)
				var batches atomic.Int64
				var gate sync.RWMutex // nothing passes while the collection is lost: it could meet the half of it
				p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
					gate.RLock()
					answer := pass()
					gate.RUnlock()
					if of, _ := r.command.Lookup("update").StringValueOK(); of == "c" && r.documents == 10 && batches.Add(1) == int64(batch) {
						gate.Lock()
						defer gate.Unlock()
						if err := loss.do(t.Context(), c); err != nil {
							t.Error(err)
						}
					}
					return answer
				})
				args := append([]string{"apply", filepath.Dir(planned(t, s)), "--write"}, gentle...)
				r := command(t, p, args...).want(t, failure.ExitFailed)
				if !strings.Contains(r.stderr, s.Database()+".c ") || !strings.Contains(r.stderr, loss.text) {
					t.Error(r.stderr)
				}
				if r := command(t, s, args...); r.code == failure.ExitOK {
					t.Errorf("the same command ends without an error:\n%s", r.stdout)
				}
			})
		}
	}
}

// A collection that disappears while it is copied is an error. What was copied stays.
func TestSourceLost(t *testing.T) {
	for name, loss := range losses {
		for _, lost := range []string{"old", "old_standard"} {
			t.Run(name+"/"+lost, func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				seed(t, db.Collection("old"), 60, uuidrep.JavaLegacy, uuidrep.Standard)
				dir := prepared(t, s, "standard", intoNew("old"))
				var inserts atomic.Int32
				p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
					answer := pass()
					if of, _ := r.command.Lookup("insert").StringValueOK(); of == "old_standard" {
						if inserts.Add(1) == 6 {
							if err := loss.do(t.Context(), db.Collection(lost)); err != nil {
								t.Error(err)
							}
						}
					}
					return answer
				})
				r := command(t, p, "apply", dir, "--write", "--batch", "10").want(t, failure.ExitFailed)
				if !strings.Contains(r.stderr, s.Database()+"."+lost+" ") || !strings.Contains(r.stderr, loss.text) {
					t.Error(r.stderr)
				}
				if n := len(all(t, db.Collection("old_standard"))); lost == "old" && n != 60 {
					t.Errorf("%d of 60 copies are left", n)
				}
			})
		}
	}
}
