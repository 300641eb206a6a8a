package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// If stderr is not a terminal, messages are log lines, also those about the command line itself.
func TestLogFormat(t *testing.T) {
	for _, args := range [][]string{{"show", "nonsense"}, {"show", "--nonsense"}, {"undo", "nonsense"}} {
		r := command(t, args...)
		_, rest, _ := strings.Cut(r.stderr, " ")
		if r.code != failure.ExitUsage || !strings.HasPrefix(r.stderr, "20") || !strings.HasPrefix(rest, "ERROR ") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%q: %d %s", args, r.code, r.stderr)
		}
		r = command(t, append([]string{"--log-format", "json"}, args...)...)
		var line struct{ Time, Level, Msg string }
		if err := json.Unmarshal([]byte(r.stderr), &line); err != nil || line.Level != "ERROR" || !strings.Contains(line.Msg, "nonsense") || line.Time == "" {
			t.Errorf("%q: %v %s", args, err, r.stderr)
		}
	}
	if r := command(t, "--log-format", "xml", "show"); r.code != failure.ExitUsage || !strings.Contains(r.stderr, "text, json") {
		t.Errorf("%d %s", r.code, r.stderr)
	}
}
