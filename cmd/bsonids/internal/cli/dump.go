package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/apply"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// dumpFlags holds the flags of the commands that read a dump instead of a server.
type dumpFlags struct {
	dump, dumpOut, decisionFile string
	with                        []string // the flags that go with --dump
	only                        []string // those that need --dump
	flags                       *pflag.FlagSet
}

// add adds --dump to a command. with has the flags that go with it, only those of them that need it.
func (f *dumpFlags) add(cmd *cobra.Command, with, only []string) {
	f.flags = cmd.Flags()
	f.with = slices.Concat([]string{"dump"}, with, only)
	f.only = only
	cmd.Flags().StringVar(&f.dump, "dump", "", "dump of mongodump to read instead of a server: a directory, a BSON file, an archive, or - for standard input")
	if slices.Contains(only, "out") {
		cmd.Flags().StringVar(&f.dumpOut, "out", "", "converted dump, which has the form of --dump")
	}
}

// optional makes the flags required only if there is no --dump.
func (f *dumpFlags) optional(cmd *cobra.Command, names ...string) {
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range names {
			if f.dump == "" {
				_ = cmd.MarkFlagRequired(name) // the flag exists
			}
		}
		return nil
	}
}

// check returns a usage error if a flag has no meaning with --dump, or without it.
func (f *dumpFlags) check() (err error) {
	f.flags.Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil:
		case f.dump == "" && slices.Contains(f.only, flag.Name):
			err = failure.Usagef("--%s requires --dump", flag.Name)
		case f.dump == "" || slices.Contains(f.with, flag.Name) || flag.Name == "quiet" || strings.HasPrefix(flag.Name, "log-"):
		case flag.Name == "write":
			err = failure.Usagef("--write: a dump is never changed; with --dump, give --out, which names the converted dump")
		default:
			err = failure.Usagef("--%s has no effect with --dump: do not give both", flag.Name)
		}
	})
	return err
}

// open opens a dump. named is the collection of a BSON file.
func (f *dumpFlags) open(flag, path string, named dump.Collection) (*dump.Input, error) {
	if path == "-" && terminal.Is(os.Stdin) {
		return nil, failure.Usagef("--%s -: standard input is a terminal", flag)
	}
	in, err := dump.Open(path, os.Stdin, named)
	switch {
	case errors.Is(err, dump.ErrUnnamed):
		return nil, failure.Usagef("--%s %s: %v; give --db and --collection", flag, path, err)
	case isPath(err) || errors.Is(err, dump.ErrEmpty):
		return nil, failure.Usagef("--%s: %v", flag, err)
	}
	return in, err
}

// isPath reports whether err is about a path that the user gave: one that does not exist, or that
// the user may not read.
func isPath(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist)
}

// create begins to write the dump of --out.
func (f *dumpFlags) create(in *dump.Input) (*dump.Output, error) {
	out, err := dump.Create(f.dumpOut, in)
	if isPath(err) || errors.Is(err, dump.ErrExists) || errors.Is(err, dump.ErrSame) || errors.Is(err, dump.ErrInside) || errors.Is(err, dump.ErrSuffix) {
		return nil, failure.Usagef("--out: %v", err)
	}
	return out, err
}

// dumpError turns the errors of reading a dump that are the user's into usage errors.
func dumpError(err error) error {
	var missing *offline.Missing
	if errors.As(err, &missing) || errors.Is(err, dump.ErrPipe) || errors.Is(err, offline.ErrOplog) {
		return failure.Usagef("--dump: %v", err)
	}
	return err
}

// dumpConversion is a conversion of a dump, as the flags of a command describe it.
type dumpConversion struct {
	*console
	*dumpFlags
	conversion rule.Conversion
	trust      []string
	selection  offline.Selection
	input      *dump.Input
	decisions  *offline.Decisions
}

// dumped returns the conversion of the dump. The error is a usage error, or one of the dump.
func (f *conversionFlags) dumped(c *console, d *dumpFlags, trust []string) (*dumpConversion, error) {
	conv, err := migration.Conversion(f.from.Name, f.to.Name, f.fields)
	if err != nil {
		return nil, err
	}
	o := &dumpConversion{console: c, dumpFlags: d, conversion: conv, trust: trust}
	switch {
	case d.decisionFile != "" && len(trust) > 0:
		return nil, failure.Usagef("--trust: the decision of --decision is made; give --trust to bsonids scan, which makes it")
	case d.dump == "-" && d.decisionFile == "":
		return nil, onlyOnce(d.dump)
	}
	slices.Sort(o.trust)
	named := dump.Collection{Database: f.database, Name: f.collection}
	if o.input, err = d.open("dump", d.dump, named); err != nil {
		return nil, err
	}
	if o.input.Pipe && d.decisionFile == "" {
		return nil, onlyOnce(d.dump)
	}
	if o.input.Form != dump.File {
		o.selection = selection(f.database, f.collection)
	}
	return o, nil
}

// onlyOnce is the error for a pipe without a decision.
func onlyOnce(path string) error {
	return failure.Usagef("--dump %s: %v, and the conversion is decided from all values; give --decision with a file that bsonids scan --decision wrote", path, dump.ErrPipe)
}

// selection returns the selection of a database and a collection, which may be empty.
func selection(database, collection string) offline.Selection {
	var s offline.Selection
	if database != "" {
		s.Databases = []string{database}
	}
	if collection != "" {
		s.Collections = []string{collection}
	}
	return s
}

// reading describes the reading of a dump. Temporary files are in the directory temp.
func (o *dumpConversion) reading(temp, what string) (offline.Reading, *progress.Progress) {
	bar := o.Progress(-1, what, o.dump)
	return offline.Reading{Input: o.input, Selection: o.selection, Temp: temp, Now: time.Now(), Progress: bar.Add}, bar
}

// decide takes the decisions from the file of --decision, or makes them.
func (o *dumpConversion) decide(ctx context.Context, temp string) error {
	if o.decisionFile != "" {
		return o.read()
	}
	reading, bar := o.reading(temp, "reading")
	d, err := offline.Decide(ctx, reading, o.conversion, o.trust, nil)
	bar.Done()
	if err != nil {
		return err
	}
	if err := o.selection.Check(d.Seen); err != nil {
		return dumpError(err)
	}
	o.decisions = d
	return checkDecisions(d, o.conversion)
}

// checkDecisions returns a usage error if a field that the user named has no value.
func checkDecisions(d *offline.Decisions, conv rule.Conversion) error {
	if len(d.Unmatched) > 0 {
		return failure.Usagef("--field %s: the selected collections have no such field with %s; bsonids scan prints the names", strings.Join(d.Unmatched, ", "), migration.ValuesFor(conv))
	}
	if len(d.Unknown) > 0 {
		return failure.Usagef("--trust %s: no such field has values to convert", strings.Join(d.Unknown, ", "))
	}
	return nil
}

// read reads the decisions of --decision.
func (o *dumpConversion) read() error {
	d, err := offline.ReadDecisions(o.decisionFile)
	if err != nil {
		return failure.Usagef("--decision: %v", err)
	}
	var fields []string
	for _, f := range o.conversion.Fields {
		fields = append(fields, f.String())
	}
	slices.Sort(fields)
	switch {
	case d.From != o.conversion.From.Name:
		return failure.Usagef("--decision %s was made with --from %s", o.decisionFile, d.From)
	case !slices.Equal(d.Fields, fields) && len(d.Fields) == 0:
		return failure.Usagef("--decision %s was made for all fields: do not give --field", o.decisionFile)
	case !slices.Equal(d.Fields, fields):
		return failure.Usagef("--decision %s was made with --field %s", o.decisionFile, strings.Join(d.Fields, ","))
	}
	o.decisions = d
	return nil
}

// mayConvert returns a usage error if there are values but no field has a value to convert.
func (o *dumpConversion) mayConvert() error {
	var all decide.Decision
	for _, c := range o.decisions.Collections {
		if c.Decision.BySubtype {
			return nil
		}
		for _, f := range c.Decision.Fields {
			f.Path = c.Namespace + " " + f.Path
			all.Fields = append(all.Fields, f)
		}
	}
	return apply.MayWrite(&all)
}

// warnOfElsewhere warns about values that are equal to converted ones and stay as they are.
func (c *console) warnOfElsewhere(d *offline.Decisions, from string) {
	for _, e := range d.Elsewhere {
		c.Warn("%s %s: %d distinct values are equal to values that are converted and remain %s; queries by these references find nothing until they are converted",
			e.Namespace, e.Path, e.Equal, from)
	}
}

// warnOfOthers warns about files that mongodump does not write.
func (c *console) warnOfOthers(in *dump.Input) {
	for _, path := range in.Others() {
		c.Warn("%s is not a file of mongodump: it is copied unchanged", path)
	}
}

// dirOf returns the directory for the temporary files of a command that writes path.
func dirOf(path string) string {
	if path == "" {
		return os.TempDir()
	}
	return filepath.Dir(path)
}
