package scan

import (
	"slices"
	"time"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// The shapes of UUIDs are the versions, and, for versions with a time, the same versions with an
// implausible time: the clock is wrong, or the format is not that of the RFC.
const (
	misdated1 = 9 + iota
	misdated6
	misdated7
	shapes
)

var (
	// The earliest times of UUIDs with a time, by version.
	firstV1 = time.Date(1995, 1, 1, 0, 0, 0, 0, time.UTC)
	firstV6 = time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC)
	firstV7 = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
)

// reading describes one value in one order.
type reading struct {
	version   int // 0 if it does not fit
	kind      int
	dated     bool
	plausible bool
	matches   []int32
	// odds is the likelihood for a UUID of the kind, relative to random bytes. It is 0 if the value
	// does not fit.
	odds   float64
	cell   uint16 // the bytes that contain version and variant
	octets [16]byte
}

// weight returns the likelihood, relative to random bytes, given the shares of the shapes.
func (r *reading) weight(shares *[shapes]float64) float64 {
	w := r.odds * shares[r.kind]
	if len(r.matches) > 0 {
		w = max(w, 1) * matchFactor
	}
	return w
}

func read(u [16]byte, refs *references, now time.Time) reading {
	r := reading{cell: uint16(u[6])<<8 | uint16(u[8]), octets: u, matches: refs.ids[u]}
	if v := int(u[6] >> 4); u[8]>>6 == 0b10 && v >= 1 && v <= 8 {
		r.version, r.kind, r.odds = v, v, bitsFactor
		if t, err := uuidgen.Time(u); err == nil {
			r.dated = true
			first, misdated := firstV1, misdated1
			var span float64 // the part of the range of the version that is plausible
			switch v {
			case 7:
				first, misdated = firstV7, misdated7
				span = float64(now.Sub(first).Milliseconds()) / (1 << 48)
			default:
				if v == 6 {
					first, misdated = firstV6, misdated6
				}
				span = float64(now.Sub(first).Microseconds()) * 10 / (1 << 60)
			}
			r.plausible = !t.Before(first) && !t.After(now.Add(24*time.Hour))
			if r.plausible {
				r.odds /= span
			} else {
				r.kind = misdated
				r.odds /= 1 - span
			}
		}
	}
	return r
}

// readings describes one value in each order.
type readings [orders]reading

// matched reports whether the value, in any order, is equal to an id elsewhere.
func (r *readings) matched() bool {
	return slices.ContainsFunc(r[:], func(r reading) bool { return len(r.matches) > 0 })
}

func symmetric(v [16]byte) bool {
	return uuidrep.CSharpLegacy.Permute(v) == v && uuidrep.JavaLegacy.Permute(v) == v
}
