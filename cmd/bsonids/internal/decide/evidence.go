package decide

import (
	"math"
	"slices"
)

// Level is the probability that the tests of one field together find an order in random bytes.
const Level = 1e-6

// tests is the maximum number of tests for a field: in each order, two for each of eight versions
// and one for all versions together. They are made on all values and, except in the order of
// --from, also on the values that fit only that order.
const tests = (orders + orders - 1) * 17

// The probabilities for random bytes.
const (
	oneVersion = 1.0 / 64
	anyVersion = 1.0 / 8
	variant    = 1.0 / 4
)

// evidence returns the versions of RFC 9562 that more of the counted values have, read in order o,
// than chance explains. It returns none if the order does not pass. Versions that pass are taken out of the count, and the
// others are tested once more: a few UUIDs of one version are not lost among many of another one.
//
// Version 1 alone proves neither network nor C# order. The sequential GUIDs of SQL Server
// (NEWSEQUENTIALID) are version 1 with the first three groups shuffled, so they look like version 1
// in the other order. maybeSequential reports this case. level is the probability of an error for
// all tests of the field together.
func (t *tally) evidence(o int, c count, level float64) (versions []int, maybeSequential bool) {
	total := 0.0
	for v := 1; v <= 8; v++ {
		k := c.versions[v]
		share := t.independence(o, v, k)
		if v > 1 || o == java {
			total += float64(k) * share
		}
		if passes(o, c, k, c.digits[v], share, oneVersion, level) {
			versions = append(versions, v)
		}
	}
	rest := c
	for _, v := range versions {
		rest.without(v)
	}
	for v := 1; v <= 8 && len(versions) > 0; v++ {
		if k := rest.versions[v]; passes(o, rest, k, rest.digits[v], t.independence(o, v, k), oneVersion, level) {
			versions = append(versions, v)
		}
	}
	slices.Sort(versions)
	if o != java && len(versions) == 1 && versions[0] == 1 {
		versions, maybeSequential = nil, true
	}
	fits := c.fits()
	if o != java {
		fits -= c.versions[1]
	}
	if len(versions) == 0 && fits > 0 && passes(o, c, fits, sum(c.digits), total/float64(fits), anyVersion, level) {
		for v := 1; v <= 8; v++ {
			if c.versions[v] > 0 && (v > 1 || o == java) {
				versions = append(versions, v)
			}
		}
	}
	return versions, maybeSequential && len(versions) == 0
}

// passes tests whether the independent values among k fitting ones, a share of them, are more than chance explains: of
// all counted values, each with the probability p; of those with the variant, because network and C# order
// share its place; and of the digits, which are how many values have the digit of such a version. Two
// floating-point numbers, for example, may all have the variant, or all the digit, and the other one by
// chance.
func passes(o int, c count, k, digits int64, share, p, level float64) bool {
	worth := int64(float64(k)*share + 1e-9)
	if worth < 1 {
		return false
	}
	// The limit falls by the bits for each value, so that a few values suffice, which the other tests bound.
	unlikely := func(of int64, p, bits float64) bool {
		return atLeast(worth, of, p) <= max(level/tests, math.Exp2(-4-bits*float64(of)))
	}
	strict, shared := math.Inf(1), math.Inf(1)
	if o == java { // no other order has the variant in this place
		shared = 0.5
	}
	return unlikely(c.n, p, strict) && unlikely(c.variant, p/variant, shared) && unlikely(digits, variant, 1)
}
