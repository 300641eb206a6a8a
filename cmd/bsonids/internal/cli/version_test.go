package cli

import (
	"bytes"
	"runtime"
	"testing"
)

func TestVersion(t *testing.T) {
	version, commit = "1.2.3", "abc"
	t.Cleanup(func() { version, commit = "", "" })
	var out bytes.Buffer
	if err := (&versionOptions{console: newConsole(&out, &out), output: &enum{}}).run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := "bsonids 1.2.3\ncommit  abc\ngo      " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A test binary has neither a version nor a commit.
func TestVersionUnknown(t *testing.T) {
	if v, rev := build(); v != "(devel)" || rev != "unknown" {
		t.Errorf("got %q and %q", v, rev)
	}
}
