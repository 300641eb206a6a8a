package servertest

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// undone undoes a conversion by its log.
func (f files) undone(t *testing.T, coll *mongo.Collection) convert.Undone {
	t.Helper()
	u, err := convert.ReadUndoLog(f.undo)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	res, err := convert.Undo(t.Context(), coll, u, convert.UndoOptions{Write: true, Batch: 10})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A process is killed after the server changed a document and before the state file is updated.
// Before the same command is run again, another program writes a further value to the document.
// undo restores all values, and texts in their spellings.
func TestUndoAfterKillAndWriter(t *testing.T) {
	for _, kind := range []string{"standard", "csharpLegacy", "text"} {
		for _, writes := range []string{"b", "a"} {
			t.Run(kind+"/"+writes, func(t *testing.T) {
				coll := collection(t)
				c := conversion(t, "javaLegacy", "standard", "a", "b", "z")
				var a, z, other any = kindstest.Value("javaLegacy"), kindstest.Value("javaLegacy"), bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}
				var err error
				if kind == "text" {
					c[0].From, err = kinds.Parse("text")
					a, z, other = spelling(uuid.New(), 5), spelling(uuid.New(), 6), spelling(uuid.New(), 7)
				} else {
					c = conversion(t, "javaLegacy", kind)
				}
				if err != nil {
					t.Fatal(err)
				}
				want := bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: a}, {Key: "z", Value: z}}
				insert(t, coll, []any{want})
				f := newFiles(t, c)
				f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
					begun := convert.State{Identity: s.Identity, UndoID: u.ID, UndoOffset: u.Size()}
					inPlace(t, coll, c, s, u)
					s.State = begun
					if err := s.Save(); err != nil {
						t.Fatal(err)
					}
				})
				set(t, coll, 1, writes, other)
				f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
					if res := inPlace(t, coll, c, s, u); c.SameSubtype() != (res.Skipped == 1) {
						t.Errorf("%+v", res)
					}
				})
				for _, key := range []string{"a", "z"} {
					if subtype, _, _ := only(t, coll).Lookup(key).BinaryOK(); subtype != 4 && !c.SameSubtype() {
						t.Errorf("%s is not converted: %v", key, only(t, coll))
					}
				}
				undone := f.undone(t, coll)
				if c.SameSubtype() && writes == "a" {
					// Nothing tells who wrote a: the document is left as it is, and reported.
					if undone.Changed != 1 {
						t.Errorf("%+v", undone)
					}
					return
				}
				if writes == "a" {
					want[1].Value = other
				} else {
					want = append(want, bson.E{Key: "b", Value: other})
				}
				if got := only(t, coll); !bytes.Equal(got, marshal(t, want)) || undone.Changed != 0 || len(undone.Skips) > 0 {
					t.Errorf("got %v, want %v; %+v", got, want, undone)
				}
			})
		}
	}
}

// If a converted value looks like one that is not converted, a second pass over the collection is
// refused: a new state file with the undo log of a run would convert every value twice.
func TestSecondStateFile(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "csharpLegacy")
	insert(t, coll, []any{bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("javaLegacy")}}})
	f := newFiles(t, c)
	f.with(t, func(s *convert.StateFile, u *convert.UndoLog) { inPlace(t, coll, c, s, u) })
	f.state += "2"
	for range 2 { // a file that the refused run left must not count as a state
		f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
			if _, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Workers: 1, State: s, Undo: u}); err == nil {
				t.Error("converted again")
			}
		})
	}
	if got, want := only(t, coll), marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("csharpLegacy")}}); !bytes.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A collection is converted, restored and converted again with the same undo log, which then has
// two lines for each document. undo restores it both times.
func TestUndoOfTwoRuns(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	before := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
	insert(t, coll, []any{before})
	f := newFiles(t, c)
	for _, already := range []int64{0, 1} {
		f.with(t, func(s *convert.StateFile, u *convert.UndoLog) { inPlace(t, coll, c, s, u) })
		if res := f.undone(t, coll); res.Restored != 1 || res.Already != already || res.Changed != 0 {
			t.Errorf("%+v", res)
		}
		if got := only(t, coll); !bytes.Equal(got, before) {
			t.Errorf("got %v, want %v", got, before)
		}
		f.state += "2"
	}
}

// The next start does not read lines of the undo log about documents that are not read again,
// because they were done before or deleted since. Otherwise it would have to hold all lines after
// them.
func TestPassedEntries(t *testing.T) {
	coll := collection(t)
	c := conversion(t, "javaLegacy", "standard")
	for i, kind := range []string{"standard", "javaLegacy", "javaLegacy"} {
		insert(t, coll, []any{bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: kindstest.Value(kind)}}})
	}
	f := newFiles(t, c)
	f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
		s.UndoID, s.UndoOffset = u.ID, u.Size()
		s.Position = &convert.Position{Type: byte(bson.TypeInt32), Value: []byte{0, 0, 0, 0}}
		if err := s.Save(); err != nil {
			t.Fatal(err)
		}
		if err := u.Append(plans(t, c, int32(0), int32(7), int32(2)), func(convert.Planned) bool { return false }); err != nil {
			t.Fatal(err)
		}
	})
	f.with(t, func(s *convert.StateFile, u *convert.UndoLog) {
		if _, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Workers: 1, Batch: 1, State: s, Undo: u}); err != nil {
			t.Fatal(err)
		}
		if s.UndoOffset != u.Size() {
			t.Errorf("the next start reads the undo log from %d on, of %d", s.UndoOffset, u.Size())
		}
	})
	if got := readAll(t, f.undo); len(got) != 5 || got[3].Again || !got[4].Again {
		t.Errorf("%+v", got)
	}
}

// A document that is deleted in the source during the copy is the only extra one, even if _ids hold
// values of both subtypes.
func TestExtraOfMixedIDs(t *testing.T) {
	coll := collection(t)
	target := coll.Database().Collection("t")
	c := conversion(t, "javaLegacy", "standard")
	var docs []any
	for i := range 4 {
		docs = append(docs, bson.D{{Key: "_id", Value: bson.D{{Key: "n", Value: int32(i)}, {Key: "a", Value: kindstest.Value("standard")}, {Key: "b", Value: kindstest.Value("javaLegacy")}}}})
	}
	insert(t, coll, docs)
	if _, err := convert.Into(t.Context(), coll, target, convert.Options{Conversion: c, Workers: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := coll.DeleteOne(t.Context(), docs[0]); err != nil {
		t.Fatal(err)
	}
	v, err := convert.VerifyInto(t.Context(), coll, target, c, convert.Part{}, nil, func(int) {})
	if err != nil || v.Proven != 3 || v.Extra != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

// If a unique index refuses the converted value, the document is left as it is, and reported.
func TestRefused(t *testing.T) {
	_, db := started(t, mongotest.UniqueUpdates)
	coll := db.Collection("c")
	index(t, coll, "u", options.Index().SetUnique(true))
	insert(t, coll, []any{bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: kindstest.Value("javaLegacy")}}, bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: kindstest.Value("standard")}}})
	c := conversion(t, "javaLegacy", "standard")
	newFiles(t, c).with(t, func(s *convert.StateFile, u *convert.UndoLog) {
		if res := inPlace(t, coll, c, s, u); res.Skipped != 1 || res.Documents != 0 || len(res.Skips) != 1 || res.Skips[0].ID.Int32() != 1 {
			t.Errorf("%+v", res)
		}
	})
}
