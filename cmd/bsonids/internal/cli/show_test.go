package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// What show prints of one value fits on a screen of 80 columns and 24 lines. With --all it prints more, and JSON is the same.
func TestShowFitsScreen(t *testing.T) {
	for _, value := range []string{
		"00112233-4455-6677-8899-aabbccddeeff", "017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "060a859e-e10d-7d37-8720-52c692c8990f",
		"04030201-0605-d007-8abc-112233445566", "00000000-0000-0000-0000-000000000000", "5c146b14-3c52-8afd-938a-375d0df1fbf6",
		"01ARYZ6S41TSV4RRFFQ69G5FAV", strings.Repeat("a", 63) + "_01h455vb4pex5vsknk084sn02q", "699dfad90ca573f85c0eec1c",
		`ObjectId("699dfad90ca573f85c0eec1c")`, `BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")`, "BinData(3, 7766554433221100FFEEDDCCBBAA9988)",
		"Binary.createFromBase64('7766554433221100ffeeddccbbaa9988', 255)", `Binary.createFromHexString('04030201060507d08abc112233445566', 3)`,
		"Binary(b'00112233-4455-6677-8899-aabbccddeeff', 3)", "Binary(b'0123456789abcdef', 3)", "{3 [119 102 85 68 51 34 17 0 255 238 221 204 187 170 153 136]}",
		"BinData(3, 3030313132323333343435353636373738383939616162626363646465656666)", "d2ZVRDMiEQD/7t3Mu6qZiA==", "0102030406050880a000000000000000",
	} {
		for _, flags := range [][]string{nil, {"--i3core"}} {
			args := append([]string{"show", value}, flags...)
			r := command(t, args...).want(t, failure.ExitOK)
			lines := strings.Split(strings.TrimRight(r.stdout, "\n"), "\n")
			if len(lines) > 24 {
				t.Errorf("%v: %d lines:\n%s", args, len(lines), r.stdout)
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(line); n > 80 {
					t.Errorf("%v: %d columns: %s", args, n, line)
				}
			}
			all := command(t, append(args, "--all")...).want(t, failure.ExitOK)
			if isUUID := !strings.Contains(r.stdout, "ObjectID"); isUUID && (len(all.stdout) <= len(r.stdout) || !strings.Contains(all.stdout, "$binary") || !strings.Contains(r.stdout, "--all")) {
				t.Errorf("%v: --all prints %s", args, all.stdout)
			}
			inJSON := command(t, append(args, "-o", "json")...).want(t, failure.ExitOK)
			if allJSON := command(t, append(args, "-o", "json", "--all")...); allJSON.stdout != inJSON.stdout ||
				!strings.Contains(inJSON.stdout, `"extendedJson"`) {
				t.Errorf("%v: JSON is %s, with --all %s", args, inJSON.stdout, allJSON.stdout)
			}
		}
	}
}

// show prints an undo log as text. Any other file, and an undo log that is damaged, is an error.
func TestShowFile(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	l := undolog.New(dir, undolog.Header{Run: "x", Database: "shop", Task: kinds.Task{Collection: "orders", Pairs: []kinds.Pair{{From: "javaLegacy"}}}})
	entry := undolog.Entry{ID: bson.RawValue{Type: bson.TypeNull}, Changes: []rule.Change{{Path: "a", Old: rule.Null, New: rule.Null}}}
	if err := errors.Join(l.Append([]undolog.Entry{entry, entry}), l.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(l.Path())
	if err = errors.Join(err, os.WriteFile(path("other"), []byte("text"), 0o600)); err != nil {
		t.Fatal(err)
	}
	b[len(b)/2] ^= 1
	if err := os.WriteFile(path("damaged"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		code int
		want string
	}{
		{l.Path(), failure.ExitOK, `"database":"shop","conversion":{"collection":"orders"`},
		{path("damaged"), failure.ExitUsage, path("damaged")},
		{path("other"), failure.ExitUsage, path("other")},
		{dir, failure.ExitUsage, dir},
		{path("none"), failure.ExitUsage, "not a UUID"},
	} {
		if r := command(t, "show", tt.path); r.code != tt.code || !strings.Contains(r.stdout+r.stderr, tt.want) {
			t.Errorf("%s: %d, %s%s", tt.path, r.code, r.stdout, r.stderr)
		}
	}
}
