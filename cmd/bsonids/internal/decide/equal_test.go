package decide

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

// A field of bytes that are not UUIDs has a few references to many ids. The values that are ids are
// converted, whatever is read first.
func TestFewReferencesIntoManyIDs(t *testing.T) {
	const ids = 300_000
	for _, first := range []bool{true, false} {
		for _, text := range []bool{true, false} {
			r := rand.New(rand.NewPCG(20, 1))
			p := newPass(t)
			known, unknown := make([]uuid.UUID, ids), make([][16]byte, 50)
			for i := range known {
				known[i] = random(r)
			}
			for i := range unknown {
				unknown[i] = random(r)
			}
			references := func() {
				for i, v := range unknown {
					p.add("a", uuidrep.JavaLegacy.Permute(known[i*1000]))
					p.add("a", v)
				}
			}
			if first {
				references()
			}
			other := p.collection("d", "d.other")
			for _, u := range known {
				put(t, other, "_id", map[bool]kinds.Stored{false: kinds.Subtype4, true: kinds.OfText}[text], kinds.Spelled{UUID: u, Certain: true})
			}
			if !first {
				references()
			}
			d := p.decide(uuidrep.JavaLegacy)
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
		p := newPass(t)
		of := v4
		if trusted != nil {
			of = hash
		}
		var values [][16]byte
		for range 100 {
			values = append(values, uuidrep.JavaLegacy.Permute(of(r)))
			p.add("a", values[len(values)-1])
		}
		u := uuidrep.CSharpLegacy.Permute(values[7])
		put(t, p.of, "b", kinds.Subtype4, kinds.Spelled{UUID: u, Certain: true})
		d := p.decide(uuidrep.JavaLegacy)
		d.Trust(trusted)
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
	p := newPass(t)
	var values [][16]byte
	for range 100 {
		values = append(values, uuidrep.CSharpLegacy.Permute(v4(r)))
		p.add("_id", values[len(values)-1])
	}
	other := uuidrep.CSharpLegacy.Permute(v4(r))
	p.add("ref", values[3])
	p.add("ref", other)
	d := p.decide(uuidrep.CSharpLegacy)
	j := d.Judge(uuidrep.CSharpLegacy)
	if j.Value([]byte("ref"), values[3]) != "" || j.Value([]byte("ref"), other) == "" {
		t.Errorf("%+v", d.Fields)
	}
}
