package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// readBuildInfo is replaced by tests.
var readBuildInfo = debug.ReadBuildInfo

// about returns what --version prints: what a bug report needs.
func about() string {
	v, rev := build()
	return fmt.Sprintf("bsonids %s\ncommit  %s\ngo      %s %s/%s\n", v, rev, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// build returns the version and the commit of the program, as the go command recorded them.
func build() (v, rev string) {
	v, rev = "(devel)", "unknown"
	info, ok := readBuildInfo()
	if !ok {
		return v, rev
	}
	if info.Main.Version != "" {
		v = info.Main.Version
	}
	var modified string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = " (modified)"
		}
	}
	return v, rev + modified
}
