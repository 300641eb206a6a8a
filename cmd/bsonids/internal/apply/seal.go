package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/ledger"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migration"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// judge reads everything and compares it with the plan, if there are fields about which nothing is decided.
// The error is a usage error if the plan no longer applies.
func (p *Planned) judge(ctx context.Context, s *migration.Session, db *mongo.Database) (*survey.Survey, error) {
	if err := p.unfenced(ctx, s, db); err != nil {
		return nil, err
	}
	if err := p.share(ctx, s, db); err != nil {
		return nil, err
	}
	fresh := func() []*step {
		return slices.DeleteFunc(p.steps(), func(st *step) bool { return !st.fresh || st.Listed || st.shared != nil })
	}
	if len(fresh()) == 0 {
		return nil, nil
	}
	sv, err := s.SurveyAll(ctx, db, migration.Scope{Only: p.plan.Only, Filters: p.plan.Filters()})
	if err == nil { // what another part has converted meanwhile is not judged by what is left
		err = p.share(ctx, s, db)
	}
	if err != nil {
		return nil, err
	}
	var decided []plan.Step
	for _, st := range p.steps() {
		switch {
		case !st.fresh, st.Listed, st.shared != nil:
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
	problems, warnings := plan.Compare(p.plan, sv, decided)
	for _, st := range fresh() {
		if st.Into == "" || st.Again || st.Part != "" { // other parts may have written documents, which is found out before the first is written
			continue
		}
		var n int64
		err := s.Do(ctx, func() (err error) {
			n, err = db.Collection(st.Into).EstimatedDocumentCount(ctx)
			return err
		})
		switch {
		case err != nil && !migration.Denied(err):
			return nil, err
		case n > 0:
			problems = append(problems, fmt.Sprintf("the new collection %q has documents already: drop it if you do not need it, or change into", st.Into))
		}
	}
	for _, w := range warnings {
		s.Warn("%s", w)
	}
	if len(problems) > 0 {
		return nil, failure.Usagef("the data have changed since the plan was made: %s; bring the plan up to date with bsonids plan", strings.Join(problems, "; "))
	}
	for _, st := range fresh() {
		err := s.Do(ctx, func() error { return migration.Matching(ctx, db.Collection(st.Collection), st.options.Conversion) })
		if err != nil {
			return nil, err
		}
	}
	return sv, nil
}

// unfenced returns a usage error if a cutover has begun to exchange collections of a group that has steps about
// which nothing is decided.
func (p *Planned) unfenced(ctx context.Context, s *migration.Session, db *mongo.Database) error {
	for _, g := range p.edited.Groups(p.plan) {
		names, copies, fresh := []string{}, []string{}, false
		for _, w := range g {
			names = append(names, w.Collection)
			for _, st := range w.Steps {
				fresh = fresh || p.edited.IsNew(st)
				if st.Into != "" {
					copies = append(copies, st.Into)
				}
			}
		}
		if !fresh || !p.state.Sealed() {
			continue
		}
		err := s.Do(ctx, func() error {
			if err := migration.NotFenced(ctx, db, slices.Concat(names, copies)...); err != nil {
				return err
			}
			made, _ := p.state.Conversions()
			all, err := record.Cutovers(ctx, db, false)
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
func (p *Planned) decisions(st *step, sv *survey.Survey) ([]decide.Decision, error) {
	switch {
	case st.shared != nil:
		return st.shared, nil
	case st.Listed:
		return p.listed(st)
	case st.Again:
		return p.again(st, sv)
	}
	return st.decisions(sv), nil
}

// decisions returns the decisions of the survey about the pairs of the step.
func (s *step) decisions(sv *survey.Survey) []decide.Decision {
	var all map[string]decide.Decision
	for _, c := range sv.Collections {
		if c.Name == s.Collection && c.Filter == s.Filter {
			all = c.Decisions
		}
	}
	return s.Step.Decisions(all, sv.Made)
}

// earlier returns the state of the step that st goes on from, and the path of its skip list.
func (p *Planned) earlier(st *step) (s convert.State, list string, err error) {
	f := p.state.Before(st.Step).Files(p.Dir)
	s, err = convert.ReadState(f.State)
	if err == nil && s.Decisions == nil {
		err = fmt.Errorf("%s has no decision: put the file back", f.State)
	}
	if err != nil {
		err = migration.FileError(err)
	}
	return s, f.SkipList, err
}

// listed returns the decisions about the fields of a step that converts what an earlier one has listed.
func (p *Planned) listed(st *step) (out []decide.Decision, err error) {
	s, _, err := p.earlier(st)
	if err != nil {
		return nil, err
	}
	for _, pair := range st.Pairs {
		i := slices.IndexFunc(s.Identity.Pairs, pair.Alike)
		if i < 0 {
			return nil, failure.Usagef("%q: nothing is listed %s", st.Collection, pair)
		}
		d := s.Decisions[i]
		d.Fields = slices.DeleteFunc(slices.Clone(d.Fields), func(f decide.Field) bool { return !slices.Contains(pair.Fields, plan.Plain(f.Path)) })
		out = append(out, d)
	}
	return out, nil
}

// again returns the decisions about a copy whose earlier one had fewer fields, or did not have the values that
// are listed of fields which are trusted now.
func (p *Planned) again(st *step, sv *survey.Survey) ([]decide.Decision, error) {
	s, list, err := p.earlier(st)
	if err != nil {
		return nil, err
	}
	decisions := st.decisions(sv)
	for n, pair := range st.Pairs {
		d := &decisions[n]
		j := slices.IndexFunc(s.Identity.Pairs, pair.Alike)
		if d.BySubtype || j < 0 {
			continue
		}
		was := s.Identity.Pairs[j]
		for i, f := range d.Fields {
			plain := plan.Plain(f.Path)
			k := slices.IndexFunc(s.Decisions[j].Fields, func(o decide.Field) bool { return plan.Plain(o.Path) == plain })
			if k < 0 || !slices.Contains(was.Fields, plain) {
				continue
			}
			d.Fields[i] = s.Decisions[j].Fields[k]
			if trusts(pair.Trust, plain) && !trusts(was.Trust, plain) {
				of, err := rule.Compile([]kinds.Pair{{From: pair.From, To: pair.To, Fields: []string{plain}}})
				if err != nil {
					return nil, err
				}
				if err := convert.EachListed(list, s, of, d.Fields[i].Convert); err != nil {
					return nil, migration.FileError(err)
				}
			}
		}
	}
	return decisions, nil
}

// goOn gives the state of a step that changes the copy of an earlier one the position of that in the change
// stream. It tells of what was deleted since; all documents are compared again.
func (p *Planned) goOn(st *step, f *convert.StateFile) error {
	s, _, err := p.earlier(st)
	if err == nil && s.Stream != nil {
		f.Stream = s.Stream
		f.Stream.Compared = false
	}
	return err
}

// trusts reports whether a field is among those that are trusted. It has no brackets.
func trusts(trusted []string, plain string) bool {
	return slices.ContainsFunc(trusted, func(t string) bool { return plan.Plain(t) == plain })
}

// seal writes the decision of each new step to its state file, and then the plan to the ledger. Nothing is
// converted by the plan before that.
func (p *Planned) seal(sv *survey.Survey) error {
	if p.state.Sealed() && p.state.Undone == "" && len(p.edited.New) == 0 && p.state.Is(p.plan, p.edited.Steps) {
		return nil
	}
	if err := p.state.Clean(); err != nil {
		return migration.FileError(err)
	}
	for _, st := range p.steps() {
		if !st.fresh {
			continue
		}
		d, err := p.decisions(st, sv)
		if err == nil && !st.Listed {
			err = mayWrite(d)
		}
		if err != nil {
			return err
		}
		f, err := convert.OpenState(st.options.State, st.options.ID)
		if err != nil {
			return migration.FileError(err)
		}
		f.Decisions, f.Conversion = d, ledger.NewID()
		if st.Again {
			if err := p.goOn(st, f); err != nil {
				return errors.Join(err, f.Close())
			}
		}
		if err := errors.Join(f.Save(), f.Close()); err != nil {
			return err
		}
	}
	if err := p.state.Adopt(p.plan, p.edited.Steps); err != nil {
		return migration.FileError(err)
	}
	return nil
}

// expected returns what the steps would change, from the survey, or from the state files of those that are
// decided.
func (p *Planned) expected(ctx context.Context, s *migration.Session, sv *survey.Survey) (out []report.AppliedStep, err error) {
	for _, st := range p.steps() {
		a := migration.Fresh(st.Step)
		if !st.fresh {
			if a, err = migration.StepOf(p.state, st.Step); err != nil {
				return nil, err
			}
			if err := p.dropped(ctx, s, &a); err != nil {
				return nil, err
			}
			out = append(out, a)
			continue
		}
		d, err := p.decisions(st, sv)
		if err != nil {
			return nil, err
		}
		switch {
		case st.Listed:
		case st.Part != "":
			if a.Values, err = p.dry(ctx, s, st, d); err != nil {
				return nil, err
			}
		default:
			for _, of := range d {
				for _, f := range of.Fields {
					a.Values += f.Values
				}
			}
		}
		if st.Listed {
			was, list, err := p.earlier(st)
			if err != nil {
				return nil, err
			}
			if err := convert.EachListed(list, was, st.options.Conversion, func([16]byte) { a.Values++ }); err != nil {
				return nil, migration.FileError(err)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// dropped changes the status of a copy that was made if it is not there any more.
func (p *Planned) dropped(ctx context.Context, s *migration.Session, a *report.AppliedStep) error {
	if a.Into == "" || a.Status != report.DoneStep {
		return nil
	}
	return s.Do(ctx, func() error {
		made, _ := p.state.Conversions()
		gone, err := migration.Dropped(ctx, s.Client.Database(p.plan.Database), made, a.Into)
		if len(gone) > 0 {
			s.Warn("%s.%s is not there any more: it will be made again", p.plan.Database, a.Into)
			a.Status, a.Documents, a.Skipped = report.Stopped, 0, 0
		}
		return err
	})
}
