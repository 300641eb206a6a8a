package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// A dump of text and of documents of Go structs is scanned, converted from a decision file, and
// proven. The documents become null where they say that there is no UUID.
func TestDumpForms(t *testing.T) {
	const text, digits = "9f2c8a52-6d1e-4b60-9a57-0f6a1d2e3c4b", "9f2c8a526d1e4b609a570f6a1d2e3c4b"
	octets := []byte("\x9f\x2c\x8a\x52\x6d\x1e\x4b\x60\x9a\x57\x0f\x6a\x1d\x2e\x3c\x4b")
	goStruct := func(b []byte, valid bool) any {
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: b}}, {Key: "valid", Value: valid}}
	}
	dump := func(of, user, none any) []byte {
		return dumptest.BSON(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "of", Value: of}, {Key: "user", Value: user}, {Key: "sum", Value: digits}},
			bson.D{{Key: "_id", Value: int32(2)}, {Key: "user", Value: none}})
	}
	standard := bson.Binary{Subtype: 4, Data: octets}
	before := dump(strings.ToUpper(text), goStruct(octets, true), goStruct(make([]byte, 16), false))
	dir := t.TempDir()
	in, decision := filepath.Join(dir, "visits.bson"), filepath.Join(dir, "decision")
	dumptest.Write(t, in, before)
	args := []string{"--db", "shop", "--collection", "visits"}
	r := command(t, append([]string{"scan", "--dump", in, "--from", "text", "--field", "of,sum", "--decision", decision}, args...)...).want(t, failure.ExitOK)
	for _, line := range []string{"of, text: 1 distinct UUID", "user, Go structs: 2 distinct UUIDs", "– 1 {uuid: …, valid: true}, 1 {uuid: …, valid: false}, which is no UUID", "– 1 with hyphens"} {
		if !strings.Contains(r.stdout, line) {
			t.Errorf("%q is not in\n%s", line, r.stdout)
		}
	}
	next := func(name string, from, field string, code int, more ...string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		flags := append(append([]string{"--dump", in, "--out", out, "--from", from, "--field", field}, args...), more...)
		command(t, append([]string{"convert"}, flags...)...).want(t, code)
		if r := command(t, append([]string{"verify"}, flags...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the input") {
			t.Error(r.stdout)
		}
		command(t, append([]string{"verify", "--dump", in, "--out", in, "--from", from, "--field", field}, append(args, more...)...)...).want(t, failure.ExitIncomplete)
		in = out
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got := next("a.bson", "text", "of,sum", failure.ExitIncomplete, "--decision", decision); got != string(dump(standard, goStruct(octets, true), goStruct(make([]byte, 16), false))) {
		t.Error("wrong values from text")
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.bson.skipped.jsonl")); err != nil || !strings.Contains(string(b), `"path":"sum","value":"`+digits+`","reason":"32 digits`) {
		t.Errorf("%s, %v", b, err)
	}
	if got := next("b.bson", "goStruct", "user", failure.ExitOK); got != string(dump(standard, standard, nil)) {
		t.Error("wrong values from documents of Go structs")
	}
	if got := next("c.bson", "standard", "of,user", failure.ExitOK, "--to", "text"); got != string(dump(text, text, nil)) {
		t.Error("wrong text")
	}
}
