package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
)

// convertDump is run for --dump.
func (o *convertOptions) convertDump(ctx context.Context) (err error) {
	d, err := o.dumped(o.console, &o.dumpFlags, o.work.Trust)
	if err != nil {
		return err
	}
	if o.dumpOut == "" && o.work.SkipList != "" {
		return failure.Usagef("--skip-list: without --out nothing is written, and nothing is listed")
	}
	o.warnOfOthers(d.input)
	temp := dirOf(o.dumpOut)
	job := offline.Job{Conversion: d.conversion, Examples: o.examples.value}
	if o.dumpOut != "" { // before the decision, so that a wrong name is found before a long pass
		release, inUse := dump.Claim(o.dumpOut)
		if inUse != nil {
			return failure.Usagef("--out: %v", inUse)
		}
		defer release()
		if job.Output, err = o.create(d.input); err != nil {
			return err
		}
		job.Examples = 0
		defer func() { err = errors.Join(err, job.Output.Abort()) }()
		var close func() error
		if close, err = o.openDumpSkipList(&job); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, close()) }()
		defer func() { err = o.notWritten(err) }()
	}
	if err := d.decide(ctx, temp); err != nil {
		return err
	}
	if job.Output != nil {
		if err := d.mayConvert(); err != nil {
			return err
		}
	}
	o.warnOfElsewhere(d.decisions, d.conversion.From.Name)
	job.Decisions = d.decisions
	start := time.Now()
	reading, bar := d.reading(temp, "converting")
	job.Reading = reading
	res, err := offline.Convert(ctx, job)
	bar.Done()
	if err != nil {
		return dumpError(err)
	}
	about := report.Dump{Input: o.dump, Output: o.dumpOut, From: d.conversion.From, To: d.conversion.To, Took: time.Since(start), Size: d.input.Size()}
	if job.SkipList.Begun() {
		about.SkipList = job.SkipPath
	}
	if o.output.value == formatJSON {
		err = report.DumpJSON(o.console.out, about, res)
	} else {
		report.DumpConverted(o.console.out, about, res)
	}
	if err == nil && !res.Complete() {
		err = failure.ErrIncomplete
	}
	return err
}

// notWritten adds to an error that there is no output.
func (o *convertOptions) notWritten(err error) error {
	if err == nil || errors.Is(err, failure.ErrIncomplete) || migration.Exists(o.dumpOut) {
		return err
	}
	e := failure.Explain(err, "")
	return &failure.Error{Kind: e.Kind, Text: fmt.Sprintf("%s; %s was not written", e.Text, o.dumpOut), Err: err}
}

// openDumpSkipList opens the list of a job, which has another name until the dump is whole, and
// returns the function that closes it and removes what is left of it.
func (o *convertOptions) openDumpSkipList(job *offline.Job) (close func() error, err error) {
	job.SkipPath = o.work.SkipList
	if job.SkipPath == "" {
		job.SkipPath = filepath.Clean(o.dumpOut) + ".skipped.jsonl"
	}
	switch {
	case filepath.Clean(job.SkipPath) == filepath.Clean(o.dumpOut):
		return nil, failure.Usagef("--skip-list and --out name the same file")
	case migration.Exists(job.SkipPath):
		return nil, failure.Usagef("--skip-list: %s exists: move it away, or name another file", job.SkipPath)
	}
	release, err := dump.Claim(job.SkipPath)
	if err != nil {
		return nil, failure.Usagef("--skip-list: %v", err)
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	f, err := dump.CreateTemp(job.SkipPath)
	if isPath(err) {
		return nil, failure.Usagef("--skip-list: %v", err)
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		job.SkipList, err = convert.OpenSkipList(f.Name(), "", nil)
	}
	if err != nil {
		return nil, err
	}
	return func() error {
		defer release()
		err := job.SkipList.Close()
		if e := os.Remove(f.Name()); err == nil && !errors.Is(e, os.ErrNotExist) {
			err = e
		}
		return err
	}, nil
}
