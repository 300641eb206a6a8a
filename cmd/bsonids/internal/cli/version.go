package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// The linker sets both in a release build.
var version, commit string

type versionOptions struct {
	*console
	output *enum
}

func newVersionCommand(c *console) *cobra.Command {
	o := &versionOptions{console: c}
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version, the commit and the Go version of this program",
		Args:  cobra.NoArgs,
		RunE:  runE(o.run),
	}
	o.output = outputFlag(cmd, formatTable, formatJSON)
	return cmd
}

// run writes what a bug report needs.
func (o *versionOptions) run(context.Context, []string) error {
	v, rev := build()
	platform := runtime.GOOS + "/" + runtime.GOARCH
	if o.output.value == formatJSON {
		return report.JSON(o.out, struct {
			Version  string `json:"version"`
			Commit   string `json:"commit"`
			Go       string `json:"go"`
			Platform string `json:"platform"`
		}{v, rev, runtime.Version(), platform})
	}
	_, err := fmt.Fprintf(o.out, "bsonids %s\ncommit  %s\ngo      %s %s\n", v, rev, runtime.Version(), platform)
	return err
}

// build returns the version and the commit of a release, or those that the go command recorded.
func build() (v, rev string) {
	v, rev = version, commit
	if info, ok := debug.ReadBuildInfo(); ok {
		if v == "" {
			v = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && rev == "" {
				rev = s.Value
			}
			if s.Key == "vcs.modified" && s.Value == "true" && commit == "" {
				rev += " (modified)"
			}
		}
	}
	if v == "" {
		v = "(devel)"
	}
	if rev == "" {
		rev = "unknown"
	}
	return v, rev
}
