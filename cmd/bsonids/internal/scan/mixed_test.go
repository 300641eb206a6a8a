package scan

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// UUIDs of another program in another order are detected, also if the UUIDs of the first program
// are worth few independent values, because they are from the clock of one machine.
func TestFewInAnotherOrderThanAClock(t *testing.T) {
	for name, other := range map[string]source{"v4": v4, "v1": func(r *rand.Rand, i int) [16]byte {
		u := v1(r, i)
		copy(u[8:], []byte{0x91, 0x22, 0x02, 0x42, 0xac, 0x11, 0x00, 0x02})
		return u
	}} {
		for _, reps := range [][2]uuidrep.Representation{{uuidrep.CSharpLegacy, uuidrep.JavaLegacy}, {uuidrep.JavaLegacy, uuidrep.PythonLegacy}} {
			for seed := range uint64(10) {
				r := rand.New(rand.NewPCG(seed, 19))
				c := NewCollector("db.c")
				for i := range 1000 {
					id := stored(v1(r, i), 3, reps[0])
					if i%100 == 0 {
						id = stored(other(r, i), 3, reps[1])
					}
					collect(t, c, bson.D{{Key: "id", Value: id}})
				}
				e := evidence(t, []*Collector{c}, "db.c", "id", 3)
				reasons := strings.Join(e.Reasons, "\n")
				if e.Verdict.String() != "mixed" || !strings.Contains(reasons, "are "+reps[0].String()) || !strings.Contains(reasons, "are "+reps[1].String()) {
					t.Errorf("1 %% of %s in %v among %v, seed %d: %s %v %q", name, reps[1], reps[0], seed, e.Verdict, e.Confidence, e.Reasons)
				}
			}
		}
	}
}

// A part in another order is detected, also if it is small, because a conversion would change it to
// other UUIDs.
func TestFewInAnotherOrder(t *testing.T) {
	for _, tt := range []struct {
		java, csharp int
		want         []string
	}{{1000, 15, []string{"mixed"}}, {1000, 10, []string{"mixed"}}, {490, 10, []string{"mixed"}}, {198, 3, []string{"mixed", "undetermined"}}} {
		for seed := range uint64(5) {
			r := rand.New(rand.NewPCG(seed, 15))
			c := NewCollector("db.c")
			for i := range tt.java + tt.csharp {
				rep := uuidrep.JavaLegacy
				if i < tt.csharp {
					rep = uuidrep.CSharpLegacy
				}
				collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, rep)}})
			}
			e := evidence(t, []*Collector{c}, "db.c", "id", 3)
			if !slices.Contains(tt.want, e.Verdict.String()) {
				t.Errorf("%d Java, %d C#, seed %d: %s %v %q", tt.java, tt.csharp, seed, e.Verdict, e.Confidence, e.Reasons)
			}
			reasons := strings.Join(e.Reasons, "\n")
			if e.Verdict.String() == "mixed" && (!strings.Contains(reasons, "are javaLegacy") || !strings.Contains(reasons, "are csharpLegacy") || strings.Contains(reasons, "pythonLegacy")) {
				t.Errorf("%d Java, %d C#, seed %d: %q", tt.java, tt.csharp, seed, e.Reasons)
			}
		}
	}
}

func TestMixed(t *testing.T) {
	for _, tt := range []struct {
		java, csharp, none int
		want               string
	}{
		{700, 300, 0, "mixed"}, {950, 50, 0, "mixed"}, {500, 0, 500, "mixed"}, {995, 0, 5, "javaLegacy"}, {50, 50, 0, "mixed"},
	} {
		r := rand.New(rand.NewPCG(4, 4))
		c := NewCollector("db.c")
		for range tt.java {
			collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}})
		}
		for range tt.csharp {
			collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.CSharpLegacy)}})
		}
		for range tt.none {
			collect(t, c, bson.D{{Key: "id", Value: stored(noBits(r, 0), 3, uuidrep.JavaLegacy)}})
		}
		e := evidence(t, []*Collector{c}, "db.c", "id", 3)
		if e.Verdict.String() != tt.want {
			t.Errorf("%+v: %s %v %q %+v", tt, e.Verdict, e.Confidence, e.Reasons, e.Orders)
		}
		if n := float64(tt.java + tt.csharp + tt.none); e.Verdict.String() == "mixed" && (abs(e.Orders[Java].Share-float64(tt.java)/n) > .03 || abs(e.Orders[CSharp].Share-float64(tt.csharp)/n) > .03) {
			t.Errorf("%+v: shares %+v", tt, e.Orders)
		}
	}
}
