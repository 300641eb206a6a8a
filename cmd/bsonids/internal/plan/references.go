package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// references adds the references between fields of collections of which one has something to convert, or to
// decide: two collections, or one, whose documents refer to each other.
func (b *builder) references(p *Plan) {
	p.References, b.fewer = nil, 0
	affected := make(map[string]bool)
	listed := make(map[string]bool)
	for _, c := range p.Collections {
		listed[c.Name] = true
		for _, f := range c.Fields {
			affected[c.Name] = affected[c.Name] || f.Decision != Leave || f.Stored == kinds.OfText // a person may convert it
		}
	}
	// Of many references, those that connect collections come first.
	const most = 200
	connected := make(map[string]string)
	var root func(name string) string
	root = func(name string) string {
		if up, ok := connected[name]; ok && up != name {
			return root(up)
		}
		return name
	}
	kept := make(map[string]bool)
	for _, c := range b.survey.Collections {
		kept[c.Name] = c.Kept != ""
	}
	found := slices.Clone(b.survey.References)
	slices.SortStableFunc(found, func(x, y scan.Reference) int { return cmp.Compare(y.Equal, x.Equal) })
	for _, r := range found {
		x, y := b.name(r.A.Namespace), b.name(r.B.Namespace)
		sample := b.sample(y) // a reference has it last
		if x == y && oneValue(Plain(r.A.Path), Plain(r.B.Path)) || kept[x] || kept[y] || !listed[x] || !listed[y] && sample == nil || !affected[x] && !affected[y] {
			continue
		}
		joins := root(x) != root(y)
		if !joins && len(p.References) >= most {
			b.fewer++
			continue
		}
		connected[root(x)] = root(y)
		ref := Reference{Between: [2]string{x, y}, Fields: []string{r.A.Path, r.B.Path},
			Comment: []string{fmt.Sprintf("%d equal values, of %d that were compared", r.Equal, r.Compared)}}
		if sample == nil {
			ref.Comment = append(ref.Comment, p.differ(ref.Between, r)...)
		} else {
			ref.Outside = ways(sample.Scan, r.B.Path)
		}
		p.References = append(p.References, ref)
	}
}

// oneValue reports whether two fields of a collection are the same values: of several filters, or a document of a Go
// struct and the value in it.
func oneValue(a, b string) bool { return a == b || a+".uuid" == b || b+".uuid" == a }

// sample returns the collection with the name of which a sample was read, or nil.
func (b *builder) sample(name string) *survey.Sample {
	i := slices.IndexFunc(b.survey.Samples, func(s survey.Sample) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &b.survey.Samples[i]
}

// ways returns how the values of a field are stored.
func ways(c scan.Collection, path string) (out []kinds.Stored) {
	for _, stored := range []kinds.Stored{kinds.Subtype3, kinds.Subtype4, kinds.Subtype0, kinds.OfText} {
		if slices.ContainsFunc(c.Fields, func(f scan.Field) bool { return Plain(f.Path) == Plain(path) && f.Counts.Of(stored) > 0 }) {
			out = append(out, stored)
		}
	}
	return out
}

func (b *builder) name(namespace string) string {
	for _, c := range b.survey.Collections {
		if c.Filter != "" && c.Namespace(b.survey.Database) == namespace {
			return c.Name
		}
	}
	return strings.TrimPrefix(namespace, b.survey.Database+".")
}

// ways returns how the values of a field of the plan are stored.
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
