package decide

import (
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// The byte orders of stored values.
const (
	network = iota
	csharp
	java
	orders
)

var representations = kinds.Orders

// places holds the positions of the bytes that contain the version and the variant.
var places = [orders]struct{ version, variant int }{{6, 8}, {7, 8}, {1, 15}}

// orderOf returns the order of a representation. The order of standard is network order.
func orderOf(r uuidrep.Representation) int { return max(network, slices.Index(representations[:], r)) }

// orderName returns the name of an order for values of the subtype.
func orderName(o int, subtype byte) string { return kinds.NameOf(subtype, representations[o]) }

// hasVariant reports whether v, read in order o, has the variant of RFC 9562.
func hasVariant(v *[16]byte, o int) bool { return v[places[o].variant]>>6 == 0b10 }

// version returns the version of v read in order o, from 1 to 8, or 0 if it is not a UUID of RFC
// 9562.
func version(v *[16]byte, o int) int {
	if !hasVariant(v, o) {
		return 0
	}
	return digit(v, o)
}

// read returns the versions of v in the three orders.
func read(v *[16]byte) (versions [orders]int) {
	for o := range orders {
		versions[o] = version(v, o)
	}
	return versions
}

// cell returns the ten bits next to the version and the variant.
func cell(v *[16]byte, o int) int {
	return int(v[places[o].version]&0x0f)<<6 | int(v[places[o].variant]&0x3f)
}

// first holds, by version, the earliest time of UUIDs with a timestamp.
var first = map[int]time.Time{
	1: time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC),
	6: time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC),
	7: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
}

// plausible reports whether v, which has the version in order o, contains a time between the first
// use of the version and one day after now.
func plausible(v *[16]byte, o, version int, now time.Time) bool {
	since, ok := first[version]
	if !ok {
		return false
	}
	t, err := uuidgen.Time(representations[o].Permute(*v))
	return err == nil && !t.Before(since) && !t.After(now.Add(24*time.Hour))
}
