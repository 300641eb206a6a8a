package decide

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/uuidrep"
)

var now = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)

// source returns random UUIDs of one version.
type source func(r *rand.Rand) uuid.UUID

func random(r *rand.Rand) (u uuid.UUID) {
	binary.BigEndian.PutUint64(u[:], r.Uint64())
	binary.BigEndian.PutUint64(u[8:], r.Uint64())
	return u
}

func stamped(r *rand.Rand, version byte) uuid.UUID {
	u := random(r)
	u[6], u[8] = u[6]&0x0f|version<<4, u[8]&0x3f|0x80
	return u
}

func v4(r *rand.Rand) uuid.UUID { return stamped(r, 4) }

func v7(r *rand.Rand) uuid.UUID {
	u := stamped(r, 7)
	ms := now.Add(-time.Duration(r.Int64N(int64(5 * 365 * 24 * time.Hour)))).UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	return u
}

// v1 returns UUIDs of one machine: the clock sequence and the node are constant.
func v1(r *rand.Rand) uuid.UUID {
	u := uuid.MustParse("00000000-0000-1000-8f21-0242ac120002")
	ticks := uint64(now.Add(-time.Duration(r.Int64N(int64(3*365*24*time.Hour)))).UnixNano())/100 + 0x01B21DD213814000
	binary.BigEndian.PutUint32(u[:], uint32(ticks))
	binary.BigEndian.PutUint16(u[4:], uint16(ticks>>32))
	binary.BigEndian.PutUint16(u[6:], uint16(ticks>>48)|0x1000)
	return u
}

// v6 returns UUIDs of one machine: those of v1 with the time in order.
func v6(r *rand.Rand) uuid.UUID {
	u := v1(r)
	ticks := binary.BigEndian.Uint64([]byte{u[6] & 0x0f, u[7], u[4], u[5], u[0], u[1], u[2], u[3]})
	binary.BigEndian.PutUint64(u[:], ticks>>12<<16|0x6000|ticks&0x0fff)
	return u
}

func hash(r *rand.Rand) uuid.UUID {
	return md5.Sum(fmt.Append(nil, r.Uint64()))
}

type group struct {
	n     int
	of    source
	order uuidrep.Representation
}

// decided returns the decision for a collection with the field a, and the stored values by group.
func decided(t testing.TB, seed uint64, from uuidrep.Representation, trusted []string, groups ...group) (Decision, [][][16]byte) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	p := newPass(t)
	values := make([][][16]byte, len(groups))
	for i, g := range groups {
		for range g.n {
			v := g.order.Permute(g.of(r))
			values[i] = append(values[i], v)
			p.add("a", v)
		}
	}
	d := p.decide(from)
	d.Trust(trusted)
	return d, values
}

// pass is a survey of one collection.
type pass struct {
	t testing.TB
	*Survey
	of *Surveyed
}

func newPass(t testing.TB) *pass {
	t.Helper()
	p := &pass{t: t, Survey: NewSurvey(t.TempDir(), now)}
	t.Cleanup(func() { _ = p.Close() })
	p.of = p.collection("d", "d.c")
	return p
}

func (p *pass) collection(group, namespace string) *Surveyed {
	p.t.Helper()
	c, err := p.Collection(group, namespace)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// add adds a value of subtype 3.
func (p *pass) add(field string, v [16]byte) {
	put(p.t, p.of, field, kinds.Subtype3, kinds.Spelled{UUID: v})
}

func put(t testing.TB, c *Surveyed, field string, stored kinds.Stored, s kinds.Spelled) {
	t.Helper()
	if err := c.Values(stored, field).Add(s); err != nil {
		t.Fatal(err)
	}
}

// decide returns the decision about values of subtype 3 in the order.
func (p *pass) decide(from uuidrep.Representation) Decision {
	p.t.Helper()
	if err := p.Decide(); err != nil {
		p.t.Fatal(err)
	}
	return p.of.Decision(kindstest.Kind(p.t, from.String()))
}

func converted(d Decision, from uuidrep.Representation, values [][16]byte) (n int) {
	j := d.Judge(from)
	for _, v := range values {
		if j.Value([]byte("a"), v) == "" {
			n++
		}
	}
	return n
}

var legacy = []uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// If all values are in one order, all are converted from that order, and none from another one, also if the user
// trusts the field.
func TestOneOrder(t *testing.T) {
	of := func(version byte) source { return func(r *rand.Rand) uuid.UUID { return stamped(r, version) } }
	for name, kind := range map[string]struct {
		of source
		n  int
	}{
		"4": {v4, 3000}, "few 4": {v4, 12}, "7": {v7, 3000}, "7 of another format": {of(7), 1000}, "1": {v1, 3000}, "6": {v6, 3000}, "few 6": {v6, 12}, "2": {of(2), 1000},
		"3": {named(uuid.NewMD5), 1000}, "5": {named(uuid.NewSHA1), 1000}, "few 5": {named(uuid.NewSHA1), 12}, "8": {of(8), 1000}, "few 8": {of(8), 12},
	} {
		for _, is := range legacy {
			for _, from := range legacy {
				d, values := decided(t, 1, from, nil, group{kind.n, kind.of, is})
				want := 0
				if is == from && (name != "1" || is == uuidrep.JavaLegacy) { // others may be sequential GUIDs of SQL Server
					want = kind.n
				}
				if got := converted(d, from, values[0]); got != want {
					t.Errorf("version %s, %s as %s: %d values converted, want %d: %+v", name, is, from, got, want, d.Fields)
				}
				if d.Trust([]string{"a"}); name == "4" && is != from && converted(d, from, values[0]) > 0 {
					t.Errorf("%s as %s, trusted: values of another order are converted: %+v", is, from, d.Fields)
				}
			}
		}
	}
}

// named returns UUIDs that are made of names.
func named(of func(uuid.UUID, []byte) uuid.UUID) source {
	return func(r *rand.Rand) uuid.UUID {
		return of(uuid.NameSpaceDNS, binary.BigEndian.AppendUint64(nil, r.Uint64()))
	}
}

// Values without evidence are not converted unless the user trusts the field.
func TestNoEvidence(t *testing.T) {
	one := func(*rand.Rand) uuid.UUID { return uuid.MustParse("00112233-4455-4677-8899-aabbccddeeff") }
	for name, g := range map[string][]group{
		"hashes":             {{1000, hash, uuidrep.JavaLegacy}},
		"one hash":           {{1, hash, uuidrep.JavaLegacy}},
		"random":             {{3000, random, uuidrep.JavaLegacy}},
		"version 9":          {{1000, func(r *rand.Rand) uuid.UUID { return stamped(r, 9) }, uuidrep.JavaLegacy}},
		"numbers":            {{1000, number, uuidrep.JavaLegacy}},
		"four values":        {{4, v4, uuidrep.JavaLegacy}},
		"a few of each":      {{2, v4, uuidrep.JavaLegacy}, {2, v7, uuidrep.JavaLegacy}},
		"fixed beginning":    {{5000, fixedBeginning, uuidrep.PythonLegacy}},
		"ObjectIDs":          {{1000, tenantAndObjectID, uuidrep.PythonLegacy}},
		"NEWSEQUENTIALID":    {{3000, v1, uuidrep.PythonLegacy}},
		"one value repeated": {{1000, one, uuidrep.JavaLegacy}},
	} {
		for _, from := range legacy {
			d, values := decided(t, 2, from, nil, g...)
			for _, trusted := range []bool{false, true} {
				for _, v := range values {
					want, basis := 0, None
					if trusted {
						want, basis = len(v), Trust
					}
					if n := converted(d, from, v); n != want || d.Fields[0].Basis != basis || (d.Fields[0].Reason == "") != trusted {
						t.Errorf("%s as %s, trusted %v: %d of %d values converted: %+v", name, from, trusted, n, len(v), d.Fields)
					}
				}
				d.Trust([]string{"a"})
			}
		}
	}
}

// fixedBeginning returns keys of eight constant bytes and a number. They look like version 4.
func fixedBeginning(r *rand.Rand) uuid.UUID {
	u := uuid.MustParse("10011001-2002-4003-8004-000000000000")
	binary.BigEndian.PutUint32(u[12:], r.Uint32())
	return u
}

// tenantAndObjectID returns ObjectIDs of one process and of 1024 seconds behind four constant bytes. They look like version 6, of
// 2024: the constant bytes like the beginning of the time, the seconds like its end.
func tenantAndObjectID(r *rand.Rand) uuid.UUID {
	u := uuid.MustParse("1eeb0000-6600-6000-8fa1-b2c3d4000000")
	binary.BigEndian.PutUint16(u[6:], 0x6000|uint16(r.Uint32N(1024)))
	binary.BigEndian.PutUint16(u[14:], uint16(r.Uint32()))
	return u
}

// number returns keys without a variant and a version, in every order.
func number(r *rand.Rand) (u uuid.UUID) {
	binary.BigEndian.PutUint32(u[12:], r.Uint32())
	return u
}

// A trusted field is converted whole, also if its values show the order, except for values that fit another
// order of it.
func TestTrustBesideEvidence(t *testing.T) {
	groups := []group{{200, v4, uuidrep.JavaLegacy}, {30, number, uuidrep.JavaLegacy}, {100, v7, uuidrep.Standard}}
	d, values := decided(t, 3, uuidrep.JavaLegacy, nil, groups...)
	fits := converted(d, uuidrep.JavaLegacy, values[0])
	for _, numbers := range []int{0, 30} {
		if d.Fields[0].Basis != Evidence {
			t.Errorf("%+v", d.Fields[0])
		}
		for i, want := range []int{fits, numbers, 0} {
			if n := converted(d, uuidrep.JavaLegacy, values[i]); n != want {
				t.Errorf("%d values of group %d are converted, want %d", n, i, want)
			}
		}
		d.Trust([]string{"a"})
	}
	if n := d.Fields[0].Fits; n != int64(fits) {
		t.Errorf("%d values are counted, and %d fit", n, fits)
	}
}

// A minority in another order is not converted, except values that fit both orders by chance.
func TestMinority(t *testing.T) {
	for _, few := range []int{1, 3, 10, 100, 1000} {
		for _, from := range legacy {
			for _, other := range legacy {
				if from == other {
					continue
				}
				d, values := decided(t, uint64(few), from, nil, group{3000, v4, from}, group{few, v4, other})
				wrong := converted(d, from, values[1])
				if len(d.Fields[0].Against) > 0 {
					if wrong > 0 {
						t.Errorf("%d %s among %s: %d converted although the order is proven", few, other, from, wrong)
					}
				} else if few >= 10 || wrong > 1 {
					t.Errorf("%d %s among %s: %d converted: %+v", few, other, from, wrong, d.Fields)
				}
				// Only the values that fit both orders are not converted: 1/64 or 1/16 of them.
				if right := converted(d, from, values[0]); right < 3000*90/100 {
					t.Errorf("%d %s among %s: %d of 3000 converted", few, other, from, right)
				}
			}
		}
	}
}

// In a field of hashes and UUIDs, the values that fit are converted. 1/64 of the hashes fit.
func TestHashesAmongUUIDs(t *testing.T) {
	for _, from := range legacy {
		d, values := decided(t, 5, from, nil, group{2000, v4, from}, group{6400, hash, from})
		if n := converted(d, from, values[0]); n != 2000 {
			t.Errorf("%s: %d of 2000 converted: %+v", from, n, d.Fields)
		}
		if n := converted(d, from, values[1]); n < 60 || n > 140 {
			t.Errorf("%s: %d of 6400 hashes converted: %+v", from, n, d.Fields)
		}
	}
}

// A version that chance explains is not counted as a version of the field.
func TestVersions(t *testing.T) {
	d, values := decided(t, 6, uuidrep.JavaLegacy, nil, group{1000, v4, uuidrep.JavaLegacy}, group{500, v7, uuidrep.JavaLegacy}, group{2, v1, uuidrep.JavaLegacy})
	if f := d.Fields[0]; !slices.Equal(f.Versions, []int{4, 7}) || len(f.Against) > 0 {
		t.Errorf("%+v", f)
	}
	if converted(d, uuidrep.JavaLegacy, values[0]) != 1000 || converted(d, uuidrep.JavaLegacy, values[1]) != 500 || converted(d, uuidrep.JavaLegacy, values[2]) != 0 {
		t.Errorf("%+v", d.Fields)
	}
}

// Several versions pass together, although none of them has enough values.
func TestVersionsTogether(t *testing.T) {
	var groups []group
	for v := byte(1); v <= 8; v++ {
		groups = append(groups, group{2, func(r *rand.Rand) uuid.UUID { return stamped(r, v) }, uuidrep.JavaLegacy})
	}
	d, values := decided(t, 7, uuidrep.JavaLegacy, nil, groups...)
	for _, v := range values {
		if converted(d, uuidrep.JavaLegacy, v) != 2 {
			t.Errorf("%+v", d.Fields)
		}
	}
}

// The nil UUID and the max UUID are converted only in fields that are converted.
func TestSymmetric(t *testing.T) {
	same := [][16]byte{uuid.Nil, uuid.Max}
	for _, from := range legacy {
		d, _ := decided(t, 8, from, nil, group{100, v4, from})
		if converted(d, from, same) != 2 {
			t.Errorf("%+v", d.Fields)
		}
		d, _ = decided(t, 8, from, nil, group{100, hash, from})
		if converted(d, from, same) != 0 {
			t.Errorf("%+v", d.Fields)
		}
		d, _ = decided(t, 8, from, nil, group{5, func(*rand.Rand) uuid.UUID { return uuid.Nil }, from})
		if converted(d, from, same) != 2 || converted(d, from, [][16]byte{from.Permute(v4(rand.New(rand.NewPCG(1, 2))))}) != 0 {
			t.Errorf("%+v", d.Fields)
		}
	}
}

// Fields that appear after the decision are not converted, except those under Others.
func TestLaterFields(t *testing.T) {
	d, _ := decided(t, 9, uuidrep.JavaLegacy, nil, group{100, v4, uuidrep.JavaLegacy})
	v := uuidrep.JavaLegacy.Permute(v4(rand.New(rand.NewPCG(1, 3))))
	if d.Judge(uuidrep.JavaLegacy).Value([]byte("b"), v) == "" {
		t.Error("a field that was not there is converted")
	}
	p := newPass(t)
	r := rand.New(rand.NewPCG(1, 4))
	for range 100 {
		p.add("a", uuidrep.CSharpLegacy.Permute(v4(r)))
		p.add(Others, uuidrep.JavaLegacy.Permute(v4(r)))
	}
	d = p.decide(uuidrep.JavaLegacy)
	if j := d.Judge(uuidrep.JavaLegacy); j.Value([]byte("b"), v) != "" || j.Value([]byte("a"), v) == "" {
		t.Errorf("%+v", d.Fields)
	}
}

// A decision is unchanged after a round trip through JSON and BSON.
func TestDecisionIsSerializable(t *testing.T) {
	d, values := decided(t, 10, uuidrep.JavaLegacy, []string{"a"}, group{1000, v4, uuidrep.JavaLegacy}, group{100, v4, uuidrep.CSharpLegacy}, group{50, hash, uuidrep.JavaLegacy})
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON, fromBSON Decision
	if err := json.Unmarshal(text, &fromJSON); err != nil || !reflect.DeepEqual(fromJSON, d) {
		t.Errorf("%v: %+v, want %+v", err, fromJSON, d)
	}
	octets, err := bson.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := bson.Unmarshal(octets, &fromBSON); err != nil || !reflect.DeepEqual(fromBSON, d) {
		t.Errorf("%v: %+v, want %+v", err, fromBSON, d)
	}
	before, after := d.Judge(uuidrep.JavaLegacy), fromJSON.Judge(uuidrep.JavaLegacy)
	for _, v := range slices.Concat(values...) {
		if before.Value([]byte("a"), v) != after.Value([]byte("a"), v) {
			t.Fatalf("%x", v)
		}
	}
}

func TestReasons(t *testing.T) {
	d, values := decided(t, 11, uuidrep.JavaLegacy, nil, group{1000, v4, uuidrep.JavaLegacy}, group{300, v4, uuidrep.CSharpLegacy}, group{2, v7, uuidrep.JavaLegacy})
	j := d.Judge(uuidrep.JavaLegacy)
	for _, tt := range []struct {
		v    [16]byte
		want string
	}{
		{values[1][0], "fits csharpLegacy, the byte order of other values of the field"},
		{values[2][0], "has version 7 if read as javaLegacy, but the field has 4"},
		{[16]byte{0xff, 1, 2}, "does not have the variant and a version of RFC 9562 if read as javaLegacy"},
	} {
		if got := j.Value([]byte("a"), tt.v); !strings.Contains(got, tt.want) {
			t.Errorf("%x: %q, want %q", tt.v, got, tt.want)
		}
	}
}
