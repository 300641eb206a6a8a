package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// plan says what it reads while it reads it, and in the plan only the time that it measured.
func TestPlanProgress(t *testing.T) {
	s := mongotest.Start(t)
	shop(t, connect(t, s), 30)
	dir := filepath.Join(t.TempDir(), "shop.d")
	r := command(t, s, "plan", dir, "--db", s.Database()).want(t, failure.ExitOK)
	for _, name := range []string{"orders", "customers"} {
		if !strings.Contains(r.stderr, s.Database()+"."+name+": reading ended documents=") {
			t.Errorf("no progress of %s:\n%s", name, r.stderr)
		}
	}
	if made := text(t, filepath.Join(dir, "plan.yaml")); strings.Contains(strings.ToLower(made), "estimated") || !strings.Contains(made, "# It took ") {
		t.Error(made)
	}
}
