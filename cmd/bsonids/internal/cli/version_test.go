package cli

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

func TestVersion(t *testing.T) {
	readBuildInfo = func() (*debug.BuildInfo, bool) {
		return &debug.BuildInfo{
			Main:     debug.Module{Version: "v1.2.3"},
			Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}},
		}, true
	}
	t.Cleanup(func() { readBuildInfo = debug.ReadBuildInfo })
	r := command(t, "--version")
	want := "bsonids v1.2.3\ncommit  abc\ngo      " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH + "\n"
	if r.stdout != want || r.code != failure.ExitOK {
		t.Errorf("%d, got %q, want %q", r.code, r.stdout, want)
	}
}

// A test binary has neither a version nor a commit.
func TestVersionUnknown(t *testing.T) {
	if v, rev := build(); v != "(devel)" || rev != "unknown" {
		t.Errorf("got %q and %q", v, rev)
	}
}
