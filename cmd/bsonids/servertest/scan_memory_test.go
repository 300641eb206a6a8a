package servertest

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var scanDocuments = flag.Int("scan-documents", 0, "scan a collection of this many documents and report the memory")

// With -scan-documents, the test scans that many documents, such as a million, and logs the memory.
func TestScanMemory(t *testing.T) {
	if *scanDocuments == 0 {
		mongotest.Skip(t, "the scan of many documents runs with -scan-documents 1000000")
	}
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	for left := *scanDocuments; left > 0; {
		n := min(left, 5000)
		docs := make([]any, n)
		for i := range docs {
			docs[i] = bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "ref", Value: in(uuid.New(), uuidrep.Standard)}, {Key: "text", Value: uuid.NewString()}}
		}
		insert(t, coll, docs)
		left -= n
	}
	cmd, out := start(t, s, "scan", "--db", s.Database(), "--all", "-o", "json")
	begin := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(out.String(), fmt.Sprintf(`"scanned": %d`, *scanDocuments)) {
		t.Error(out)
	}
	t.Logf("%d documents in %v, at most %s of memory", *scanDocuments, time.Since(begin).Round(time.Millisecond), maxRSS(cmd.ProcessState))
}
