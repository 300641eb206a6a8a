package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Build returns the plan that the survey suggests, with comments that explain each decision.
func Build(s *survey.Survey, to kinds.Kind) *Plan { return build(s, to, nil) }

// BuildDump is Build for the dump.
func BuildDump(s *survey.Survey, to kinds.Kind, of Dump) *Plan { return build(s, to, &of) }

func build(s *survey.Survey, to kinds.Kind, of *Dump) *Plan {
	b := &builder{survey: s, to: to, dump: of != nil}
	p := &Plan{Database: s.Database, Dump: of, To: to.Name, Made: s.Made, Only: s.Only}
	for _, c := range s.Collections {
		if coll := b.collection(c); len(coll.Fields) > 0 {
			p.Collections = append(p.Collections, coll)
		}
	}
	b.references(p)
	if of == nil { // in a dump, all fields are converted at once, those of _id too
		b.copies(p)
		b.references(p) // decisions may be other ones now
	}
	order(p)
	b.describe(p)
	return p
}

type builder struct {
	survey *survey.Survey
	to     kinds.Kind
	dump   bool
	fewer  int // references that are left out, because others connect the same collections
}

// collection returns the entry of a collection, without fields if it has no UUIDs.
func (b *builder) collection(c survey.Collection) Collection {
	coll := observedIn(c)
	for i := range coll.Fields {
		b.field(&coll.Fields[i], c)
	}
	if c.Kept == "" {
		b.settle(&coll)
	} else {
		for i := range coll.Fields {
			coll.Fields[i].Decision, coll.Fields[i].Comment = Leave, []string{"left: " + c.Kept}
		}
	}
	coll.Comment = append(coll.Comment, fmt.Sprintf("%s: %s", c.Namespace(""), documents(c.Documents)))
	if c.Malformed > 0 {
		coll.Comment = append(coll.Comment, fmt.Sprintf("%d documents could not be read.", c.Malformed))
	}
	if c.Scan.Overflow {
		coll.Comment = append(coll.Comment, "There are more fields than are distinguished; the rest is not listed.")
	}
	return coll
}

func documents(n int64) string {
	if n == 1 {
		return "1 document"
	}
	return fmt.Sprintf("%d documents", n)
}

// fields returns the fields of a collection that have UUIDs, with their evidence and without
// decisions, sorted.
func fields(c survey.Collection) []Field {
	var out []Field
	for _, stored := range []kinds.Stored{kinds.Subtype3, kinds.Subtype0} {
		orders := stored.Kinds()
		for i, f := range c.Decisions[orders[0].Name].Fields {
			field := Field{Path: f.Path, Stored: stored}
			for _, k := range orders {
				field.Evidence = append(field.Evidence, evidence(k.Name, c.Decisions[k.Name].Fields[i]))
			}
			out = append(out, field)
		}
	}
	out = append(out, formFields(c)...)
	seen := make(map[string]bool)
	for _, f := range out {
		seen[f.Plain()+" "+string(f.Stored)] = true
	}
	for _, f := range c.Scan.Fields {
		for stored, n := range map[kinds.Stored]int64{kinds.Subtype4: f.Counts.Standard, kinds.OfText: f.Counts.Text} {
			if key := Plain(f.Path) + " " + string(stored); n > 0 && !seen[key] {
				seen[key] = true
				out = append(out, Field{Path: f.Path, Stored: stored})
			}
		}
	}
	for i := range out {
		f := &out[i]
		for _, s := range c.Scan.Fields {
			if Plain(s.Path) == f.Plain() {
				f.count(s)
			}
		}
	}
	slices.SortFunc(out, func(a, b Field) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.Stored), string(b.Stored)))
	})
	return out
}

func evidence(kind string, f decide.Field) Evidence {
	e := Evidence{Order: kind, By: f.Basis, Versions: f.Versions}
	for _, r := range f.Against {
		e.Against = append(e.Against, r.Order)
	}
	if f.Basis == decide.None {
		e.Versions, e.Against = nil, nil // of no consequence
	}
	return e
}

// field makes the decision about a field.
func (b *builder) field(f *Field, c survey.Collection) {
	comment := func(format string, args ...any) { f.Comment = append(f.Comment, fmt.Sprintf(format, args...)) }
	switch {
	case f.Stored == kinds.OfText || f.Stored == kinds.GoStruct:
		b.form(f, c)
		return
	case f.Stored == kinds.Subtype4 && b.to.Name == kinds.Standard:
		f.Decision = Leave
		comment("the values are standard already")
		return
	case f.Stored == kinds.Subtype4:
		f.Decision = Convert(kinds.Standard)
		comment("subtype 4 has one byte order")
		f.leaveUnusable(true)
		return
	}
	values, distinct := counts(f, c)
	comment("%d values, %d distinct", values, distinct)
	if f.Stored == kinds.Subtype0 && InID(f.Path) {
		comment("other systems may refuse an _id of subtype 0, such as Debezium in incremental snapshots")
	}
	for _, s := range c.Scan.Fields {
		if Plain(s.Path) != f.Plain() {
			continue
		}
		for _, e := range s.Evidence {
			if kinds.StoredAs(e.Subtype) == f.Stored {
				comment("%s", report.Headline(e))
				for _, r := range e.Reasons {
					comment("- %s", r)
				}
				if e.Settle != "" {
					comment("- to determine the byte order: %s", e.Settle)
				}
			}
		}
	}
	f.Decision = b.decision(f, c, comment)
	f.leaveUnusable(true)
	for _, l := range c.Left {
		if kinds.StoredAs(l.Subtype) == f.Stored && (len(l.Fields) == 0 || slices.Contains(l.Fields, f.Plain())) {
			f.Decision = Leave
			comment("left: a migration from %s to %s has converted some of the values, was abandoned on %s, and nothing tells which", l.From, l.To, l.At.UTC().Format(time.DateOnly))
		}
	}
	if _, err := namable(f.Path); err != nil && f.Decision != Leave {
		f.Decision = Leave
		comment("left: %v, so that nothing can name it", err)
	}
}

// leaveUnusable changes the decision to convert a field if the conversion does not reach its values
// because of their names.
func (f *Field) leaveUnusable(copied bool) {
	n := f.unusable(copied)
	kind, ok := f.Decision.From()
	switch {
	case n == 0 || !ok:
	case n < f.values:
		f.Decision = Unknown
		f.Comment = append(f.Comment, fmt.Sprintf("unknown, because %d of %d binary values cannot be converted (%v); convert from %s converts the others", n, f.values, f.odd.Reason, kind))
	default:
		f.Decision = Leave
		f.Comment = append(f.Comment, fmt.Sprintf("left: %v; only a copy, which into makes, or the conversion of a dump converts it", f.odd.Reason))
	}
}

// counts returns the numbers of values of a field.
func counts(f *Field, c survey.Collection) (values, distinct int64) {
	if len(f.Evidence) > 0 {
		for _, d := range c.Decisions[f.Evidence[0].Order].Fields {
			if d.Path == f.Path {
				return d.Values, d.Distinct
			}
		}
	}
	return 0, 0
}

// decision returns the decision about a field of subtype 3 or 0.
func (b *builder) decision(f *Field, c survey.Collection, comment func(string, ...any)) Decision {
	var proven, equal []string
	symmetric := len(f.Evidence) > 0
	for _, e := range f.Evidence {
		symmetric = symmetric && e.By == decide.Symmetric
		switch e.By {
		case decide.Evidence:
			proven = append(proven, e.Order)
		case decide.Equality:
			equal = append(equal, e.Order)
		}
	}
	converted := func(kind string) Decision {
		if kind == b.to.Name {
			comment("the values are %s already", kind)
			return Leave
		}
		return Convert(kind)
	}
	switch {
	case symmetric && f.Stored == kinds.Subtype3 && b.to.Subtype == 3:
		comment("every value is the same in every byte order: nothing is to convert")
		return Leave
	case symmetric:
		comment("every value is the same in every byte order: any may be named")
		return Convert(f.Evidence[0].Order)
	case len(proven) == 1:
		e, _ := f.In(proven[0])
		d, _ := decided(c, e.Order, f.Path)
		if len(e.Against) > 0 {
			comment("unknown, because the field also has values that are %s; convert from %s converts those that fit it alone, and lists the others",
				strings.Join(e.Against, " and "), e.Order)
			return Unknown
		}
		if left := d.Distinct - d.Fits; left > 0 && e.Order != b.to.Name {
			comment("%d distinct values do not fit %s, unless they are the same in every order; they are left and listed", left, e.Order)
		}
		return converted(e.Order)
	case len(proven) > 1:
		comment("unknown, because the field has values that are %s; convert from one of them converts the values that fit it alone, and lists the others",
			strings.Join(proven, " and "))
		return Unknown
	case len(equal) == 1:
		d, _ := decided(c, equal[0], f.Path)
		if d.Fits < d.Distinct {
			comment("unknown, because only %d of %d distinct values are equal to UUIDs of known order, which makes them %s; convert from %s converts these, "+
				"and lists the others", d.Fits, d.Distinct, equal[0], equal[0])
			return Unknown
		}
		comment("every value is equal to a UUID of known order, which makes it %s", equal[0])
		return converted(equal[0])
	case f.Stored == kinds.Subtype0:
		comment("left, because nothing tells that these are UUIDs; they may be checksums")
		return Leave
	}
	comment("unknown: write leave, or convert from X with trust: true if you know the byte order")
	return Unknown
}

func decided(c survey.Collection, kind, path string) (decide.Field, bool) {
	for _, d := range c.Decisions[kind].Fields {
		if Plain(d.Path) == Plain(path) {
			return d, true
		}
	}
	return decide.Field{}, false
}

// settle makes fields that are the same in every order follow others of the collection.
func (b *builder) settle(c *Collection) {
	first := ""
	for _, f := range c.Fields {
		if kind, ok := f.Decision.From(); ok && first == "" && f.Stored == kinds.Subtype3 && !f.symmetric() {
			first = kind
		}
	}
	for i := range c.Fields {
		f := &c.Fields[i]
		if _, ok := f.Decision.From(); ok && f.symmetric() {
			f.Decision = Convert(cmp.Or(first, f.Evidence[0].Order))
		}
	}
}

// symmetric reports whether every value of the field is the same in every byte order.
func (f Field) symmetric() bool {
	return f.Stored == kinds.Subtype3 && f.Evidence[0].By == decide.Symmetric
}

// free returns a name that no collection has.
func (b *builder) free(name string) string {
	for i, base := 2, name; slices.Contains(b.survey.Names, name); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	return name
}

// order sorts the collections: groups that refer to each other come together, in the order of
// their first names, and those without work are last.
func order(p *Plan) {
	var sorted []Collection
	done := make(map[string]bool)
	for _, g := range p.Groups() {
		for _, w := range g {
			for _, c := range p.Collections {
				if c.Name == w.Collection {
					sorted = append(sorted, c)
				}
			}
			done[w.Collection] = true
		}
	}
	for _, c := range p.Collections {
		if !done[c.Name] {
			sorted = append(sorted, c)
		}
	}
	p.Collections = sorted
}
