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

// dumpFlag adds --dump.
func (c *console) dumpFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.dump, "dump", "", "dump of mongodump to read instead of a server: a directory, a BSON file, an archive, or - for standard input")
}

// checkDump returns a usage error if a flag has no meaning with --dump. names has those that do.
func (c *console) checkDump(names ...string) error {
	if c.dump == "" {
		return nil
	}
	return c.onlyOf("--dump", append(names, "dump")...)
}

// onlyOf returns a usage error if a flag was given that has no meaning with a dump. names has those that do.
func (c *console) onlyOf(dump string, names ...string) (err error) {
	c.cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && !slices.Contains(append(names, "quiet", "log-format"), f.Name) {
			err = failure.Usagef("--%s has no effect with %s: do not give it", f.Name, dump)
		}
	})
	return err
}

// openDump opens the dump. named is the collection of a BSON file.
func (c *console) openDump(named dump.Collection) (*dump.Input, error) {
	if c.dump == "-" && terminal.Is(os.Stdin) {
		return nil, failure.Usagef("--dump -: standard input is a terminal")
	}
	return dump.Open(c.dump, os.Stdin, named)
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
	in, err := o.openDump(named)
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
