package decide

import (
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Text in hyphens tells by its own variant and version that it is a UUID, text of 32 digits only
// together with the other values of its field.
func TestText(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	random := func() (u [16]byte) {
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		return u
	}
	hyphens := func(u [16]byte) string { return uuid.UUID(u).String() }
	digits := func(u [16]byte) string { return hex.EncodeToString(u[:]) }
	ofVersion := func(n byte) [16]byte {
		u := random()
		u[6], u[8] = u[6]&0x0f|n<<4, u[8]&0x3f|0x80
		return u
	}
	unfit := ofVersion(9)
	many := func(n int, s func() string) (out []string) {
		for range n {
			out = append(out, s())
		}
		return out
	}
	four := func() string { return digits(ofVersion(4)) }
	for name, tt := range map[string]struct {
		values            []string
		trusted           bool
		basis             Basis
		versions, digits  []int
		converted, left   []string
		distinct, fitting int64
	}{
		"one value":          {many(1, func() string { return hyphens(ofVersion(4)) }), false, Evidence, []int{4}, nil, []string{hyphens(ofVersion(7)), hyphens(uuid.Nil)}, []string{hyphens(unfit), four()}, 1, 1},
		"twice":              {slices.Repeat(many(1, func() string { return "{" + hyphens(ofVersion(1)) + "}" }), 2), false, Evidence, []int{1}, nil, nil, nil, 1, 1},
		"without version":    {[]string{hyphens(unfit)}, false, None, nil, nil, nil, []string{hyphens(unfit)}, 1, 0},
		"trusted":            {[]string{hyphens(unfit)}, true, Trust, nil, nil, []string{hyphens(unfit), digits(unfit)}, nil, 1, 0},
		"nil":                {[]string{hyphens(uuid.Nil), digits(uuid.Nil)}, false, Symmetric, nil, nil, []string{digits(uuid.Nil), digits(uuid.Max)}, []string{four()}, 2, 0},
		"one of 32 digits":   {many(1, four), false, None, nil, nil, nil, []string{four()}, 1, 0},
		"many of 32 digits":  {many(30, four), false, Evidence, []int{4}, []int{4}, []string{four(), hyphens(ofVersion(7)), digits(uuid.Nil)}, []string{digits(ofVersion(7)), digits(unfit)}, 30, 30},
		"checksums":          {many(200, func() string { return digits(random()) }), false, None, nil, nil, nil, []string{four()}, 200, 0},
		"checksums, trusted": {many(200, func() string { return digits(random()) }), true, Trust, nil, nil, []string{four(), digits(unfit)}, nil, 200, 0},
		"checksums and UUIDs": {append(many(200, func() string { return digits(random()) }), many(5, func() string { return hyphens(ofVersion(4)) })...), false, Evidence, []int{4}, nil,
			[]string{hyphens(ofVersion(4))}, []string{four()}, 205, 5},
		"UUIDs and others, trusted": {append(many(200, func() string { return digits(random()) }), hyphens(ofVersion(4)), hyphens(unfit)), true, Evidence, []int{4}, nil,
			[]string{hyphens(ofVersion(4)), four(), digits(unfit), hyphens(unfit)}, nil, 202, 1},
		"version 1 of 32 digits": {many(30, func() string { return digits(ofVersion(1)) }), false, Evidence, []int{1}, []int{1}, []string{digits(ofVersion(1))}, nil, 30, 30},
	} {
		p := newPass(t)
		for _, text := range tt.values {
			s, _ := kinds.ParseText([]byte(text))
			put(t, p.of, "a[]", kinds.OfText, s)
		}
		if err := p.Decide(); err != nil {
			t.Fatal(err)
		}
		d := p.of.Decision(kindstest.Kind(t, "text"))
		if tt.trusted {
			d.Trust([]string{"a"})
		}
		f := d.Fields[0]
		if f.Basis != tt.basis || !slices.Equal(f.Versions, tt.versions) || !slices.Equal(f.Digits, tt.digits) || f.Distinct != tt.distinct || f.Fits != tt.fitting || f.Converted() != (f.Reason == "") {
			t.Errorf("%s: %+v", name, f)
		}
		b, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var saved Decision
		if err := bson.Unmarshal(b, &saved); err != nil {
			t.Fatal(err)
		}
		j := saved.Judge(uuidrep.Standard)
		reason := func(j *Judge, s string) string {
			u, ok := kinds.ParseText([]byte(s))
			if !ok {
				t.Fatal(s)
			}
			return j.Formed([]byte("a[]"), u)
		}
		for _, s := range tt.converted {
			if got := reason(j, s); got != "" {
				t.Errorf("%s: %s: %s", name, s, got)
			}
		}
		for _, s := range tt.left {
			if got := reason(j, s); got == "" {
				t.Errorf("%s: %s is converted", name, s)
			}
		}
	}
}
