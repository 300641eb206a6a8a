package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// formFields returns the fields of a collection that have UUIDs in text, or documents of Go structs.
func formFields(c survey.Collection) []Field {
	var out []Field
	for _, stored := range []kinds.Stored{kinds.OfText, kinds.GoStruct} {
		count := func(path string) (n int64) {
			for _, f := range c.Scan.Fields {
				if Plain(f.Path) == Plain(path) {
					n += f.Counts.Structs
				}
			}
			return n
		}
		for _, f := range c.Decisions[string(stored)].Fields {
			if stored == kinds.OfText || count(f.Path) > 0 { // text of 32 digits that shows nothing can be trusted
				e := evidence(string(stored), f)
				e.Digits = f.Digits
				out = append(out, Field{Path: f.Path, Stored: stored, Evidence: []Evidence{e}})
			}
		}
	}
	return out
}

// count adds the values of a path of the field, and those that a conversion does not reach.
func (f *Field) count(s scan.Field) {
	add := func(o scan.Odd, values int64) {
		f.odd.Unaddressable += o.Unaddressable
		f.odd.Unnamable += o.Unnamable
		f.odd.Reason = cmp.Or(f.odd.Reason, o.Reason)
		f.values += values
	}
	if f.Stored.IsBinary() {
		add(s.Odd, s.Counts.Standard+s.Counts.Legacy+s.Counts.Generic)
	}
	for _, e := range s.Forms {
		if e.Form == string(f.Stored) {
			add(e.Odd, e.Written.Sum())
		}
	}
}

// form makes the decision about a field of values that are not binary: to leave them.
func (b *builder) form(f *Field, c survey.Collection) {
	comment := func(format string, args ...any) { f.Comment = append(f.Comment, fmt.Sprintf(format, args...)) }
	f.Decision = Leave
	values, distinct := counts(f, c)
	nils := int64(0)
	comment("%d values, %d distinct", values, distinct)
	for _, s := range c.Scan.Fields {
		for _, e := range s.Forms {
			if Plain(s.Path) == f.Plain() && e.Form == string(f.Stored) {
				nils += int64(e.Uninformative)
				comment("%s: %s", e.Form, report.FormHeadline(e))
				for _, r := range e.Reasons {
					comment("- %s", r)
				}
			}
		}
	}
	d, ok := decided(c, string(f.Stored), f.Path)
	switch {
	case !ok:
		comment("left: there are more fields than are distinguished")
	case f.Stored == kinds.OfText && d.Basis == decide.None:
		comment("left: %s", d.Reason)
		comment("if you know that they are UUIDs, convert from text with trust: true makes them %s", b.to.Name)
	case f.Stored == kinds.OfText:
		comment("left: text is not wrong, and programs that read it must read binary values afterwards; convert from text makes it %s", b.to.Name)
	default:
		comment("left: programs that read these documents must read UUIDs afterwards; convert from goStruct replaces each document by")
		comment("the UUID in it, or by null if valid is false. Then leave %s.uuid. Or convert only the values in them, at %s.uuid", f.Path, f.Path)
	}
	if InID(f.Path) && !b.dump {
		comment("for _id, name a new collection with into; bsonids cutover does not exchange it, because its _ids do not show the old ones")
	}
	if n := f.unusable(false); n > 0 && !b.dump {
		comment("%d values cannot be converted in place (%v)", n, f.odd.Reason)
	}
	if left := d.Distinct - d.Fits - nils; ok && left > 0 && d.Basis != decide.Symmetric && d.Basis != decide.None {
		comment("%d distinct values do not show that they are UUIDs; the conversion leaves and lists them, except the nil UUID and the max UUID", left)
	}
}

// result returns how the values of a field are stored after the conversion.
func (p *Plan) result(f Field) kinds.Stored {
	if f.Decision.ToText() {
		return kinds.OfText
	}
	to, err := kinds.ParseBinary(p.To)
	if err != nil {
		return ""
	}
	return to.Stored()
}

// forms checks a field that is converted from values that are not binary, or to text, with the other
// fields of the collection: what one conversion writes, another one must not read.
func (c *checker) forms(coll Collection, f Field, fail func(string, ...any)) {
	pattern, err := namable(f.Path)
	if err != nil {
		return
	}
	for _, o := range coll.Fields {
		if _, ok := o.Decision.From(); !ok || o.same(f) {
			continue
		}
		other, err := namable(o.Path)
		if err != nil {
			continue
		}
		same := pattern.MatchField(o.Path) || other.MatchField(f.Path)
		switch {
		case same && (c.plan.result(f) == o.Stored || c.plan.result(o) == f.Stored):
			fail("the values that are %s become %s, which are converted, too: leave one of them", f.Stored, c.plan.result(f))
		case f.Stored == kinds.GoStruct && pattern.MatchField(strings.TrimSuffix(o.Plain(), ".uuid")) && strings.HasSuffix(o.Plain(), ".uuid"):
			fail("the values at %q are converted with the documents: leave them", o.Path)
		}
	}
}

// ways returns how the values of a field are stored.
func (p *Plan) ways(collection, path string) []kinds.Stored {
	var out []kinds.Stored
	for _, c := range p.Collections {
		for _, f := range c.Fields {
			if c.Name == collection && f.Plain() == Plain(path) && !slices.Contains(out, f.Stored) {
				out = append(out, f.Stored)
			}
		}
	}
	return out
}

// differ returns a comment if one end of a reference is text and the other is not, or only partly.
func (p *Plan) differ(names [2]string, r scan.Reference) []string {
	a, b := p.ways(names[0], r.A.Path), p.ways(names[1], r.B.Path)
	if slices.Equal(a, b) || !slices.Contains(a, kinds.OfText) && !slices.Contains(b, kinds.OfText) {
		return nil
	}
	return []string{fmt.Sprintf("%s %s is %s, and %s %s is %s", names[0], r.A.Path, storedAs(a, " and "), names[1], r.B.Path, storedAs(b, " and "))}
}

// storedAs lists how values are stored.
func storedAs(ways []kinds.Stored, between string) string {
	var s []string
	for _, w := range ways {
		s = append(s, string(w))
	}
	return strings.Join(s, between)
}
