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
	names := make(map[string]string) // of collections, by namespace
	for _, c := range b.survey.Collections {
		names[c.Namespace(b.survey.Database)] = c.Name
	}
	affected, listed := make(map[string]bool), make(map[string]bool)
	for _, c := range p.Collections {
		listed[c.Name] = !c.kept
		affected[c.Name] = affected[c.Name] || slices.ContainsFunc(c.Fields, func(f Field) bool {
			return f.Decision != Leave || f.isText() // a person may convert it
		})
	}
	// Of many references, those that connect collections come first.
	const most = 200
	joined := make(forest)
	found := slices.Clone(b.survey.References)
	slices.SortStableFunc(found, func(x, y scan.Reference) int { return cmp.Compare(y.Equal, x.Equal) })
	for _, r := range found {
		x, y := names[r.A.Namespace], names[r.B.Namespace]
		sample := -1
		if y == "" { // a reference has a sample last
			y = strings.TrimPrefix(r.B.Namespace, b.survey.Database+".")
			sample = slices.IndexFunc(b.survey.Samples, func(s survey.Sample) bool { return s.Name == y })
		}
		if x == y && oneValue(Plain(r.A.Path), Plain(r.B.Path)) || !listed[x] || !listed[y] && sample < 0 || !affected[x] && !affected[y] {
			continue
		}
		if !joined.join(x, y) && len(p.References) >= most {
			b.fewer++
			continue
		}
		ref := Reference{Between: [2]string{x, y}, Fields: []string{r.A.Path, r.B.Path},
			Comment: []string{fmt.Sprintf("%d equal values, of %d that were compared", r.Equal, r.Compared)}}
		if sample >= 0 {
			ref.Outside = ways(b.survey.Samples[sample].Scan, r.B.Path)
		} else if one, other := p.end(ref, 0), p.end(ref, 1); one.ways() != other.ways() && (one.hasText() || other.hasText()) {
			ref.Comment = append(ref.Comment, fmt.Sprintf("%s is %s, and %s is %s", one, one.ways(), other, other.ways()))
		}
		p.References = append(p.References, ref)
	}
}

// oneValue reports whether two fields of a collection are the same values: of several filters, or a document of a Go
// struct and the value in it.
func oneValue(a, b string) bool { return a == b || a+".uuid" == b || b+".uuid" == a }

// ways returns how the values of a field are stored.
func ways(c scan.Collection, path string) (out []kinds.Stored) {
	for _, stored := range []kinds.Stored{kinds.Subtype3, kinds.Subtype4, kinds.Subtype0, kinds.OfText, kinds.OfBinaryText} {
		if slices.ContainsFunc(c.Fields, func(f scan.Field) bool { return Plain(f.Path) == Plain(path) && f.Counts.Of(stored) > 0 }) {
			out = append(out, stored)
		}
	}
	return out
}
