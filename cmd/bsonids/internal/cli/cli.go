// Package cli implements the command line: the commands, their flags, and the steps of each
// command.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Main runs a command line on the streams of the process and returns its exit code. The first
// interrupt asks the command to stop cleanly. The second one ends the process at once.
func Main(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return Run(ctx, args, os.Stdout, os.Stderr)
}

// Run runs a command line and returns its exit code, one of those in package failure.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := terminal.NewWriter(stdout)
	c := &console{out: out, err: stderr}
	defer c.close()
	root := newRootCommand(c)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if out.Err() != nil && (err == nil || errors.Is(err, failure.ErrIncomplete)) {
		c.fail("cannot write the output: %v", out.Err())
		return failure.ExitFailed
	}
	switch {
	case err == nil:
		return failure.ExitOK
	case errors.Is(err, failure.ErrIncomplete):
		return failure.ExitIncomplete
	case c.cmd == nil:
		c.fail("%s; see bsonids --help", failure.Hide(err.Error(), args))
		return failure.ExitUsage
	}
	e := c.explain(err)
	text := failure.Hide(e.Text, args)
	if c.writes() && c.wayOn == nil {
		text += "; this command changed nothing"
	}
	c.fail("%s", text)
	if w := c.wayOn; w != nil {
		c.fail("changed: %s", w.changed)
		if w.again {
			c.fail("to continue: %s", terminal.Command(append([]string{"bsonids"}, args...)...))
		}
		if w.back != "" {
			c.fail("to undo: %s", w.back)
		}
	}
	return e.Kind.ExitCode()
}

// verb is a command: its flags and arguments become its fields.
type verb interface {
	define() *cobra.Command
	complete() error // checks the flags and the arguments
	run(ctx context.Context) error
}

// NewCommand returns the command without running it. It is for generating the documentation.
func NewCommand() *cobra.Command { return newRootCommand(&console{out: io.Discard, err: io.Discard}) }

func newRootCommand(c *console) *cobra.Command {
	v, _ := build()
	root := &cobra.Command{
		Use:   "bsonids",
		Short: "Show which UUIDs a MongoDB deployment stores, and convert them",
		Long: `bsonids shows which UUIDs the collections of a MongoDB deployment store, with
their binary subtype and their byte order, and converts them to standard, binary
subtype 4, without losing any.

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 done, but documents were skipped,
a proof found differences, or scan --fail-on found a
field; 4 the server cannot be reached or was lost; 5 wrong credentials or a
missing privilege; 130 interrupted.`,
		Example: `  bsonids scan --uri mongodb://localhost:27017 --db shop
  bsonids plan shop.d --db shop
  bsonids apply shop.d --write
  bsonids verify shop.d`,
		Version:       v,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          unknown,
		// cobra sets it only for a command that it finds to be unknown itself.
		SuggestionsMinimumDistance: 2,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			if c.logger() != nil {
				c.log.Start()
			}
			return noneEmpty(cmd.Flags())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate(about())
	root.CompletionOptions.HiddenDefaultCmd = true
	wordFlag(root, root.PersistentFlags(), &c.logFormat, "log-format", "", "write log lines to stderr in one of these formats; by default, text unless stderr is a terminal: ", logText, logJSON)
	root.PersistentFlags().BoolVarP(&c.quiet, "quiet", "q", false, "print no progress to stderr")
	for _, v := range c.verbs() {
		cmd := v.define()
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			c.cmd, c.args = cmd, args
			if err := v.complete(); err != nil {
				return err
			}
			return v.run(cmd.Context())
		}
		c.completeNames(cmd)
		root.AddCommand(cmd)
	}
	return root
}

// arguments checks that a command has one of these numbers of arguments.
func arguments(counts ...int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if slices.Contains(counts, len(args)) {
			return nil
		}
		what := "needs more arguments"
		if len(args) > slices.Min(counts) {
			what = "takes fewer arguments"
		}
		return fmt.Errorf("%s %s: bsonids %s", cmd.Name(), what, strings.ReplaceAll(cmd.Use, " | ", ", or bsonids "))
	}
}

// unknown returns an error if there is a word that is no command, with the commands that may be meant.
func unknown(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		text += "; did you mean " + strings.Join(like, " or ") + "?"
	}
	return errors.New(text)
}

func (c *console) verbs() []verb {
	return []verb{&showVerb{console: c}, &scanVerb{console: c}, &planVerb{console: c}, &applyVerb{console: c}, &statusVerb{console: c}, &verifyVerb{console: c},
		&undoVerb{console: c}, &switchVerb{console: c}, &switchVerb{console: c, release: true}}
}
