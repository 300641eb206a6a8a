package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// ErrLayout is wrapped by the error of a plan whose lines a person has laid out in another way.
var ErrLayout = errors.New("the lines of the plan are laid out in another way than bsonids plan writes them")

// Update brings the plan in the directory up to date by a survey, and writes it to the file name there. It
// changes only lines that it must: decisions, comments and edits stay. What is new is added as [Unknown], except
// for the collections with the names in adds, which are added as the survey suggests. notes say what is new, and
// what is gone. What steps have converted is not judged again.
func (s *State) Update(sv *survey.Survey, name string, adds []string) (notes []string, err error) {
	path := filepath.Join(s.dir, PlanFile)
	text, err := os.ReadFile(path) // a person may have edited it since
	if err != nil {
		return nil, err
	}
	var begun []Step
	if s.sealed && !s.Restored {
		if begun, _, err = s.begun(); err != nil {
			return nil, err
		}
	}
	text, notes, err = update(text, func(to kinds.Kind) *Plan { return Build(sv, to) }, begun, adds)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	p, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	(&builder{survey: sv}).describe(p)
	text = withHead(text, p.Comment)
	return notes, files.Replace(filepath.Join(s.dir, name), text)
}

// updater changes the text of a plan.
type updater struct {
	comparison
	plan, fresh *Plan    // the plan as it will be, and the one that the survey suggests
	adds        []string // names of collections that a person adds
	lines       []string
	notes       []string
}

// update returns the text of a plan, brought up to date by one that is made anew.
func update(text []byte, made func(to kinds.Kind) *Plan, begun []Step, adds []string) ([]byte, []string, error) {
	p, err := Parse(text)
	if err != nil {
		return nil, nil, err
	}
	root, err := document(text)
	if err != nil {
		return nil, nil, err
	}
	to, err := kinds.ParseBinary(p.To)
	if err != nil {
		return nil, nil, err
	}
	u := &updater{comparison: comparison{to: p.To, decided: begun}, plan: p, fresh: made(to), adds: adds, lines: strings.Split(string(text), "\n")}
	// From the end to the beginning, so that the numbers of the lines before stay.
	u.references(value(root, "references"))
	u.collections(value(root, "collections"))
	if n := value(root, "only"); n != nil && !slices.Equal(p.Only, u.fresh.Only) {
		p.Only = u.fresh.Only
		u.replace(n.Line, last(n), func(b *writer) { b.only(p) })
	}
	p.Made = u.fresh.Made
	at := value(root, "made").Line // a plan has it
	u.replace(at, at, func(b *writer) { b.made(p) })
	out := []byte(strings.Join(u.lines, "\n"))
	is, err := Parse(out)
	if err != nil || is.Digest() != p.Digest() {
		return nil, nil, fmt.Errorf("%w: make a new plan in another directory, and take over what you want", ErrLayout)
	}
	slices.Sort(u.notes)
	return out, u.notes, nil
}

// value returns the value of a key, or nil.
func value(n *yaml.Node, key string) *yaml.Node {
	for i := 0; n != nil && i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

// last returns the last line of a node.
func last(n *yaml.Node) int {
	line := n.Line
	for _, c := range n.Content {
		line = max(line, last(c))
	}
	return line
}

// replace replaces the lines from first to last, which are numbered from 1, by what f writes. It inserts before
// first if last is less.
func (u *updater) replace(first, last int, f func(b *writer)) {
	b := &writer{}
	f(b)
	var lines []string
	if s := strings.TrimSuffix(b.String(), "\n"); s != "" {
		lines = strings.Split(s, "\n")
	}
	u.lines = slices.Replace(u.lines, first-1, last, lines...)
}

// add adds what f writes to the list n, whose key is on one line with it if it is empty.
func (u *updater) add(n *yaml.Node, key string, f func(b *writer)) {
	if len(n.Content) == 0 {
		u.replace(n.Line, n.Line, func(b *writer) {
			b.line(0, "%s:", key)
			f(b)
		})
		return
	}
	u.replace(last(n)+1, last(n), f)
}

func (u *updater) note(format string, args ...any) {
	u.notes = append(u.notes, fmt.Sprintf(format, args...))
}

// undecided makes the decisions about new fields unknown, where a plan may convert their values.
func (c *comparison) undecided(fields []Field) {
	for i := range fields {
		if f := &fields[i]; c.mayConvert(f.Stored) {
			f.Comment = append(slices.Clone(f.Comment), fmt.Sprintf("new: the survey suggests: %s", f.Decision))
			f.Decision = Unknown
		}
	}
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

// references adds those of what is new: a person may have removed others.
func (u *updater) references(n *yaml.Node) {
	old := slices.Clone(u.plan.References)
	var add []Reference
	for _, r := range u.fresh.References {
		if !u.plan.knows(r) && !slices.ContainsFunc(old, r.same) && u.listed(r.Between[0]) && u.listed(r.Between[1]) {
			add = append(add, r)
		}
	}
	if write := func(b *writer) {
		for _, r := range add {
			b.reference(r)
		}
	}; len(add) > 0 && n != nil {
		u.add(n, "references", write)
	} else if len(add) > 0 {
		u.replace(len(u.lines)+1, len(u.lines), func(b *writer) {
			b.line(0, "references:")
			write(b)
		})
	}
	for i := len(old) - 1; i >= 0; i-- {
		u.outside(n.Content[i], &u.plan.References[i])
	}
	u.plan.References = append(u.plan.References, add...)
}

// outside brings up to date how the values of a collection are stored that the plan is not about.
func (u *updater) outside(n *yaml.Node, r *Reference) {
	is := r.Outside
	if i := slices.IndexFunc(u.fresh.References, r.same); i >= 0 {
		is = u.fresh.References[i].Outside
	} else if u.fresh.has(r.Between[0]) && u.fresh.has(r.Between[1]) {
		is = nil
	}
	if slices.Equal(r.Outside, is) {
		return
	}
	first, end := last(n)+1, last(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "outside" {
			first, end = n.Content[i].Line, last(n.Content[i+1])
		}
	}
	r.Outside = is
	u.replace(first, end, func(b *writer) { b.outside(*r) })
}

// made reports whether a step has made the collection, or that of another part.
func (u *updater) made(name string) bool {
	return slices.ContainsFunc(u.decided, func(st Step) bool { return st.Into == name }) || u.plan.sharesCopy(name)
}

// listed reports whether the plan will have the collection.
func (u *updater) listed(name string) bool { return u.plan.has(name) || !u.made(name) }

func (u *updater) collections(n *yaml.Node) {
	var add []Collection
	for _, c := range u.fresh.Collections {
		switch {
		case u.plan.find(c.Entry()) >= 0 || u.made(c.Name):
		case slices.Contains(u.adds, c.Name):
			add = append(add, c)
			u.note("%s: the collection is added", c.Entry())
		default:
			c.Fields = slices.Clone(c.Fields)
			c.Into = ""
			u.undecided(c.Fields)
			add = append(add, c)
			u.note("%s: the collection is new", c.Entry())
		}
	}
	if len(add) > 0 {
		u.add(n, "collections", func(b *writer) {
			for _, c := range add {
				b.collection(c)
			}
		})
	}
	for i := len(n.Content) - 1; i >= 0; i-- {
		c := &u.plan.Collections[i]
		j := u.fresh.find(c.Entry())
		switch {
		case c.Into != "" && u.all(*c) && (j < 0 || c.UUID == "" || u.fresh.Collections[j].UUID != c.UUID): // a cutover may have exchanged it
		case j < 0:
			what := "the collection is gone, or has no UUIDs any more"
			if c.Filter != "" {
				what = "no document with UUIDs matches the filter"
			}
			u.note("%s: %s: remove it from the plan", c.Entry(), what)
		case c.UUID != "" && u.fresh.Collections[j].UUID != c.UUID:
			u.note("%s: another collection has the name; remove it from the plan, and run bsonids plan again", c.Entry())
		default:
			u.fields(value(n.Content[i], "fields"), c, u.fresh.Collections[j])
			u.copy(n.Content[i], c, u.fresh.Collections[j].Into)
		}
	}
	u.plan.Collections = append(u.plan.Collections, add...)
}

// copy gives a collection a new one, with the name into, if it is to be copied together with one that is added, and
// all others of their group, too.
func (u *updater) copy(n *yaml.Node, c *Collection, into string) {
	if c.Into != "" || into == "" || !slices.ContainsFunc(u.fresh.Groups(), func(g []Work) bool {
		has := func(names ...string) bool {
			return slices.ContainsFunc(g, func(w Work) bool { return slices.Contains(names, w.Collection) })
		}
		return has(c.Name) && has(u.adds...) && !slices.ContainsFunc(u.plan.Collections, func(o Collection) bool { return has(o.Name) && !u.mayCopy(o) })
	}) {
		return
	}
	c.Into = into
	at := value(n, "name").Line // a collection has it
	if id := value(n, "uuid"); id != nil {
		at = id.Line
	}
	u.replace(at+1, at, func(b *writer) { b.into(*c) })
	u.note("%q: it is copied now, with those that refer to each other", c.Name)
}

// mayCopy reports whether a collection is copied or may be. A person may have decided otherwise, a copy has no filter, and what was
// changed in place stays there.
func (u *updater) mayCopy(c Collection) bool {
	return c.Into != "" || c.Guard == "" && c.Filter == "" && len(u.plan.steps(c)) == 1 &&
		!slices.ContainsFunc(u.decided, func(st Step) bool { return st.Collection == c.Name }) &&
		!slices.ContainsFunc(u.plan.References, func(r Reference) bool { return r.Accepted && slices.Contains(r.Between[:], c.Name) })
}

// fields brings the fields of a collection up to date.
func (u *updater) fields(n *yaml.Node, c *Collection, now Collection) {
	var add []Field
	for _, f := range now.Fields {
		if c.find(f) < 0 && !u.is(c.Entry(), f) {
			add = append(add, f)
			u.note("%s: the field %s is new", c.Entry(), f)
		}
	}
	u.undecided(add)
	if len(add) > 0 {
		u.add(n, "    fields", func(b *writer) {
			for _, f := range add {
				b.field(f)
			}
		})
	}
	for i := len(n.Content) - 1; i >= 0; i-- {
		f := &c.Fields[i]
		j := now.find(*f)
		switch {
		case u.is(c.Entry(), *f):
		case j < 0:
			u.note("%s: the field %s is gone", c.Entry(), f)
		case !slices.EqualFunc(f.Evidence, now.Fields[j].Evidence, Evidence.equal):
			f.Evidence = now.Fields[j].Evidence
			u.evidence(n.Content[i], *f)
			u.note("%s: the evidence of %s has changed", c.Entry(), f)
		}
	}
	c.Fields = append(c.Fields, add...)
}

// evidence replaces the evidence of a field.
func (u *updater) evidence(n *yaml.Node, f Field) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == "evidence" {
			u.replace(n.Content[i].Line, last(n.Content[i+1]), func(b *writer) { b.evidence(f) })
			return
		}
	}
	u.replace(last(n)+1, last(n), func(b *writer) { b.evidence(f) })
}
