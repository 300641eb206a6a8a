package servertest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/uuidrep"
)

// checkClaim checks that an apply that says that a step is done has converted every value, or listed it.
func (w *world) checkClaim(c ran) {
	if c.killed || c.code != failure.ExitOK && c.code != failure.ExitIncomplete {
		return
	}
	var r struct{ Steps []report.AppliedStep }
	if err := json.Unmarshal([]byte(c.stdout), &r); err != nil {
		w.fail("exit code %d: %v, %s", c.code, err, c.stdout)
	}
	listed := w.listed(c.dir)
	for _, s := range r.Steps {
		if s.Collection != w.coll.Name() || s.Status != report.DoneStep || slices.Contains(c.done, stepName(s)) {
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
			if s.Listed || pair < 0 {
				continue
			}
			of, err := uuidrep.Parse(s.Pairs[pair].From)
			if err != nil {
				w.t.Fatal(err)
			}
			w.expect(v, of)
			if !ok || from != of || v.in(c.to) || v.misread != uuidrep.Unspecified {
				continue
			}
			if u, _ := v.now.read(from); asStored(u, c.to) == v.now {
				continue
			}
			if c.code != failure.ExitIncomplete || !listed[w.line(v)] && !w.damaged[c.dir] {
				w.fail("exit code %d, and %s of document %v is as it was and not on a list", c.code, v.path, w.ids[v.doc])
			}
		}
	}
}

// stepName tells the steps of a directory apart.
func stepName(s report.AppliedStep) string {
	return fmt.Sprint(s.Collection, s.Pairs, s.Into, s.Pass, s.Listed)
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
func (w *world) checkCopy(c ran, s report.AppliedStep, listed map[string]bool) {
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
		case ok && got == asStored(u, c.to):
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
		if v.now != was {
			w.fail("undo says that it is done, and %s of document %v is %x, not %x", v.path, w.ids[v.doc], v.now.b, was.b)
		}
		delete(v.byDir, c.undo)
	}
}
