package servertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// tested is what all collections together have shown.
type tested struct {
	mu                        sync.Mutex
	kinds                     tallies // mistakes
	results                   tallies // commands by exit code
	values                    tallies
	expected, variance, wrong float64
	conversions, finished     int
}

func (s *tested) count(t tallies, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t[name]++
}

// world is one collection with everything that happens to it.
type world struct {
	t       *testing.T
	r       *rand.Rand
	s       *mongotest.Server
	db      *mongo.Database
	coll    *mongo.Collection
	dir     string
	sum     *tested
	n       int
	ids     []any
	shapes  []shape
	values  []*tracked
	vouched map[string]bool   // the fields that the user has trusted
	dirs    []string          // of migrations, in the order in which they were made
	plan    string            // the directory with which the user goes on, most of the time
	damaged map[string]bool   // by directory
	old     map[string][]byte // by path
	late    []ran             // commands whose last writes may still arrive
	log     []string
}

// wish is what a plan says.
type wish struct {
	dir   string
	from  map[string][]uuidrep.Representation // by field: at most one of each subtype
	into  string
	trust []string
	extra []string // flags
	was   string   // the plan before it was edited last
}

// ran is a command that has ended.
type ran struct {
	wish
	undo string // the directory, if it is undo
	result
	killed bool
}

func newWorld(t *testing.T, s *mongotest.Server, db *mongo.Database, seed, i uint64, sum *tested) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, i)), s: s, db: db, dir: t.TempDir(), sum: sum, vouched: make(map[string]bool),
		damaged: make(map[string]bool), old: make(map[string][]byte)}
	w.n = []int{1, 3, 12, 16, 16, 20, 32}[w.r.IntN(7)]
	w.coll = db.Collection([]string{"c", "c", "c.d", "ü 'x"}[w.r.IntN(4)])
	if err := db.Drop(context.Background()); err != nil {
		t.Fatal(err)
	}
	w.shapes = shapes(w.r, w.n)
	for _, sh := range w.shapes {
		w.values = append(w.values, newField(w.r, sh, w.n, w.values)...)
	}
	var docs, known []any
	for doc := range w.n {
		w.ids = append(w.ids, []any{int32(doc), fmt.Sprintf("k%03d", doc), bson.ObjectID{11: byte(doc)}}[i%3])
		docs = append(docs, document(w.ids[doc], w.of(doc)))
	}
	insert(t, w.coll, docs)
	for _, v := range w.values { // some hashes have a known order
		if v.kind == hash && w.r.IntN(6) == 0 {
			known = append(known, bson.D{{Key: "ref", Value: in(v.id, uuidrep.Standard)}})
		}
	}
	if known != nil {
		insert(t, db.Collection("known"), known)
	}
	into := ""
	if w.r.IntN(10) == 0 {
		into = "new"
	}
	w.plan = w.newPlan(into)
	return w
}

func (w *world) of(doc int) (out []*tracked) {
	for _, v := range w.values {
		if v.doc == doc {
			out = append(out, v)
		}
	}
	return out
}

func (w *world) note(format string, args ...any) { w.log = append(w.log, fmt.Sprintf(format, args...)) }

// fail reports an error with the story so far.
func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\nthe collection: %+v, %d documents\n%s", fmt.Sprintf(format, args...), w.shapes, w.n, strings.Join(w.log, "\n"))
}

// converts returns the representation that the plan converts a value from that is stored so.
func (o wish) converts(v *tracked, is storedAs) (from uuidrep.Representation, ok bool) {
	for _, from := range o.from[v.field] {
		if _, ok := is.read(from); ok {
			return from, true
		}
	}
	return from, false
}

// line is the part of a line of a skip list that names the value as it is.
func (w *world) line(v *tracked) string {
	b, err := bson.MarshalExtJSON(bson.D{{Key: "_id", Value: w.ids[v.doc]}, {Key: "v", Value: v.now.binary()}}, true, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return v.path + string(b)
}

// listed returns the values on the skip lists of a directory.
func (w *world) listed(dir string) map[string]bool {
	out := make(map[string]bool)
	for _, path := range w.files(dir, "*.skipped.jsonl") {
		b, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			var l skipLine
			if json.Unmarshal(line, &l) == nil {
				out[l.Path+`{"_id":`+string(l.ID)+`,"v":`+string(l.Value)+"}"] = true
			}
		}
	}
	return out
}

// files returns the paths of the files of a directory that match the pattern, without locks.
func (w *world) files(dir, pattern string) []string {
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, ".lock") })
}

// observe compares the collection with what the commands of a step may have made of it.
func (w *world) observe(step []ran) {
	docs := all(w.t, w.coll)
	if len(docs) != w.n {
		w.fail("%d documents", len(docs))
	}
	for doc, id := range w.ids {
		raw := docs[marshalValue(w.t, id).String()]
		values := w.of(doc)
		for _, v := range values {
			subtype, octets, ok := valueAt(raw, v.path)
			if !ok {
				w.fail("document %v has no value at %s: %v", id, v.path, raw)
				return
			}
			if now := (storedAs{subtype, octets}); now != v.now {
				w.changed(v, now, step)
			}
		}
		if want := marshal(w.t, document(id, values)); !bytes.Equal(raw, want) {
			w.fail("document %v is %v, want %v", id, raw, want)
		}
	}
	for _, c := range step {
		if c.killed || c.code == failure.ExitUnreachable {
			w.late = append(w.late, c)
		}
		switch {
		case slices.ContainsFunc(step, func(other ran) bool { return (other.undo == "") != (c.undo == "") && other.code != failure.ExitUsage }):
			// Of an undo and a conversion, the other may have begun after this one ended.
		case c.undo != "":
			w.checkUndo(c)
		case c.into != "" && len(step) > 1:
			// The other may have changed what was copied.
		default:
			w.checkClaim(c)
		}
	}
}

// changed explains the change of a value, or fails.
func (w *world) changed(v *tracked, now storedAs, step []ran) {
	was := v.now
	defer func() { v.now, v.before = now, append(v.before, was) }()
	for _, c := range slices.Concat(step, w.late) {
		if c.code == failure.ExitUsage && !c.killed {
			continue // it refused
		}
		if c.undo != "" {
			if slices.Contains(v.before, now) {
				if v.misread != uuidrep.Unspecified && now == v.was {
					v.misread = uuidrep.Unspecified
				}
				return
			}
			continue
		}
		from, ok := c.converts(v, was)
		u, _ := was.read(from)
		if !ok || asStored(u, uuidrep.Standard) != now || c.into != "" {
			continue
		}
		if w.logged(c.dir, v) {
			v.byDir[c.dir] = was
		}
		if u == v.id || v.misread != uuidrep.Unspecified {
			return
		}
		v.misread, v.was = from, was
		if why := w.maybeMisread(v, from, fitsRFC(u)); why != "" {
			w.fail("%s of document %v, %x, is %v and was converted from %v: %s", v.path, w.ids[v.doc], was.b, v.id, from, why)
		}
		return
	}
	w.fail("%s of document %v, %x of subtype %d, which is %v, became %x of subtype %d", v.path, w.ids[v.doc], was.b, was.subtype, v.id, now.b, now.subtype)
}

// logged reports whether an undo log of the directory has the value as it is before the change.
func (w *world) logged(dir string, v *tracked) bool {
	old, err := bson.MarshalExtJSON(bson.D{{Key: "path", Value: v.path}, {Key: "old", Value: v.now.binary()}}, true, false)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(w.files(dir, "*.undo"), func(log string) bool {
		var b bytes.Buffer
		_ = undolog.WriteText(&b, log) // as far as it is whole
		return bytes.Contains(b.Bytes(), bytes.TrimSuffix(old, []byte("}")))
	})
}

// maybeMisread returns why the value should not have been read in a wrong order, or "" if that was
// to be expected of some values.
func (w *world) maybeMisread(v *tracked, from uuidrep.Representation, version int) string {
	switch {
	case w.vouched[v.field]:
		w.sum.count(w.sum.values, "misread, in a field with trust")
		return ""
	case version == 0:
		return "it does not fit the order"
	}
	right, other, hashes := w.orders(v, from)
	switch {
	case right < 5:
		return fmt.Sprintf("the field has %d values in the order", right)
	case other >= 12 && hashes == 0:
		return fmt.Sprintf("the field has %d values in the other order", other)
	}
	w.sum.count(w.sum.values, "misread, without proof of the order")
	return ""
}

// orders counts the values of a field: those that are or were in the order from, those that are in
// another one, do not fit from and still have the subtype of v, and the hashes. Fields that refer to another one count as one
// with it.
func (w *world) orders(v *tracked, from uuidrep.Representation) (right, other, hashes int) {
	for _, o := range w.values {
		if o.field != v.field && !w.shape(v.field).refers {
			continue
		}
		u, _ := o.now.read(from)
		switch {
		case o.kind == hash:
			hashes++
		case o.kind == symmetric:
		case o.in(from) || slices.Contains(o.before, asStored(o.id, from)):
			right++
		case o.field == v.field && fitsRFC(u) == 0 && o.now.subtype == v.now.subtype:
			other++
		}
	}
	return right, other, hashes
}

func (w *world) shape(field string) shape {
	return w.shapes[slices.IndexFunc(w.shapes, func(s shape) bool { return s.name == field })]
}

// valueAt returns the binary of 16 bytes at the path.
func valueAt(doc bson.Raw, path string) (subtype byte, octets [16]byte, ok bool) {
	v, err := doc.LookupErr(strings.Split(path, ".")...)
	if err != nil {
		return 0, octets, false
	}
	subtype, data, ok := v.BinaryOK()
	if !ok || len(data) != 16 {
		return 0, octets, false
	}
	return subtype, [16]byte(data), true
}
