package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// The state file of the first pass of a field does not stand for that of the pass which converts what the first
// one has listed.
func TestStateOfAnotherPass(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 100, uuidrep.JavaLegacy, v4)
	few := odd(4)
	fill(t, coll, 200, 3, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
	file := planned(t, s)
	dir := filepath.Dir(file)
	args := []string{"apply", dir, "--write", "--batch", "10"}
	setDecision(t, file, "a", "convert from javaLegacy")
	command(t, s, args...).want(t, failure.ExitIncomplete)
	setDecision(t, file, "a", "convert from javaLegacy", "trust: true")
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if name, _ := r.command.Lookup("update").StringValueOK(); name == "c" {
			return nil
		}
		return pass()
	})
	if r := command(t, p, args...); r.code == failure.ExitOK || r.code == failure.ExitIncomplete {
		t.Fatal(r.stdout)
	}
	second := filepath.Join(dir, "c.javaLegacy.2.state")
	put(t, second+".away", text(t, second))
	put(t, second, text(t, filepath.Join(dir, "c.javaLegacy.state")))
	command(t, s, args...).want(t, failure.ExitFailed)
	if r := command(t, s, "status", dir).want(t, failure.ExitFailed); !strings.Contains(r.stderr, second+" is of another pass") {
		t.Error(r.stderr)
	}
	put(t, second, text(t, second+".away"))
	command(t, s, "status", dir).want(t, failure.ExitOK)
	command(t, s, args...).want(t, failure.ExitOK)
	if converted, _ := held(t, coll, few[:3], 200, uuidrep.JavaLegacy); converted != 3 {
		t.Errorf("%d of 3 values are converted", converted)
	}
}
