package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// The exit codes, as docs/converting.md lists them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitIncomplete  = 3 // documents were skipped, or a proof found differences
	exitUnreachable = 4
	exitDenied      = 5
	exitInterrupted = 130
)

// app is what the commands share.
type app struct {
	out, err io.Writer
	uri      string
	output   string
	quiet    bool
}

// errIncomplete ends a command that did its work and found something that needs attention; it has said so already.
var errIncomplete = errors.New("incomplete")

// run runs one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out := &printer{w: stdout}
	a := &app{out: out, err: stderr}
	root := a.rootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, errIncomplete)) {
		a.warn("the output could not be written: %v", out.err)
		return exitFailed
	}
	if err == nil {
		return exitOK
	}
	if errors.Is(err, errIncomplete) {
		return exitIncomplete
	}
	var failure commandError
	if !errors.As(err, &failure) {
		// Everything that no command reported is the command line itself.
		a.warn("%s; see bsonids --help", server.Hide(err.Error(), args))
		return exitUsage
	}
	e := server.Explain(failure.err, a.connectionString())
	a.warn("%s", server.Hide(e.Text, args))
	switch e.Kind {
	case server.Usage:
		return exitUsage
	case server.Unreachable:
		return exitUnreachable
	case server.Denied:
		return exitDenied
	case server.Interrupted:
		return exitInterrupted
	}
	return exitFailed
}

// commandError marks the errors of commands among those of the command line.
type commandError struct{ err error }

func (e commandError) Error() string { return e.err.Error() }
func (e commandError) Unwrap() error { return e.err }

func runE(f func(cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := f(cmd, args); err != nil {
			return commandError{err}
		}
		return nil
	}
}

func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "bsonids",
		Short: "Show what UUIDs a MongoDB deployment holds, and convert them",
		Long: `bsonids shows which UUIDs the collections of a MongoDB deployment hold, in which
binary subtype and most likely in which byte order, and converts them from one
representation to another without losing one.

Exit codes: 0 done; 1 failed; 2 wrong usage; 3 done, but documents were skipped
or a proof found differences; 4 the server cannot be reached or was lost;
5 wrong credentials or a missing privilege; 130 interrupted.`,
		Example: `  bsonids scan --uri mongodb://localhost:27017 --db shop
  bsonids convert --db shop --collection orders --from javaLegacy --to standard`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,

		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return noneEmpty(cmd.Flags()) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.CompletionOptions.HiddenDefaultCmd = true
	root.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress on stderr")
	root.AddCommand(a.showCommand(), a.scanCommand(), a.convertCommand(), a.verifyCommand(), a.undoCommand())
	return root
}

// noneEmpty returns an error for a flag that was given with nothing, as a shell makes of --into "$NEW" where NEW isn't
// set: it is no absent flag, without which other documents are changed, and with other safeguards.
func noneEmpty(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if err == nil && (ok && len(list.GetSlice()) == 0 || f.Value.String() == "") {
			err = fmt.Errorf("--%s is empty", f.Name)
		}
	})
	return err
}

// serverFlags are those of the commands that need a server.
func (a *app) serverFlags(cmd *cobra.Command) {
	// The default is read later: as a flag's default it would be printed by --help.
	cmd.Flags().StringVar(&a.uri, "uri", "", "connection string; MONGODB_URI if absent, which other users of the machine cannot read")
}

func (a *app) outputFlag(cmd *cobra.Command, formats string) {
	cmd.Flags().StringVarP(&a.output, "output", "o", "table", "what to write to stdout: "+formats)
}

func (a *app) connectionString() string {
	if a.uri != "" {
		return a.uri
	}
	return os.Getenv("MONGODB_URI")
}

// terminal reports whether w is one; only there are progress bars.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (a *app) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	// Some control characters stand as they are in JSON, and a terminal would obey them all the same.
	var out []byte
	for _, r := range b.String() {
		if visible(r) == r {
			out = utf8.AppendRune(out, r)
		} else {
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	_, err := a.out.Write(out)
	return err
}

// table returns a table that is written to stdout by its Render method.
func (a *app) table(header ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(a.out)
	t.SuppressTrailingSpaces()
	t.SetStyle(table.StyleLight)
	t.Style().Options.SeparateColumns = false
	t.Style().Options.DrawBorder = false
	t.Style().Format.Header = 0
	if len(header) > 0 {
		t.AppendHeader(table.Row(header))
	}
	return t
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
