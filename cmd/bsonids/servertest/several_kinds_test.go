package servertest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// ofKind returns the UUID as programs store it that write the kind.
func ofKind(u uuid.UUID, kind string) any {
	switch kind {
	case "text":
		return u.String()
	case "generic":
		return bson.Binary{Data: u[:]}
	case "goStruct":
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
	}
	r, err := uuidrep.Parse(kind)
	if err != nil {
		panic(err)
	}
	return in(u, r)
}

// Fields of one collection that are stored in different ways are converted in one pass, in place and in a copy, also if some
// keep their subtype. The processes are killed all the time. There is one undo log, which restores all.
func TestSeveralKinds(t *testing.T) {
	for to, from := range map[string][]string{
		"standard":   {"csharpLegacy", "javaLegacy", "generic", "text", "goStruct"},
		"javaLegacy": {"csharpLegacy", "standard", "generic", "text", "goStruct"},
	} {
		for _, into := range []string{"", "new"} {
			t.Run(to+into, func(t *testing.T) {
				s, db := started(t)
				c := db.Collection("c")
				var docs []any
				want := make(map[string]bson.Raw)
				for i := range 60 {
					doc, is := bson.D{{Key: "_id", Value: int32(i)}}, bson.D{{Key: "_id", Value: int32(i)}}
					for j, kind := range from {
						name, u := string(rune('a'+j)), v4(len(from)*i+j)
						doc = append(doc, bson.E{Key: name, Value: ofKind(u, kind)})
						is = append(is, bson.E{Key: name, Value: ofKind(u, to)})
					}
					docs = append(docs, doc)
					note(want, is)
				}
				insert(t, c, docs)
				before := all(t, c)
				dir := prepared(t, s, to, func(p *plan.Plan) {
					for i := range p.Collections[0].Fields {
						f := &p.Collections[0].Fields[i]
						f.Decision = plan.Leave
						for j, kind := range from {
							if f.Plain() == string(rune('a'+j)) {
								f.Decision = plan.Convert(kind)
							}
						}
					}
					p.Collections[0].Into = into
				})
				wait := []string{"--batch-timeout", "1s"} // for what a killed process has sent
				untilDone(t, s, slices.Concat([]string{"apply", dir, "--write"}, gentle, wait)...)
				command(t, s, "verify", dir).want(t, failure.ExitOK)
				if into != "" {
					equal(t, all(t, c), before)
					equal(t, all(t, db.Collection(into)), want)
					return
				}
				equal(t, all(t, c), want)
				if logs, err := filepath.Glob(filepath.Join(dir, "*.undo")); err != nil || len(logs) != 1 {
					t.Errorf("%q, %v", logs, err)
				}
				untilDone(t, s, slices.Concat([]string{"undo", dir, "--write", "--batch", "10"}, wait)...)
				equal(t, all(t, c), before)
				if b, err := os.ReadFile(filepath.Join(dir, "c.skipped.jsonl")); err == nil && len(b) > 0 {
					t.Errorf("something was left: %s", b)
				}
			})
		}
	}
}
