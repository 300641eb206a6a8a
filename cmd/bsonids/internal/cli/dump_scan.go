package cli

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
)

// scanDump is run for --dump.
func (o *scanVerb) scanDump(ctx context.Context) (err error) {
	one := func(names []string) string {
		if len(names) == 1 {
			return names[0]
		}
		return ""
	}
	in, err := o.open(dump.Collection{Database: one(o.databases), Name: one(o.collections)})
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
	reading := offline.Reading{Input: in, Selection: s, Temp: os.TempDir(), Now: now, Progress: bar.Add}
	c := offline.NewCollectors(reading)
	defer func() { err = errors.Join(err, c.Close()) }()
	err = c.Scan(ctx, reading)
	bar.Done()
	if err != nil {
		return migration.DumpError(err)
	}
	if err := s.Check(c.Seen); err != nil {
		return migration.DumpError(err)
	}
	if r.Collections, err = c.Judge(); err != nil {
		return migration.DumpError(err)
	}
	for _, name := range c.TimeSeries() {
		r.Warnings = append(r.Warnings, name+" has the buckets of a time series: its fields are those of the buckets, and compressed measurements are not read")
	}
	return o.print(r)
}
