package scan

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

var legacy = []uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// The order of each kind of UUID is found in each order, and from few values.
func TestOrder(t *testing.T) {
	for name, kind := range map[string]struct {
		make maker
		n    int
	}{
		"v4": {v4, 1000}, "few v4": {v4, 12}, "v1": {v1, 1000}, "v7": {v7, 1000}, "v3": {v3, 1000}, "v5": {v5, 1000}, "many v4": {v4, 5000},
		"v2": {ofVersion(2), 1000}, "v8": {ofVersion(8), 1000}, "few v5": {v5, 12}, "few v8": {ofVersion(8), 12}, "v7 of another format": {ofVersion(7), 1000},
	} {
		for _, rep := range legacy {
			s := newScan(t)
			c, r := s.collector(t, "c"), rand.New(rand.NewPCG(1, 1))
			for i := range kind.n {
				collect(t, c, bson.D{{Key: "id", Value: stored(kind.make(r, i), 3, rep)}})
			}
			e := evidence(t, s, "db.c", "id", 3)
			want := rep.String()
			if name == "v1" && rep != uuidrep.JavaLegacy { // may be a sequential GUID of SQL Server in the other order
				want = "undetermined"
				if !strings.Contains(strings.Join(e.Reasons, "\n"), "SQL Server") {
					t.Errorf("%s in %v: %q", name, rep, e.Reasons)
				}
			}
			if string(e.Verdict) != want || e.Distinct != int64(kind.n) {
				t.Errorf("%s in %v: %s %q", name, rep, e.Verdict, e.Reasons)
			}
		}
	}
}

// Bytes without version bits are never assigned an order, whatever their number and structure. Of bytes
// that are not random, more may have the bits of a UUID than chance explains; a conversion converts these.
func TestCannotTell(t *testing.T) {
	for name, kind := range map[string]maker{
		"random": noBits, "MD5": md5Sum, "counter": counter, "fixed beginning": prefixed,
		"one value":   func(*rand.Rand, int) [16]byte { return v4(rand.New(rand.NewPCG(9, 9)), 0) },
		"nil":         func(*rand.Rand, int) [16]byte { return [16]byte{} },
		"coordinates": coordinates, "addresses": address, "version 9": ofVersion(9),
	} {
		for _, n := range []int{1, 2, 5, 20, 1000, 3000} {
			s := newScan(t)
			c, r := s.collector(t, "c"), rand.New(rand.NewPCG(uint64(n), 2))
			for i := range n {
				collect(t, c, bson.D{{Key: "id", Value: stored(kind(r, i), 3, uuidrep.JavaLegacy)}})
			}
			structured := name == "coordinates" || name == "addresses"
			if e := evidence(t, s, "db.c", "id", 3); e.Verdict.Named() || !structured && e.Verdict == Mixed || e.Settle == "" || len(e.Reasons) == 0 {
				t.Errorf("%s, %d: %s %q %+v", name, n, e.Verdict, e.Reasons, e.Orders)
			}
		}
	}
}

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
			e := evidence(t, s, "db.c", "id", 3)
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
				return evidence(t, s, "db.c", "id", 3)
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
			proven := func(e Evidence) bool {
				i := slices.IndexFunc(e.Orders, func(o decide.Reading) bool { return o.Order == rep.String() })
				return e.Orders[i].Conversion.Basis == decide.Evidence
			}
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
		var docs, others []bson.D
		for range 1 + r.IntN(3) {
			of, rep := sources[r.IntN(len(sources))], legacy[r.IntN(3)]
			for i := range 1 + r.IntN(1<<r.IntN(10)) {
				u := of(r, i)
				docs = append(docs, bson.D{{Key: "id", Value: stored(u, subtype, rep)}})
				if r.IntN(40) == 0 {
					others = append(others, bson.D{{Key: "_id", Value: uuid.UUID(u).String()}})
				}
			}
		}
		for _, d := range docs {
			collect(t, c, d)
		}
		for _, d := range others {
			collect(t, users, d)
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
			for _, d := range docs {
				if v := [16]byte(d[0].Value.(bson.Binary).Data); j.Value([]byte("id"), v) == "" {
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

// Values of two programs in two orders are mixed, and each order says how many a conversion converts.
func TestMixed(t *testing.T) {
	for _, tt := range []struct {
		java, csharp, none int
		want               string
	}{
		{700, 300, 0, "mixed"}, {950, 50, 0, "mixed"}, {500, 0, 500, "mixed"}, {995, 0, 5, "javaLegacy"}, {50, 50, 0, "mixed"}, {1000, 15, 0, "mixed"},
	} {
		r := rand.New(rand.NewPCG(4, 4))
		s := newScan(t)
		c := s.collector(t, "c")
		for range tt.java {
			collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}})
		}
		for range tt.csharp {
			collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.CSharpLegacy)}})
		}
		for range tt.none {
			collect(t, c, bson.D{{Key: "id", Value: stored(noBits(r, 0), 3, uuidrep.JavaLegacy)}})
		}
		e := evidence(t, s, "db.c", "id", 3)
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
	e := evidence(t, s, "db.c", "user", 3)
	if e.Verdict != "undetermined" || e.Orders[0].Matches != 200 || e.Orders[1].Matches != 200 || e.Orders[2].Matches != 0 {
		t.Errorf("%s %q %+v", e.Verdict, e.Reasons, e.Orders)
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
	for i := range 10 {
		s := newScan(t)
		c := s.collector(t, "c")
		for _, v := range values {
			collect(t, c, bson.D{{Key: "id", Value: bson.Binary{Subtype: 3, Data: v[:]}}})
		}
		e := evidence(t, s, "db.c", "id", 3)
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
