package scan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/uuidrep"
)

// noVersion returns random bytes that have the variant of RFC 9562 in no order.
func noVersion(r *rand.Rand, _ int) [16]byte {
	u := randomOctets(r)
	u[8], u[15] = u[8]&0x3f, u[15]&0x3f
	return u
}

// of is how many UUIDs of a kind a field has, in which order.
type of struct {
	n    int
	kind maker
	rep  uuidrep.Representation
}

// fieldOf returns the field with the values, of which the first ones are ids of subtype 4 in another collection.
func fieldOf(t *testing.T, known int, groups ...of) Field {
	t.Helper()
	s, r := newScan(t), rand.New(rand.NewPCG(45, 3))
	c, users := s.collector(t, "c"), s.collector(t, "users")
	for _, g := range groups {
		for i := range g.n {
			u := g.kind(r, i)
			collect(t, c, bson.D{{Key: "id", Value: stored(u, 3, g.rep)}})
			if known > 0 {
				known--
				collect(t, users, bson.D{{Key: "_id", Value: stored(u, 4, uuidrep.Standard)}})
			}
		}
	}
	return s.judged(t)[0].Fields[0]
}

// One of three random UUIDs is an id elsewhere: nothing shows a second order, and two more UUIDs would prove the one.
func TestOneOfThreeIsKnown(t *testing.T) {
	for _, rep := range legacy {
		f := fieldOf(t, 1, of{3, v4, rep})
		e := f.Evidence[0]
		reasons := strings.Join(e.Reasons, "\n")
		if e.Verdict != Undetermined || f.Is(FoundMixed) || !strings.Contains(reasons, "1 of 3 are "+rep.String()+", by equality") {
			t.Errorf("%s: %s: %s", rep, e.Verdict, reasons)
		}
		want := int64(2) // of five random UUIDs, and of seven if the variant is in the place of another order
		if rep != uuidrep.JavaLegacy {
			want = 4
		}
		if e.SettleValues != want || !strings.Contains(e.Settle, "2 more values found also in a field of subtype 4 or text") {
			t.Errorf("%s: %d: %s", rep, e.SettleValues, e.Settle)
		}
	}
}

// Of the ids of the players of a server, some are of another system and have no version: they are evidence for nothing.
func TestValuesWithoutVersion(t *testing.T) {
	for _, rep := range legacy {
		for _, other := range legacy {
			for _, n := range []int{10, 100, 300} { // of 900 others
				f := fieldOf(t, 0, of{800, v4, rep}, of{100, name3, rep}, of{n, noVersion, other})
				e := f.Evidence[0]
				reasons := strings.Join(e.Reasons, "\n")
				if string(e.Verdict) != rep.String() || f.Is(FoundMixed) || order(e, rep.String()).Conversion.Values != 900 ||
					!strings.Contains(reasons, fmt.Sprintf("%d others prove no order; the conversion leaves and lists them", n)) {
					t.Errorf("%s and %d in %s: %s: %s", rep, n, other, e.Verdict, reasons)
				}
			}
		}
	}
}

func name3(r *rand.Rand, _ int) [16]byte {
	name := randomOctets(r)
	return uuid.NewMD5(uuid.NameSpaceDNS, name[:])
}

// Values without a version are proof of a second order if they are ids elsewhere in that order, and not if they are ids in
// the same order.
func TestSecondOrderByEquality(t *testing.T) {
	for _, rep := range legacy {
		for _, other := range legacy {
			want := string(Mixed)
			if rep == other {
				want = rep.String()
			}
			e := fieldOf(t, 1, of{1, noVersion, other}, of{900, v4, rep}).Evidence[0]
			if string(e.Verdict) != want {
				t.Errorf("%s, and one in %s: %s %q", rep, other, e.Verdict, e.Reasons)
			}
			if e := fieldOf(t, 2, of{2, noVersion, other}, of{50, noVersion, rep}).Evidence[0]; e.Verdict != Undetermined {
				t.Errorf("of 52 values, two are known to be %s: %s %q", other, e.Verdict, e.Reasons)
			}
		}
	}
}

// With as many values found elsewhere as the report asks for, the order is named, and not with fewer.
func TestSettlesByEquality(t *testing.T) {
	for _, n := range []int{1, 2, 9, 10, 11, 50, 333} {
		for known := range 3 {
			if known >= n {
				continue
			}
			e := fieldOf(t, known, of{n, noVersion, uuidrep.CSharpLegacy}).Evidence[0]
			if e.Verdict.Named() && known > 0 {
				continue // one of one, or two of two
			}
			parts := strings.Split(e.Settle, ", or ")
			var asked int
			if _, err := fmt.Sscanf(parts[len(parts)-1], "%d", &asked); err != nil || e.Verdict != Undetermined {
				t.Fatalf("%d of %d are known: %s: %s", known, n, e.Verdict, e.Settle)
			}
			for fewer, want := range []Verdict{"csharpLegacy", Undetermined} {
				if e := fieldOf(t, known+asked-fewer, of{n, noVersion, uuidrep.CSharpLegacy}).Evidence[0]; e.Verdict != want {
					t.Errorf("%d of %d are known, and %d were asked for: %s", known+asked-fewer, n, asked, e.Verdict)
				}
			}
		}
	}
}

// Sequential GUIDs are named by what most of them have in common, and no order by that. The time is where their generators
// put it: between C# and network order, which have the last eight bytes in common, a time at the end tells nothing.
func TestSequentialPatterns(t *testing.T) {
	const (
		shared = "the same bytes in"
		times  = "plausible times where "
	)
	for name, tt := range map[string]struct {
		place  string // of the time
		shared bool
		orders func(rep uuidrep.Representation) []uuidrep.Representation
	}{
		"NewId":                                {"NewId of MassTransit", true, likeEnd},
		"Entity Framework Core":                {"NewId of MassTransit and Entity Framework Core", false, likeEnd},
		"NewId, NextSequentialGuid":            {"NextSequentialGuid", true, alone},
		"ABP, SequentialAtEnd":                 {"ABP puts one (SequentialAtEnd)", false, likeEnd},
		"ABP, SequentialAsString":              {"ABP puts one (SequentialAsString)", false, alone},
		"ULID":                                 {"", false, nil},
		"counter":                              {"", true, nil},
		"MD5":                                  {"", false, nil},
		"00000000-0000-0000-0000-000000000001": {"", true, nil},
	} {
		for _, rep := range legacy {
			for seed := range uint64(30) {
				span := 30 * 24 * time.Hour << (seed % 6) // up to three years
				s, r := newScan(t), rand.New(rand.NewPCG(seed, 46))
				c, m := s.collector(t, "c"), generators[name](r, moments(r, span))
				for i := range 50 {
					collect(t, c, bson.D{{Key: "id", Value: stored(m(r, i), 3, rep)}})
				}
				e := evidence(t, s)
				if e.Verdict != Undetermined {
					continue // some have a version by chance, in the same place of all
				}
				reasons := strings.Join(e.Reasons, "\n")
				i := slices.IndexFunc(e.Reasons, func(s string) bool { return strings.HasPrefix(s, times) })
				switch {
				case tt.shared && !strings.Contains(reasons, shared), name == "MD5" && strings.Contains(reasons, shared):
					t.Errorf("%s in %s, seed %d: %s", name, rep, seed, reasons)
				case tt.place == "" && i >= 0:
					t.Errorf("%s in %s, seed %d: %s", name, rep, seed, reasons)
				case tt.place == "":
				case i < 0 || !strings.Contains(e.Reasons[i], tt.place):
					t.Errorf("%s in %s, seed %d: %s", name, rep, seed, reasons)
				default:
					for _, is := range legacy {
						if has := strings.Contains(e.Reasons[i], "50 of 50 as "+is.String()); has != slices.Contains(tt.orders(rep), is) {
							t.Errorf("%s in %s, seed %d: %s", name, rep, seed, e.Reasons[i])
						}
					}
				}
			}
		}
	}
}

func alone(rep uuidrep.Representation) []uuidrep.Representation { return []uuidrep.Representation{rep} }

// likeEnd returns the orders that have the last eight bytes where rep has them.
func likeEnd(rep uuidrep.Representation) []uuidrep.Representation {
	if rep == uuidrep.JavaLegacy {
		return alone(rep)
	}
	return []uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy}
}

// Fifty values that cannot be told: the report says which numbers would tell, and that sequential GUIDs may be the reason.
func TestFiftyThatCannotBeTold(t *testing.T) {
	e := fieldOf(t, 0, of{50, noVersion, uuidrep.CSharpLegacy}).Evidence[0]
	if e.Verdict != Undetermined || !strings.Contains(e.Settle, "45 values found also in a field of subtype 4 or text") ||
		!strings.Contains(strings.Join(e.Reasons, "\n"), "sequential GUIDs") {
		t.Errorf("%s: %q: %s", e.Verdict, e.Reasons, e.Settle)
	}
	if o := order(e, "csharpLegacy"); o.Conversion.Basis != decide.None {
		t.Errorf("%+v", o.Conversion)
	}
}
