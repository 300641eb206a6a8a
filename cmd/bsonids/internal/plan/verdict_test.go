package plan

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// otherSystem returns the i-th of some values that have no version in any order.
func otherSystem(i int) bson.Binary {
	sum := sha256.Sum256(fmt.Append(nil, "other", i))
	u := sum[:16]
	u[8], u[15] = u[8]&0x3f, u[15]&0x3f
	return bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: u}
}

// The comment beside a field says how many values prove no order, and that trust: true converts them. What it does not convert
// counts apart.
func TestCommentOfValuesWithoutVersion(t *testing.T) {
	docs := func(n, others, against int) (docs []bson.D) {
		for i := range n {
			docs = append(docs, bson.D{{Key: "player", Value: legacy(uuidrep.JavaLegacy, i)}})
		}
		for i := range others {
			docs = append(docs, bson.D{{Key: "player", Value: otherSystem(i)}})
		}
		for i := range against { // a program changed the subtype, and kept the bytes
			docs = append(docs, bson.D{{Key: "copied", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: legacy(uuidrep.JavaLegacy, i).Data}}})
		}
		return append(docs, bson.D{{Key: "player", Value: bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: make([]byte, 16)}}})
	}
	for _, tt := range []struct {
		n, others, against int
		want               Decision
		comments           []string // beginnings
	}{
		{90, 0, 0, "convert from javaLegacy", nil},
		{90, 10, 0, "convert from javaLegacy", []string{"10 distinct values prove no order; they are left and listed, and trust: true beside the decision converts them from javaLegacy, too"}},
		{40, 60, 0, "convert from javaLegacy", []string{"60 distinct values prove no order"}},
		{90, 10, 20, "convert from javaLegacy", []string{"10 distinct values prove no order", "20 distinct values are equal to ids of known order if they are read in another order"}},
		{90, 10, 90, "unknown", []string{"unknown, because every value that fits javaLegacy is equal to an id of known order if it is read in another order"}},
		{0, 90, 0, "unknown", []string{"unknown: write leave, or convert from X with trust: true"}},
	} {
		p := planFor(t, docs(tt.n, tt.others, tt.against)...)
		f := p.Collections[0].Fields[slices.IndexFunc(p.Collections[0].Fields, func(f Field) bool { return f.Path == "player" })]
		if f.Decision != tt.want {
			t.Errorf("%+v: %s: %q", tt, f.Decision, f.Comment)
		}
		for _, begin := range tt.comments {
			if !slices.ContainsFunc(f.Comment, func(c string) bool { return strings.HasPrefix(c, begin) }) {
				t.Errorf("%+v: %q", tt, f.Comment)
			}
		}
		if len(tt.comments) == 0 && strings.Contains(strings.Join(f.Comment, "\n"), "trust") {
			t.Errorf("%+v: %q", tt, f.Comment)
		}
		for i := range p.Collections[0].Fields {
			if f := &p.Collections[0].Fields[i]; f.Path == "player" && f.Decision != Unknown {
				f.Trust = true
				if problems := p.Check(); len(problems) > 0 {
					t.Errorf("%+v: %q", tt, problems)
				}
			}
		}
	}
}
