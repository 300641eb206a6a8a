package servertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/uuidrep"
)

// storedAs is how a value is stored: the subtype and the bytes of a binary.
type storedAs struct {
	subtype byte
	b       [16]byte
}

// asStored returns how u is stored in the representation r.
func asStored(u uuid.UUID, r uuidrep.Representation) storedAs {
	b := in(u, r)
	return storedAs{b.Subtype, [16]byte(b.Data)}
}

func (s storedAs) binary() bson.Binary {
	return bson.Binary{Subtype: s.subtype, Data: bytes.Clone(s.b[:])}
}

// read returns the UUID that a reader with the representation r finds. ok is false if the subtype
// is not that of r.
func (s storedAs) read(r uuidrep.Representation) (u uuid.UUID, ok bool) {
	subtype, err := r.Subtype()
	if err != nil || subtype != s.subtype {
		return u, false
	}
	return r.Permute(s.b), true
}

// fitsRFC returns the version of u, or 0 if u does not have the variant and a version from 1 to 8
// (RFC 9562, sections 4.1 and 4.2).
func fitsRFC(u uuid.UUID) int {
	if v := int(u[6] >> 4); u[8]>>6 == 0b10 && v >= 1 && v <= 8 {
		return v
	}
	return 0
}

// The kinds of values.
const (
	regular   = iota // a UUID in the order of most of the field
	stray            // a random UUID of version 4 in another order
	hash             // random bytes
	symmetric        // the same in every order
)

// tracked is a value of the collection, and what is known about it.
type tracked struct {
	doc     int
	field   string // without brackets
	path    string
	kind    int
	id      uuid.UUID // the truth
	now     storedAs
	before  []storedAs             // what it was before each change
	byDir   map[string]storedAs    // what it was before the conversion of the migration in this directory
	misread uuidrep.Representation // Unspecified, or the wrong order in which a conversion read it
	was     storedAs               // what it was before it was misread
	counted map[uuidrep.Representation]bool
}

// in reports whether the value is stored as r stores it.
func (v *tracked) in(r uuidrep.Representation) bool { return v.now == asStored(v.id, r) }

// order returns the order in which the value is stored, and Unspecified if it was misread.
func (v *tracked) order() uuidrep.Representation {
	for _, r := range append([]uuidrep.Representation{uuidrep.Standard}, legacy...) {
		if v.in(r) {
			return r
		}
	}
	return uuidrep.Unspecified
}

// shape is what a field holds.
type shape struct {
	name     string
	version  int // of the regular values
	order    uuidrep.Representation
	other    uuidrep.Representation
	strays   int
	hashes   bool // every value is a hash
	sprinkle int  // hashes among UUIDs
	refers   bool // the values are those of the first field
}

// newUUID returns a UUID with random bytes, of the version. i numbers the values of a field: values
// with the same ten bits next to the version and the variant count as one.
func newUUID(r *rand.Rand, version, i int) uuid.UUID {
	var u uuid.UUID
	for k := range u {
		u[k] = byte(r.Uint32())
	}
	switch version {
	case 0:
		return u
	case 1: // 100 ns since 1582, of the year before 2026
		ticks := uint64(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()+12219292800)*1e7 + r.Uint64N(365*24*3600*1e7)
		u[0], u[1], u[2], u[3] = byte(ticks>>24), byte(ticks>>16), byte(ticks>>8), byte(ticks)
		u[4], u[5], u[6], u[7] = byte(ticks>>40), byte(ticks>>32), byte(ticks>>56), byte(ticks>>48)
	case 7:
		ms := uint64(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()) + r.Uint64N(365*24*3600*1000)
		u[0], u[1], u[2], u[3], u[4], u[5] = byte(ms>>40), byte(ms>>32), byte(ms>>24), byte(ms>>16), byte(ms>>8), byte(ms)
	default:
		bits := besides[i%len(besides)]
		u[6], u[8] = byte(bits>>6), byte(bits)
	}
	u[6], u[8] = u[6]&0x0f|byte(version)<<4, u[8]&0x3f|0x80
	return u
}

// newField makes the values of a field, one or more for each of n documents.
func newField(r *rand.Rand, s shape, n int, first []*tracked) []*tracked {
	var out []*tracked
	for doc := range n {
		v := &tracked{doc: doc, field: s.name, path: s.name, byDir: make(map[string]storedAs), counted: make(map[uuidrep.Representation]bool)}
		if s.name == "l.x" {
			v.path = "l.0.x"
		}
		order := s.order
		switch {
		case s.refers:
			v.id, v.kind, order = first[doc].id, first[doc].kind, first[doc].order()
		case s.hashes, doc >= n-s.sprinkle:
			v.id, v.kind = newUUID(r, 0, doc), hash
		case doc < s.strays:
			v.id, v.kind, order = newUUID(r, 4, doc), stray, s.other
		case doc == n-s.sprinkle-1 && r.IntN(4) == 0:
			v.kind = symmetric
		default:
			v.id = newUUID(r, s.version, doc)
		}
		if v.kind == symmetric {
			order = s.order
		}
		v.now = asStored(v.id, order)
		out = append(out, v)
	}
	return out
}

// document returns the document with the values as they should be now.
func document(id any, values []*tracked) bson.D {
	d := bson.D{{Key: "_id", Value: id}, {Key: "n", Value: int32(len(values))}}
	for _, v := range values {
		switch v.path {
		case "l.0.x":
			d = append(d, bson.E{Key: "l", Value: bson.A{bson.D{{Key: "x", Value: v.now.binary()}}, "tail"}})
		default:
			d = append(d, bson.E{Key: v.path, Value: v.now.binary()})
		}
	}
	return append(d, bson.E{Key: "s", Value: bson.Binary{Data: []byte("short")}})
}

// shapes invents the fields of a collection of n documents.
func shapes(r *rand.Rand, n int) []shape {
	main, other := legacy[r.IntN(3)], legacy[r.IntN(3)]
	for other == main {
		other = legacy[r.IntN(3)]
	}
	names := []string{"a", "l.x", "ü b"}[:1+r.IntN(3)]
	var out []shape
	for i, name := range names {
		s := shape{name: name, version: []int{4, 4, 4, 4, 7, 1}[r.IntN(6)], order: main, other: other}
		switch k := r.IntN(10); {
		case k < 3: // one order
		case k < 7:
			s.strays, s.version = 1+r.IntN(3), 4
		case k < 8 && n >= 30:
			s.strays, s.version = 14, 4
		case k < 9:
			s.hashes = true
		case i > 0:
			s.refers = true
		default:
			s.sprinkle = 1 + r.IntN(3)
		}
		out = append(out, s)
	}
	return out
}

// tally counts by name.
type tallies map[string]int

func (t tallies) String() string {
	var b bytes.Buffer
	for _, k := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "\n  %7d %s", t[k], k)
	}
	return b.String()
}

// checkClaim checks that an apply that says that a step is done has converted every value, or listed it.
func (w *world) checkClaim(c ran) {
	if c.killed || c.code != failure.ExitOK && c.code != failure.ExitIncomplete {
		return
	}
	var r struct{ Steps []migrate.AppliedStep }
	if err := json.Unmarshal([]byte(c.stdout), &r); err != nil {
		w.fail("exit code %d: %v, %s", c.code, err, c.stdout)
	}
	listed := w.listed(c.dir)
	for _, s := range r.Steps {
		if s.Collection != w.coll.Name() || s.Status != migrate.Done {
			continue
		}
		if s.Into != "" {
			w.checkCopy(c, s, listed)
			continue
		}
		w.sum.mu.Lock()
		w.sum.finished++
		w.sum.mu.Unlock()
		for _, v := range w.values {
			from, ok := c.converts(v, v.now)
			pair := slices.IndexFunc(s.Pairs, func(p kinds.Pair) bool { return slices.Contains(p.Fields, v.field) })
			if pair < 0 {
				continue
			}
			of, err := uuidrep.Parse(s.Pairs[pair].From)
			if err != nil {
				w.t.Fatal(err)
			}
			w.expect(v, of)
			if !ok || from != of || v.in(uuidrep.Standard) || v.misread != uuidrep.Unspecified {
				continue
			}
			if u, _ := v.now.read(from); asStored(u, uuidrep.Standard) == v.now {
				continue
			}
			if c.code != failure.ExitIncomplete || !listed[w.line(v)] && !w.damaged[c.dir] {
				w.fail("exit code %d, and %s of document %v is as it was and not on a list", c.code, v.path, w.ids[v.doc])
			}
		}
	}
}

// expect counts a value that a finished conversion may have misread, with the probability. Of random
// UUIDs of version 4, one in 64 fits one version in another order, and one in 16 between network
// order and C# order, which share the byte with the variant.
func (w *world) expect(v *tracked, from uuidrep.Representation) {
	order := v.order()
	if v.misread == from {
		order = w.shape(v.field).other
	}
	if v.kind != stray || v.counted[from] || w.vouched[v.field] || order == from || order == uuidrep.Unspecified || order == uuidrep.Standard ||
		w.shape(v.field).refers || w.shape(v.field).strays > 3 {
		return
	}
	if right, _, _ := w.orders(v, from); right < 12 {
		return
	}
	v.counted[from] = true
	p := 1.0 / 16
	if order == uuidrep.JavaLegacy || from == uuidrep.JavaLegacy {
		p = 1.0 / 64
	}
	w.sum.mu.Lock()
	defer w.sum.mu.Unlock()
	w.sum.expected += p
	w.sum.variance += p * (1 - p)
	if v.misread == from {
		w.sum.wrong++
	}
}

// interval returns a 99.9 % interval for the number of misread values.
func (s *tested) interval() (from, to float64) {
	margin := 3.2905*math.Sqrt(s.variance) + 1
	return max(0, s.expected-margin), s.expected + margin
}

// checkCopy checks the new collection of a step that is done.
func (w *world) checkCopy(c ran, s migrate.AppliedStep, listed map[string]bool) {
	copies := all(w.t, w.db.Collection(s.Into))
	if len(copies) != w.n {
		w.fail("%d copies of %d documents", len(copies), w.n)
	}
	for _, v := range w.values {
		subtype, octets, _ := valueAt(copies[marshalValue(w.t, w.ids[v.doc]).String()], v.path)
		got := storedAs{subtype, octets}
		from, ok := c.converts(v, v.now)
		u, _ := v.now.read(from)
		switch {
		case ok && got == asStored(u, uuidrep.Standard):
			if u != v.id && v.misread == uuidrep.Unspecified {
				if why := w.maybeMisread(v, from, fitsRFC(u)); why != "" {
					w.fail("%s of the copy %v: %s", v.path, w.ids[v.doc], why)
				}
			}
		case got != v.now:
			w.fail("%s of the copy %v is %x", v.path, w.ids[v.doc], got.b)
		case ok && !listed[w.line(v)] && !w.damaged[c.dir]:
			w.fail("%s of the copy %v is not converted and not listed", v.path, w.ids[v.doc])
		}
	}
}

// checkUndo checks that an undo that says that it is done has put everything back.
func (w *world) checkUndo(c ran) {
	if c.killed || c.code != failure.ExitOK {
		return
	}
	for _, v := range w.values {
		was, ok := v.byDir[c.undo]
		if !ok {
			continue
		}
		w.sum.count(w.sum.values, "put back by an undo that says so")
		if v.now != was {
			w.fail("undo says that it is done, and %s of document %v is %x, not %x", v.path, w.ids[v.doc], v.now.b, was.b)
		}
		delete(v.byDir, c.undo)
	}
}
