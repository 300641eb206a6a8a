package convert

import (
	"bytes"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// running is a conversion in place of a collection, whose runs have their logs in a directory.
type running struct {
	*testing.T
	s    *memory.Server
	coll *mongo.Collection
	c    rule.Conversion
	dir  string
	runs int
	// patience is that of the runs, or nil.
	patience *patience.Patience
}

func newRunning(t *testing.T, c rule.Conversion, docs ...any) *running {
	t.Helper()
	r := &running{T: t, s: memory.Start(t), c: c, dir: t.TempDir()}
	r.coll = r.s.Client.Database("d").Collection("c")
	var all []bson.Raw
	for _, doc := range docs {
		all = append(all, marshal(t, doc))
	}
	r.s.Put(r.coll, all...)
	return r
}

// run is a run of the conversion.
func (r *running) run() Result {
	r.Helper()
	r.runs++
	l := newLog(r.dir, r.runs)
	defer closed(r, l)
	res, err := InPlace(r.Context(), r.coll, Options{Selection: Selection{Conversion: r.c}, Workers: 1, Batch: 1, Undo: l, Patience: r.patience})
	if err != nil {
		r.Fatal(err)
	}
	return res
}

// between converts, and calls do after a document was read and before the server gets the update.
func (r *running) between(do func()) (res Result) {
	r.Helper()
	var done atomic.Bool
	r.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "update" && !done.Swap(true) {
			do()
		}
		return f
	}
	return r.run()
}

// only returns the only document, or nil if there is none.
func (r *running) only() bson.Raw {
	for _, doc := range r.s.Documents(r.coll) {
		return doc
	}
	return nil
}

// Another program changes a document after it is read and before it is updated. The change is never
// overwritten.
func TestOvertaken(t *testing.T) {
	c := conversion(t, "javaLegacy")
	old, converted := kindstest.Value("javaLegacy"), kindstest.Value("standard")
	fresh := bson.Binary{Subtype: 3, Data: append(bytes.Repeat([]byte{7}, 15), 8)}
	id := bson.E{Key: "_id", Value: 1}
	l := bson.E{Key: "l", Value: bson.A{old, "x"}}
	doc := func(a any, l any) bson.D { return bson.D{id, {Key: "a", Value: a}, {Key: "l", Value: l}} }
	for name, tt := range map[string]struct {
		between bson.D // nil: deleted
		a, l    any    // the values of a and the array l after the conversion
	}{
		"another field":               {append(doc(old, l.Value), bson.E{Key: "other", Value: 1}), converted, bson.A{converted, "x"}},
		"a new value in the old kind": {doc(fresh, l.Value), nil, nil},
		"a new value of another type": {doc("text", l.Value), "text", nil},
		"converted already":           {doc(converted, l.Value), converted, nil},
		"an array with the old value": {doc(bson.A{old, 1}, l.Value), nil, nil},
		"a field removed":             {bson.D{id, l}, nil, nil},
		"an array replaced":           {doc(old, bson.A{"new", old}), nil, nil},
		"deleted":                     {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRunning(t, c, doc(old, l.Value))
			var between bson.Raw
			res := r.between(func() {
				if r.s.Put(r.coll); tt.between != nil {
					between = marshal(t, tt.between)
					r.s.Put(r.coll, between)
				}
			})
			after := r.only()
			if tt.between == nil {
				if after != nil || res.Changed != 0 || res.Skipped != 0 {
					t.Errorf("a deleted document is back: %v, %+v", after, res)
				}
				return
			}
			// The document is the conversion of what the other program wrote.
			if want, _, _, err := c.Rewrite(between); err != nil || !bytes.Equal(after, want) {
				t.Errorf("got %v, want %v, %v", after, want, err)
			}
			for key, v := range map[string]any{"a": tt.a, "l": tt.l} {
				if v != nil && !after.Lookup(key).Equal(marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v")) {
					t.Errorf("%s is %v, want %v", key, after.Lookup(key), v)
				}
			}
		})
	}
}

// Another program moves a value to a position that no update can reach. The document is reported as
// if it had been read so, even if another of its values can be converted. What was reported when it
// was first read is not reported again.
func TestOvertakenOutOfReach(t *testing.T) {
	old := kindstest.Value("javaLegacy")
	nameless := bson.D{{Key: "", Value: old}}
	for name, tt := range map[string]struct{ before, after bson.D }{
		"alone":         {bson.D{{Key: "a", Value: old}}, bson.D{{Key: "a", Value: nameless}}},
		"beside others": {bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}}, bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}}},
		"from the first": {bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: old}},
			bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			id := bson.D{{Key: "_id", Value: 1}}
			r := newRunning(t, conversion(t, "javaLegacy"), append(id, tt.before...))
			res := r.between(func() { r.s.Put(r.coll, marshal(t, append(id, tt.after...))) })
			if res.Skipped != 1 {
				t.Errorf("%d skips: %v", res.Skipped, res.SkippedFor)
			}
			want := kindstest.Value("standard")
			if subtype, data, _ := r.only().Lookup("b").BinaryOK(); (subtype == want.Subtype && bytes.Equal(data, want.Data)) != (name != "alone") {
				t.Errorf("got %v", r.only())
			}
		})
	}
}

// Before the same command is run again, another program writes a further value to the document.
// undo restores all values, and texts in their spellings.
func TestUndoAfterKillAndWriter(t *testing.T) {
	for _, kind := range []string{"javaLegacy", "text"} {
		for _, writes := range []string{"b", "a"} {
			t.Run(kind+"/"+writes, func(t *testing.T) {
				c := conversion(t, kind, "a", "b", "z")
				var a, z, other any = kindstest.Value("javaLegacy"), kindstest.Value("javaLegacy"), bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}
				if kind == "text" {
					a, z, other = "{00112233-4455-4677-8899-AABBCCDDEEFF}", "urn:uuid:10112233-4455-4677-8899-aabbccddeeff", "20112233445546778899AABBCCDDEEFF"
				}
				want := bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: a}, {Key: "z", Value: z}}
				r := newRunning(t, c, want)
				r.run()
				if _, err := r.coll.UpdateByID(t.Context(), 1, bson.D{{Key: "$set", Value: bson.D{{Key: writes, Value: other}}}}); err != nil {
					t.Fatal(err)
				}
				if res := r.run(); res.Skipped > 0 {
					t.Errorf("%+v", res)
				}
				for _, key := range []string{"a", "z"} {
					if subtype, _, _ := r.only().Lookup(key).BinaryOK(); subtype != 4 {
						t.Errorf("%s is not converted: %v", key, r.only())
					}
				}
				undone, err := Undo(t.Context(), r.coll, logsIn(t, r.dir), Options{Batch: 10}, true)
				if err != nil {
					t.Fatal(err)
				}
				if writes == "a" {
					want[1].Value = other
				} else {
					want = append(want, bson.E{Key: "b", Value: other})
				}
				if got := r.only(); !bytes.Equal(got, marshal(t, want)) || undone.Changed != 0 || len(undone.Skips) > 0 {
					t.Errorf("got %v, want %v; %+v", got, want, undone)
				}
			})
		}
	}
}

// If a unique index refuses the converted value, the document is left as it is, and reported.
func TestRefused(t *testing.T) {
	r := newRunning(t, conversion(t, "javaLegacy"), bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: kindstest.Value("javaLegacy")}})
	before := r.only()
	r.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		if name == "update" {
			f.Write = 11000
		}
		return f
	}
	if res := r.run(); res.Skipped != 1 || res.Changed != 0 || res.SkippedFor["another document has the value already, and an index is unique"] != 1 {
		t.Errorf("%+v", res)
	}
	if !bytes.Equal(r.only(), before) {
		t.Errorf("it is %v", r.only())
	}
}

// A run reads until a pass finds nothing to convert. What a service writes behind it is converted, and what is left is listed as
// the last pass has found it. If a service writes all the time, the run ends, and says how many documents it has changed last.
func TestPasses(t *testing.T) {
	for writes, want := range map[int]struct {
		finds   int
		changed int64
		late    int64
	}{0: {2, 1, 0}, 1: {3, 2, 0}, 2: {3, 3, 1}, 9: {3, 3, 1}} {
		r := newRunning(t, conversion(t, "javaLegacy"), bson.D{{Key: "_id", Value: int32(0)}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
		finds, updates := 0, 0
		r.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
			switch name {
			case "find":
				finds++
			case "update":
				if updates++; updates <= writes { // behind the page that was read
					r.s.Put(r.coll, append(r.s.Documents(r.coll), marshal(t, bson.D{{Key: "_id", Value: int32(updates)}, {Key: "a", Value: kindstest.Value("javaLegacy")}}))...)
				}
			}
			return f
		}
		res := r.run()
		if finds != want.finds || res.Changed != want.changed || res.Late != want.late || res.Skipped > 0 {
			t.Errorf("%d writes: %d passes, %+v", writes, finds, res)
		}
		old := 0
		for _, doc := range r.s.Documents(r.coll) {
			if subtype, _, _ := doc.Lookup("a").BinaryOK(); subtype == 3 {
				old++
			}
		}
		if old > 0 && want.late == 0 {
			t.Errorf("%d writes: %d old values are left", writes, old)
		}
	}
	r := newRunning(t, conversion(t, "javaLegacy"), bson.D{{Key: "_id", Value: bson.D{{Key: "k", Value: kindstest.Value("javaLegacy")}}}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
	if res := r.run(); res.Changed != 1 || res.Skipped != 1 || res.Late != 0 || res.Read != 1 {
		t.Errorf("%+v", res)
	}
	if res := r.run(); res.Changed != 0 || res.Skipped != 1 {
		t.Errorf("again: %+v", res)
	}
	if logs := logsIn(t, r.dir); len(logs) != 1 {
		t.Errorf("a run that changes nothing leaves a log: %d", len(logs))
	}
}

// A pass has found something to convert, too, if the answer of the server is lost and another program changes or deletes the document
// before it is read again: what a service has written behind the pass is then found by the next one, or said to be there.
func TestLateOfLostAnswers(t *testing.T) {
	for name, is := range map[string]bson.D{"changed": {{Key: "_id", Value: int32(0)}, {Key: "a", Value: "text"}}, "deleted": nil} {
		for writes, late := range map[int]int64{1: 0, 9: 1} {
			r := newRunning(t, conversion(t, "javaLegacy"), bson.D{{Key: "_id", Value: int32(0)}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
			r.patience = patience.New(time.Hour, nil)
			updates := 0
			r.s.Before = func(name string, command bson.Raw) (f memory.Fault) {
				switch {
				case name == "update":
					updates++
					f.Lost = true
				case name == "find" && command.Lookup("filter", "_id", "$in").Type == bson.TypeArray: // what became of the document
					var docs []bson.Raw
					if is != nil {
						docs = append(docs, marshal(t, is))
					}
					if updates <= writes { // behind the page that was read
						docs = append(docs, marshal(t, bson.D{{Key: "_id", Value: int32(updates)}, {Key: "a", Value: kindstest.Value("javaLegacy")}}))
					}
					r.s.Put(r.coll, docs...)
				}
				return f
			}
			res := r.run()
			old := 0
			for _, doc := range r.s.Documents(r.coll) {
				if subtype, _, _ := doc.Lookup("a").BinaryOK(); subtype == 3 {
					old++
				}
			}
			if res.Late != late || old != int(late) || res.Skipped > 0 {
				t.Errorf("%s, %d writes: %+v, %d old values are left after %d updates", name, writes, res, old, updates)
			}
		}
	}
}

// A batch fails while another one is in flight. The run ends when that one is answered, and not before: what it records as its end
// says that the server carries out nothing of it any more.
func TestFailureBesideBatch(t *testing.T) {
	old := kindstest.Value("javaLegacy")
	r := newRunning(t, conversion(t, "javaLegacy"), bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: old}}, bson.D{{Key: "_id", Value: 2}, {Key: "a", Value: old}})
	var updates, answered atomic.Int64
	refused, ended := make(chan struct{}), make(chan struct{})
	r.s.Before = func(name string, _ bson.Raw) (f memory.Fault) {
		switch {
		case name != "update":
		case updates.Add(1) == 2:
			f.Code = 13
			close(refused)
		default:
			<-refused
			select {
			case <-ended:
			case <-time.After(300 * time.Millisecond):
				answered.Add(1)
			}
		}
		return f
	}
	l := newLog(r.dir, 1)
	defer closed(t, l)
	_, err := InPlace(t.Context(), r.coll, Options{Selection: Selection{Conversion: r.c}, Workers: 2, Batch: 1, Undo: l})
	close(ended)
	if err == nil || updates.Load() != 2 || answered.Load() != 1 {
		t.Errorf("%v, %d updates, %d were answered before the run ended", err, updates.Load(), answered.Load())
	}
}
