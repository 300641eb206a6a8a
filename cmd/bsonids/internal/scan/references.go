package scan

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// End is a field that has values equal to those of another one.
type End struct{ Namespace, Path string }

// Reference is a pair of fields of two collections that have the same UUIDs. UUIDs in different byte
// orders are the same.
type Reference struct {
	A, B End
	// Equal is the number of distinct values that are in both, of Compared that could be found in
	// both.
	Equal, Compared int
}

// Sparse is a field with more distinct values than are compared.
type Sparse struct {
	End
	Distinct int64   // approximate number of distinct values
	Share    float64 // of its values that are compared
}

// Missed returns how many values two fields must share for the comparison to find one of them with
// a probability of 95 %, if one of the fields is s and the other is compared by at least as many
// of its values. Each value is compared with the probability Share, so that none of r is found with
// a probability of (1-Share)^r.
func (s Sparse) Missed() int64 {
	return int64(math.Ceil(math.Log(0.05) / math.Log1p(-s.Share)))
}

// occurrence is a value of a field.
type occurrence struct {
	field int
	value [16]byte
}

type ended struct {
	End
	limit uint64 // values with a lower hash are all known
	s     *sketch
}

// References returns the pairs of fields in different collections that have equal values, sorted,
// and the fields of which only a part of the values is compared. A value in many fields connects
// each of them with one field, an _id if there is one.
func (s *Scan) References() ([]Reference, []Sparse) {
	var fields []ended
	var sparse []Sparse
	for _, c := range s.collectors {
		for path, f := range c.fields {
			for _, held := range []*sketch{f.legacy, f.generic, f.reference, f.digits} {
				if held == nil {
					continue
				}
				e := ended{End{c.surveyed.Namespace, path}, held.limit(), held}
				fields = append(fields, e)
				if held.full {
					sparse = append(sparse, Sparse{e.End, held.distinct(), float64(e.limit) / math.MaxUint64})
				}
			}
		}
	}
	slices.SortFunc(fields, func(a, b ended) int {
		return cmp.Or(cmp.Compare(depth(a.Path), depth(b.Path)), compareEnds(a.End, b.End))
	})
	by := make(map[uint64][]occurrence)
	for i, e := range fields {
		for _, v := range e.s.entries {
			if !kinds.Symmetric(&v.value) {
				by[v.hash] = append(by[v.hash], occurrence{i, v.value})
			}
		}
	}
	found := make(map[[2]int]int)
	for _, held := range by {
		connect(fields, held, found)
	}
	merged := make(map[[2]End]Reference)
	for pair, n := range found {
		a, b := fields[pair[0]], fields[pair[1]]
		key := [2]End{a.End, b.End}
		r := merged[key]
		r.A, r.B, r.Equal = a.End, b.End, r.Equal+n
		r.Compared += min(a.below(b.limit), b.below(a.limit))
		merged[key] = r
	}
	out := make([]Reference, 0, len(merged))
	for _, r := range merged {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(compareEnds(a.A, b.A), compareEnds(a.B, b.B)) })
	slices.SortFunc(sparse, func(a, b Sparse) int { return cmp.Or(cmp.Compare(a.Share, b.Share), compareEnds(a.End, b.End)) })
	return out, sparse
}

// connect counts the values with one hash for the pairs of fields that have them.
func connect(fields []ended, held []occurrence, found map[[2]int]int) {
	for len(held) > 1 {
		first := held[0]
		rest := held[1:]
		held = nil
		for _, o := range rest {
			switch {
			case !kinds.SameUUID(first.value, o.value):
				held = append(held, o)
			case fields[first.field].Namespace != fields[o.field].Namespace:
				found[[2]int{first.field, o.field}]++
			}
		}
	}
}

// below returns how many of the compared values have a hash below limit.
func (e ended) below(limit uint64) int {
	n := 0
	for _, v := range e.s.entries {
		if (v.hash < limit || limit == math.MaxUint64) && !kinds.Symmetric(&v.value) {
			n++
		}
	}
	return n
}

// depth sorts _id before other fields, and other fields by how deep they are.
func depth(path string) int {
	if path == "_id" {
		return -1
	}
	return strings.Count(path, ".") + strings.Count(path, "[]")
}

func compareEnds(a, b End) int {
	return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Path, b.Path))
}
