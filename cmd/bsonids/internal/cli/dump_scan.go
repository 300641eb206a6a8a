package cli

import (
	"context"
	"errors"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// scanDump is run for --dump.
func (o *scanOptions) scanDump(ctx context.Context) (err error) {
	conv, err := o.toDecide()
	if err != nil {
		return err
	}
	one := func(names []string) string {
		if len(names) == 1 {
			return names[0]
		}
		return ""
	}
	in, err := o.open("dump", o.dump, dump.Collection{Database: one(o.databases), Name: one(o.collections)})
	if err != nil {
		return err
	}
	var s offline.Selection
	if in.Form != dump.File {
		s = offline.Selection{Databases: o.databases, Collections: o.collections}
	}
	now := time.Now().UTC().Truncate(time.Second)
	r := scan.Report{Server: o.dump, Time: now, Collections: []scan.Collection{}}
	bar := o.Progress(-1, "scanning", o.dump)
	reading := offline.Reading{Input: in, Selection: s, Temp: dirOf(o.decisionFile), Now: now, Progress: bar.Add}
	c := offline.NewCollectors(reading)
	defer func() { err = errors.Join(err, c.Close()) }()
	if o.decisionFile == "" {
		err = c.Scan(ctx, reading)
	} else {
		err = o.writeDecision(ctx, reading, conv, c)
	}
	bar.Done()
	if err != nil {
		return dumpError(err)
	}
	if err := s.Check(c.Seen); err != nil {
		return dumpError(err)
	}
	if r.Collections, err = c.Judge(); err != nil {
		return dumpError(err)
	}
	for _, name := range c.TimeSeries() {
		r.Warnings = append(r.Warnings, name+" has the buckets of a time series: its fields are those of the buckets, and compressed measurements are not read")
	}
	return o.print(r)
}

// toDecide returns the conversion that the flags for --decision describe.
func (o *scanOptions) toDecide() (rule.Conversion, error) {
	var c rule.Conversion
	switch {
	case o.decisionFile == "" && (o.from.Name != "" || len(o.fields) > 0 || len(o.trust) > 0):
		return c, failure.Usagef("--from, --field and --trust require --decision, which names the file for the decision")
	case o.decisionFile == "":
		return c, nil
	case o.from.Name == "":
		return c, failure.Usagef("--decision requires --from")
	case migration.Exists(o.decisionFile):
		return c, failure.Usagef("--decision: %s exists", o.decisionFile)
	}
	var err error
	c.From = o.from.Kind
	c.Fields, err = migration.Patterns(c.From, o.fields)
	return c, err
}

// writeDecision scans a dump and writes the decision about its fields.
func (o *scanOptions) writeDecision(ctx context.Context, reading offline.Reading, conv rule.Conversion, c *offline.Collectors) error {
	d, err := offline.Decide(ctx, reading, conv, o.trust, c)
	if err != nil {
		return err
	}
	if err := checkDecisions(d, conv); err != nil {
		return err
	}
	o.warnOfElsewhere(d, conv.From.Name)
	return d.Write(o.decisionFile)
}
