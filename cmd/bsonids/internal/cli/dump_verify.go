package cli

import (
	"context"
	"os"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// verifyDump is run for --dump.
func (o *verifyOptions) verifyDump(ctx context.Context) error {
	if o.dumpOut == "" {
		return failure.Usagef("--dump requires --out, the converted dump")
	}
	d, err := o.dumped(o.console, &o.dumpFlags, o.trust)
	if err != nil {
		return err
	}
	output, err := o.open("out", o.dumpOut, dump.Collection{Database: o.database, Name: o.collection})
	if err != nil {
		return err
	}
	if err := d.decide(ctx, os.TempDir()); err != nil {
		return err
	}
	reading, bar := d.reading(os.TempDir(), "comparing")
	v, err := offline.Verify(ctx, offline.Job{Reading: reading, Conversion: d.conversion, Decisions: d.decisions}, output)
	bar.Done()
	if err != nil {
		return dumpError(err)
	}
	about := report.Dump{Input: o.dump, Output: o.dumpOut, From: d.conversion.From, To: d.conversion.To, Decision: o.decisionFile}
	if o.output.value == formatJSON {
		err = report.DumpProofJSON(o.console.out, about, v)
	} else {
		report.DumpProof(o.console.out, about, v)
	}
	if err == nil && !v.Holds() {
		err = failure.ErrIncomplete
	}
	return err
}
