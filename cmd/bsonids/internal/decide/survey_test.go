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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

// A survey of one collection makes the decision of a pass over it, whatever is in it.
func TestSurveyAgreesWithPass(t *testing.T) {
	sources := []source{random, v4, v7, v1, hash, func(*rand.Rand) uuid.UUID { return uuid.Nil }}
	for seed := range uint64(120) {
		r := rand.New(rand.NewPCG(seed, 77))
		from := legacy[r.IntN(3)]
		q := Question{Order: from, Name: from.String(), Subtype: 3}
		switch seed % 4 {
		case 1:
			q = Question{Order: uuidrep.Standard, Name: "text", Subtype: 127, Form: kinds.Text}
		case 2:
			q = Question{Order: uuidrep.Standard, Name: "goStruct", Subtype: 126, Form: kinds.Struct}
		}
		if r.IntN(3) == 0 {
			q.Trusted = []string{"f1[]", "nowhere"}
		}
		if r.IntN(3) == 0 {
			only, err := walk.ParsePattern(fmt.Sprintf("f%d", r.IntN(3)))
			if err != nil {
				t.Fatal(err)
			}
			q.Wanted = only.Match
		}
		p, s := NewPass(q, now), NewSurvey(q, t.TempDir(), now)
		c, err := s.Collection("d", "c", true)
		if err != nil {
			t.Fatal(err)
		}
		var pool []uuid.UUID
		for range 30 + r.IntN(300) {
			doc := bson.D{}
			for f := range 4 {
				var u uuid.UUID
				switch {
				case len(pool) > 0 && r.IntN(6) == 0:
					u = pool[r.IntN(len(pool))]
				default:
					u = sources[r.IntN(1+r.IntN(len(sources)))](r)
					pool = append(pool, u)
				}
				order := from
				if r.IntN(5) == 0 {
					order = legacy[r.IntN(3)]
				}
				var v any = legacyValue(order.Permute(u))
				switch {
				case q.Form == kinds.Text && r.IntN(4) > 0:
					v = []string{u.String(), hex.EncodeToString(u[:]), "{" + u.String() + "}", "none"}[(f+r.IntN(2))%4]
				case q.Form == kinds.Struct && r.IntN(4) > 0:
					v = bson.D{{Key: []string{"uuid", "uuid", "UUID"}[r.IntN(3)], Value: bson.Binary{Data: u[:]}}}
				}
				switch r.IntN(12) {
				case 0:
					v = u.String()
				case 1:
					v = bson.Binary{Subtype: 4, Data: u[:]}
				case 2:
					v = bson.A{v, bson.D{{Key: "x", Value: v}}}
				}
				doc = append(doc, bson.E{Key: fmt.Sprintf("f%d", f), Value: v})
			}
			b := document(t, doc)
			if err := p.Add(b); err != nil {
				t.Fatal(err)
			}
			if err := c.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		want, wantUnknown := p.Decide()
		got, unknown, err := s.Decide()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(unknown, wantUnknown) {
			t.Errorf("seed %d: unknown %v, want %v", seed, unknown, wantUnknown)
		}
		if !reflect.DeepEqual(*got["d.c"], want) {
			t.Fatalf("seed %d:\n%+v\nwant\n%+v", seed, *got["d.c"], want)
		}
		left := p.Elsewhere()
		for i := range left {
			left[i].Namespace = "d.c"
		}
		elsewhere := slices.DeleteFunc(s.Elsewhere(), func(e Elsewhere) bool { // fields that stay, of which a pass says nothing
			return !slices.ContainsFunc(left, func(o Elsewhere) bool { return o.Path == e.Path })
		})
		if !slices.Equal(elsewhere, left) {
			t.Errorf("seed %d: elsewhere %+v, want %+v", seed, elsewhere, left)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A value that is proven in one collection decides about an equal value in another one of the
// database, and not in one of another database.
func TestSurveyShares(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	s := NewSurvey(Question{Order: uuidrep.JavaLegacy, Name: "javaLegacy", Subtype: 3}, t.TempDir(), now)
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
	d, _, err := s.Decide()
	if err != nil {
		t.Fatal(err)
	}
	value := func(namespace, field string) string {
		return d[namespace].Judge(uuidrep.JavaLegacy).Value([]byte(field), last)
	}
	if reason := value("shop.orders", "customer"); reason != "" {
		t.Errorf("not converted: %s", reason)
	}
	if value("other.orders", "customer") == "" {
		t.Error("converted by a value of another database")
	}
	if _, ok := d["shop.kept"]; ok {
		t.Error("a decision for a collection that is not converted")
	}
	if want := []Elsewhere{{Namespace: "shop.kept", Path: "customer", Equal: 1}}; !slices.Equal(s.Elsewhere(), want) {
		t.Errorf("elsewhere %+v, want %+v", s.Elsewhere(), want)
	}
}
