package convert

import (
	"bytes"
	"context"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/undolog"
)

// undoing is a collection that was converted, with its undo log.
type undoing struct {
	*testing.T
	s      *memory.Server
	coll   *mongo.Collection
	before []bson.Raw
	log    undolog.Logs
	o      Options
	write  bool
}

// converted has documents with the _ids 1 to n, which were converted from javaLegacy.
func converted(t *testing.T, n int) *undoing {
	t.Helper()
	u := &undoing{T: t, s: memory.Start(t)}
	u.coll = u.s.Client.Database("d").Collection("c")
	c := conversion(t, "javaLegacy")
	r := rand.New(rand.NewPCG(1, uint64(n)))
	value := func() bson.Binary { return kindstest.Stored([16]byte(kindstest.Octets(r)), "javaLegacy") }
	dir := t.TempDir()
	l := newLog(dir, 1)
	var after []bson.Raw
	for i := range n {
		doc := marshal(t, bson.D{{Key: "_id", Value: int32(i + 1)}, {Key: "a", Value: value()}, {Key: "list", Value: bson.A{value(), bson.D{{Key: "b", Value: value()}}}}, {Key: "n", Value: int32(0)}})
		out, values, _, err := c.Rewrite(doc)
		if err != nil || values != 3 {
			t.Fatal(values, err)
		}
		if err := l.Append([]undolog.Entry{entryOf(t, c, doc)}); err != nil {
			t.Fatal(err)
		}
		u.before, after = append(u.before, doc), append(after, out)
	}
	closed(t, l)
	u.log = logsIn(t, dir)
	u.s.Put(u.coll, after...)
	u.write, u.o = true, Options{Batch: 4, Selection: Selection{Conversion: c}}
	return u
}

func (u *undoing) undo() Undone {
	u.Helper()
	got, err := Undo(u.Context(), u.coll, u.log, u.o, u.write)
	if err != nil {
		u.Fatal(err)
	}
	return got
}

// same fails the test unless the documents are want.
func (u *undoing) same(want []bson.Raw) {
	u.Helper()
	got := u.s.Documents(u.coll)
	if !slices.EqualFunc(got, want, func(a, b bson.Raw) bool { return bytes.Equal(a, b) }) {
		u.Errorf("got %v\nwant %v", got, want)
	}
}

// count fails the test unless the counts are want, whose Skips are the _ids and what the reasons begin with.
func (u *undoing) count(got, want Undone, skips ...string) {
	u.Helper()
	var listed []string
	for _, s := range got.Skips {
		listed = append(listed, s.ID.String()+" "+s.Reason)
	}
	got.Skips, got.Standing, got.left = nil, 0, nil
	if !reflect.DeepEqual(got, want) {
		u.Errorf("got %+v\nwant %+v", got, want)
	}
	slices.Sort(listed)
	slices.Sort(skips)
	if len(listed) != len(skips) || !slices.EqualFunc(listed, skips, strings.HasPrefix) {
		u.Errorf("got %q\nwant %q", listed, skips)
	}
}

// change changes values of a document.
func (u *undoing) change(id int32, set bson.D) {
	u.Helper()
	if _, err := u.coll.UpdateOne(context.Background(), bson.D{{Key: "_id", Value: id}}, bson.D{{Key: "$set", Value: set}}); err != nil {
		u.Error(err)
	}
}

// onUpdate calls f before the n-th update, counting from 1.
func (u *undoing) onUpdate(f func(n int) memory.Fault) {
	var n atomic.Int64 // after a lost answer the driver has another connection
	var inside atomic.Bool
	u.s.Before = func(name string, _ bson.Raw) memory.Fault {
		if name != "update" || !inside.CompareAndSwap(false, true) {
			return memory.Fault{}
		}
		defer inside.Store(false)
		return f(int(n.Add(1)))
	}
}

// Of large documents, only a page is in the memory: 32 MiB, and one document. They are restored, and a proof finds those that are not converted.
func TestLargeDocuments(t *testing.T) {
	u := converted(t, 11)
	for i, doc := range u.s.Documents(u.coll) { // whose values are moved, so that they are asked for
		list := bson.A{int32(0), doc.Lookup("list", "0"), doc.Lookup("list", "1")}
		u.change(int32(i+1), bson.D{{Key: "large", Value: make([]byte, 4<<20)}, {Key: "list", Value: list}})
	}
	u.change(11, bson.D{{Key: "a", Value: "another"}})
	pages := 0
	u.s.Before = func(name string, command bson.Raw) memory.Fault {
		if _, err := command.LookupErr("filter", "_id", "$in"); name == "find" && err == nil {
			pages++
		} else if _, err := command.LookupErr("filter", "$and", "1", "_id", "$in"); name == "find" && err == nil {
			pages++
		}
		return memory.Fault{}
	}
	proof := Verification{Selection: u.o.Selection, Undo: u.log, Progress: func(int) {}}
	v, err := proof.Verify(t.Context(), u.coll)
	if err != nil || v.Changed != 11 || pages < 2 {
		t.Errorf("%+v in %d pages, %v", v, pages, err)
	}
	u.o.Batch, pages = 1000, 0
	u.count(u.undo(), Undone{Entries: 11, Restored: 11, Changed: 1, Left: 1, Unrestored: 1}, `{"$numberInt":"11"} a: the value was changed after the conversion`)
	if pages < 2 {
		t.Errorf("%d pages", pages)
	}
}

// Whatever the size of a batch, all documents are afterwards as they were, in one command for each batch. Dry, the same is counted and
// nothing changes.
func TestUndo(t *testing.T) {
	for _, tt := range []struct{ batch, updates int }{{1, 10}, {4, 3}, {10, 1}, {1000, 1}} {
		u := converted(t, 10)
		after := u.s.Documents(u.coll)
		read, updates := 0, 0
		u.o.Batch, u.write, u.o.Progress = tt.batch, false, func(n int) { read += n }
		u.s.Before = func(name string, command bson.Raw) memory.Fault {
			if name == "update" {
				updates++
				if bypass, _ := command.Lookup("bypassDocumentValidation").BooleanOK(); bypass {
					t.Error("the validator of the collection does not apply")
				}
			}
			return memory.Fault{}
		}
		want := Undone{Entries: 10, Restored: 10}
		u.count(u.undo(), want)
		u.same(after)
		if read != 10 || updates != 0 {
			t.Errorf("dry: %d documents, %d updates", read, updates)
		}
		u.write = true
		u.count(u.undo(), want)
		u.same(u.before)
		if read != 20 || updates != tt.updates {
			t.Errorf("%d documents, %d updates, want %d", read, updates, tt.updates)
		}
		u.count(u.undo(), Undone{Entries: 10, Already: 10})
		u.same(u.before)
	}
}

// Each value is restored for itself. What another program changed or deleted stays, and is counted and listed.
func TestUndoOfChanged(t *testing.T) {
	u := converted(t, 8)
	other := kindstest.Value("standard")
	now := u.s.Documents(u.coll)
	list := func(id int) (first, second bson.RawValue) {
		return now[id-1].Lookup("list", "0"), now[id-1].Lookup("list", "1")
	}
	u.change(2, bson.D{{Key: "n", Value: int32(9)}})
	u.change(3, bson.D{{Key: "a", Value: other}})
	u.change(4, bson.D{{Key: "a", Value: other}, {Key: "list.1.b", Value: "x"}})
	first, second := list(5)
	u.change(5, bson.D{{Key: "list", Value: bson.A{int32(0), first, second}}}) // moved
	u.change(6, bson.D{{Key: "list.0", Value: u.before[5].Lookup("list", "0")}})
	u.s.Put(u.coll, u.s.Documents(u.coll)[1:]...) // without 1
	want := slices.Clone(u.before[1:])
	edit := func(id int, set bson.D) {
		s := memory.Start(t)
		c := s.Client.Database("d").Collection("c")
		s.Put(c, want[id-2])
		if _, err := c.UpdateOne(t.Context(), bson.D{}, bson.D{{Key: "$set", Value: set}}); err != nil {
			t.Fatal(err)
		}
		want[id-2] = s.Documents(c)[0]
	}
	edit(2, bson.D{{Key: "n", Value: int32(9)}})
	edit(3, bson.D{{Key: "a", Value: other}})
	edit(4, bson.D{{Key: "a", Value: other}, {Key: "list.1.b", Value: "x"}})
	edit(5, bson.D{{Key: "list", Value: bson.A{int32(0), u.before[4].Lookup("list", "0"), u.before[4].Lookup("list", "1")}}})
	counts := Undone{Entries: 8, Restored: 7, Gone: 1, Changed: 2, Left: 3, Unrestored: 2, Foreign: 2} // the other value, twice
	skips := []string{`{"$numberInt":"3"} a: ` + changedSince, `{"$numberInt":"4"} a: ` + changedSince, `{"$numberInt":"4"} list.1.b: ` + changedSince}
	for _, write := range []bool{false, true} {
		u.write = write
		u.count(u.undo(), counts, skips...)
	}
	u.same(want)
	counts.Restored, counts.Already = 0, 5
	u.count(u.undo(), counts, skips...)
}

// What the server refuses is left with its reason, and the others are restored. A value that another program changed since is left, too.
func TestUndoRefused(t *testing.T) {
	u := converted(t, 6)
	u.o.Batch = 3
	u.change(2, bson.D{{Key: "a", Value: "x"}})
	after := u.s.Documents(u.coll)
	u.onUpdate(func(n int) memory.Fault {
		if n == 1 {
			return memory.Fault{Write: 121}
		}
		return memory.Fault{}
	})
	var skips []string
	const refused = "the validator of the collection rejects"
	for _, s := range []string{`1"} a: ` + refused, `1"} list.0: ` + refused, `1"} list.1.b: ` + refused, `2"} list.0: ` + refused, `2"} list.1.b: ` + refused, `2"} a: ` + changedSince,
		`3"} a: ` + refused, `3"} list.0: ` + refused, `3"} list.1.b: ` + refused} {
		skips = append(skips, `{"$numberInt":"`+s)
	}
	u.count(u.undo(), Undone{Entries: 6, Restored: 3, Left: 9, Unrestored: 3, Changed: 1}, skips...)
	u.same(append(slices.Clone(after[:3]), u.before[3:]...))
}

// What is refused is known without another look at the documents: one read is of the batch, and one counts what no entry names.
func TestUndoRefusedAtOnce(t *testing.T) {
	u := converted(t, 4)
	finds := 0
	u.s.Before = func(name string, _ bson.Raw) memory.Fault {
		switch name {
		case "find":
			finds++
		case "update":
			return memory.Fault{Write: 121, First: 1}
		}
		return memory.Fault{}
	}
	if got := u.undo(); got.Restored != 3 || got.Left != 3 || finds != 2 {
		t.Errorf("%+v after %d reads", got, finds)
	}
}

// A document that changes between the read and the write is read again. If it changes each time, it is left.
func TestUndoOvertaken(t *testing.T) {
	move := func(u *undoing, n int) memory.Fault {
		if n == 1 {
			doc := u.s.Documents(u.coll)[1]
			u.change(2, bson.D{{Key: "list", Value: bson.A{int32(0), doc.Lookup("list", "0"), doc.Lookup("list", "1")}}})
		}
		return memory.Fault{}
	}
	for name, tt := range map[string]struct {
		change func(u *undoing, n int) memory.Fault
		want   Undone
		calls  int
		skips  []string
	}{
		"moved": {move, Undone{Entries: 4, Restored: 4}, 2, nil},
		"a path that leads nowhere": {func(u *undoing, n int) memory.Fault {
			if n == 1 {
				return memory.Fault{Write: 28}
			}
			return memory.Fault{}
		}, Undone{Entries: 4, Restored: 4}, 2, nil},
		"always": {func(u *undoing, n int) memory.Fault { return memory.Fault{Write: 28} },
			Undone{Entries: 4, Left: 12, Unrestored: 4, Changed: 4}, attempts, nil},
		"always, and values were changed": {func(u *undoing, n int) memory.Fault {
			if n == 1 {
				u.s.Put(u.coll, u.s.Documents(u.coll)[:1]...)
				u.change(1, bson.D{{Key: "a", Value: "x"}, {Key: "list.1.b", Value: "x"}})
			}
			return memory.Fault{Write: 28}
		}, Undone{Entries: 4, Gone: 3, Left: 3, Unrestored: 1, Changed: 1}, attempts,
			[]string{`{"$numberInt":"1"} a: ` + changedSince, `{"$numberInt":"1"} list.0: ` + keepsChanging, `{"$numberInt":"1"} list.1.b: ` + changedSince}},
		"restored by another program at last": {func(u *undoing, n int) memory.Fault {
			if n == attempts {
				u.s.Put(u.coll, u.before...)
			}
			return memory.Fault{Write: 28}
		}, Undone{Entries: 4, Restored: 4}, attempts, nil},
		"one refused": {func(u *undoing, n int) memory.Fault { return memory.Fault{Write: 121, First: 1} },
			Undone{Entries: 4, Restored: 3, Left: 3, Unrestored: 1}, 1,
			[]string{`{"$numberInt":"1"} a: the validator`, `{"$numberInt":"1"} list.0: the validator`, `{"$numberInt":"1"} list.1.b: the validator`}},
		"deleted": {func(u *undoing, n int) memory.Fault {
			u.s.Put(u.coll, u.s.Documents(u.coll)[1:]...)
			return memory.Fault{}
		}, Undone{Entries: 4, Restored: 3, Gone: 1}, 1, nil},
		"restored by another program": {func(u *undoing, n int) memory.Fault {
			u.s.Put(u.coll, append([]bson.Raw{u.before[0]}, u.s.Documents(u.coll)[1:]...)...)
			return memory.Fault{}
		}, Undone{Entries: 4, Restored: 4}, 1, nil},
		"changed, and no value is left": {func(u *undoing, n int) memory.Fault {
			u.change(1, bson.D{{Key: "a", Value: "x"}, {Key: "list", Value: "y"}})
			return memory.Fault{}
		}, Undone{Entries: 4, Restored: 3, Left: 3, Unrestored: 1, Changed: 1}, 1,
			[]string{`{"$numberInt":"1"} a: ` + changedSince, `{"$numberInt":"1"} list.0: ` + changedSince, `{"$numberInt":"1"} list.1.b: ` + changedSince}},
		"some refused, some moved": {func(u *undoing, n int) memory.Fault {
			if n > 1 {
				return memory.Fault{}
			}
			doc := u.s.Documents(u.coll)[0]
			u.change(1, bson.D{{Key: "list", Value: bson.A{doc.Lookup("list", "1"), doc.Lookup("list", "0")}}})
			return memory.Fault{}
		}, Undone{Entries: 4, Restored: 4}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			u := converted(t, 4)
			calls := 0
			u.onUpdate(func(n int) memory.Fault { calls = n; return tt.change(u, n) })
			got := u.undo()
			if name == "always" {
				if len(got.Skips) != 12 {
					t.Errorf("%d values are listed", len(got.Skips))
				}
				for _, s := range got.Skips {
					if !strings.HasSuffix(s.Reason, keepsChanging) {
						t.Error(s.Reason)
					}
				}
				got.Skips = nil
			}
			u.count(got, tt.want, tt.skips...)
			if calls != tt.calls {
				t.Errorf("%d updates, want %d", calls, tt.calls)
			}
			if tt.want.Gone == 0 && tt.want.Left == 0 && name == "restored by another program" {
				u.same(u.before)
			}
			if strings.HasPrefix(name, "moved") {
				now, was := u.s.Documents(u.coll)[1], u.before[1]
				if !now.Lookup("list", "1").Equal(was.Lookup("list", "0")) || !now.Lookup("list", "2").Equal(was.Lookup("list", "1")) || !now.Lookup("a").Equal(was.Lookup("a")) {
					t.Errorf("%v was %v", now, was)
				}
			}
		})
	}
}
