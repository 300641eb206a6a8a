package decide

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/uuidrep"
)

// A value that is proven in one collection decides about an equal value in another one of the
// database, and not in one of another database.
func TestSurveyShares(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := NewSurvey(t.TempDir(), now, Question{Kind: kindstest.Kind(t, "javaLegacy")})
	defer func() { _ = s.Close() }()
	collection := func(db, name string, converted bool) *Surveyed {
		c, err := s.Collection(db, name, converted)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	add := func(c *Surveyed, field string, v any) {
		if err := c.Add(document(t, bson.D{{Key: field, Value: v}})); err != nil {
			t.Fatal(err)
		}
	}
	customers, orders, elsewhere, kept := collection("shop", "customers", true), collection("shop", "orders", true), collection("other", "orders", true), collection("shop", "kept", false)
	var last [16]byte
	for range 50 {
		last = uuidrep.JavaLegacy.Permute(v4(r))
		add(customers, "_id", legacyValue(last))
	}
	add(orders, "customer", legacyValue(last))
	add(elsewhere, "customer", legacyValue(last))
	add(kept, "customer", legacyValue(last))
	if err := s.Decide(); err != nil {
		t.Fatal(err)
	}
	value := func(c *Surveyed, field string) string {
		return c.Decision(kindstest.Kind(t, "javaLegacy")).Judge(uuidrep.JavaLegacy).Value([]byte(field), last)
	}
	if reason := value(orders, "customer"); reason != "" {
		t.Errorf("not converted: %s", reason)
	}
	if value(elsewhere, "customer") == "" {
		t.Error("converted by a value of another database")
	}
	if d := kept.Decision(kindstest.Kind(t, "javaLegacy")); len(d.Fields) > 0 {
		t.Error("a decision for a collection that is not converted")
	}
	if want := []Elsewhere{{Namespace: "shop.kept", Path: "customer", Equal: 1}}; !slices.Equal(s.Elsewhere(), want) {
		t.Errorf("elsewhere %+v, want %+v", s.Elsewhere(), want)
	}
}

// A survey about several kinds makes the decision of one about each, whatever is in the collections, also
// if one of them was read twice.
func TestSurveyOfSeveralKinds(t *testing.T) {
	all := kinds.Where(func(k kinds.Kind) bool { return !k.BySubtype() })
	sources := []source{random, v4, v7, v1, hash, func(*rand.Rand) uuid.UUID { return uuid.Nil }}
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 77))
		var docs [2][][]byte
		var pool []uuid.UUID
		for n := range docs {
			for range 30 + r.IntN(200) {
				doc := bson.D{}
				for f := range 4 {
					u := sources[r.IntN(1+r.IntN(len(sources)))](r)
					if len(pool) > 0 && r.IntN(6) == 0 {
						u = pool[r.IntN(len(pool))]
					}
					pool = append(pool, u)
					v := any(legacyValue(legacy[f%3].Permute(u)))
					switch r.IntN(12) {
					case 0:
						v = u.String()
					case 1:
						v = bson.Binary{Subtype: 4, Data: u[:]}
					case 2:
						v = bson.A{v, bson.D{{Key: "x", Value: v}}}
					case 3:
						v = bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
					case 4:
						v = hex.EncodeToString(u[:])
					case 5:
						v = bson.Binary{Data: u[:]}
					}
					doc = append(doc, bson.E{Key: fmt.Sprintf("f%d", f), Value: v})
				}
				docs[n] = append(docs[n], document(t, doc))
			}
		}
		decisions := func(explain, twice bool, of ...kinds.Kind) (out []Decision) {
			var questions []Question
			for _, k := range of {
				if !slices.ContainsFunc(questions, func(q Question) bool { return q.Stored() == k.Stored() }) {
					questions = append(questions, Question{Kind: k, Trusted: []string{"f3[]", "nowhere"}})
				}
			}
			s := NewSurvey(t.TempDir(), now, questions...)
			s.Explain = explain
			var colls []*Surveyed
			for n, name := range []string{"a", "b"} {
				c, err := s.Collection("d", name, true)
				if err != nil {
					t.Fatal(err)
				}
				colls = append(colls, c)
				if twice { // the first time ends early
					for _, doc := range docs[n][:len(docs[n])/2] {
						if err := c.Add(doc); err != nil {
							t.Fatal(err)
						}
					}
					c.Forget()
				}
				for _, doc := range docs[n] {
					if err := c.Add(doc); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := s.Decide(of...); err != nil {
				t.Fatal(err)
			}
			for _, c := range colls {
				for _, k := range of {
					out = append(out, *c.Decision(k))
				}
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			return out
		}
		got := decisions(true, true, all...)
		for i, k := range all {
			want := decisions(false, false, k)
			if !reflect.DeepEqual(got[i], want[0]) || !reflect.DeepEqual(got[len(all)+i], want[1]) {
				t.Fatalf("seed %d, %s:\n%+v\nwant\n%+v", seed, k.Name, got[i], want[0])
			}
		}
	}
}
