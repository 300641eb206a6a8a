package servertest

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// asCommand is the environment variable that makes the test binary run as the command, so that a
// test can kill it.
const asCommand = "BSONIDS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(os.Args[1:]))
	}
	mongotest.Main(m)
}

// gentle holds flags for embedded servers, which accept at most a hundred updates at a time in
// total, and read the whole collection for each.
var gentle = []string{"--batch", "10", "--workers", "2"}

// target is a server, or a proxy of one.
type target interface{ URI() string }

type result struct {
	code           int
	stdout, stderr string
}

func command(t testing.TB, s target, args ...string) result {
	t.Helper()
	if slices.Contains([]string{"undo", "plan", "apply", "verify"}, args[0]) && !slices.Contains(args, "--retry-for") && (s != nil || args[0] == "undo") && !slices.Contains(args, "--dump") {
		args = append(args, "--retry-for", "0s") // what a test refuses is not tried again
	}
	if s != nil {
		args = append(args, "--uri", s.URI())
	}
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), args, &out, &errs)
	if strings.HasPrefix(out.String(), "{") {
		name := args[0]
		if name == "undo" && slices.Contains(args, "--db") {
			name = "cutover"
		}
		checkSchema(t, name, out.String())
		if !strings.Contains(out.String(), `"schemaVersion": 1,`) {
			t.Errorf("%q writes no version: %s", args, &out)
		}
	}
	return result{code, out.String(), errs.String()}
}

// problems returns the warnings and errors on stderr.
func (r result) problems() string {
	var out string
	for line := range strings.Lines(r.stderr) {
		if !strings.Contains(line, "Z INFO ") {
			out += line
		}
	}
	return out
}

func (r result) want(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

// host returns the address of a server that has only one.
func host(t testing.TB, s target) string {
	t.Helper()
	cs, err := connstring.Parse(s.URI())
	if err != nil {
		t.Fatal(err)
	}
	return cs.Hosts[0]
}

func scanned(t testing.TB, s *mongotest.Server, args ...string) map[string]scan.Field {
	t.Helper()
	r := command(t, s, append([]string{"scan", "--db", s.Database(), "--output", "json"}, args...)...).want(t, failure.ExitOK)
	var report scan.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]scan.Field)
	for _, c := range report.Collections {
		for _, f := range c.Fields {
			fields[strings.TrimPrefix(c.Namespace, s.Database()+".")+" "+f.Path] = f
		}
	}
	return fields
}
