package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// sampleSize is the number of documents of a random sample.
const sampleSize = 10_000

type scanVerb struct {
	*console
	databases, collections []string
	all                    bool
	failOn                 []string // of scan.Kinds
}

func (o *scanVerb) define() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scan",
		Short: "Count the UUIDs of collections, by field and by how they are stored",
		Long: `scan reads documents at every depth. For each collection and field, it prints
how many values are binary subtype 4, subtype 3, subtype 0 of 16 bytes, UUIDs
in text, and the text of UUIDs in binary values. Subtypes 3 and 0 do not determine the byte order, so scan prints the
one that the values prove, by the same tests as a conversion, and what a
conversion would do with them. If the values do not determine the order, scan
prints "undetermined", and what would determine it, such as more values.

scan reads 10,000 documents of each collection at random, or every document with --all. It
changes nothing. Array positions are printed as [], and field names that are
data, such as identifiers, as *.

With --dump, scan reads every document of a dump of mongodump instead of a
server.

With --fail-on, the exit code is 3 if a field is one of:

  legacy   values of subtype 3, the text of UUIDs in binary values, and values of
           subtype 3 or 4 that are no UUIDs
  generic  UUIDs of subtype 0, but not values that may be other data
  mixed    UUIDs of several subtypes, of text and a subtype, or of one subtype that
           are proven to be in several byte orders`,
		Example: `  bsonids scan --db shop
  bsonids scan --db shop --collection orders --all --output html > orders.html
  bsonids scan --all --quiet --fail-on legacy,mixed,generic > uuids.txt
  bsonids scan --dump dump/`,
		Args: arguments(0),
	}
	o.serverFlags(cmd)
	o.outputFlag(cmd, formatJSON, formatHTML)
	f := cmd.Flags()
	f.StringSliceVar(&o.databases, "db", nil, "database to scan; by default, all except admin, config and local")
	f.StringSliceVar(&o.collections, "collection", nil, "collection or view to scan; by default, all collections of the databases")
	f.BoolVar(&o.all, "all", false, "read every document; by default, 10,000 of each collection at random")
	f.StringSliceVar(&o.failOn, "fail-on", nil, "exit with code 3 if a field is one of these: "+strings.Join(scan.Kinds, ", "))
	completeWords(cmd, "fail-on", scan.Kinds...)
	o.dumpFlag(cmd)
	return cmd
}

func (o *scanVerb) complete() error {
	for _, word := range o.failOn {
		if err := oneOf(scan.Kinds, word); err != nil {
			return failure.Usagef("--fail-on: %v", err)
		}
	}
	for _, db := range o.databases {
		if !server.ValidDatabase(db) {
			return failure.Usagef("--db: invalid database name %q", db)
		}
	}
	return o.checkDump("db", "collection", "all", "output", "fail-on")
}

func (o *scanVerb) run(ctx context.Context) (err error) {
	if o.dump != "" {
		return o.scanDump(ctx)
	}
	client, err := o.connect(ctx, server.Read)
	if err != nil {
		return err
	}
	namespaces, views, err := scan.Namespaces(ctx, client, o.databases, o.collections)
	if err != nil {
		return err
	}
	sample := int64(sampleSize)
	if o.all {
		sample = 0
	}
	r := scan.Report{Server: server.Host(o.connectionString()), Time: time.Now().UTC().Truncate(time.Second), Collections: []scan.Collection{}}
	s := scan.New(os.TempDir(), r.Time, false)
	defer func() { err = errors.Join(err, s.Close()) }()
	read := make(map[string]source.Readout)
	for _, ns := range namespaces {
		c, err := s.Collection(ns.Database, ns.Collection)
		if err != nil {
			return err
		}
		from := source.Collection{Collection: client.Database(ns.Database).Collection(ns.Collection), Sample: sample}
		m, err := from.Read(ctx, nil, func(total int64) terminal.Progress { return o.Progress(total, "scanning", ns.String()) }, c)
		if err != nil {
			return err
		}
		read[ns.String()] = m
		if m.Malformed > 0 {
			r.Warnings = append(r.Warnings, ns.String()+" has malformed documents, which were not counted")
		}
		if m.Mode == source.First {
			r.Warnings = append(r.Warnings, ns.String()+": the first documents were read instead of a random sample, because the server cannot sample")
		}
	}
	if len(o.collections) == 0 && len(views) > 0 {
		r.Warnings = append(r.Warnings, leftOut(views))
	}
	if r.Collections, err = s.Decide(); err != nil {
		return err
	}
	for i := range r.Collections {
		c := &r.Collections[i]
		m := read[c.Namespace]
		c.Mode, c.Documents, c.Malformed = m.Mode, max(m.Documents, c.Scanned), m.Malformed
	}
	return o.print(r)
}

// print writes the report of a scan.
func (o *scanVerb) print(r scan.Report) (err error) {
	for _, w := range r.Warnings {
		o.Warn("%s", w)
	}
	if o.output == formatHTML {
		err = report.HTML(o.out, r)
	} else {
		err = o.console.print(report.Scan(r), true)
	}
	if err == nil {
		err = o.failed(r)
	}
	return err
}

// failed names the fields for which --fail-on makes the scan fail, and returns
// failure.ErrIncomplete if there are any.
func (o *scanVerb) failed(r scan.Report) (err error) {
	for _, c := range r.Collections {
		if c.Overflow && len(o.failOn) > 0 {
			o.Warn("%s has too many fields; --fail-on did not check all of them", c.Namespace)
		}
		for _, f := range c.Fields {
			for _, k := range o.failOn {
				if f.Is(k) {
					o.fail("%s %s is %s (--fail-on)", c.Namespace, f.Path, k)
					err = failure.ErrIncomplete
				}
			}
		}
	}
	return err
}

// leftOut names the views that were not read.
func leftOut(views []scan.Namespace) string {
	const most = 5
	var names []string
	for _, v := range views[:min(len(views), most)] {
		names = append(names, v.String())
	}
	if n := len(views) - most; n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return "views are scanned only if --collection names them: " + strings.Join(names, ", ")
}
