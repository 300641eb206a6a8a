package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Build returns the plan that the survey suggests, with comments that explain each decision. of is nil unless it is
// about a dump.
func Build(s *survey.Survey, of *Dump) *Plan {
	b := &builder{survey: s, dump: of != nil}
	p := &Plan{Database: s.Database, Dump: of, Made: s.Made, Only: s.Only}
	if of == nil {
		p.Migration = record.NewID()
	}
	for _, c := range s.Collections {
		if coll := b.collection(c); len(coll.Fields) > 0 {
			p.Collections = append(p.Collections, coll)
		}
	}
	b.references(p)
	if of == nil { // in a dump, all fields are converted at once, those of _id too
		b.copies(p)
		b.references(p) // decisions may be other ones now
		b.sharded(p)
		p.Definitions = p.define(s.Definitions)
	}
	order(p)
	b.describe(p)
	return p
}

type builder struct {
	survey *survey.Survey
	dump   bool
	fewer  int // references that are left out, because others connect the same collections
}

// collection returns the entry of a collection, without fields if it has no UUIDs.
func (b *builder) collection(c survey.Collection) Collection {
	coll := observedIn(c)
	for i := range coll.Fields {
		if f := &coll.Fields[i]; coll.kept {
			f.Decision, f.Comment = Leave, []string{"left: " + c.Kept}
		} else {
			b.field(f, c)
		}
	}
	b.settle(&coll)
	coll.overlaps()
	coll.Comment = append(coll.Comment, fmt.Sprintf("%s: %s", c.Namespace(""), terminal.Count(c.Documents, "document")))
	if c.Malformed > 0 {
		coll.Comment = append(coll.Comment, fmt.Sprintf("%d documents could not be read.", c.Malformed))
	}
	if c.Scan.Overflow {
		coll.Comment = append(coll.Comment, "There are more fields than are distinguished; the rest is not listed.")
	}
	return coll
}

// comment adds a line to the comment about the field.
func (f *Field) comment(format string, args ...any) {
	f.Comment = append(f.Comment, fmt.Sprintf(format, args...))
}

// field makes the decision about a field.
func (b *builder) field(f *Field, c survey.Collection) {
	d, ok := decided(c, f.Stored.Kinds()[0].Name, f.Path)
	if f.Stored == kinds.OfMalformed {
		f.Decision = List
		f.comment("%d values of subtype 3 or 4 that are no UUIDs, because they do not have 16 bytes: they are listed with the reason, and counted as left;", f.values)
		f.comment("find the program that wrote them, and write leave if they may stay as they are")
		return
	}
	if f.Stored != kinds.Subtype4 {
		f.comment("%d values, %d distinct", d.Values, d.Distinct)
	}
	if f.Stored == kinds.Subtype0 && InID(f.Path) {
		f.comment("other systems may refuse an _id of subtype 0, such as Debezium in incremental snapshots")
	}
	nils := int64(0)
	for _, s := range c.Scan.Fields {
		if Plain(s.Path) != f.Plain() {
			continue
		}
		for _, e := range s.Evidence {
			if kinds.StoredAs(e.Subtype) == f.Stored {
				f.reasons(e.Headline(), e.Reasons)
				f.symmetrics = e.Uninformative
				if e.Settle != "" {
					f.comment("- to determine the byte order: %s", e.Settle)
				}
			}
		}
		for _, e := range s.Forms {
			if e.Form == string(f.Stored) {
				nils += int64(e.Uninformative)
				f.reasons(e.Form+": "+e.Headline(), e.Reasons)
			}
		}
	}
	switch {
	case !f.Stored.IsBinary():
		f.Decision = Leave
		b.form(f, d, ok, nils)
	case f.Stored != kinds.Subtype4:
		f.Decision = b.decision(f, c)
	default:
		f.Decision = Leave
		f.comment("the values are standard already")
	}
	f.leaveUnusable(true)
	if _, err := namable(f.Path); err != nil && f.Decision != Leave {
		f.Decision = Leave
		f.comment("left: %v, so that nothing can name it", err)
	}
}

func (f *Field) reasons(headline string, reasons []string) {
	f.comment("%s", headline)
	for _, r := range reasons {
		f.comment("- %s", r)
	}
}

// form explains why a field of values that are not binary is left. nils is the number of its nil UUIDs.
func (b *builder) form(f *Field, d decide.Field, ok bool, nils int64) {
	switch {
	case !ok:
		f.comment("left: there are more fields than are distinguished")
	case f.isText() && d.Basis == decide.None:
		f.comment("left: %s", d.Reason)
		f.comment("if you know that they are UUIDs, convert from %s with trust: true makes them standard", f.Stored)
	case f.Stored == kinds.OfText:
		f.comment("left: text is not wrong, and programs that read it must read binary values afterwards; convert from text makes it standard")
	case f.Stored == kinds.OfBinaryText:
		f.comment("left: they are the text of UUIDs in binary values, and programs that read it must read UUIDs afterwards; convert from binaryText makes them standard")
	default:
		f.comment("left: programs that read these documents must read UUIDs afterwards; convert from goStruct replaces each document by")
		f.comment("the UUID in it, or by null if valid is false. Then leave %s.uuid. Or convert only the values in them, at %s.uuid", f.Path, f.Path)
	}
	if InID(f.Path) && !b.dump {
		f.comment("for _id, name a new collection with into; bsonids cutover does not exchange it, because its _ids do not show the old ones")
	}
	if n := f.unusable(false); n > 0 && !b.dump {
		f.comment("%d values cannot be converted in place (%v)", n, f.odd.Reason)
	}
	if left := d.Distinct - d.Fits - nils; ok && left > 0 && d.Basis != decide.Symmetric && d.Basis != decide.None {
		f.comment("%d distinct values do not show that they are UUIDs; the conversion leaves and lists them, except the nil UUID and the max UUID", left)
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
		f.comment("unknown, because %d of %d binary values cannot be converted (%v); convert from %s converts the others", n, f.values, f.odd.Reason, kind)
	case copied:
		f.Decision = Leave
		f.comment("left: %v, and neither the conversion of a copy nor that of a dump can name it", f.odd.Reason)
	default:
		f.Decision = Leave
		f.comment("left: %v; only a copy, which into makes, or the conversion of a dump converts it", f.odd.Reason)
	}
}

// decision returns the decision about a field of subtype 3 or 0.
func (b *builder) decision(f *Field, c survey.Collection) Decision {
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
	switch {
	case symmetric:
		f.comment("every value is the same in every byte order: any may be named")
		return Convert(f.Evidence[0].Order)
	case len(proven) == 1:
		e, _ := f.In(proven[0])
		d, _ := decided(c, e.Order, f.Path)
		if len(e.Against) > 0 {
			f.comment("unknown, because the field also has values that are %s; convert from %s converts those that fit it alone, and lists the others",
				strings.Join(e.Against, " and "), e.Order)
			return Unknown
		}
		against := int64(len(d.Contradicted))
		if d.Fits == 0 {
			f.comment("unknown, because every value that fits %s is equal to an id of known order if it is read in another order", e.Order)
			return Unknown
		}
		if left := d.Distinct - f.symmetrics - d.Fits - against; left > 0 {
			f.comment("%d distinct values prove no order; they are left and listed, and trust: true beside the decision converts them from %s, too", left, e.Order)
		}
		if against > 0 {
			f.comment("%d distinct values are equal to ids of known order if they are read in another order; they are left and listed", against)
		}
		return Convert(e.Order)
	case len(proven) > 1:
		f.comment("unknown, because the field has values that are %s; convert from one of them converts the values that fit it alone, and lists the others",
			strings.Join(proven, " and "))
		return Unknown
	case len(equal) == 1:
		d, _ := decided(c, equal[0], f.Path)
		if d.Fits < d.Distinct {
			f.comment("unknown, because only %d of %d distinct values are equal to UUIDs of known order, which makes them %s; convert from %s converts these, "+
				"and lists the others, which trust: true converts, too", d.Fits, d.Distinct, equal[0], equal[0])
			return Unknown
		}
		f.comment("every value is equal to a UUID of known order, which makes it %s", equal[0])
		return Convert(equal[0])
	case f.Stored == kinds.Subtype0:
		f.comment("left, because nothing tells that these are UUIDs; they may be checksums")
		return Leave
	}
	f.comment("unknown: write leave, or convert from X with trust: true if you know the byte order")
	return Unknown
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
		if f.converted() && f.symmetric() {
			f.Decision = Convert(cmp.Or(first, f.Evidence[0].Order))
		}
	}
}

// overlaps leaves it to a person what becomes of fields with a name, such as *, that also names another field about
// which the decision is another one: the plan could not be applied.
func (c *Collection) overlaps() {
	for i := range c.Fields {
		f := &c.Fields[i]
		if o := c.overlapping(*f); o != "" {
			f.comment("unknown, because it also matches %q, about which the decision is not to %s: make one decision about both", o, f.Decision)
			f.Decision = Unknown
		}
	}
}

// overlapping returns the path of a field with another decision that has the same values as f by the name of f. It
// is empty if there is none.
func (c Collection) overlapping(f Field) string {
	pattern, bad := namable(f.Path)
	if !f.converted() || bad != nil {
		return ""
	}
	for _, o := range c.Fields {
		if !o.same(f) && o.Stored == f.Stored && o.Decision != f.Decision && pattern.MatchField(o.Path) {
			return o.Path
		}
	}
	return ""
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
	place := make(map[string]int)
	steps := p.Steps()
	for i, st := range steps {
		place[st.Collection] = i - len(steps)
	}
	slices.SortStableFunc(p.Collections, func(a, b Collection) int { return cmp.Compare(place[a.Name], place[b.Name]) })
}
