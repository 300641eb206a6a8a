package scan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// End is a field that has values equal to those of another one.
type End struct{ Namespace, Path string }

// Reference is a pair of fields of a database that have the same UUIDs, of one collection or of two. UUIDs in
// different byte orders are the same.
type Reference struct {
	A, B End
	// Equal is the number of distinct values that are in both, and Compared the number of those of the
	// field that has fewer.
	Equal, Compared int
}

// References returns the pairs of fields of a database that have equal values, sorted. A value in many fields
// connects each of them with one field, an _id if there is one. If collections were sampled, it also connects each
// field that is in none of these with one that is, but no two samples. It is called after Judge, which decides about
// text of 32 digits. An error is one of the temporary file.
func (s *Scan) References() ([]Reference, error) {
	found := make(map[[2]*field]int)
	var held []*field
	err := s.values.Groups(func(_ [16]byte, numbers []uint64) {
		held = held[:0]
		for _, n := range numbers {
			f, unsure := s.fields[n>>1], n&1 == 1
			if f != nil && (!unsure || f.showsDigits()) && (len(held) == 0 || held[len(held)-1] != f) {
				held = append(held, f)
			}
		}
		slices.SortFunc(held, func(a, b *field) int {
			return cmp.Or(strings.Compare(a.in.database, b.in.database), cmp.Compare(depth(a.Path), depth(b.Path)), compareEnds(a.End, b.End))
		})
		for rest := held; len(rest) > 0; { // one database after the other
			n := slices.IndexFunc(rest, func(f *field) bool { return f.in.database != rest[0].in.database })
			if n < 0 {
				n = len(rest)
			}
			connect(rest[:n], func(a, b *field) { found[[2]*field{a, b}]++ })
			rest = rest[n:]
		}
	})
	out := make([]Reference, 0, len(found))
	for pair, n := range found {
		out = append(out, Reference{pair[0].End, pair[1].End, n, min(pair[0].distinct, pair[1].distinct)})
	}
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(compareEnds(a.A, b.A), compareEnds(a.B, b.B)) })
	return out, err
}

// showsDigits reports whether the field has text of 32 digits, in a string or in a binary value, that is a UUID.
func (f *field) showsDigits() bool {
	return slices.ContainsFunc([]kinds.Stored{kinds.OfText, kinds.OfBinaryText}, func(s kinds.Stored) bool {
		return f.forms[s] != nil && f.forms[s].written[digits] > 0
	})
}

// connect calls pair for each pair of fields that a value connects, which are all the fields of a database that
// have it.
func connect(held []*field, pair func(a, b *field)) {
	var read, samples []*field
	for _, f := range held {
		f.distinct++
		if f.in.sample {
			samples = append(samples, f)
		} else {
			read = append(read, f)
		}
	}
	for i, f := range read {
		if i > 0 {
			pair(read[0], f)
		}
		if len(samples) > 0 {
			pair(f, samples[0])
		}
	}
	for _, f := range samples[min(1, len(samples)):] {
		if len(read) > 0 {
			pair(read[0], f)
		}
	}
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
