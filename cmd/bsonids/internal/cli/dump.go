package cli

import (
	"context"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// dumpFlags holds the flags of the commands that read a dump instead of a server.
type dumpFlags struct {
	dump  string
	with  []string // the flags that go with --dump
	flags *pflag.FlagSet
}

// add adds --dump to a command. with has the flags that go with it.
func (f *dumpFlags) add(cmd *cobra.Command, with ...string) {
	f.flags, f.with = cmd.Flags(), append(with, "dump")
	cmd.Flags().StringVar(&f.dump, "dump", "", "dump of mongodump to read instead of a server: a directory, a BSON file, an archive, or - for standard input")
}

// check returns a usage error if a flag has no meaning with --dump.
func (f *dumpFlags) check() error {
	if f.dump == "" {
		return nil
	}
	return onlyOf("--dump", f.flags, f.with...)
}

// onlyOf returns a usage error if a flag was given that has no meaning with a dump. names has those that do.
func onlyOf(dump string, flags *pflag.FlagSet, names ...string) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(append(names, "quiet", "log-format"), f.Name) {
			err = failure.Usagef("--%s has no effect with %s: do not give it", f.Name, dump)
		}
	})
	return err
}

// open opens a dump. named is the collection of a BSON file.
func (f *dumpFlags) open(named dump.Collection) (*dump.Input, error) {
	if f.dump == "-" && terminal.Is(os.Stdin) {
		return nil, failure.Usagef("--dump -: standard input is a terminal")
	}
	return dump.Open(f.dump, os.Stdin, named)
}

// scanDump is run for --dump.
func (o *scanVerb) scanDump(ctx context.Context) (err error) {
	var named dump.Collection
	if len(o.databases) == 1 {
		named.Database = o.databases[0]
	}
	if len(o.collections) == 1 {
		named.Name = o.collections[0]
	}
	in, err := o.open(named)
	if err != nil {
		return err
	}
	r := scan.Report{Server: o.dump, Time: time.Now().UTC().Truncate(time.Second)}
	bar := o.Progress(-1, "scanning", o.dump)
	of := offline.Reading{Input: in, Temp: os.TempDir(), Now: r.Time, Progress: bar.Add}
	if in.Form != dump.File {
		of.Databases, of.Collections = o.databases, o.collections
	}
	r.Collections, r.Warnings, err = offline.Scan(ctx, of)
	bar.Done()
	if err != nil {
		return err
	}
	return o.print(r)
}
