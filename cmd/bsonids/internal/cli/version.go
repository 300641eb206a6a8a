package cli

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// readBuildInfo is replaced by tests.
var readBuildInfo = debug.ReadBuildInfo

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
