package servertest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// way is one way to convert the awkward collection, and what it says.
type way struct {
	Values     int64            `json:"values"`
	Documents  int64            `json:"documentsSkipped"` // with values that are left
	SkippedFor map[string]int64 `json:"skippedFor"`
	list       []skipLine
}

// onlyCopied reports whether the reason is one for which only a conversion in place leaves a value.
func onlyCopied(reason string) bool {
	return strings.Contains(reason, "occurs twice in the document") || strings.Contains(reason, walk.ErrUnaddressable.Error())
}

// copied returns what a copy says if the conversion in place says w.
func (w way) copied() way {
	c := way{Values: w.Values, SkippedFor: maps.Clone(w.SkippedFor)}
	for reason, n := range w.SkippedFor {
		if onlyCopied(reason) {
			c.Values += n
			delete(c.SkippedFor, reason)
		}
	}
	ids := make(map[string]bool)
	for _, l := range w.list {
		if !onlyCopied(l.Reason) {
			c.list, ids[string(l.ID)] = append(c.list, l), true
		}
	}
	c.Documents = int64(len(ids))
	return c
}

// appliedWay applies the plan of a collection, and returns what it says.
func appliedWay(t *testing.T, s *mongotest.Server, dir string) way {
	t.Helper()
	var got struct{ Steps []way }
	r := command(t, s, slices.Concat([]string{"apply", dir, "--write", "--output", "json"}, gentle)...).want(t, failure.ExitIncomplete)
	if decode(t, r.stdout, &got); len(got.Steps) != 1 {
		t.Fatal(r.stdout)
	}
	w := got.Steps[0]
	w.list = skipLines(t, skipList(t, dir))
	slices.SortFunc(w.list, func(a, b skipLine) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return w
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
	stored := func(order uuidrep.Representation) bson.Binary { return in(newUUID(r, 4, r.IntN(1024)), order) }
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

// One collection is converted in place and into a copy: the counts, the reasons, the lists, the exit codes and the values are
// the same, except for values that only a copy can change.
func TestEveryWay(t *testing.T) {
	s, db := started(t)
	docs := awkward(t, db)
	coll, copied := db.Collection("c"), db.Collection("copy")
	drop(t, db.Collection("accepts"))
	insert(t, coll, docs)
	decided := func(p *plan.Plan) {
		for i := range p.Collections[0].Fields {
			f := &p.Collections[0].Fields[i]
			e, ok := f.In("csharpLegacy")
			if f.Decision = plan.Leave; ok && f.Stored == kinds.Subtype3 && e.By != decide.None && f.Path != "_id" && f.Path != "x.y" && !strings.HasPrefix(f.Path, "in.") {
				f.Decision = plan.Convert("csharpLegacy")
			}
		}
	}
	copy := appliedWay(t, s, prepared(t, s, decided, copiedInto("c", "copy")))
	want := all(t, copied)
	drop(t, copied) // the next plan does not know it
	inPlace := appliedWay(t, s, prepared(t, s, decided, copiedInto("c", "")))
	if got := inPlace.copied(); fmt.Sprint(got) != fmt.Sprint(copy) || got.Values == 0 || got.Documents == 0 {
		t.Errorf("in place, as a copy\n%+v\ncopy\n%+v", got, copy)
	}
	only := make(map[string]bool) // _ids of documents with values that only a copy can change
	for _, l := range inPlace.list {
		only[string(l.ID)] = only[string(l.ID)] || onlyCopied(l.Reason)
	}
	for id, doc := range all(t, coll) {
		if !only[id] && !slices.Equal(doc, want[id]) {
			t.Errorf("in place %v\ncopy %v", doc, want[id])
		}
	}
	if len(want) != len(docs) || len(only) == len(docs) {
		t.Errorf("%d documents, of which only the copy has %d", len(want), len(only))
	}
}
