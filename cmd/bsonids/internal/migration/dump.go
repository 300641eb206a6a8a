package migration

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Dumped is the conversion of the dump of a plan.
type Dumped struct {
	Plan      *plan.Plan
	Steps     []plan.Step
	Decisions []decide.Decision // of the steps

	job offline.Job
}

// OpenDump returns the conversion of the dump of the plan in the directory dir, by the evidence there.
func OpenDump(dir string, p *plan.Plan) (*Dumped, error) {
	sealed, err := plan.ReadSealed(dir, p)
	if err != nil {
		return nil, &failure.Error{Kind: failure.Failed, Text: err.Error(), Err: err}
	}
	if problems, _ := sealed.Compare(p); len(problems) > 0 {
		return nil, failure.Usagef("the plan does not fit its dump: %s; take the edit back, or make a new plan", strings.Join(problems, "; "))
	}
	d := &Dumped{Plan: p, Steps: p.Steps()}
	d.job.Digest, d.job.Steps, d.job.Left, d.job.InID = p.Dump.Digest, make(map[string][]rule.Conversion), make(map[string]bool), make(map[string]bool)
	for _, st := range d.Steps {
		c, err := Conversion(st.From, st.To, st.Fields)
		if err != nil {
			return nil, &CollectionError{st.Collection, err}
		}
		of, all, err := sealed.Decision(st)
		if err != nil {
			return nil, &CollectionError{st.Collection, err}
		}
		d.Decisions = append(d.Decisions, of)
		c.Judge = of.Judge(c.From.Order)
		if all { // the dump is the one of the evidence: no other field has such values
			c.Fields = nil
		}
		name := p.Namespace(st.Collection)
		d.job.Steps[name] = append(d.job.Steps[name], c)
		d.job.InID[name] = d.job.InID[name] || slices.ContainsFunc(st.Fields, plan.InID)
		if db, _, _ := strings.Cut(name, "."); p.Database == "" || len(d.job.Selection.Databases) == 0 {
			d.job.Selection.Databases = append(d.job.Selection.Databases, db)
		}
	}
	for _, c := range p.Collections {
		name := p.Namespace(c.Name)
		d.job.Left[name] = d.job.Steps[name] == nil
	}
	return d, nil
}

// PlanDump reads a dump and returns its plan, whose evidence it writes to the directory of d. database and
// collection are empty, or select what is planned; they name a BSON file.
func PlanDump(ctx context.Context, m Messages, d *plan.State, in *dump.Input, database, collection string, to kinds.Kind) (*plan.Plan, error) {
	r := offline.Reading{Input: in, Temp: d.Dir(), Now: time.Now()}
	of := plan.Dump{Path: "-"}
	switch {
	case in.Form == dump.File:
		of.Collection = in.Named().Name
	case collection != "":
		return nil, failure.Usagef("--collection names a BSON file, and this dump has the names of its collections: leave in the plan what is not converted")
	case database != "":
		r.Selection.Databases = []string{database}
	}
	if in.Path != "standard input" {
		of.Path = Absolute(in.Path)
	}
	bar := m.Progress(-1, "reading", in.Path)
	r.Progress = bar.Add
	sv, digest, err := offline.Survey(ctx, r)
	bar.Done()
	if err != nil {
		return nil, DumpError(err)
	}
	for _, n := range sv.NotRead {
		m.Warn("not read: %s", n)
	}
	of.Digest = digest
	if of.Evidence, err = d.Seal(sv); err != nil {
		return nil, FileError(err)
	}
	return plan.BuildDump(sv, to, of), nil
}

// Input opens the dump at path, or stdin if path is "-".
func (d *Dumped) Input(path string, stdin io.Reader) (*dump.Input, error) {
	return Input(path, stdin, dump.Collection{Database: d.Plan.Database, Name: d.Plan.Dump.Collection})
}

// Input opens the dump at path, or stdin if path is "-". A BSON file has the collection of the name. The
// error is a usage error if the path is wrong.
func Input(path string, stdin io.Reader, named dump.Collection) (*dump.Input, error) {
	in, err := dump.Open(path, stdin, named)
	if IsPath(err) || errors.Is(err, dump.ErrEmpty) || errors.Is(err, dump.ErrUnnamed) {
		return nil, &failure.Error{Kind: failure.Usage, Text: "the dump: " + err.Error(), Err: err}
	}
	return in, err
}

// IsPath reports whether err is about a path that the user gave: one that does not exist, or that the user
// may not read.
func IsPath(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrExist)
}

// Job returns the conversion of the input. Temporary files are in the directory temp. done ends the progress.
func (d *Dumped) Job(m Messages, in *dump.Input, temp, doing string) (job offline.Job, done func()) {
	bar := m.Progress(-1, doing, in.Path)
	job = d.job
	job.Input, job.Temp, job.Now, job.Progress = in, temp, time.Now(), bar.Add
	return job, bar.Done
}

// Count returns the number of steps of the collection with the namespace.
func (d *Dumped) Count(namespace string) int { return len(d.job.Steps[namespace]) }

// DumpError turns the errors of reading a dump that are the user's into usage errors.
func DumpError(err error) error {
	var missing *offline.Missing
	if errors.As(err, &missing) || errors.Is(err, dump.ErrPipe) || errors.Is(err, offline.ErrOplog) {
		return failure.Usagef("the dump: %v", err)
	}
	return err
}
