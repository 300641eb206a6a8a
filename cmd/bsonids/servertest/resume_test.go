package servertest

import (
	"bytes"
	"context"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// only returns the only document of a collection, or nil if there is none.
func only(t testing.TB, coll *mongo.Collection) bson.Raw {
	t.Helper()
	doc, err := coll.FindOne(context.Background(), bson.D{}).Raw()
	if err != nil && err != mongo.ErrNoDocuments {
		t.Error(err)
	}
	return doc
}

// Another program changes a document after it is read and before it is updated. The change is never
// overwritten.
func TestOvertaken(t *testing.T) {
	for _, to := range []string{"standard", "csharpLegacy"} {
		c := conversion(t, "javaLegacy", to)
		old := kindstest.Value("javaLegacy")
		fresh := bson.Binary{Subtype: 3, Data: append(bytes.Repeat([]byte{7}, 15), 8)}
		set := func(path string, v any) bson.D { return bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}} }
		for name, tt := range map[string]struct {
			update bson.D // nil: deleted
			// the values of a and the array l after the conversion
			a, l any
			skip bool // with the same subtype, the order of what the other program wrote is unknown
			old  bool // it may be a value of the old kind
		}{
			"another field":               {set("other", 1), kindstest.Value(to), bson.A{kindstest.Value(to), "x"}, false, false},
			"a new value in the old kind": {set("a", fresh), nil, nil, true, true},
			"a new value of another type": {set("a", "text"), "text", nil, true, false},
			"converted already":           {set("a", kindstest.Value(to)), kindstest.Value(to), nil, true, false},
			"an array with the old value": {set("a", bson.A{old, 1}), nil, nil, true, true},
			"a field removed":             {bson.D{{Key: "$unset", Value: bson.D{{Key: "a", Value: ""}}}}, nil, nil, true, false},
			"an array replaced":           {set("l", bson.A{"new", old}), nil, nil, true, true},
			"deleted":                     {},
		} {
			t.Run(to+"/"+name, func(t *testing.T) {
				s := mongotest.Start(t)
				coll := connect(t, s).Collection("c")
				doc := func(v bson.Binary) bson.Raw {
					return marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: v}, {Key: "l", Value: bson.A{v, "x"}}})
				}
				before, converted := doc(old), doc(kindstest.Value(to))
				insert(t, coll, []any{before})
				var between bson.Raw
				res := convertBetween(t, s, coll, c, func() {
					var err error
					if tt.update == nil {
						_, err = coll.DeleteOne(t.Context(), bson.D{})
					} else {
						_, err = coll.UpdateOne(t.Context(), bson.D{}, tt.update)
					}
					if err != nil {
						t.Error(err)
					}
					between = only(t, coll)
				})
				after := only(t, coll)
				switch {
				case tt.update == nil:
					if after != nil || res.Changed != 0 || res.Skipped != 0 {
						t.Errorf("a deleted document is back: %v, %+v", after, res)
					}
					return
				case c.SameSubtype() && tt.skip:
					// What the other program wrote is as it left it, and is reported if it may be of the old kind. The value that it did
					// not change is converted.
					var want bson.D
					if err := bson.Unmarshal(between, &want); err != nil {
						t.Fatal(err)
					}
					for i, e := range want {
						if between.Lookup(e.Key).Equal(before.Lookup(e.Key)) && e.Key != "_id" {
							want[i].Value = converted.Lookup(e.Key)
						}
					}
					if !bytes.Equal(after, marshal(t, want)) || (res.Skipped == 1) != tt.old {
						t.Errorf("got %v, want %v; %+v", after, want, res)
					}
					return
				}
				// The document is the conversion of what the other program wrote.
				if want, _, _, err := c.Rewrite(between, nil); err != nil || !bytes.Equal(after, want) {
					t.Errorf("got %v, want %v, %v", after, want, err)
				}
				for key, v := range map[string]any{"a": tt.a, "l": tt.l} {
					if v != nil && !after.Lookup(key).Equal(marshalValue(t, v)) {
						t.Errorf("%s is %v, want %v", key, after.Lookup(key), v)
					}
				}
			})
		}
	}
}

// Another program moves a value to a position that no update can reach. The document is reported as
// if it had been read so, even if another of its values can be converted. What was reported when it
// was first read is not reported again.
func TestOvertakenOutOfReach(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	old := kindstest.Value("javaLegacy")
	nameless := bson.D{{Key: "", Value: old}}
	for name, tt := range map[string]struct{ before, after bson.D }{
		"alone":         {bson.D{{Key: "a", Value: old}}, bson.D{{Key: "a", Value: nameless}}},
		"beside others": {bson.D{{Key: "a", Value: old}, {Key: "b", Value: old}}, bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}}},
		"from the first": {bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: old}},
			bson.D{{Key: "a", Value: nameless}, {Key: "b", Value: old}, {Key: "c", Value: 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := mongotest.Start(t)
			coll := connect(t, s).Collection("c")
			id := bson.D{{Key: "_id", Value: 1}}
			insert(t, coll, []any{append(id, tt.before...)})
			res := convertBetween(t, s, coll, c, func() {
				if _, err := coll.ReplaceOne(t.Context(), bson.D{}, append(id, tt.after...)); err != nil {
					t.Error(err)
				}
			})
			if res.Skipped != 1 {
				t.Errorf("%d skips: %v", res.Skipped, res.SkippedFor)
			}
			doc := only(t, coll)
			if got := doc.Lookup("b").Equal(marshalValue(t, kindstest.Value("standard"))); got != (name != "alone") {
				t.Errorf("got %v", doc)
			}
		})
	}
}

// convertBetween converts coll in place. It calls do after a document was read and before the
// server gets the update.
func convertBetween(t *testing.T, s target, coll *mongo.Collection, c rule.Conversion, do func()) (res convert.Result) {
	t.Helper()
	p := justBefore(t, s, func(r request) bool { return r.name() == "update" }, do)
	client := dial(t, p.URI())
	newFiles(t, c).with(t, func(state *convert.StateFile, u *convert.UndoLog) {
		res = inPlace(t, client.Database(coll.Database().Name()).Collection(coll.Name()), c, state, u)
	})
	return res
}

// inPlace converts a collection with its files.
func inPlace(t *testing.T, coll *mongo.Collection, c rule.Conversion, s *convert.StateFile, u *convert.UndoLog) convert.Result {
	t.Helper()
	res, err := convert.InPlace(t.Context(), coll, convert.Options{Conversion: c, Workers: 1, State: s, Undo: u})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// undone undoes a conversion by its log.
func (f files) undone(t *testing.T, coll *mongo.Collection) convert.Undone {
	t.Helper()
	u, err := convert.ReadUndoLog(f.undo)
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	res, err := convert.Undo(t.Context(), coll, u, convert.Options{Batch: 10}, true)
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
	newFiles(t, c).with(t, func(s *convert.StateFile, _ *convert.UndoLog) {
		if _, err := convert.Into(t.Context(), coll, target, convert.Options{Conversion: c, Workers: 1, State: s}); err != nil {
			t.Fatal(err)
		}
	})
	deleted(t, coll, docs[0].(bson.D))
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
		if res := inPlace(t, coll, c, s, u); res.Skipped != 1 || res.Changed != 0 || res.SkippedFor["another document has the converted value, and an index is unique"] != 1 {
			t.Errorf("%+v", res)
		}
	})
}
