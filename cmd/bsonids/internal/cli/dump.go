package cli

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// dumpFlags holds the flags of the commands that read a dump instead of a server.
type dumpFlags struct {
	dump  string
	with  []string // the flags that go with --dump
	only  []string // those that need --dump
	flags *pflag.FlagSet
}

// add adds --dump to a command. with has the flags that go with it, only those of them that need it.
func (f *dumpFlags) add(cmd *cobra.Command, with, only []string) {
	f.flags = cmd.Flags()
	f.with = slices.Concat([]string{"dump"}, with, only)
	f.only = only
	cmd.Flags().StringVar(&f.dump, "dump", "", "dump of mongodump to read instead of a server: a directory, a BSON file, an archive, or - for standard input")
}

// check returns a usage error if a flag has no meaning with --dump, or without it.
func (f *dumpFlags) check() (err error) {
	f.flags.Visit(func(flag *pflag.Flag) {
		switch {
		case err != nil:
		case f.dump == "" && slices.Contains(f.only, flag.Name):
			err = failure.Usagef("--%s requires --dump", flag.Name)
		case f.dump == "" || slices.Contains(f.with, flag.Name) || flag.Name == "quiet" || strings.HasPrefix(flag.Name, "log-"):
		default:
			err = failure.Usagef("--%s has no effect with --dump: do not give both", flag.Name)
		}
	})
	return err
}

// open opens a dump. named is the collection of a BSON file.
func (f *dumpFlags) open(named dump.Collection) (*dump.Input, error) {
	if f.dump == "-" && terminal.Is(os.Stdin) {
		return nil, failure.Usagef("--dump -: standard input is a terminal")
	}
	in, err := migration.Input(f.dump, os.Stdin, named)
	if errors.Is(err, dump.ErrUnnamed) {
		return nil, failure.Usagef("--dump %s: %v; give --db and --collection", f.dump, err)
	}
	return in, err
}
