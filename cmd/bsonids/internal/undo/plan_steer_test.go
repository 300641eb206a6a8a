package undo

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// The file rate in the directory limits an undo that writes, and no other.
func TestPlanSteered(t *testing.T) {
	for _, write := range []bool{false, true} {
		m := apply(t)
		m.o.Write = write
		if err := os.WriteFile(filepath.Join(m.dir, "rate"), []byte("fast"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.undo(); err != nil || (len(m.warnings) > 0) != write {
			t.Errorf("%v, %q", err, m.warnings)
		}
	}
}

// FerretDB 1 gets no batch of more than 60 documents.
func TestPlanOfFerretDB(t *testing.T) {
	m := applied(t, &plan.Plan{Database: "d"}, "", 70)
	m.s.FerretDB, m.o.Batch = "v1.24.0", 1000
	var updates atomic.Int64
	m.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
		if of, _ := command.Lookup(name).StringValueOK(); name == "update" && of == "b" {
			updates.Add(1)
		}
		return f
	}
	if _, restored, err := m.undo(); err != nil || !restored || updates.Load() != 2 {
		t.Errorf("%d updates, %v", updates.Load(), err)
	}
	m.same("b", m.before)
}
