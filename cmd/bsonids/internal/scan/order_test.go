package scan

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

var legacy = []uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// NEWSEQUENTIALID of SQL Server shuffles the bytes of a version 1 UUID as C# order does. In a field
// of a C# program, they look like version 1 of a Python program. Only an equal id elsewhere
// distinguishes the two cases.
func TestSequentialGUIDs(t *testing.T) {
	for _, rep := range []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.PythonLegacy} {
		for _, known := range []bool{false, true} {
			s := newScan(t)
			r := rand.New(rand.NewPCG(20, 20))
			c, users := s.collector(t, "c"), s.collector(t, "users")
			for i := range 1000 {
				id := uuidrep.CSharpLegacy.Permute(v1(r, i)) // as SQL Server writes it: ……-E611-……
				collect(t, c, bson.D{{Key: "id", Value: stored(id, 3, rep)}})
				if known {
					collect(t, users, bson.D{{Key: "_id", Value: uuid.UUID(id).String()}})
				}
			}
			e := evidence(t, s)
			switch reasons := strings.Join(e.Reasons, "\n"); {
			case known && (string(e.Verdict) != rep.String() || strings.Contains(reasons, "SQL Server")):
				t.Errorf("%v, known elsewhere: %s %q", rep, e.Verdict, e.Reasons)
			case !known && (e.Verdict != "undetermined" || !strings.Contains(reasons, "SQL Server")):
				t.Errorf("%v: %s %q", rep, e.Verdict, e.Reasons)
			}
		}
	}
}

// With as many further UUIDs as the report asks for, the order is proven, and not with fewer.
func TestSettles(t *testing.T) {
	asked := 0
	for seed := range uint64(60) {
		for _, rep := range legacy {
			r := rand.New(rand.NewPCG(seed, 3))
			right, wrong := 1+r.IntN(4), r.IntN(3)
			kind := []maker{v4, v5, v7}[r.IntN(3)]
			verdict := func(more int64) Evidence {
				s, r := newScan(t), rand.New(rand.NewPCG(seed, 13))
				c := s.collector(t, "c")
				for i := range right + wrong {
					of := kind
					if i >= right {
						of = noBits
					}
					collect(t, c, bson.D{{Key: "id", Value: stored(of(r, i), 3, rep)}})
				}
				for i := range more {
					collect(t, c, bson.D{{Key: "id", Value: stored(kind(r, 100+int(i)), 3, rep)}})
				}
				return evidence(t, s)
			}
			e := verdict(0)
			ask := int64(0)
			for _, part := range strings.Split(e.Settle, ", or ") {
				if strings.HasSuffix(part, "that are "+rep.String()) {
					if _, err := fmt.Sscanf(part, "%d more", &ask); err != nil {
						t.Fatal(err)
					}
				}
			}
			if ask == 0 {
				continue
			}
			asked++
			if e.SettleValues == 0 || e.SettleValues > ask || e.SettleValues > 40 {
				t.Errorf("seed %d: %d are asked for", seed, e.SettleValues)
			}
			proven := func(e Evidence) bool { return order(e, rep.String()).Conversion.Basis == decide.Evidence }
			if !proven(verdict(ask)) || proven(verdict(ask-1)) {
				t.Errorf("seed %d, %s: %d more were asked for: %v, with one less %v", seed, rep, ask, proven(verdict(ask)), proven(verdict(ask-1)))
			}
		}
	}
	if asked < 60 {
		t.Errorf("values are asked for in %d fields", asked)
	}
}

// The scan names no order that a conversion refuses, and a conversion converts as many values as the scan
// says, whatever a field contains.
func TestNamesNothingThatIsRefused(t *testing.T) {
	sources := []maker{v4, v7, v1, md5Sum, prefixed, noBits, counter, v5, ofVersion(8)}
	named := 0
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 77))
		subtype := byte(3)
		if r.IntN(4) == 0 {
			subtype = 0
		}
		s := newScan(t)
		c, users := s.collector(t, "c"), s.collector(t, "users")
		var values [][16]byte
		for range 1 + r.IntN(3) {
			of, rep := sources[r.IntN(len(sources))], legacy[r.IntN(3)]
			for i := range 1 + r.IntN(1<<r.IntN(10)) {
				u := of(r, i)
				values = append(values, rep.Permute(u))
				collect(t, c, bson.D{{Key: "id", Value: stored(u, subtype, rep)}})
				if r.IntN(40) == 0 {
					collect(t, users, bson.D{{Key: "_id", Value: uuid.UUID(u).String()}})
				}
			}
		}
		coll := s.judged(t)[0]
		e := coll.Fields[0].Evidence[0]
		for _, o := range e.Orders {
			k, err := kinds.Parse(o.Order)
			if (err == nil) != (o.Conversion != nil) {
				t.Fatalf("seed %d: %+v", seed, o)
			}
			if err != nil {
				continue
			}
			d := coll.Decisions[k.Name]
			j := d.Judge(k.Order)
			converted := make(map[[16]byte]bool)
			for _, v := range values {
				if j.Value([]byte("id"), v) == "" {
					converted[v] = true
				}
			}
			if int64(len(converted)) != o.Conversion.Values {
				t.Errorf("seed %d: from %s %d values are converted, and the scan says %d", seed, o.Order, len(converted), o.Conversion.Values)
			}
			if string(e.Verdict) == o.Order {
				named++
				if len(converted) == 0 {
					t.Errorf("seed %d: %s is named and refused: %+v", seed, o.Order, o.Conversion)
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("%d orders are named", named)
	}
}

// Values of two programs in two orders are mixed, and values without a version beside those of one order are not. Each order says
// how many a conversion converts.
func TestMixed(t *testing.T) {
	for _, tt := range []struct {
		java, csharp, none int
		want               string
	}{
		{700, 300, 0, "mixed"}, {950, 50, 0, "mixed"}, {500, 0, 500, "javaLegacy"}, {995, 0, 5, "javaLegacy"}, {50, 50, 0, "mixed"}, {1000, 15, 0, "mixed"},
	} {
		r := rand.New(rand.NewPCG(4, 4))
		s := newScan(t)
		c := s.collector(t, "c")
		for i := range tt.java + tt.csharp + tt.none {
			of, rep := v4, uuidrep.JavaLegacy
			switch {
			case i >= tt.java+tt.csharp:
				of = noBits
			case i >= tt.java:
				rep = uuidrep.CSharpLegacy
			}
			collect(t, c, bson.D{{Key: "id", Value: stored(of(r, i), 3, rep)}})
		}
		e := evidence(t, s)
		if string(e.Verdict) != tt.want || tt.want == "mixed" && e.Settle == "" {
			t.Errorf("%+v: %s %q %+v", tt, e.Verdict, e.Reasons, e.Orders)
		}
		// Values that fit both orders, 1/64 of each part, are not converted, and as many of the others are.
		for _, o := range e.Orders {
			if n := float64(o.Conversion.Values); o.Order == "javaLegacy" && (n < 0.94*float64(tt.java) || n > float64(tt.java)+0.05*float64(tt.csharp+tt.none)) {
				t.Errorf("%+v: %+v", tt, o.Conversion)
			}
		}
	}
}

// C# order does not move bytes in the second half of a UUID, and the first half of these values is
// zero. Two orders are therefore the same.
func TestSameInTwoOrders(t *testing.T) {
	s := newScan(t)
	c, users := s.collector(t, "c"), s.collector(t, "users")
	for i := range 200 {
		id := counter(nil, i)
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, uuidrep.CSharpLegacy)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	e := evidence(t, s)
	if e.Verdict != "undetermined" || e.Orders[0].Matches != 200 || e.Orders[1].Matches != 200 || e.Orders[2].Matches != 0 {
		t.Errorf("%s %q %+v", e.Verdict, e.Reasons, e.Orders)
	}
}

// Values of subtype 0 are from Go programs if the bytes indicate it.
func TestGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	s := newScan(t)
	c := s.collector(t, "c")
	for range 1000 {
		collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 0, uuidrep.Standard)}, {Key: "sum", Value: stored(noBits(r, 0), 0, uuidrep.Standard)},
			{Key: "java", Value: stored(v4(r, 0), 0, uuidrep.JavaLegacy)}})
	}
	fields := s.judged(t)[0].Fields
	for i, want := range []string{"generic", "subtype 0 in Java order", "undetermined"} {
		if e := fields[i].Evidence[0]; string(e.Verdict) != want || e.Verdict.Convertible() != (want == "generic") {
			t.Errorf("%s: %s %+v", fields[i].Path, e.Verdict, e.Orders)
		}
	}
}
