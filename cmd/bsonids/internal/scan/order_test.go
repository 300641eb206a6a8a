package scan

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// The order of each kind of UUID is found in each order, and from few values.
func TestOrder(t *testing.T) {
	for name, kind := range map[string]struct {
		make source
		n    int
	}{
		"v4": {v4, 1000}, "few v4": {v4, 12}, "v1": {v1, 1000}, "v7": {v7, 1000}, "v3": {v3, 1000}, "v5": {v5, 1000}, "many v4": {v4, 5000},
		"v2": {ofVersion(2), 1000}, "v8": {ofVersion(8), 1000}, "few v5": {v5, 12}, "few v8": {ofVersion(8), 12},
		"v7 of another format": {ofVersion(7), 1000}, "v1 with a wrong clock": {epoch, 1000},
	} {
		for rep, want := range map[uuidrep.Representation]string{
			uuidrep.PythonLegacy: "pythonLegacy", uuidrep.CSharpLegacy: "csharpLegacy", uuidrep.JavaLegacy: "javaLegacy",
		} {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 1))
				c := NewCollector("db.c")
				for i := range kind.n {
					collect(t, c, bson.D{{Key: "id", Value: stored(kind.make(r, i), 3, rep)}})
				}
				e := evidence(t, []*Collector{c}, "db.c", "id", 3)
				if name == "v1" && rep != uuidrep.JavaLegacy { // may be a sequential GUID of SQL Server in the other order
					if e.Verdict.Outcome != Undecided || !strings.Contains(strings.Join(e.Reasons, "\n"), "SQL Server") {
						t.Errorf("%s in %v, seed %d: %s %v %+v", name, rep, seed, e.Verdict, e.Confidence, e.Orders)
					}
					continue
				}
				if e.Verdict.String() != want || e.Confidence < 0.99 || e.Confidence >= 1 {
					t.Errorf("%s in %v, seed %d: %s %v %+v", name, rep, seed, e.Verdict, e.Confidence, e.Orders)
				}
				if kind.n >= 1000 && seed == 2 {
					break
				}
			}
		}
	}
}

// Bytes without version bits are never assigned an order, whatever their number and structure.
func TestCannotTell(t *testing.T) {
	for name, kind := range map[string]source{
		"random": noBits, "MD5": md5Sum, "counter": counter, "fixed beginning": prefixed,
		"one value":   func(*rand.Rand, int) [16]byte { return v4(rand.New(rand.NewPCG(9, 9)), 0) },
		"nil":         func(*rand.Rand, int) [16]byte { return [16]byte{} },
		"coordinates": coordinates, "addresses": address, "version 9": ofVersion(9),
	} {
		for _, n := range []int{1, 2, 5, 20, 1000, 3000} {
			for seed := range uint64(20) {
				r := rand.New(rand.NewPCG(seed, 2))
				c := NewCollector("db.c")
				for i := range n {
					collect(t, c, bson.D{{Key: "id", Value: stored(kind(r, i), 3, uuidrep.JavaLegacy)}})
				}
				e := evidence(t, []*Collector{c}, "db.c", "id", 3)
				if e.Verdict.String() != "undetermined" || e.Settle == "" || len(e.Reasons) == 0 {
					t.Errorf("%s, %d, seed %d: %s %v %q %+v", name, n, seed, e.Verdict, e.Confidence, e.Reasons, e.Orders)
				}
				for _, o := range e.Orders {
					if o.Fits > 200 && strings.Contains(strings.Join(e.Reasons, "\n"), "in no order do markedly more") {
						t.Errorf("%s, %d, seed %d: %d of %d fit %s, but: %q", name, n, seed, o.Fits, e.Sample, o.Order, e.Reasons)
					}
				}
				if n >= 1000 && seed == 2 {
					break
				}
			}
		}
	}
}

// Keys with one of two fixed beginnings that look like version 4 by accident count as two values,
// however many there are.
func TestTwoBeginnings(t *testing.T) {
	c := NewCollector("db.c")
	for i := range 1000 {
		u := prefixed(nil, i)
		if i%2 == 0 {
			u[6], u[8] = 0x4a, 0x87
		}
		collect(t, c, bson.D{{Key: "id", Value: stored(u, 3, uuidrep.PythonLegacy)}})
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict.String() != "undetermined" {
		t.Errorf("%s %v %q", e.Verdict, e.Confidence, e.Reasons)
	}
}

// NEWSEQUENTIALID of SQL Server shuffles the bytes of a version 1 UUID as C# order does. In a field
// of a C# program, they look like version 1 of a Python program. Only an equal id elsewhere
// distinguishes the two cases.
func TestSequentialGUIDs(t *testing.T) {
	for _, rep := range []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.PythonLegacy} {
		for _, known := range []bool{false, true} {
			r := rand.New(rand.NewPCG(20, 20))
			c, users := NewCollector("db.c"), NewCollector("db.users")
			for i := range 1000 {
				id := uuidrep.CSharpLegacy.Permute(v1(r, i)) // as SQL Server writes it: ……-E611-……
				collect(t, c, bson.D{{Key: "id", Value: stored(id, 3, rep)}})
				if known {
					collect(t, users, bson.D{{Key: "_id", Value: uuid.UUID(id).String()}})
				}
			}
			e := evidence(t, []*Collector{c, users}, "db.c", "id", 3)
			switch reasons := strings.Join(e.Reasons, "\n"); {
			case known && (e.Verdict.String() != rep.String() || strings.Contains(reasons, "SQL Server")):
				t.Errorf("%v, known elsewhere: %s %v %q", rep, e.Verdict, e.Confidence, e.Reasons)
			case !known && (e.Verdict.String() != "undetermined" || !strings.Contains(reasons, "SQL Server") || !strings.Contains(reasons, "in "+rep.String())):
				t.Errorf("%v: %s %v %q", rep, e.Verdict, e.Confidence, e.Reasons)
			}
		}
	}
}

// One or two UUIDs of version 4 are too few. With as many as the report asks for, the order is
// named.
func TestSettles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	c := NewCollector("db.c")
	add := func() { collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.CSharpLegacy)}}) }
	add()
	e := evidence(t, []*Collector{c}, "db.c", "id", 3)
	if e.Verdict.String() != "undetermined" || e.SettleValues < 1 || e.SettleValues > 10 {
		t.Fatalf("%s %d %v", e.Verdict, e.SettleValues, e.Reasons)
	}
	for range e.SettleValues {
		add()
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict.String() != "csharpLegacy" {
		t.Errorf("after %d more: %s %v", e.SettleValues, e.Verdict, e.Orders)
	}
}

// With as many more as the report asks for, the order is named, whatever other values there are.
func TestSettlesAmongOthers(t *testing.T) {
	asked, named := 0, 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		c := NewCollector("db.c")
		add := func(n int, kind source, rep uuidrep.Representation) {
			for i := range n {
				collect(t, c, bson.D{{Key: "id", Value: stored(kind(r, i), 3, rep)}})
			}
		}
		add(1+r.IntN(10), []source{v4, v5, v7}[r.IntN(3)], uuidrep.CSharpLegacy)
		add(1+r.IntN(2), []source{v4, noBits}[r.IntN(2)], uuidrep.JavaLegacy)
		e := evidence(t, []*Collector{c}, "db.c", "id", 3)
		if e.SettleValues == 0 || slices.MaxFunc(e.Orders, func(a, b OrderEvidence) int { return a.Fits - b.Fits }).Order != "csharpLegacy" {
			continue
		}
		asked++
		add(e.SettleValues, v4, uuidrep.CSharpLegacy)
		if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict.String() == "csharpLegacy" {
			named++
		}
	}
	if asked < 100 || named < asked*8/10 {
		t.Errorf("%d of %d are told with as many values as would settle them", named, asked)
	}
}

// Among bytes that are not UUIDs, the share that is assigned an order is not larger than the
// confidence allows.
func TestFalsePositives(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 14))
	for _, n := range []int{1, 2, 3, 4, 6, 10, 25} {
		const trials = 2000
		named := 0
		for range trials {
			var s sketch
			for range n {
				s.add(randomOctets(r))
			}
			if judge(3, int64(n), &s, newReferences(nil), now).Verdict.Outcome != Undecided {
				named++
			}
		}
		if named > trials*(1-namingThreshold) {
			t.Errorf("%d values: %d of %d", n, named, trials)
		}
	}
}

// C# order does not move bytes in the second half of a UUID, and the first half of these values is
// zero. Two orders are therefore the same.
func TestSameInTwoOrders(t *testing.T) {
	c, users := NewCollector("db.c"), NewCollector("db.users")
	for i := range 200 {
		id := counter(nil, i)
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, uuidrep.CSharpLegacy)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	e := evidence(t, []*Collector{c, users}, "db.c", "user", 3)
	if e.Verdict.String() != "undetermined" || !strings.Contains(e.Settle, "pythonLegacy and csharpLegacy, so either") {
		t.Errorf("%s %v %q %q", e.Verdict, e.Confidence, e.Reasons, e.Settle)
	}
}

// The report does not depend on the order of the documents.
func TestStable(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 18))
	var values [][16]byte
	for range 400 {
		values = append(values, v4(r, 0), uuidrep.JavaLegacy.Permute(v4(r, 0)), noBits(r, 0))
	}
	var first Evidence
	for i := range 50 {
		var s sketch
		for _, v := range values {
			s.add(v)
		}
		e := judge(3, int64(len(values)), &s, newReferences(nil), now)
		if i == 0 {
			first = e
		} else if !reflect.DeepEqual(e, first) {
			t.Fatalf("got %+v, then %+v", first, e)
		}
		r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	}
}

// Values of subtype 0 are from Go programs if the bytes indicate it.
func TestGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	c := NewCollector("db.c")
	for range 1000 {
		collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 0, uuidrep.Standard)}, {Key: "sum", Value: stored(noBits(r, 0), 0, uuidrep.Standard)}})
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 0); e.Verdict.String() != "generic" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
	if e := evidence(t, []*Collector{c}, "db.c", "sum", 0); e.Verdict.String() != "undetermined" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
}

// Every verdict is unchanged after a round trip through its text.
func TestVerdictText(t *testing.T) {
	verdicts := []Verdict{{}, {Outcome: Mixed}}
	for _, subtype := range []byte{0, 3} {
		for o := range orders {
			verdicts = append(verdicts, Verdict{Outcome: Named, Order: o, Subtype: subtype})
		}
	}
	for _, v := range verdicts {
		text, err := v.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var got Verdict
		if err := got.UnmarshalText(text); err != nil || got != v {
			t.Errorf("%s: got %+v, want %+v, %v", text, got, v, err)
		}
	}
	if err := new(Verdict).UnmarshalText([]byte("nonsense")); err == nil {
		t.Error("nonsense is a verdict")
	}
}
