// Command manual writes the man pages of bsonids, one for each command, to a directory. Their date
// is SOURCE_DATE_EPOCH, in seconds since 1970. With -surface it prints what scripts rely on instead:
// the commands with their flags, and the exit codes.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/cli"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: manual DIR, or manual -surface")
		os.Exit(2)
	}
	if os.Args[1] == "-surface" {
		surface(os.Stdout, cli.NewCommand())
		return
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err == nil {
		err = write(os.Args[1], time.Unix(seconds, 0).UTC())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(dir string, date time.Time) error {
	root := cli.NewCommand()
	root.DisableAutoGenTag = true
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "bsonids", Manual: "bsonids", Date: &date}, dir)
}

// surface prints a line for each command, each flag with its type and default, and each exit code.
func surface(w io.Writer, root *cobra.Command) {
	printFlags(w, root)
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			printFlags(w, c)
		}
	}
	fmt.Fprintln(w, "exit codes", failure.ExitOK, failure.ExitFailed, failure.ExitUsage, failure.ExitIncomplete,
		failure.ExitUnreachable, failure.ExitDenied, failure.ExitInterrupted)
}

func printFlags(w io.Writer, c *cobra.Command) {
	fmt.Fprintln(w, c.UseLine())
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		name := "--" + f.Name
		if f.Shorthand != "" {
			name += ", -" + f.Shorthand
		}
		fmt.Fprintf(w, "\t%s %s %q\n", name, f.Value.Type(), f.DefValue)
	})
}
