package scan

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

func TestFieldIs(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	in := func(subtype byte, rep uuidrep.Representation) func(i int) any {
		return func(i int) any { return stored(v4(r, i), subtype, rep) }
	}
	text := func(i int) any { return uuid.UUID(v4(r, i)).String() }
	sum := func(i int) any { return stored(md5Sum(r, i), 0, uuidrep.Standard) }
	in36 := func(subtype byte) func(i int) any {
		return func(i int) any { return bson.Binary{Subtype: subtype, Data: []byte(uuid.UUID(v4(r, i)).String())} }
	}
	java := in(3, uuidrep.JavaLegacy)
	for name, tt := range map[string]struct {
		values []func(i int) any
		want   []Kind
	}{
		"standard":                {[]func(int) any{in(4, uuidrep.Standard)}, nil},
		"text":                    {[]func(int) any{text}, nil},
		"numbers":                 {[]func(int) any{func(i int) any { return i }}, nil},
		"checksums of subtype 0":  {[]func(int) any{sum}, nil},
		"checksums and subtype 4": {[]func(int) any{sum, in(4, uuidrep.Standard)}, nil},
		"javaLegacy":              {[]func(int) any{java}, []Kind{FoundLegacy}},
		"subtype 0":               {[]func(int) any{in(0, uuidrep.Standard)}, []Kind{FoundGeneric}},
		"two orders":              {[]func(int) any{java, in(3, uuidrep.CSharpLegacy)}, []Kind{FoundLegacy, FoundMixed}},
		"two subtypes":            {[]func(int) any{java, in(4, uuidrep.Standard)}, []Kind{FoundLegacy, FoundMixed}},
		"text and subtype 4":      {[]func(int) any{text, in(4, uuidrep.Standard)}, []Kind{FoundMixed}},
		"text in binary":          {[]func(int) any{in36(3)}, []Kind{FoundLegacy}},
		"text in subtype 0":       {[]func(int) any{in36(0)}, []Kind{FoundLegacy}},
		"text in and standard":    {[]func(int) any{in36(4), in(4, uuidrep.Standard)}, []Kind{FoundLegacy, FoundMixed}},
		"malformed of subtype 3":  {[]func(int) any{func(int) any { return bson.Binary{Subtype: 3, Data: make([]byte, 15)} }}, []Kind{FoundLegacy}},
		"malformed of subtype 4":  {[]func(int) any{func(int) any { return bson.Binary{Subtype: 4, Data: make([]byte, 17)} }}, []Kind{FoundLegacy}},
		"other data of subtype 0": {[]func(int) any{func(int) any { return bson.Binary{Data: make([]byte, 36)} }}, nil},
		"text and subtype 0":      {[]func(int) any{text, in(0, uuidrep.Standard)}, []Kind{FoundMixed, FoundGeneric}},
	} {
		s := newScan(t)
		c := s.collector(t, "c")
		for i := range 400 {
			collect(t, c, bson.D{{Key: "id", Value: tt.values[i%len(tt.values)](i)}})
		}
		var got []Kind
		for _, f := range s.judged(t)[0].Fields {
			for _, k := range Kinds {
				if f.Is(k) {
					got = append(got, k)
				}
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
