package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

func observedIn(c survey.Collection) Collection {
	return Collection{Name: c.Name, Filter: c.Filter, UUID: c.UUID, Fields: fields(c), kept: c.Kept != "", unexchangeable: c.Unexchangeable}
}

// fields returns the fields of a collection that have UUIDs, with their evidence and without
// decisions, sorted.
func fields(c survey.Collection) (out []Field) {
	for _, stored := range []kinds.Stored{kinds.Subtype3, kinds.Subtype0, kinds.OfText, kinds.GoStruct, kinds.OfBinaryText} {
		orders := stored.Kinds()
		for i, d := range c.Scan.Decisions[orders[0].Name].Fields {
			f := Field{Path: d.Path, Stored: stored}
			if stored == kinds.GoStruct && !slices.ContainsFunc(c.Scan.Fields, func(s scan.Field) bool { return Plain(s.Path) == f.Plain() && s.Counts.Structs > 0 }) {
				continue
			}
			for _, k := range orders {
				f.Evidence = append(f.Evidence, evidence(k.Name, c.Scan.Decisions[k.Name].Fields[i]))
			}
			out = append(out, f)
		}
	}
	for _, s := range c.Scan.Fields { // without a decision
		for _, stored := range []kinds.Stored{kinds.Subtype4, kinds.OfText, kinds.OfBinaryText, kinds.OfMalformed} {
			f := Field{Path: s.Path, Stored: stored}
			if s.Counts.Of(stored) > 0 && !slices.ContainsFunc(out, f.same) {
				out = append(out, f)
			}
		}
	}
	for i := range out {
		out[i].reach(c)
	}
	slices.SortFunc(out, func(a, b Field) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(string(a.Stored), string(b.Stored)))
	})
	return out
}

// reach counts the values of the field, and those that a conversion does not reach.
func (f *Field) reach(c survey.Collection) {
	for _, s := range c.Scan.Fields {
		if Plain(s.Path) != f.Plain() {
			continue
		}
		odd, n := s.Odd, s.Counts.Standard+s.Counts.Legacy+s.Counts.Generic
		if f.Stored == kinds.OfMalformed {
			f.values += s.Counts.Malformed
			continue
		}
		if !f.Stored.IsBinary() {
			i := slices.IndexFunc(s.Forms, func(e scan.FormEvidence) bool { return e.Form == string(f.Stored) })
			if i < 0 {
				continue
			}
			odd, n = s.Forms[i].Odd, s.Forms[i].Written.Sum()
		}
		f.odd.Unaddressable += odd.Unaddressable
		f.odd.Unnamable += odd.Unnamable
		f.odd.Reason = cmp.Or(f.odd.Reason, odd.Reason)
		f.values += n
	}
}

func evidence(kind string, f decide.Field) Evidence {
	e := Evidence{Order: kind, By: f.Basis, Versions: f.Versions, Digits: f.Digits}
	for _, r := range f.Against {
		e.Against = append(e.Against, r.Order)
	}
	if f.Basis == decide.None {
		e.Versions, e.Against = nil, nil // of no consequence
	}
	return e
}

func decided(c survey.Collection, kind, path string) (decide.Field, bool) {
	i := slices.IndexFunc(c.Scan.Decisions[kind].Fields, func(d decide.Field) bool { return Plain(d.Path) == Plain(path) })
	if i < 0 {
		return decide.Field{}, false
	}
	return c.Scan.Decisions[kind].Fields[i], true
}
