package apply

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// judge reads everything and compares it with the plan, if there are fields about which nothing is decided.
// The error is a usage error if the plan no longer applies.
func (p *Planned) judge(ctx context.Context) (*survey.Survey, error) {
	if err := p.unfenced(ctx); err != nil {
		return nil, err
	}
	fresh := func() []*step {
		return slices.DeleteFunc(p.steps(), func(st *step) bool { return !st.fresh || st.Listed })
	}
	if len(fresh()) == 0 {
		return nil, nil
	}
	sv, err := p.Survey(ctx, p.db, survey.Options{Only: p.plan.Only}, p.plan.Filters())
	if err != nil {
		return nil, err
	}
	var decided []plan.Step
	for _, st := range p.steps() {
		switch {
		case !st.fresh, st.Listed:
			decided = append(decided, st.Step)
		case st.Again:
			decided = append(decided, p.state.Before(st.Step)) // it has the fields that are not new
		}
	}
	for _, st := range fresh() {
		if err := sv.Denied[st.Collection]; err != nil {
			return nil, &migration.CollectionError{Collection: st.Collection, Err: err}
		}
	}
	if problems := plan.Unaccepted(p.plan, sv, decided); len(problems) > 0 {
		return nil, failure.Usagef("%s cannot be applied: %s", filepath.Join(p.Dir, plan.PlanFile), strings.Join(problems, "; "))
	}
	problems, warnings := plan.Compare(p.plan, sv, decided)
	for _, st := range fresh() {
		if st.Into == "" || st.Again {
			continue
		}
		n, err := patience.Ask(ctx, p.Patience, func() (int64, error) { return p.db.Collection(st.Into).EstimatedDocumentCount(ctx) })
		switch {
		case err != nil && !migration.Denied(err):
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
	for _, st := range fresh() {
		err := p.Do(ctx, func() error { return migration.Matching(ctx, p.db.Collection(st.Collection), st.what.Conversion) })
		if err != nil {
			return nil, err
		}
	}
	return sv, nil
}

// unfenced returns a usage error if a cutover has begun to exchange collections of a group that has steps about
// which nothing is decided.
func (p *Planned) unfenced(ctx context.Context) error {
	for _, g := range p.edited.Groups(p.plan) {
		names, copies, fresh := []string{}, []string{}, false
		for _, st := range g {
			names, fresh = append(names, st.Collection), fresh || p.edited.IsNew(st)
			if st.Into != "" {
				copies = append(copies, st.Into)
			}
		}
		if !fresh || !p.state.Sealed() {
			continue
		}
		err := p.Do(ctx, func() error {
			if err := migration.NotFenced(ctx, p.db, slices.Concat(names, copies)...); err != nil {
				return err
			}
			made := p.state.Conversions()
			all, err := record.Cutovers(ctx, p.db, false)
			if migration.Denied(err) {
				err = nil
			}
			for _, c := range all {
				for _, x := range c.Collections {
					if c.State == record.Released && slices.Contains(names, x.Name) && slices.Contains(copies, x.New) && x.MadeBy(made) {
						return failure.Usagef("%q: a cutover has put %s in its place, and was released: make a plan in a new directory for what is left", x.Name, x.New)
					}
				}
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// decisions returns the decisions about the pairs of the step. It takes those about fields that an earlier step
// converts from this one.
func (st *step) decisions(sv *survey.Survey) ([]decide.Decision, error) {
	if st.Listed {
		return st.listed()
	}
	var all map[string]decide.Decision
	for _, c := range sv.Collections {
		if c.Name == st.Collection && c.Filter == st.Filter {
			all = c.Scan.Decisions
		}
	}
	decisions := st.Step.Decisions(all, sv.Made)
	if st.Again {
		return decisions, st.again(decisions)
	}
	return decisions, nil
}

// earlier returns the state of the step that st goes on from, and the list of the values that it has left.
func (st *step) earlier() (s *convert.State, list string) {
	return st.of.state.Of(st.before), st.of.state.Files(st.before).SkipList
}

// listed returns the decisions about the fields of a step that converts what an earlier one has listed.
func (st *step) listed() (out []decide.Decision, err error) {
	s, _ := st.earlier()
	for _, pair := range st.Pairs {
		i := slices.IndexFunc(st.before.Pairs, pair.Alike)
		if i < 0 {
			return nil, failure.Usagef("%q: nothing is listed %s", st.Collection, pair)
		}
		d := s.Decisions[i]
		d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f decide.Field) bool { return !slices.Contains(pair.Fields, plan.Plain(f.Path)) })
		out = append(out, d)
	}
	return out, nil
}

// again changes the decisions about a copy whose earlier one had fewer fields, or did not have the values that
// are listed of fields which are trusted now: the others stay as they were.
func (st *step) again(decisions []decide.Decision) error {
	s, list := st.earlier()
	for n, pair := range st.Pairs {
		d := &decisions[n]
		j := slices.IndexFunc(st.before.Pairs, pair.Alike)
		if d.BySubtype || j < 0 {
			continue
		}
		was := st.before.Pairs[j]
		for i, f := range d.Fields {
			plain := plan.Plain(f.Path)
			k := slices.IndexFunc(s.Decisions[j].Fields, func(o decide.Field) bool { return plan.Plain(o.Path) == plain })
			if k < 0 || !slices.Contains(was.Fields, plain) {
				continue
			}
			d.Fields[i] = s.Decisions[j].Fields[k]
			if trusts(pair.Trust, plain) && !trusts(was.Trust, plain) {
				of, err := rule.Compile([]kinds.Pair{{From: pair.From, Fields: []string{plain}}})
				if err != nil {
					return err
				}
				if err := convert.EachListed(list, st.of.plan.Namespace(st.Collection), s.Listed, of, d.Fields[i].Convert); err != nil {
					return migration.FileError(err)
				}
			}
		}
	}
	return nil
}

// trusts reports whether a field is among those that are trusted. It has no brackets.
func trusts(trusted []string, plain string) bool {
	return slices.ContainsFunc(trusted, func(t string) bool { return plan.Plain(t) == plain })
}

// seal writes the plan and the decision of each new step to the ledger. Nothing is converted by the plan before that.
func (p *Planned) seal(sv *survey.Survey) error {
	if p.state.Sealed() && p.state.Undone == "" && len(p.edited.New) == 0 && p.state.Is(p.plan, p.edited.Steps) {
		return nil
	}
	decided := make(map[string]*convert.State)
	for _, st := range p.steps() {
		if !st.fresh {
			continue
		}
		d, err := st.decisions(sv)
		if err == nil && !st.Listed {
			err = mayWrite(d)
		}
		if err != nil {
			return err
		}
		of := &convert.State{Decisions: d}
		if was, _ := st.earlier(); st.Again {
			of.CopyUUID = was.CopyUUID
		}
		decided[st.Name()] = of
	}
	return migration.FileError(p.state.Adopt(p.plan, p.edited.Steps, decided))
}

// expected returns what the steps would change, from the survey, or from the ledger for those that are
// decided.
func (p *Planned) expected(ctx context.Context, sv *survey.Survey) (out []report.AppliedStep, err error) {
	for _, st := range p.steps() {
		a := migration.Fresh(st.Step)
		if !st.fresh {
			a = migration.StepOf(p.state, st.Step)
			if err := p.dropped(ctx, &a); err != nil {
				return nil, err
			}
			out = append(out, a)
			continue
		}
		d, err := st.decisions(sv)
		if err != nil {
			return nil, err
		}
		if a.Values, err = st.dry(d); err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// duplicates finds the documents that would get a unique value of another one from the steps that are not done.
func (p *Planned) duplicates(ctx context.Context, sv *survey.Survey) (*duplicates.Report, error) {
	var left []plan.Step
	of := make(map[string]*step)
	for _, st := range p.steps() {
		if st.fresh || !p.state.Of(st.Step).Done {
			left, of[st.Name()] = append(left, st.Step), st
		}
	}
	return p.Duplicates(ctx, p.db, sv, p.Dir, left, func(s plan.Step, d *migration.Described) (only func(bson.RawValue) bool, err error) {
		st := of[s.Name()]
		decisions := p.state.Of(s).Decisions
		if st.fresh {
			if decisions, err = st.decisions(sv); err != nil {
				return nil, err
			}
		}
		if err := d.Conversion.Decide(decisions); err != nil || !st.Listed {
			return nil, err
		}
		r, err := st.retry(d.Conversion, decisions)
		if err != nil {
			return nil, err
		}
		return r.Has, nil
	})
}

// dry returns the number of values that a step would convert.
func (st *step) dry(d []decide.Decision) (values int64, err error) {
	if st.Listed {
		was, list := st.earlier()
		err = convert.EachListed(list, st.of.plan.Namespace(st.Collection), was.Listed, st.what.Conversion, func([16]byte) { values++ })
		return values, migration.FileError(err)
	}
	for _, of := range d {
		for _, f := range of.Fields {
			values += f.Values
		}
	}
	return values, nil
}

// dropped changes the status of a copy that was made if it is not there any more.
func (p *Planned) dropped(ctx context.Context, a *report.AppliedStep) error {
	if a.Into == "" || a.Status != report.DoneStep {
		return nil
	}
	return p.Do(ctx, func() error {
		made := p.state.Conversions()
		gone, err := migration.Dropped(ctx, p.db, made, a.Into)
		if len(gone) > 0 {
			p.Warn("%s.%s is not there any more: it will be made again", p.plan.Database, a.Into)
			a.Status, a.Documents, a.Skipped = report.Stopped, 0, 0
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
