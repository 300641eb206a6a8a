package servertest

import (
	"encoding/json"
	"math"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/uuidrep"
)

// checkClaim checks that a conversion that says that it is done has converted every value, or
// listed it.
func (w *world) checkClaim(c ran) {
	var report struct {
		Finished bool
		Decision *json.RawMessage
		Verified *bool
	}
	if c.killed || c.code != failure.ExitOK && c.code != failure.ExitIncomplete {
		return
	}
	if err := json.Unmarshal([]byte(c.stdout), &report); err != nil || !report.Finished {
		if c.into == "" {
			w.fail("exit code %d: %v, %s", c.code, err, c.stdout)
		}
		return
	}
	if report.Decision == nil && c.retry == "" {
		return // an earlier run had finished
	}
	if c.into != "" {
		w.checkCopy(c)
		return
	}
	w.sum.mu.Lock()
	w.sum.finished++
	w.sum.mu.Unlock()
	listed := w.listed(c.files.skip)
	for _, v := range w.values {
		if c.retry == "" {
			w.expect(v, c)
		}
		if !c.covers(w, v) || v.in(c.to) || v.misread != uuidrep.Unspecified {
			continue
		}
		if s, err := c.from.Subtype(); err != nil || v.now.subtype != s {
			continue
		}
		if u, _ := v.now.read(c.from); asStored(u, c.to) == v.now {
			continue
		}
		if c.code != failure.ExitIncomplete || !listed[w.line(v)] && !w.damaged[c.files.skip] {
			w.fail("exit code %d, and %s of document %v is as it was and not on the list", c.code, v.path, w.ids[v.doc])
		}
	}
}

// expect counts a value that a finished conversion may have misread, with the probability. Of random
// UUIDs of version 4, one in 64 fits one version in another order, and one in 16 between network
// order and C# order, which share the byte with the variant.
func (w *world) expect(v *tracked, c ran) {
	order := v.order()
	if v.misread == c.from {
		order = w.shape(v.field).other
	}
	if v.kind != stray || v.counted[c.from] || w.vouched[v.field] || order == c.from || order == uuidrep.Unspecified || order == uuidrep.Standard ||
		w.shape(v.field).refers || w.shape(v.field).strays > 3 || !c.covers(w, v) {
		return
	}
	if right, _, _ := w.orders(v, c.from); right < 12 {
		return
	}
	v.counted[c.from] = true
	p := 1.0 / 16
	if order == uuidrep.JavaLegacy || c.from == uuidrep.JavaLegacy {
		p = 1.0 / 64
	}
	w.sum.mu.Lock()
	defer w.sum.mu.Unlock()
	w.sum.expected += p
	w.sum.variance += p * (1 - p)
	if v.misread == c.from {
		w.sum.wrong++
	}
}

// interval returns a 99.9 % interval for the number of misread values.
func (s *tested) interval() (from, to float64) {
	margin := 3.2905*math.Sqrt(s.variance) + 1
	return max(0, s.expected-margin), s.expected + margin
}

// checkCopy checks the new collection of a finished conversion.
func (w *world) checkCopy(c ran) {
	copies, listed := all(w.t, w.db.Collection(c.into)), w.listed(c.files.skip)
	if len(copies) != w.n && c.part == "" {
		w.fail("%d copies of %d documents", len(copies), w.n)
	}
	part := wish{part: c.part}
	for _, v := range w.values {
		if !part.covers(w, v) {
			continue
		}
		subtype, octets, _ := valueAt(copies[marshalValue(w.t, w.ids[v.doc]).String()], v.path)
		got := storedAs{subtype, octets}
		u, ok := v.now.read(c.from)
		switch {
		case ok && c.covers(w, v) && got == asStored(u, c.to):
			if u != v.id && v.misread == uuidrep.Unspecified {
				if why := w.maybeMisread(v, c, fitsRFC(u)); why != "" {
					w.fail("%s of the copy %v: %s", v.path, w.ids[v.doc], why)
				}
			}
		case got != v.now:
			w.fail("%s of the copy %v is %x", v.path, w.ids[v.doc], got.b)
		case ok && c.covers(w, v) && !listed[w.line(v)] && !w.damaged[c.files.skip]:
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
		was, ok := v.byLog[c.undo]
		if !ok {
			continue
		}
		if v.now != was {
			w.fail("undo says that it is done, and %s of document %v is %x, not %x", v.path, w.ids[v.doc], v.now.b, was.b)
		}
		delete(v.byLog, c.undo)
	}
}
