package scan

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
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

// seen is a field with values that are compared.
type seen struct {
	End
	database string
	field    *field
	sample   bool
	distinct int
}

// compare adds a value of the field, which is compared with those of other fields. digits is set if it is
// text of 32 digits.
func (c *Collector) compare(f *field, v [16]byte, digits bool) error {
	if c.scan.values == nil || kinds.Symmetric(&v) {
		return nil
	}
	v = kinds.Canonical(v)
	number := f.number << 1
	if digits {
		number |= 1
	}
	return c.scan.values.Add(spill.Record{binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:]), number})
}

// References returns the pairs of fields of a database that have equal values, sorted. A value in many fields connects each of them with one field, an _id if there is one. If collections were
// sampled, it also connects each field that is in none of these with one that is, but no two samples. It is called after
// Judge, which decides about text of 32 digits. An error is one of the temporary file.
func (s *Scan) References() ([]Reference, error) {
	found := make(map[[2]*seen]int)
	var last spill.Record
	var held []*seen
	done := func() {
		slices.SortFunc(held, func(a, b *seen) int {
			return cmp.Or(strings.Compare(a.database, b.database), cmp.Compare(depth(a.Path), depth(b.Path)), compareEnds(a.End, b.End))
		})
		for rest := held; len(rest) > 0; { // one database after the other
			n := slices.IndexFunc(rest, func(f *seen) bool { return f.database != rest[0].database })
			if n < 0 {
				n = len(rest)
			}
			connect(rest[:n], func(a, b *seen) { found[[2]*seen{a, b}]++ })
			rest = rest[n:]
		}
		held = held[:0]
	}
	err := s.values.Each(func(r spill.Record) error {
		if r[0] != last[0] || r[1] != last[1] {
			done()
		}
		last = r
		f, digits := s.seen[r[2]>>1], r[2]&1 == 1
		if f != nil && (!digits || f.field.text.written.Digits > 0) && (len(held) == 0 || held[len(held)-1] != f) {
			held = append(held, f)
		}
		return nil
	})
	done()
	out := make([]Reference, 0, len(found))
	for pair, n := range found {
		out = append(out, Reference{pair[0].End, pair[1].End, n, min(pair[0].distinct, pair[1].distinct)})
	}
	slices.SortFunc(out, func(a, b Reference) int { return cmp.Or(compareEnds(a.A, b.A), compareEnds(a.B, b.B)) })
	return out, err
}

// connect calls pair for each pair of fields that a value connects, which are all the fields of a database that
// have it.
func connect(held []*seen, pair func(a, b *seen)) {
	var read, samples []*seen
	for _, f := range held {
		f.distinct++
		if f.sample {
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
