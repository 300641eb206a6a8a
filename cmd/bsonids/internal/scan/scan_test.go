package scan

import (
	"bytes"
	"crypto/md5"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// source makes UUIDs of one kind, reproducibly.
type source func(r *rand.Rand, i int) [16]byte

func randomOctets(r *rand.Rand) (u [16]byte) {
	binary.BigEndian.PutUint64(u[:8], r.Uint64())
	binary.BigEndian.PutUint64(u[8:], r.Uint64())
	return u
}

func version(u [16]byte, v byte) [16]byte {
	u[6], u[8] = u[6]&0x0f|v<<4, u[8]&0x3f|0x80
	return u
}

func v4(r *rand.Rand, _ int) [16]byte { return version(randomOctets(r), 4) }

// v1 is what one machine makes: a timestamp of 100 ns since 1582 (RFC 9562, section 5.1), one clock sequence, one node.
func v1(r *rand.Rand, i int) (u [16]byte) {
	ts := uint64(0x01B21DD213814000) + uint64(now.AddDate(0, -3, 0).UnixMicro()+int64(i)*1_000_003+r.Int64N(1000))*10
	binary.BigEndian.PutUint32(u[:4], uint32(ts))
	binary.BigEndian.PutUint16(u[4:], uint16(ts>>32))
	binary.BigEndian.PutUint16(u[6:], uint16(ts>>48)|1<<12)
	copy(u[8:], []byte{0xb3, 0xc8, 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46})
	return u
}

func v7(r *rand.Rand, i int) [16]byte {
	u := randomOctets(r)
	ms := uint64(now.AddDate(0, -3, 0).UnixMilli() + int64(i)*1007)
	binary.BigEndian.PutUint64(u[:8], ms<<16|uint64(u[6])<<8|uint64(u[7]))
	return version(u, 7)
}

func v3(_ *rand.Rand, i int) [16]byte {
	return uuid.NewMD5(uuid.NameSpaceDNS, binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func v5(_ *rand.Rand, i int) [16]byte {
	return uuid.NewSHA1(uuid.NameSpaceDNS, binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func noBits(r *rand.Rand, _ int) [16]byte { return randomOctets(r) }

func md5Sum(_ *rand.Rand, i int) [16]byte {
	return md5.Sum(binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func counter(_ *rand.Rand, i int) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], uint64(i+1))
	return u
}

// prefixed is a key with a fixed beginning that looks like a version 4 by accident.
func prefixed(_ *rand.Rand, i int) (u [16]byte) {
	u = [16]byte{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x47, 0x11, 0x99, 0x10, 0x32, 0x54}
	binary.BigEndian.PutUint32(u[12:], uint32(i))
	return u
}

// coordinates are two little-endian doubles: read in C# order, all of them have version 4, and a quarter the variant.
func coordinates(r *rand.Rand, _ int) (u [16]byte) {
	binary.LittleEndian.PutUint64(u[:], math.Float64bits(2+170*r.Float64()))
	binary.LittleEndian.PutUint64(u[8:], math.Float64bits(2+80*r.Float64()))
	return u
}

// address is one of IPv6 in subnet 4012: in network order, all of them have version 4, and a quarter the variant.
func address(r *rand.Rand, _ int) [16]byte {
	u := randomOctets(r)
	copy(u[:], []byte{0x20, 0x01, 0x0d, 0xb8, 0x00, 0x01, 0x40, 0x12})
	return u
}

// ofVersion is random but for the version and the variant; what time that is, is random too.
func ofVersion(v byte) source {
	return func(r *rand.Rand, _ int) [16]byte { return version(randomOctets(r), v) }
}

// epoch is of version 1 with a clock that began in 1970, from many machines.
func epoch(r *rand.Rand, i int) [16]byte {
	u := randomOctets(r)
	ts := uint64(0x01B21DD213814000) + uint64(i)*10_000_019
	binary.BigEndian.PutUint32(u[:4], uint32(ts))
	binary.BigEndian.PutUint16(u[4:], uint16(ts>>32))
	binary.BigEndian.PutUint16(u[6:], uint16(ts>>48))
	return version(u, 1)
}

func collect(t testing.TB, c *Collector, doc any) {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(b); err != nil {
		t.Fatal(err)
	}
}

func stored(u [16]byte, subtype byte, rep uuidrep.Representation) bson.Binary {
	p := rep.Permute(u)
	return bson.Binary{Subtype: subtype, Data: p[:]}
}

func evidence(t testing.TB, colls []*Collector, namespace, path string, subtype byte) Evidence {
	t.Helper()
	for _, c := range Judge(colls, now) {
		for _, f := range c.Fields {
			if c.Namespace != namespace || f.Path != path {
				continue
			}
			for _, e := range f.Evidence {
				if e.Subtype == subtype {
					return e
				}
			}
		}
	}
	t.Fatalf("no evidence for %s %s", namespace, path)
	return Evidence{}
}

// Each kind of UUID in each order, and how few of them are enough.
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
				if e.Verdict != want || e.Confidence < 0.99 || e.Confidence >= 1 {
					t.Errorf("%s in %v, seed %d: %s %v %+v", name, rep, seed, e.Verdict, e.Confidence, e.Orders)
				}
				if kind.n >= 1000 && seed == 2 {
					break
				}
			}
		}
	}
}

// Octets without version bits, whatever their number and structure, are never given an order.
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
				if e.Verdict != "cannot tell" || e.Settle == "" || len(e.Reasons) == 0 {
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

// Keys with one of two fixed beginnings that look like version 4 by accident are two accidents, however many they are.
func TestTwoBeginnings(t *testing.T) {
	c := NewCollector("db.c")
	for i := range 1000 {
		u := prefixed(nil, i)
		if i%2 == 0 {
			u[6], u[8] = 0x4a, 0x87
		}
		collect(t, c, bson.D{{Key: "id", Value: stored(u, 3, uuidrep.PythonLegacy)}})
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict != "cannot tell" {
		t.Errorf("%s %v %q", e.Verdict, e.Confidence, e.Reasons)
	}
}

// Another program's UUIDs in another order are told apart also where those of the first one are few independent values: of
// one machine's clock.
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
				if e.Verdict != "mixed" || !strings.Contains(reasons, "are "+reps[0].String()) || !strings.Contains(reasons, "are "+reps[1].String()) {
					t.Errorf("1 %% of %s in %v among %v, seed %d: %s %v %q", name, reps[1], reps[0], seed, e.Verdict, e.Confidence, e.Reasons)
				}
			}
		}
	}
}

// NEWSEQUENTIALID of SQL Server shuffles the octets of a version 1 as C# order does. In a C# program's field they are then
// where a Python program's version 1 has them, and only an id that stands elsewhere tells the two apart.
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
			case known && (e.Verdict != rep.String() || strings.Contains(reasons, "SQL Server")):
				t.Errorf("%v, known elsewhere: %s %v %q", rep, e.Verdict, e.Confidence, e.Reasons)
			case !known && e.Verdict != "cannot tell" && (e.Confidence > 1-shuffled || !strings.Contains(reasons, "SQL Server") || !strings.Contains(reasons, "in "+rep.String())):
				t.Errorf("%v: %s %v %q", rep, e.Verdict, e.Confidence, e.Reasons)
			}
		}
	}
}

// One or two version 4 UUIDs are too few; with as many as the report asks for, it is told.
func TestSettles(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	c := NewCollector("db.c")
	add := func() { collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 3, uuidrep.CSharpLegacy)}}) }
	add()
	e := evidence(t, []*Collector{c}, "db.c", "id", 3)
	if e.Verdict != "cannot tell" || e.SettleValues < 1 || e.SettleValues > 10 {
		t.Fatalf("%s %d %v", e.Verdict, e.SettleValues, e.Reasons)
	}
	for range e.SettleValues {
		add()
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict != "csharpLegacy" {
		t.Errorf("after %d more: %s %v", e.SettleValues, e.Verdict, e.Orders)
	}
}

// With as many more as the report asks for, it is told, whatever else there is among the values.
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
		if e := evidence(t, []*Collector{c}, "db.c", "id", 3); e.Verdict == "csharpLegacy" {
			named++
		}
	}
	if asked < 100 || named < asked*8/10 {
		t.Errorf("%d of %d are told with as many values as would settle them", named, asked)
	}
}

// Of octets that are no UUIDs, no larger a part is given an order than the confidence allows.
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
			if judge(3, int64(n), &s, newReferences(nil), now).Verdict != "cannot tell" {
				named++
			}
		}
		if named > trials*(1-sure) {
			t.Errorf("%d values: %d of %d", n, named, trials)
		}
	}
}

// A part in another order is told apart also where it is small: a conversion would make other UUIDs of it.
func TestFewInAnotherOrder(t *testing.T) {
	for _, tt := range []struct {
		java, csharp int
		want         []string
	}{{1000, 15, []string{"mixed"}}, {1000, 10, []string{"mixed"}}, {490, 10, []string{"mixed"}}, {198, 3, []string{"mixed", "cannot tell"}}} {
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
			if !slices.Contains(tt.want, e.Verdict) {
				t.Errorf("%d Java, %d C#, seed %d: %s %v %q", tt.java, tt.csharp, seed, e.Verdict, e.Confidence, e.Reasons)
			}
			reasons := strings.Join(e.Reasons, "\n")
			if e.Verdict == "mixed" && (!strings.Contains(reasons, "are javaLegacy") || !strings.Contains(reasons, "are csharpLegacy") || strings.Contains(reasons, "pythonLegacy")) {
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
		if e.Verdict != tt.want {
			t.Errorf("%+v: %s %v %q %+v", tt, e.Verdict, e.Confidence, e.Reasons, e.Orders)
		}
		if n := float64(tt.java + tt.csharp + tt.none); e.Verdict == "mixed" && (abs(e.Orders[Java].Share-float64(tt.java)/n) > .03 || abs(e.Orders[CSharp].Share-float64(tt.csharp)/n) > .03) {
			t.Errorf("%+v: shares %+v", tt, e.Orders)
		}
	}
}

func abs(x float64) float64 { return max(x, -x) }

// Octets without version bits get their order from the same ids in another field, of another collection, as subtype 4
// or text; also where both are far more than a sketch holds.
func TestMatches(t *testing.T) {
	for _, n := range []int{1, 3, 1000, 20000} {
		for rep, want := range map[uuidrep.Representation]string{
			uuidrep.PythonLegacy: "pythonLegacy", uuidrep.CSharpLegacy: "csharpLegacy", uuidrep.JavaLegacy: "javaLegacy",
		} {
			for _, text := range []bool{false, true} {
				r := rand.New(rand.NewPCG(5, 5))
				legacy, users := NewCollector("db.orders"), NewCollector("db.users")
				for range n {
					id := randomOctets(r)
					collect(t, legacy, bson.D{{Key: "user", Value: stored(id, 3, rep)}})
					var ref any = stored(id, 4, uuidrep.Standard)
					if text {
						ref = uuid.UUID(id).String()
					}
					collect(t, users, bson.D{{Key: "_id", Value: ref}})
				}
				e := evidence(t, []*Collector{legacy, users}, "db.orders", "user", 3)
				o := e.Orders[slices.IndexFunc(e.Orders, func(o OrderEvidence) bool { return o.Order == want })]
				if e.Verdict != want || o.Matches != e.Sample || o.MatchedIn != "db.users _id" {
					t.Errorf("%d in %v, text %v: %s %+v", n, rep, text, e.Verdict, e.Orders)
				}
			}
		}
	}
}

// The version bits say one thing, the same ids in two orders another: nothing is named.
func TestMatchesDisagree(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	c, users := NewCollector("db.c"), NewCollector("db.users")
	for i := range 200 {
		id, rep := randomOctets(r), uuidrep.JavaLegacy
		if i%2 == 0 {
			rep = uuidrep.CSharpLegacy
		}
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, rep)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	if e := evidence(t, []*Collector{c, users}, "db.c", "user", 3); e.Verdict != "mixed" && e.Verdict != "cannot tell" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
}

// Somebody made subtype 4 of subtype 3 and left the octets as they were: the same ids then stand for network order, and the
// version bits for the one that they are in.
func TestMatchesAgainstBits(t *testing.T) {
	for _, tt := range []struct {
		copied int
		want   string
	}{{1000, "cannot tell"}, {300, "cannot tell"}, {1, "javaLegacy"}, {0, "javaLegacy"}} {
		r := rand.New(rand.NewPCG(16, 16))
		c, users := NewCollector("db.c"), NewCollector("db.users")
		for i := range 1000 {
			b := stored(v4(r, 0), 3, uuidrep.JavaLegacy)
			collect(t, c, bson.D{{Key: "user", Value: b}})
			if b.Subtype = 4; i < tt.copied {
				collect(t, users, bson.D{{Key: "_id", Value: b}})
			}
		}
		e := evidence(t, []*Collector{c, users}, "db.c", "user", 3)
		reasons := strings.Join(e.Reasons, "\n")
		if e.Verdict != tt.want || tt.copied > 1 && (!strings.Contains(reasons, "javaLegacy") || !strings.Contains(reasons, "db.users _id") || e.Settle == "") {
			t.Errorf("%d copied: %s %v %q %q", tt.copied, e.Verdict, e.Confidence, e.Reasons, e.Settle)
		}
	}
}

// C# moves nothing in the second half of a UUID, and nothing is in the first one of these: two orders are the same.
func TestSameInTwoOrders(t *testing.T) {
	c, users := NewCollector("db.c"), NewCollector("db.users")
	for i := range 200 {
		id := counter(nil, i)
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, uuidrep.CSharpLegacy)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	e := evidence(t, []*Collector{c, users}, "db.c", "user", 3)
	if e.Verdict != "cannot tell" || !strings.Contains(e.Settle, "either of pythonLegacy and csharpLegacy") {
		t.Errorf("%s %v %q %q", e.Verdict, e.Confidence, e.Reasons, e.Settle)
	}
}

// The nil UUID, which says nothing, could have matched no more than it could have failed to.
func TestComparable(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 17))
	c, users := NewCollector("db.c"), NewCollector("db.users")
	for i := range 11 {
		id := v4(r, i)
		if i == 0 {
			id = uuid.Nil
		}
		collect(t, c, bson.D{{Key: "user", Value: stored(id, 3, uuidrep.JavaLegacy)}})
		collect(t, users, bson.D{{Key: "_id", Value: stored(id, 4, uuidrep.Standard)}})
	}
	if o := evidence(t, []*Collector{c, users}, "db.c", "user", 3).Orders[Java]; o.Matches != 10 || o.Comparable != 10 {
		t.Errorf("%d of %d", o.Matches, o.Comparable)
	}
}

// The report doesn't depend on the sequence of the documents.
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

// Subtype 0 is what Go programs wrote, if the octets say so.
func TestGeneric(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	c := NewCollector("db.c")
	for range 1000 {
		collect(t, c, bson.D{{Key: "id", Value: stored(v4(r, 0), 0, uuidrep.Standard)}, {Key: "sum", Value: stored(noBits(r, 0), 0, uuidrep.Standard)}})
	}
	if e := evidence(t, []*Collector{c}, "db.c", "id", 0); e.Verdict != "generic" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
	if e := evidence(t, []*Collector{c}, "db.c", "sum", 0); e.Verdict != "cannot tell" {
		t.Errorf("%s %+v", e.Verdict, e.Orders)
	}
}

func TestCounts(t *testing.T) {
	c := NewCollector("db.c")
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, doc := range []bson.D{
		{{Key: "id", Value: stored(u, 4, uuidrep.Standard)}, {Key: "n", Value: 1}},
		{{Key: "id", Value: stored(u, 3, uuidrep.JavaLegacy)}, {Key: "tags", Value: bson.A{stored(u, 4, uuidrep.Standard), u.String(), "x"}}},
		{{Key: "id", Value: stored(u, 0, uuidrep.Standard)}, {Key: "by", Value: bson.D{{Key: u.String(), Value: stored(u, 4, uuidrep.Standard)}}}},
		{{Key: "id", Value: u.String()}}, {{Key: "id", Value: "{" + u.String() + "}"}}, {{Key: "id", Value: u.URN()}},
		{{Key: "id", Value: "00112233445566778899aabbccddeeff"}}, {{Key: "id", Value: nil}},
		{{Key: "id", Value: bson.Binary{Subtype: 4, Data: u[:15]}}}, {{Key: "id", Value: bson.Binary{Subtype: 3}}},
		{{Key: "id", Value: bson.Binary{Subtype: 5, Data: u[:]}}}, {{Key: "id", Value: bson.Binary{Subtype: 2, Data: u[:]}}},
		{{Key: "id", Value: bson.Binary{Subtype: 0, Data: u[:8]}}},
	} {
		collect(t, c, doc)
	}
	got := Judge([]*Collector{c}, now)[0]
	want := map[string]Counts{
		"id":     {Standard: 1, Legacy: 1, Generic: 1, Text: 3, Malformed: 2, Other: 5},
		"tags[]": {Standard: 1, Text: 1, Other: 1},
		"by.*":   {Standard: 1},
	}
	if got.Scanned != 13 || len(got.Fields) != len(want) {
		t.Errorf("%+v", got)
	}
	for _, f := range got.Fields {
		if f.Counts != want[f.Path] {
			t.Errorf("%s: got %+v, want %+v", f.Path, f.Counts, want[f.Path])
		}
	}
	if err := c.Add([]byte("garbage")); err == nil {
		t.Error("garbage is no document")
	}
}

// Every key of the report as JSON is in the guide.
func TestReportIsDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/converting.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the guide is not part of the module")
	} else if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## The report of `scan` as JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, part := range []any{Report{}, Collection{}, Field{}, Counts{}, Evidence{}, OrderEvidence{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); !strings.Contains(section, "`"+key+"`") {
				t.Errorf("%T: nothing is said of %s", part, key)
			}
		}
	}
}

func TestSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(8, 8))
	var once, often sketch
	values := make([][16]byte, 50_000)
	for i := range values {
		values[i] = randomOctets(r)
		once.add(values[i])
	}
	r.Shuffle(len(values), func(i, j int) { values[i], values[j] = values[j], values[i] })
	for range 3 {
		for _, v := range values {
			often.add(v)
		}
	}
	// The sample doesn't depend on sequence and number.
	if len(once.entries) != sketchSize || len(often.entries) != sketchSize || len(once.held) != sketchSize {
		t.Fatalf("%d and %d entries", len(once.entries), len(often.entries))
	}
	for v := range once.held {
		if _, ok := often.held[v]; !ok {
			t.Fatal("the samples differ")
		}
	}
	if d := once.distinct(); d < 45_000 || d > 55_000 {
		t.Errorf("about %d distinct values, want 50000 within 10 %%", d)
	}
	for _, rep := range []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy} {
		if u := values[0]; hash(u) != hash(rep.Permute(u)) {
			t.Errorf("%v changes the hash", rep)
		}
	}
}

func TestFieldNamesAsData(t *testing.T) {
	c := NewCollector("db.c")
	r := rand.New(rand.NewPCG(10, 10))
	name := make([]byte, 12)
	for range maxFields + 100 {
		for i := range name {
			name[i] = byte('g' + r.IntN(20))
		}
		collect(t, c, bson.D{{Key: string(name), Value: 1}})
	}
	// Those that are data and have no UUIDs leave room for those that have.
	for i := range maxFields/2 + 1 {
		collect(t, c, bson.D{{Key: "x" + strings.Repeat("y", i), Value: uuid.Nil.String()}, {Key: "id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}})
	}
	got := Judge([]*Collector{c}, now)[0]
	if !got.Overflow || len(c.fields) != maxFields {
		t.Errorf("%d fields, overflow %v", len(c.fields), got.Overflow)
	}
	if i := slices.IndexFunc(got.Fields, func(f Field) bool { return f.Path == "id" }); i < 0 || got.Fields[i].Counts.Legacy != maxFields/2+1 {
		t.Error("the field id is not counted")
	}
}

// Names may be as long as documents; those that are too many octets together are left out, like those that are too many.
func TestLongFieldNames(t *testing.T) {
	c := NewCollector("db.c")
	for i := range 32 {
		name := strings.Repeat(string(rune('g'+i%20)), 1<<20+i)
		collect(t, c, bson.D{{Key: name, Value: uuid.Nil.String()}, {Key: "id", Value: uuid.Nil.String()}})
	}
	octets := 0
	for name := range c.fields {
		octets += len(name)
	}
	got := Judge([]*Collector{c}, now)[0]
	if octets > 4<<20 || !got.Overflow {
		t.Errorf("names of %d octets are held, overflow %v", octets, got.Overflow)
	}
	if i := slices.IndexFunc(got.Fields, func(f Field) bool { return f.Path == "id" }); i < 0 || got.Fields[i].Counts.Text != 32 {
		t.Error("the field id is not counted")
	}
}

// A collector's memory doesn't grow with the documents.
func TestFlatMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	c := NewCollector("db.c")
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}, {Key: "ref", Value: stored(v4(r, 0), 4, uuidrep.Standard)},
	})
	if err != nil {
		t.Fatal(err)
	}
	id, ref := bytes.Index(doc, []byte{16, 0, 0, 0, 3})+5, bytes.Index(doc, []byte{16, 0, 0, 0, 4})+5
	fill := func(n int) {
		for range n {
			a, b := v4(r, 0), v4(r, 0)
			copy(doc[id:], a[:])
			copy(doc[ref:], b[:])
			if err := c.Add(doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(20_000)
	before := heap()
	fill(300_000)
	if after := heap(); after > before+64<<10 {
		t.Errorf("%d KiB after 20,000 documents, %d KiB after 320,000", before>>10, after>>10)
	}
	runtime.KeepAlive(c)
}

func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(12, 12))
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}, {Key: "name", Value: "somebody"}, {Key: "n", Value: 1},
		{Key: "items", Value: bson.A{bson.D{{Key: "id", Value: stored(v4(r, 0), 4, uuidrep.Standard)}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	c := NewCollector("db.c")
	id := bytes.Index(doc, []byte{16, 0, 0, 0, 3}) + 5
	b.ReportAllocs()
	for b.Loop() {
		v := v4(r, 0)
		copy(doc[id:], v[:])
		if err := c.Add(doc); err != nil {
			b.Fatal(err)
		}
	}
}
