package terminal

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A shell splits the printed command into the arguments that were given.
func TestCommand(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	args := []string{"scan", "--db", "my db", "--filter={\"a\": {\"$gt\": 'x'}}", "--field", "a.*", "--dump", "it's $HOME `x`\\", "--all", "ü;|&", "-o", "", "--x=y z"}
	line := Command(append([]string{"bsonids"}, args...)...)
	out, err := exec.Command(sh, "-c", `bsonids() { printf '%s\0' "$@"; }; `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(got, args) {
		t.Errorf("%s\ngot %q\nwant %q", line, got, args)
	}
	for _, args := range [][]string{{"scan", "--uri", "mongodb://u:s3cret@h"}, {"scan", "--uri=mongodb://u:s3cret@h"}} {
		if line := Command(args...); strings.Contains(line, "s3cret") || !strings.Contains(line, `"$MONGODB_URI"`) {
			t.Error(line)
		}
	}
}
