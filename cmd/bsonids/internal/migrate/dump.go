package migrate

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/session"
)

// Dumped is the conversion of the dump of a plan.
type Dumped struct {
	Plan      *plan.Plan
	Steps     []plan.Step
	Decisions [][]decide.Decision // of the steps

	collections map[string]offline.Treatment
}

// OpenDump returns the conversion of the dump of the plan in the directory dir, by the evidence there.
func OpenDump(dir string, p *plan.Plan) (*Dumped, error) {
	sealed, err := plan.ReadSealed(dir, p)
	if err != nil {
		return nil, err
	}
	if problems, _ := sealed.Compare(p); len(problems) > 0 {
		return nil, failure.Usagef("the plan does not fit its dump: %s; take the edit back, or make a new plan", strings.Join(problems, "; "))
	}
	d := &Dumped{Plan: p, Steps: p.Steps(), collections: make(map[string]offline.Treatment)}
	for _, c := range p.Collections {
		d.collections[p.Namespace(c.Name)] = offline.Treatment{}
	}
	for _, st := range d.Steps {
		of, all, err := sealed.DecisionsOf(st)
		var c rule.Conversion
		if err == nil {
			c, err = rule.Compile(st.Pairs)
		}
		if err == nil {
			err = c.Decide(of)
		}
		if err != nil {
			return nil, &failure.CollectionError{Collection: st.Collection, Err: err}
		}
		d.Decisions = append(d.Decisions, of)
		for i := range c {
			if all[i] { // the dump is the one of the evidence: no other field has such values
				c[i].Fields = nil
			}
		}
		d.collections[p.Namespace(st.Collection)] = offline.Treatment{Conversion: c, InID: slices.ContainsFunc(plan.FieldsOf(st.Pairs), plan.InID)}
	}
	return d, nil
}

// PlanDump reads a dump and returns its plan, whose evidence it writes to the directory of d. database and
// collection are empty, or select what is planned; they name a BSON file.
func PlanDump(ctx context.Context, m session.Messages, d *plan.State, in *dump.Input, database, collection string) (*plan.Plan, error) {
	r := offline.Reading{Input: in, Temp: d.Dir(), Now: time.Now()}
	of := plan.Dump{Path: "-"}
	switch {
	case in.Form == dump.File:
		of.Collection = in.Only.Name
	case collection != "":
		return nil, failure.Usagef("--collection names a BSON file, and this dump has the names of its collections: leave in the plan what is not converted")
	case database != "":
		r.Databases = []string{database}
	}
	if in.Path != "standard input" {
		of.Path = files.Absolute(in.Path)
	}
	bar := m.Progress(-1, "reading", in.Path)
	r.Progress = bar.Add
	sv, digest, err := offline.Survey(ctx, r)
	bar.Done()
	if err != nil {
		return nil, err
	}
	for _, n := range sv.NotRead {
		m.Warn("not read: %s", n)
	}
	of.Digest = digest
	if of.Evidence, err = d.Seal(sv); err != nil {
		return nil, files.FileError(err)
	}
	return plan.Build(sv, &of), nil
}

// Input opens the dump at path, or stdin if path is "-".
func (d *Dumped) Input(path string, stdin io.Reader) (*dump.Input, error) {
	return dump.Open(path, stdin, dump.Collection{Database: d.Plan.Database, Name: d.Plan.Dump.Collection})
}

// Job returns the conversion of the input. Temporary files are in the directory temp. done ends the progress.
func (d *Dumped) Job(m session.Messages, in *dump.Input, temp, doing string) (job offline.Job, done func()) {
	bar := m.Progress(-1, doing, in.Path)
	return offline.Job{Input: in, Collections: d.collections, Digest: d.Plan.Dump.Digest, Temp: temp, Progress: bar.Add}, bar.Done
}

// Of returns the result for the collection of a step.
func (d *Dumped) Of(res offline.Result, st plan.Step) *offline.Collection {
	if c := res.Collections[d.Plan.Namespace(st.Collection)]; c != nil {
		return c
	}
	return &offline.Collection{} // the comparison ended before
}
