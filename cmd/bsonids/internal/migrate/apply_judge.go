package migrate

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// clash returns a usage error if a conversion of any migration, whose values remain, has values of a field that the plan
// converts from another kind, of documents that both have, or if two filters of the plan do.
func (p *Application) clash(ctx context.Context) error {
	for i, st := range p.steps() {
		if err := p.clashWith(ctx, st, p.recorded); err != nil {
			return err
		}
		for _, o := range p.steps()[:i] {
			field, kind, was := st.Clash(o.Task)
			if field == "" || o.Collection != st.Collection {
				continue
			}
			common, err := p.common(ctx, st, o.Filter)
			if err != nil {
				return err
			}
			if common {
				return failure.Usagef("%q: the field %q is converted from %s by one filter and from %s by another one, and both match a document: change the decision or a filter",
					st.Collection, field, kind, was)
			}
		}
	}
	return nil
}

// clashWith is clash for a step and the record. The collection may have had another name when it was converted, or may be the copy
// of one that was.
func (p *Application) clashWith(ctx context.Context, st *step, r *Recorded) error {
	clashes := slices.DeleteFunc(slices.Clone(r.Runs), func(run *record.Run) bool {
		field, _, _ := st.Clash(run.Task)
		return field == "" || !run.Remains()
	})
	if len(clashes) == 0 {
		return nil
	}
	spec, err := patience.Ask(ctx, p.Patience, func() (mongo.CollectionSpecification, error) {
		return server.Specification(ctx, p.db.Collection(st.Collection))
	})
	if err != nil {
		return err
	}
	for _, run := range record.Behind(st.Collection, spec.UUID, r.Runs, r.Cutovers) {
		if !slices.Contains(clashes, run) {
			continue
		}
		common, err := p.common(ctx, st, run.Filter)
		if err != nil {
			return err
		}
		if common {
			field, kind, was := st.Clash(run.Task)
			text := "put the decision back, or undo that first"
			if !run.Stands() {
				text = "its undo went without its undo log, so that values stay converted: put the decision back, or the log, and undo that first"
			}
			return failure.Usagef("%q: the field %q is converted from %s, and %s, whose files are in %s, has converted it from %s: %s; if files are lost, give that up with bsonids plan %s --give-up %s",
				st.Collection, field, kind, run, run.Directory, was, text, terminal.Command(p.Dir), run.Migration)
		}
	}
	return nil
}

// common reports whether the collection of a step has documents that both a filter and that of the step select.
func (p *Application) common(ctx context.Context, st *step, filter string) (bool, error) {
	if filter == st.Filter || filter == "" || st.Filter == "" {
		return true, nil
	}
	query, _, err := convert.ParseFilter(filter)
	if err != nil {
		return false, err
	}
	n, err := patience.Ask(ctx, p.Patience, func() (int64, error) {
		return p.db.Collection(st.Collection).CountDocuments(ctx, bson.D{{Key: "$and", Value: bson.A{query, st.what.Query}}})
	})
	return n > 0, err
}

// find finds what the record has of the steps: the last run of each that has changed something or has made a copy of the
// collection as it is, with its decisions.
func (p *Application) find(ctx context.Context) error {
	for _, st := range p.steps() {
		for _, run := range p.recorded.Of(st.conversion) {
			if run.Wrote() || run.Copied() {
				st.last = run
			}
		}
		if st.last == nil {
			continue
		}
		spec, err := patience.Ask(ctx, p.Patience, func() (mongo.CollectionSpecification, error) {
			return server.Specification(ctx, p.db.Collection(st.Collection))
		})
		if err != nil {
			return err
		}
		if x, _ := p.recorded.Exchange(st.conversion); x == nil && st.last.UUID != nil && spec.UUID != nil && !st.last.UUID.Equal(*spec.UUID) {
			st.last = nil
			continue
		}
		st.last, err = patience.Ask(ctx, p.Patience, func() (*record.Run, error) { return record.RunOf(ctx, p.db, st.last.ID) })
		if err != nil {
			return err
		}
		if len(st.last.Decisions) != len(st.last.Pairs) { // this version has not written it
			st.last = nil
		}
	}
	return nil
}

// decided reports whether the record has a decision about a field of a pair.
func (st *step) decided(pair kinds.Pair, field string) bool {
	return st.last != nil && slices.ContainsFunc(st.last.Pairs, func(p kinds.Pair) bool { return p.Alike(pair) && slices.Contains(p.Fields, field) })
}

// fresh reports whether nothing is decided about a field of the step.
func (st *step) fresh() bool {
	return slices.ContainsFunc(st.Pairs, func(p kinds.Pair) bool {
		return slices.ContainsFunc(p.Fields, func(f string) bool { return !st.decided(p, f) })
	})
}

// compare reads everything and compares it with the plan, if there are fields about which nothing is decided.
// The error is a usage error if the plan does not apply.
func (p *Application) compare(ctx context.Context) (*survey.Survey, error) {
	if err := p.find(ctx); err != nil {
		return nil, err
	}
	if err := p.cutOver(); err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(p.steps(), func(st *step) bool { return !st.fresh() })
	if len(fresh) == 0 {
		return nil, p.decide(nil)
	}
	sv, err := Survey(ctx, p.Session, p.db, survey.Options{Only: p.plan.Only}, p.plan)
	if err != nil {
		return nil, err
	}
	var decided []plan.Step
	for _, st := range p.steps() {
		if st.last != nil {
			decided = append(decided, plan.Step{Task: st.last.Task})
		}
	}
	for _, st := range fresh {
		if err := sv.Denied[st.Collection]; err != nil {
			return nil, &failure.CollectionError{Collection: st.Collection, Err: err}
		}
	}
	if problems := plan.Unaccepted(p.plan, sv, decided); len(problems) > 0 {
		return nil, failure.Usagef("%s cannot be applied: %s", filepath.Join(p.Dir, plan.PlanFile), strings.Join(problems, "; "))
	}
	problems, warnings := plan.Compare(p.plan, sv, decided)
	for _, c := range sv.Collections {
		if c.Filter != "" && c.Documents == 0 && slices.ContainsFunc(fresh, func(st *step) bool { return st.Collection == c.Name && st.Filter == c.Filter }) {
			problems = append(problems, fmt.Sprintf("%s: no document matches the filter", plan.Entry{Collection: c.Name, Filter: c.Filter}))
		}
	}
	for _, st := range fresh {
		if st.Into == "" || st.last != nil {
			continue
		}
		n, err := patience.Ask(ctx, p.Patience, func() (int64, error) { return p.db.Collection(st.Into).EstimatedDocumentCount(ctx) })
		switch {
		case err != nil && !failure.IsDenied(err):
			return nil, err
		case n > 0:
			problems = append(problems, fmt.Sprintf("the new collection %q has documents already: drop it if you do not need it, or change into", st.Into))
		}
	}
	for _, w := range warnings {
		p.Warn("%s", w)
	}
	if len(problems) > 0 {
		return nil, failure.Usagef("the data have changed since the plan was made: %s; bring the plan up to date with bsonids plan", strings.Join(problems, "; "))
	}
	p.definitions = p.plan.Rewrite(sv.Definitions)
	if names := p.plan.Unaccepted(p.definitions); len(names) > 0 {
		return nil, failure.Usagef("%s", plan.DefinitionsError(names, terminal.Command(p.Dir)))
	}
	return sv, p.decide(sv)
}

// decide makes the decisions of the steps: those that the record has, and others from the survey. The error is a usage error
// if a step would convert nothing.
func (p *Application) decide(sv *survey.Survey) error {
	for _, st := range p.steps() {
		var all map[string]decide.Decision
		if sv != nil {
			for _, c := range sv.Collections {
				if c.Name == st.Collection && c.Filter == st.Filter {
					all = c.Scan.Decisions
				}
			}
			st.decisions = st.Step.Decisions(all, sv.Made)
		} else {
			st.decisions = st.Step.Decisions(nil, st.last.Started)
		}
		for i, pair := range st.Pairs {
			if st.last == nil {
				break
			}
			j := slices.IndexFunc(st.last.Pairs, pair.Alike)
			if j < 0 || st.decisions[i].BySubtype {
				continue
			}
			if st.decisions[i].From == "" {
				st.decisions[i] = st.last.Decisions[j]
				st.decisions[i].Fields = nil
			}
			d := &st.decisions[i]
			d.Fields = slices.DeleteFunc(d.Fields, func(f decide.Field) bool { return slices.Contains(st.last.Pairs[j].Fields, plan.Plain(f.Path)) })
			for _, f := range st.last.Decisions[j].Fields {
				if slices.Contains(pair.Fields, plan.Plain(f.Path)) {
					d.Fields = append(d.Fields, f)
				}
			}
			slices.SortFunc(d.Fields, func(a, b decide.Field) int { return strings.Compare(a.Path, b.Path) })
			d.Trust(pair.Trust)
		}
		if !st.fresh() {
			continue
		}
		if err := mayWrite(st.decisions); err != nil {
			return err
		}
	}
	return nil
}

// expected returns what the steps would change: by the survey, or what the record says of those that are decided.
func (p *Application) expected(ctx context.Context, sv *survey.Survey) (out []AppliedStep, err error) {
	for _, st := range p.steps() {
		a := Fresh(st.Step)
		if !st.fresh() {
			a = p.recorded.Step(st.conversion, st.Task)
			if err := p.dropped(ctx, st, &a); err != nil {
				return nil, err
			}
		} else {
			for _, d := range st.decisions {
				for _, f := range d.Fields {
					a.Values += f.Values
				}
			}
			for _, c := range sv.Collections {
				if c.Name == st.Collection && c.Filter == st.Filter {
					a.Leaves = st.Leaves(c, st.decisions)
				}
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// duplicates finds the documents that would get a unique value of another one from the steps that are not done.
func (p *Application) duplicates(ctx context.Context, sv *survey.Survey) (*duplicates.Report, error) {
	var left []plan.Step
	of := make(map[string]*step)
	for _, st := range p.steps() {
		if !st.done() {
			left, of[st.conversion] = append(left, st.Step), st
		}
	}
	return findDuplicates(ctx, p.Session, p.db, sv, p.Dir, left, func(s plan.Step, d *Described) error {
		return d.Conversion.Decide(of[p.plan.Conversion(s.Task)].decisions)
	})
}

// dropped changes the status of a copy that was made if it is not there any more.
func (p *Application) dropped(ctx context.Context, st *step, a *AppliedStep) error {
	if a.Into == "" || !a.ended() {
		return nil
	}
	return p.Do(ctx, func() error {
		gone, err := Dropped(ctx, p.db, []string{st.conversion}, a.Into)
		if len(gone) > 0 {
			p.Warn("%s.%s is not there any more: it will be made again", p.plan.Database, a.Into)
			a.Status, a.Documents, a.Skipped = Stopped, 0, 0
		}
		return err
	})
}

// mayWrite returns a usage error if there are values but no field has a value to convert.
func mayWrite(decisions []decide.Decision) error {
	var reasons []string
	for _, d := range decisions {
		if len(d.Fields) == 0 {
			return nil
		}
		for _, f := range d.Fields {
			if f.Converted() {
				return nil
			}
			reasons = append(reasons, f.Path+": "+f.Reason)
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	const most = 5
	if n := len(reasons) - most; n > 0 {
		reasons = append(reasons[:most], fmt.Sprintf("and %d more fields", n))
	}
	return failure.Usagef("nothing was converted: %s; run bsonids scan to see the byte order, and add trust: true to a field whose values do not determine it",
		strings.Join(reasons, "; "))
}
