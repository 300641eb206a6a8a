package servertest

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The server gets no update whose document is not in the undo log yet, whatever the number of
// workers, and although the log is written ahead.
func TestLogAhead(t *testing.T) {
	for _, workers := range []string{"1", "4"} {
		t.Run(workers, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			n := some(t, s, 120)
			want := seed(t, db.Collection("c"), n, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
			dir := prepared(t, s, "csharpLegacy")
			undo := filepath.Join(dir, "c.javaLegacy.undo")
			var mu sync.Mutex
			updated := make(map[int32]bool)
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if coll, _ := r.command.Lookup("update").StringValueOK(); coll == "c" {
					mu.Lock()
					defer mu.Unlock()
					var log string
					for _, u := range r.sequence {
						id, ok := u.Lookup("q", "_id", "$eq").Int32OK()
						if !ok { // the update of a document that does not exist, which tests the privilege
							continue
						}
						updated[id] = true
						if log == "" {
							log = logText(t, undo)
						}
						if !strings.Contains(log, fmt.Sprintf("{\"_id\":{\"$numberInt\":\"%d\"}", id)) {
							t.Errorf("document %d is updated, and not in the undo log", id)
						}
					}
				}
				return pass()
			})
			command(t, p, "apply", dir, "--write", "--batch", "3", "--workers", workers).want(t, failure.ExitOK)
			equal(t, all(t, db.Collection("c")), want)
			if len(updated) != n {
				t.Errorf("%d documents were updated, want %d", len(updated), n)
			}
		})
	}
}
