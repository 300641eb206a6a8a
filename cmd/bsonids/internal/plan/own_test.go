package plan

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/uuidrep"
)

// planFor returns the plan for a collection with the documents.
func planFor(t *testing.T, docs ...bson.D) *Plan {
	t.Helper()
	of := scan.New(t.TempDir(), time.Unix(1e9, 0), true)
	defer of.Close()
	c, err := of.Collection("d", "c")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range docs {
		raw, err := bson.Marshal(doc)
		if err == nil {
			err = c.Add(raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := &survey.Survey{Database: "d", Names: []string{"c"}, Collections: []survey.Collection{{Name: "c", Documents: int64(len(docs))}}}
	if err := s.Decide(of); err != nil {
		t.Fatal(err)
	}
	return Build(s, nil)
}

// legacy returns the i-th of some UUIDs of version 4, as another driver stores it.
func legacy(order uuidrep.Representation, i int) bson.Binary {
	sum := sha256.Sum256(fmt.Append(nil, i))
	u := [16]byte(sum[:])
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	u = order.Permute(u)
	return bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: u[:]}
}

// A map may have an empty key. Its value is one of the map's: a copy converts it, and an update in place cannot
// address it.
func TestEmptyKey(t *testing.T) {
	const key = "5f9f1b9b8d3e4a0012345678"
	docs := func(id func(i int) any) (docs []bson.D) {
		for i := range 30 {
			docs = append(docs, bson.D{{Key: "_id", Value: id(i)}, {Key: "m", Value: bson.D{
				{Key: key, Value: legacy(uuidrep.JavaLegacy, 100+i)}, {Key: "", Value: legacy(uuidrep.JavaLegacy, 200+i)}}}})
		}
		return docs
	}
	p := planFor(t, docs(func(i int) any { return legacy(uuidrep.JavaLegacy, i) })...)
	c := p.Collections[0]
	if problems := p.Check(); len(problems) > 0 || c.Into == "" || len(c.Fields) != 2 || c.Fields[1].Path != "m.*" || !c.Fields[1].converted() || strings.Contains(string(p.Text()), "only a copy") {
		t.Errorf("%q\n%s", problems, p.Text())
	}
	p = planFor(t, docs(func(i int) any { return i })...)
	if f := p.Collections[0].Fields[0]; f.Path != "m.*" || f.Decision != Unknown || !strings.Contains(strings.Join(f.Comment, "\n"), "30 of 60") {
		t.Errorf("%s", p.Text())
	}
}

// A name that no pattern can be is in no copy either, and the plan does not say so.
func TestNoCopyNames(t *testing.T) {
	var docs []bson.D
	for i := range 40 {
		docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a..b", Value: legacy(uuidrep.JavaLegacy, i)}, {Key: "c.d", Value: legacy(uuidrep.JavaLegacy, 100+i)}})
	}
	p := planFor(t, docs...)
	for i, want := range []bool{false, true} {
		if f := p.Collections[0].Fields[i]; strings.Contains(strings.Join(f.Comment, "\n"), "only a copy") != want || f.Decision != Leave {
			t.Errorf("%q: %s %q", f.Path, f.Decision, f.Comment)
		}
	}
}

// What plan writes can be applied once a person has made the decisions that are unknown, and about references with an end that
// is left: whatever keys documents have, and however their values are stored.
func TestOwnPlan(t *testing.T) {
	keys := []string{"", "a", "b", "17", "5f9f1b9b8d3e4a0012345678", "a.b", ".", "$x"}
	for seed := range 100 {
		r := rand.New(rand.NewPCG(uint64(seed), 48))
		key := func() string { return keys[r.IntN(len(keys))] }
		var shape []func(i int) bson.E
		for n := range 1 + r.IntN(4) {
			order := []uuidrep.Representation{uuidrep.JavaLegacy, uuidrep.CSharpLegacy}[r.IntN(2)]
			value := func(i int) any { return legacy(order, 1000*n+i) }
			switch r.IntN(5) {
			case 0:
				value = func(int) any { return legacy(order, n) } // the same in each
			case 1:
				value = func(int) any { return bson.Binary{Subtype: 3, Data: make([]byte, 16)} }
			}
			top, in := key(), key()
			shape = append(shape, func(i int) bson.E {
				if top == in {
					return bson.E{Key: top, Value: value(i)}
				}
				return bson.E{Key: top, Value: bson.D{{Key: in, Value: value(i)}}}
			})
		}
		id := r.IntN(2) == 0
		var docs []bson.D
		for i := range 40 {
			doc := bson.D{{Key: "_id", Value: i}}
			if id {
				doc[0].Value = legacy(uuidrep.JavaLegacy, i+9000)
			}
			for _, e := range shape {
				doc = append(doc, e(i))
			}
			docs = append(docs, doc)
		}
		p := planFor(t, docs...)
		problems := slices.DeleteFunc(p.Check(), func(problem string) bool {
			return strings.Contains(problem, " is unknown") || strings.Contains(problem, "would be half converted")
		})
		if len(problems) > 0 {
			t.Errorf("seed %d: %q\n%s", seed, problems, p.Text())
		}
	}
}
