package servertest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// way is one way to convert the awkward collection, and what it says.
type way struct {
	name   string
	flags  []string
	where  target
	Values int64 `json:"valuesChanged"`
	Left   int64 `json:"valuesSkipped"`
	// Documents is the number of documents with values that are left, and SkippedFor the values by reason.
	Documents  int64            `json:"documentsSkipped"`
	SkippedFor map[string]int64 `json:"skippedFor"`
	list       []listed
}

// listed is a line of a list of values that are left.
type listed struct{ ID, Path, Value, Reason string }

// onlyCopied reports whether the reason is one for which only a conversion in place leaves a value.
func onlyCopied(reason string) bool {
	return strings.Contains(reason, "the value is in _id") || strings.Contains(reason, "occurs twice in the document") || strings.Contains(reason, walk.ErrUnaddressable.Error())
}

// copied returns what a copy says if the conversion in place says w.
func (w way) copied() way {
	c := w
	c.SkippedFor, c.list = maps.Clone(w.SkippedFor), nil
	for reason, n := range w.SkippedFor {
		if onlyCopied(reason) {
			c.Values, c.Left = c.Values+n, c.Left-n
			delete(c.SkippedFor, reason)
		}
	}
	ids := make(map[string]bool)
	for _, l := range w.list {
		if !onlyCopied(l.Reason) {
			c.list, ids[l.ID] = append(c.list, l), true
		}
	}
	c.Documents = int64(len(ids))
	return c
}

// run runs the command and reads its report, and the list if there is one.
func (w *way) run(t *testing.T, list string, args ...string) {
	t.Helper()
	out := command(t, w.where, slices.Concat(args, w.flags)...).want(t, failure.ExitIncomplete)
	report := struct {
		Result *way `json:"result"`
	}{w}
	if err := json.Unmarshal([]byte(out.stdout), &report); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(list)
	w.list = nil
	for line := range strings.Lines(string(b)) {
		var l struct {
			ID     json.RawMessage `json:"_id"`
			Path   string
			Value  json.RawMessage
			Reason string
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		w.list = append(w.list, listed{string(l.ID), l.Path, string(l.Value), l.Reason})
	}
	slices.SortFunc(w.list, func(a, b listed) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// accepts reports whether the server stores the document as it is. A server may drop the first of two elements with one name.
func accepts(t *testing.T, db *mongo.Database, d bson.D) bool {
	t.Helper()
	coll := db.Collection("accepts")
	res, err := coll.InsertOne(t.Context(), d)
	if err != nil {
		return false
	}
	var got bson.D
	if err := coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: res.InsertedID}}).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return len(got) == len(d)+1
}

// awkward returns documents with one value in both orders, values in one subtype in two orders, checksums,
// text, documents of Go structs, values in _id, and as far as the server stores them, arrays in arrays,
// names with dots and repeated names.
func awkward(t *testing.T, db *mongo.Database) (docs []any) {
	r := rand.New(rand.NewPCG(26, 2))
	stored := func(order uuidrep.Representation) bson.Binary {
		var u uuid.UUID
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
		return in(u, order)
	}
	csharp := func() bson.Binary { return stored(uuidrep.CSharpLegacy) }
	same := bson.Binary{Subtype: 3, Data: make([]byte, 16)}
	dotted, twice := accepts(t, db, bson.D{{Key: "a.b", Value: 1}}), accepts(t, db, bson.D{{Key: "a", Value: 1}, {Key: "a", Value: 2}})
	nested := accepts(t, db, bson.D{{Key: "a", Value: bson.A{bson.A{1}}}})
	for i := range 60 {
		d := bson.D{
			{Key: "_id", Value: int32(i)}, {Key: "a", Value: csharp()}, {Key: "same", Value: same}, {Key: "text", Value: uuid.NewString()},
			{Key: "deep", Value: bson.A{csharp(), "x", bson.D{{Key: "b", Value: bson.A{same, csharp()}}}}},
			{Key: "go", Value: bson.D{{Key: "uuid", Value: bson.Binary{Data: csharp().Data}}}}, {Key: "short", Value: bson.Binary{Subtype: 3, Data: make([]byte, 9)}},
		}
		switch i % 3 {
		case 0:
			d[1].Value = stored(uuidrep.JavaLegacy)
		default:
			if i%3 == 2 {
				d[0].Value = csharp()
			}
			d = append(d, bson.E{Key: "sum", Value: bson.Binary{Subtype: 3, Data: fmt.Appendf(nil, "checksum %7d", i)}})
		}
		if nested {
			d = append(d, bson.E{Key: "nested", Value: bson.A{csharp(), bson.A{csharp(), bson.A{bson.D{{Key: "c", Value: csharp()}}}}}})
		}
		if dotted && i%4 == 0 {
			d = append(d, bson.E{Key: "x.y", Value: csharp()}, bson.E{Key: "in", Value: bson.D{{Key: "", Value: csharp()}, {Key: "z.", Value: csharp()}}})
		}
		if twice && i%5 == 0 {
			d = append(d, bson.E{Key: "twice", Value: csharp()}, bson.E{Key: "twice", Value: csharp()})
		}
		docs = append(docs, d)
	}
	return docs
}

// One collection is converted in place and into a copy, within one subtype and to another one: the counts, the reasons, the lists, the exit codes and the values are the
// same, except for values that only a copy can change. Values that are the same in both orders are neither
// converted nor left.
func TestEveryWay(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	docs := awkward(t, db)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, to := range []string{"javaLegacy", "standard"} {
		coll, source := db.Collection("in_"+to), db.Collection("to_"+to)
		insert(t, coll, docs)
		insert(t, source, docs)
		args := []string{"convert", "--db", s.Database(), "--from", "csharpLegacy", "--to", to, "--output", "json", "--examples", "0"}
		ways := []way{
			{name: "in place", where: s, flags: []string{"--collection", coll.Name(), "--references", "0"}},
			{name: "copy", where: s, flags: []string{"--collection", source.Name(), "--references", "0", "--into", source.Name() + "_copy"}},
		}
		var want way
		for i, w := range ways {
			list := file(to + w.name + ".skipped")
			for _, write := range []bool{false, true} {
				if write {
					w.flags = append(w.flags, "--skip-list", list)
					if w.name == "in place" {
						w.flags = append(w.flags, "--undo-log", file(to+".undo"))
					}
					w.flags = slices.Concat(w.flags, []string{"--write", "--state", file(to + w.name)}, gentle)
				}
				w.run(t, list, args...)
				got := w
				if i == 0 {
					got = w.copied()
				}
				if i == 0 && !write { // which lists nothing
					want = got
					continue
				}
				if want.list == nil {
					want.list, want.Documents = got.list, got.Documents
				}
				if got.Values != want.Values || got.Left != want.Left || !maps.Equal(got.SkippedFor, want.SkippedFor) || got.Values == 0 || got.Left == 0 {
					t.Errorf("to %s, %s, write %v: %+v, want %+v", to, w.name, write, got, want)
				}
				if got.Documents != want.Documents || write && !slices.Equal(got.list, want.list) {
					t.Errorf("to %s, %s, write %v: %d documents and %d values listed, want %d and %d\n%v\n%v", to, w.name, write, got.Documents, len(got.list), want.Documents, len(want.list), got.list, want.list)
				}
			}
			if i == 0 {
				ways[0].list = w.list
			}
		}
		onlyThere := make(map[string]bool) // _ids of documents with values that only a copy can change
		for _, l := range ways[0].list {
			onlyThere[l.ID] = onlyThere[l.ID] || onlyCopied(l.Reason)
		}
		inPlace := all(t, coll)
		n, there := 0, 0
		for id, doc := range all(t, db.Collection(source.Name()+"_copy")) {
			n++
			if got, ok := inPlace[id]; ok && !onlyThere[id] {
				if there++; !slices.Equal(doc, got) {
					t.Errorf("to %s: in place %v\ncopy %v", to, got, doc)
				}
			}
		}
		if n != len(docs) || there == 0 {
			t.Errorf("to %s: %d documents, %d compared with those in place", to, n, there)
		}
	}
}
