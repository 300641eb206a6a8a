package cli

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	readBuildInfo = func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{
			Main:     debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
		}, true
	}
	t.Cleanup(func() { readBuildInfo = debug.ReadBuildInfo })
	var out bytes.Buffer
	if err := (&versionOptions{console: newConsole(&out, &out), output: &enum{}}).run(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := "bsonids v1.2.3\ncommit  abc\ngo      " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
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
