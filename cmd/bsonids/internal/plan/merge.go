package plan

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Update brings the plan in the directory up to date by a survey, and writes it to the file name there. It
// changes only lines that it must: decisions, comments and edits stay. What is new is added as [Unknown], except
// for the collections with the names in adds, which are added as the survey suggests. It returns the plan. notes say what is new, and
// what is gone. What the steps begun have converted is not judged again.
// note, which is called before the plan is written, may add to its comment.
func (s *State) Update(sv *survey.Survey, name string, adds []string, begun []Step, note func(*Plan) error) (p *Plan, notes []string, err error) {
	path := filepath.Join(s.dir, PlanFile)
	text, err := os.ReadFile(path) // a person may have edited it since
	if err != nil {
		return nil, nil, err
	}
	p, text, notes, err = update(text, func() *Plan { return Build(sv, nil) }, sv.Definitions, begun, adds)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	(&builder{survey: sv}).describe(p)
	if err := note(p); err != nil {
		return nil, nil, err
	}
	return p, notes, files.Replace(filepath.Join(s.dir, name), withHead(text, p.Comment))
}

// update returns a plan, and its text, brought up to date by one that is made anew, and by the definitions of the database.
func update(text []byte, made func() *Plan, all constants.Definitions, begun []Step, adds []string) (p *Plan, is []byte, notes []string, err error) {
	if p, err = Parse(text); err != nil {
		return nil, nil, nil, err
	}
	m := &merger{comparison: comparison{plan: p, decided: begun}, fresh: made(), adds: adds}
	m.merge()
	p.Made, p.Only = m.fresh.Made, m.fresh.Only
	m.define(all)
	slices.Sort(m.notes)
	is, err = rewrite(text, p)
	return p, is, m.notes, err
}

// A merger brings a plan up to date by one that a survey suggests.
type merger struct {
	comparison
	fresh *Plan
	adds  []string // names of collections that a person adds
	notes []string
}

func (m *merger) note(format string, args ...any) {
	m.notes = append(m.notes, fmt.Sprintf(format, args...))
}

func (m *merger) merge() {
	// A reference that is not there any more may be one that a person has removed.
	copied := func(name string) bool {
		return !m.plan.has(name) && m.made(name)
	}
	var references []Reference
	for r, now := range pairs(m.plan.References, m.fresh.References, Reference.String) {
		switch {
		case r == nil && (m.plan.knows(*now) || copied(now.Between[0]) || copied(now.Between[1])):
			continue
		case r == nil:
			m.note("%s is new", now)
			r = now
		case now != nil:
			r.Outside, r.Comment = now.Outside, now.Comment
		case m.fresh.has(r.Between[0]) && m.fresh.has(r.Between[1]):
			r.Outside = nil
		}
		references = append(references, *r)
	}
	var collections []Collection
	for c, now := range pairs(m.plan.Collections, m.fresh.Collections, Collection.Entry) {
		if c == nil && copied(now.Name) {
			continue
		}
		if c = m.collection(c, now); c != nil {
			collections = append(collections, *c)
		}
	}
	m.plan.References, m.plan.Collections = references, collections
}

// define brings the definitions up to date by the decisions of the plan, which may be other ones than the survey suggests.
func (m *merger) define(all constants.Definitions) {
	var definitions []Definition
	for d, now := range pairs(m.plan.Definitions, m.plan.define(all), func(d Definition) [2]string { return [2]string{d.Of, d.Is} }) {
		switch {
		case d == nil:
			m.note("the %s has UUIDs that are converted", now.Of)
			d = now
		case now != nil:
			d.Comment = now.Comment
		case !d.Accepted:
			m.note("the %s has no UUIDs any more that are converted: remove its entry from the plan", d.Of)
		}
		definitions = append(definitions, *d)
	}
	m.plan.Definitions = definitions
}

// collection returns what becomes of a collection of the plan as the survey has it now, or nil. One of both may be
// nil.
func (m *merger) collection(c, now *Collection) *Collection {
	switch another := c != nil && now != nil && c.UUID != "" && now.UUID != c.UUID; {
	case c == nil && slices.Contains(m.adds, now.Name):
		m.note("%s: the collection is added", now.Entry())
		return now
	case c == nil:
		m.note("%s: the collection is new", now.Entry())
		now.Into = ""
		for i := range now.Fields {
			if !now.kept { // the old collection of a cutover stays as it is
				m.undecided(&now.Fields[i])
			}
		}
		return now
	case c.Into != "" && m.all(*c) && (now == nil || c.UUID == "" || another): // a cutover may have exchanged it
		return c
	case now == nil:
		what := "the collection is gone, or has no UUIDs any more"
		if c.Filter != "" {
			what = "no document with UUIDs matches the filter"
		}
		m.note("%s: %s: remove it from the plan", c.Entry(), what)
	case another:
		m.note("%s: another collection has the name; remove it from the plan, and run bsonids plan again", c.Entry())
	default:
		m.fields(c, *now)
		m.copy(c, now.Into)
	}
	return c
}

// fields brings the fields of a collection up to date.
func (m *merger) fields(c *Collection, now Collection) {
	var fields []Field
	for f, is := range pairs(c.Fields, now.Fields, Field.key) {
		switch {
		case f == nil && m.is(c.Entry(), *is):
			continue
		case f == nil:
			m.note("%s: the field %s is new", c.Entry(), is)
			m.undecided(is)
			f = is
		case m.is(c.Entry(), *f):
		case is == nil:
			m.note("%s: the field %s is gone", c.Entry(), f)
		default:
			if f.Comment = is.Comment; f.Decision != is.Decision || f.Trust != is.Trust {
				f.Comment = append(f.Comment, fmt.Sprintf("the survey suggests: %s", is.Decision))
			}
			if f.evidence() != is.evidence() {
				m.note("%s: the evidence of %s was %s and is %s", c.Entry(), f, f.evidence(), is.evidence())
				f.Evidence = is.Evidence
			}
		}
		fields = append(fields, *f)
	}
	c.Fields = fields
}

// undecided makes the decision about a new field unknown, if a plan may convert its values.
func (m *merger) undecided(f *Field) {
	if m.mayConvert(*f) {
		f.Comment = append(f.Comment, fmt.Sprintf("new: the survey suggests: %s", f.Decision))
		f.Decision = Unknown
	}
}

// copy gives a collection a new one, with the name into, if it is to be copied together with one that is added, and
// all others of their group, too.
func (m *merger) copy(c *Collection, into string) {
	if c.Into != "" || into == "" || !slices.ContainsFunc(m.fresh.Groups(), func(g []Step) bool {
		has := func(names ...string) bool {
			return slices.ContainsFunc(g, func(st Step) bool { return slices.Contains(names, st.Collection) })
		}
		return has(c.Name) && has(m.adds...) && !slices.ContainsFunc(m.plan.Collections, func(o Collection) bool { return has(o.Name) && !m.mayCopy(o) })
	}) {
		return
	}
	c.Into = into
	m.note("%q: it is copied now, with those that refer to each other", c.Name)
}

// mayCopy reports whether a collection is copied or may be. A person may have decided otherwise, a copy has no filter, and what was
// changed in place stays there.
func (m *merger) mayCopy(c Collection) bool {
	return c.Into != "" || c.Filter == "" && !c.left() &&
		!slices.ContainsFunc(m.decided, func(st Step) bool { return st.Collection == c.Name }) &&
		!slices.ContainsFunc(m.plan.References, func(r Reference) bool { return r.Accepted && slices.Contains(r.Between[:], c.Name) })
}

// knows reports whether the plan has both ends of the reference.
func (p *Plan) knows(r Reference) bool {
	for i, name := range r.Between {
		if !slices.ContainsFunc(p.Collections, func(c Collection) bool {
			return c.Name == name && (len(r.Fields) != 2 || slices.ContainsFunc(c.Fields, func(f Field) bool { return f.Plain() == Plain(r.Fields[i]) }))
		}) {
			return false
		}
	}
	return true
}
