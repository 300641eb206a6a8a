package cli

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// Beside an apply that runs, verify does not prove the conversion, and says who runs it since when. If the run ends while verify
// reads, it is not proven either: the undo log was opened before that. When the run has stopped, verify says why. It lists each
// value that is not converted once.
func TestVerifyBesideApply(t *testing.T) {
	s := memory.Start(t)
	s.FerretDB = "v1.24.0"
	coll := s.Client.Database("shop").Collection("orders")
	s.Put(coll, undetermined(t, 4)...)
	dir := trusting(t, s, func(p *plan.Plan) { csharp(&p.Collections[0]) })
	verify := []string{"verify", dir, "--uri", s.URI}
	reason := func(r result) string {
		t.Helper()
		var p struct {
			Steps []struct {
				Reason string
				Result struct{ Findings []any }
			}
		}
		if err := json.Unmarshal([]byte(r.stdout), &p); err != nil || len(p.Steps) != 1 || len(p.Steps[0].Result.Findings) != 3 {
			t.Error(err, r.stdout, r.stderr)
		}
		return p.Steps[0].Reason
	}

	records := s.Client.Database("shop").Collection(record.Name)
	var updates atomic.Int64
	var ends atomic.Bool // the run ends when verify has read the record and opened the logs
	s.Before = func(name string, c bson.Raw) (f memory.Fault) {
		if of, _ := c.Lookup("find").StringValueOK(); of == record.Name && c.Lookup("filter", "_id").Type == bson.TypeString && ends.Swap(false) {
			if _, err := records.UpdateOne(t.Context(), bson.D{{Key: "_id", Value: "orders/1"}}, bson.D{{Key: "$set", Value: bson.D{{Key: "outcome", Value: record.Done}, {Key: "ended", Value: time.Now()}}}}); err != nil {
				t.Error(err)
			}
		}
		if of, _ := c.Lookup("update").StringValueOK(); of != "orders" || updates.Add(1) != 3 {
			return f
		}
		host, _ := os.Hostname()
		command(t, verify...).want(t, failure.ExitIncomplete, "a run is in progress: a conversion of orders from csharpLegacy to standard by ", "process "+strconv.Itoa(os.Getpid())+", begun 20")
		ends.Store(true)
		if why := reason(command(t, append(verify, "--output", "json")...).want(t, failure.ExitIncomplete)); !strings.Contains(why, "in progress") || !strings.Contains(why, " on "+host+" ") {
			t.Error(why)
		}
		f.Code = 13
		return f
	}
	command(t, "apply", dir, "--write", "--batch", "1", "--uri", s.URI).want(t, failure.ExitDenied)
	if updates.Load() < 3 || ends.Load() {
		t.Fatal("nothing ran beside apply")
	}
	if why := reason(command(t, append(verify, "--output", "json")...).want(t, failure.ExitIncomplete)); strings.Contains(why, "in progress") || why == "" {
		t.Error(why)
	}
}
