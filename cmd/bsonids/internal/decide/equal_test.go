package decide

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
	"github.com/bsonids/bsonids/uuidrep"
)

func document(t testing.TB, d bson.D) []byte {
	t.Helper()
	b, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func legacyValue(v [16]byte) bson.Binary { return bson.Binary{Subtype: 3, Data: v[:]} }

// A field of bytes that are not UUIDs has a few references to many ids. The values that are ids are
// converted, whatever is read first.
func TestFewReferencesIntoManyIDs(t *testing.T) {
	const ids = 300_000
	for _, first := range []bool{true, false} {
		for _, text := range []bool{true, false} {
			r := rand.New(rand.NewPCG(20, 1))
			p := newPass(t, Question{Kind: kindstest.Kind(t, "javaLegacy")})
			known, unknown := make([]uuid.UUID, ids), make([][16]byte, 50)
			for i := range known {
				known[i] = random(r)
			}
			for i := range unknown {
				unknown[i] = random(r)
			}
			references := func() {
				for i, v := range unknown {
					add(t, p, "a", uuidrep.JavaLegacy.Permute(known[i*1000]))
					add(t, p, "a", v)
				}
			}
			if first {
				references()
			}
			other := p.collection("d.other", false)
			for _, u := range known {
				var id any = bson.Binary{Subtype: 4, Data: u[:]}
				if text {
					id = u.String()
				}
				if err := other.Add(document(t, bson.D{{Key: "_id", Value: id}})); err != nil {
					t.Fatal(err)
				}
			}
			if !first {
				references()
			}
			d, _ := p.decide()
			j := d.Judge(uuidrep.JavaLegacy)
			if d.Fields[0].Basis != Equality || len(d.Fields[0].Equal) != 50 || d.Fields[0].Fits != 50 {
				t.Fatalf("%+v", d.Fields[0])
			}
			for i, v := range unknown {
				if j.Value([]byte("a"), uuidrep.JavaLegacy.Permute(known[i*1000])) != "" {
					t.Errorf("reference %d is not converted", i)
				}
				if j.Value([]byte("a"), v) == "" {
					t.Errorf("value %d, which is no reference, is converted", i)
				}
			}
			b, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			var again Decision
			if err := json.Unmarshal(b, &again); err != nil || !reflect.DeepEqual(again, d) {
				t.Errorf("%v: %s", err, b)
			}
		}
	}
}

// A value that fits is not converted if, read in another order, it is equal to an id. This also
// holds in a trusted field.
func TestEqualityContradicts(t *testing.T) {
	for _, trusted := range [][]string{nil, {"a"}} {
		r := rand.New(rand.NewPCG(21, 1))
		p := newPass(t, Question{Kind: kindstest.Kind(t, "javaLegacy"), Trusted: trusted})
		of := v4
		if trusted != nil {
			of = hash
		}
		var values [][16]byte
		for range 100 {
			values = append(values, uuidrep.JavaLegacy.Permute(of(r)))
			add(t, p, "a", values[len(values)-1])
		}
		u := uuidrep.CSharpLegacy.Permute(values[7])
		if err := p.of.Add(document(t, bson.D{{Key: "b", Value: bson.Binary{Subtype: 4, Data: u[:]}}})); err != nil {
			t.Fatal(err)
		}
		d, _ := p.decide()
		j := d.Judge(uuidrep.JavaLegacy)
		for i, v := range values {
			if reason := j.Value([]byte("a"), v); (i == 7) != strings.Contains(reason, "in another order") || i != 7 && reason != "" {
				t.Errorf("%d: %q", i, reason)
			}
		}
	}
}

// A field shares a few values with a field whose order is proven. These values are converted.
func TestSharedEvidence(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	p := newPass(t, Question{Kind: kindstest.Kind(t, "csharpLegacy")})
	var values [][16]byte
	for range 100 {
		values = append(values, uuidrep.CSharpLegacy.Permute(v4(r)))
		add(t, p, "_id", values[len(values)-1])
	}
	other := uuidrep.CSharpLegacy.Permute(v4(r))
	add(t, p, "ref", values[3])
	add(t, p, "ref", other)
	d, _ := p.decide()
	j := d.Judge(uuidrep.CSharpLegacy)
	if j.Value([]byte("ref"), values[3]) != "" || j.Value([]byte("ref"), other) == "" {
		t.Errorf("%+v", d.Fields)
	}
}

// Equal values that are not converted are found in the same collection and in others, whatever is
// read first.
func TestElsewhere(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 1))
	wanted := func(path *walk.Path) bool { return path.Top() == "a" }
	p := newPass(t, Question{Kind: kindstest.Kind(t, "javaLegacy"), Wanted: wanted})
	u, v, w := random(r), random(r), random(r)
	for _, d := range []bson.D{
		{{Key: "b", Value: bson.A{legacyValue(u), legacyValue(w)}}}, // before
		{{Key: "a", Value: legacyValue(u)}}, {{Key: "a", Value: legacyValue(v)}}, {{Key: "a", Value: legacyValue(v)}},
		{{Key: "b", Value: bson.A{legacyValue(v), legacyValue(v)}}}, // after
		{{Key: "c", Value: legacyValue(w)}}, {{Key: "d", Value: bson.Binary{Subtype: 4, Data: v[:]}}},
	} {
		if err := p.of.Add(document(t, d)); err != nil {
			t.Fatal(err)
		}
	}
	other := p.collection("d.y", false)
	for range 3 {
		if err := other.Add(document(t, bson.D{{Key: "e", Value: legacyValue(v)}, {Key: "f", Value: legacyValue(w)}})); err != nil {
			t.Fatal(err)
		}
	}
	p.decide()
	// The values of a decide nothing, so that they are not converted either, but a person may trust them.
	want := []Elsewhere{{"d.c", "b[]", 2}, {"d.y", "e", 1}}
	if got := p.Elsewhere(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
