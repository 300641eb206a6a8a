package servertest

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"unicode"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Values in a database cannot control the terminal, and output that cannot be written is an error.
func TestOutput(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c\u009b31m\x7f")
	// FerretDB refuses the control characters below U+0020.
	insert(t, coll, []any{bson.D{{Key: "a\u009b31m\x7f", Value: in(uuid.New(), uuidrep.JavaLegacy)}}})
	scan := []string{"scan", "--db", s.Database()}
	dir := prepared(t, s, "standard", convertFields("javaLegacy", ""), trusted("a\u009b31m\x7f"))
	apply := []string{"apply", dir}
	for _, args := range [][]string{scan, append(scan, "-o", "html"), append(scan, "-o", "json"), apply, append(apply, "-o", "json")} {
		r := command(t, s, args...).want(t, failure.ExitOK)
		if i := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }); i >= 0 {
			t.Errorf("%q: %q", args, r.stdout[max(0, i-20):i+1])
		}
		want := "\uFFFD31m\uFFFD"
		if args[len(args)-1] == "json" {
			want = `\u009b31m\u007f"` // a program reads it unchanged
		}
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q doesn't show the name as %s: %s", args, want, r.stdout)
		}
		var errs bytes.Buffer
		if code := cli.Run(t.Context(), append(args, "--uri", s.URI()), fullDisk{}, &errs); code != failure.ExitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q on a full disk: exit code %d, %s", args, code, &errs)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
