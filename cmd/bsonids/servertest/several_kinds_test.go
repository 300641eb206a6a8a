package servertest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// ofKind returns the UUID as programs store it that write the kind.
func ofKind(u uuid.UUID, kind string) any {
	switch kind {
	case "text":
		return u.String()
	case "binaryText":
		return bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: []byte(u.String())}
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

// Fields of one collection that are stored in different ways are converted in one pass, in place and in a copy. The processes are killed all the time. There is one undo log, which restores all.
func TestSeveralKinds(t *testing.T) {
	from := []string{"csharpLegacy", "javaLegacy", "generic", "text", "goStruct", "binaryText"}
	{
		for _, into := range []string{"", "new"} {
			t.Run("into "+into, func(t *testing.T) {
				s, db := started(t)
				c := db.Collection("c")
				var docs []any
				want := make(map[string]bson.Raw)
				for i := range 60 {
					doc, is := bson.D{{Key: "_id", Value: int32(i)}}, bson.D{{Key: "_id", Value: int32(i)}}
					for j, kind := range from {
						name, u := string(rune('a'+j)), v4(len(from)*i+j)
						doc = append(doc, bson.E{Key: name, Value: ofKind(u, kind)})
						is = append(is, bson.E{Key: name, Value: ofKind(u, "standard")})
					}
					docs = append(docs, doc)
					note(want, is)
				}
				insert(t, c, docs)
				before := all(t, c)
				dir := prepared(t, s, func(p *plan.Plan) {
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
				if logs, err := filepath.Glob(filepath.Join(dir, "*.undo")); err != nil || len(logs) == 0 {
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

// inField fills the field a of the collection c with UUIDs of the kinds, in documents of their own, and decides about them
// alone. The scene has what becomes of them.
func inField(t *testing.T, of map[string][]uuid.UUID, changes ...func(*plan.Plan)) *scene {
	t.Helper()
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c"), want: make(map[string]bson.Raw)}
	var docs []any
	for kind, all := range of {
		for _, u := range all {
			id := int32(len(docs))
			docs = append(docs, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: ofKind(u, kind)}})
			note(c.want, bson.D{{Key: "_id", Value: id}, {Key: "a", Value: ofKind(u, "standard")}})
		}
	}
	insert(t, c.coll, docs)
	c.plan(changes...)
	return c
}

// decided decides about the values of each kind, of which some are trusted, and leaves others.
func decided(kind []string, trust ...string) func(*plan.Plan) {
	return func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			f.Decision, f.Trust = plan.Leave, false
			for _, name := range kind {
				if k, _ := kinds.Parse(name); k.Stored() == f.Stored {
					f.Decision, f.Trust = plan.Convert(name), slices.Contains(trust, name)
				}
			}
		})
	}
}

// A field has values of two kinds, some of which were listed. A person vouches for one kind, and later for the other.
func TestTrustOneKind(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			of := map[string][]uuid.UUID{"javaLegacy": odd(2), "generic": odd(2)}
			for i := range 50 {
				of["javaLegacy"], of["generic"] = append(of["javaLegacy"], v4(i)), append(of["generic"], v4(i))
			}
			both := []string{"javaLegacy", "generic"}
			c := inField(t, of, append(way, decided(both))...)
			c.run(failure.ExitIncomplete, applyBatches).prints(t, "4 documents have")
			changePlan(t, c.dir, decided(both, "javaLegacy"))
			c.run(failure.ExitIncomplete, applyBatches).prints(t, "2 documents have")
			changePlan(t, c.dir, decided(both, both...))
			c.ok(applyBatches, "verify", "status")
			c.converted()
			c.ok(undoBatches)
			c.unchanged()
		})
	}
}

// A dry run of undo counts the values of a program that the log does not have, beside those of a field that has values of two kinds.
func TestUndoCountsOfSeveralKinds(t *testing.T) {
	c := inField(t, map[string][]uuid.UUID{"javaLegacy": odd(5), "generic": odd(5)})
	for i := range 3 {
		set(t, c.coll, int32(i), "b", ofKind(uuid.New(), "javaLegacy"))
	}
	c.dir = prepared(t, c.s, decided([]string{"javaLegacy", "generic"}, "javaLegacy", "generic"))
	c.ok(applyBatches)
	for i := range 3 {
		insert(t, c.coll, []any{bson.D{{Key: "_id", Value: int32(900 + i)}, {Key: "b", Value: ofKind(uuid.New(), "standard")}}})
	}
	c.run(failure.ExitOK, "undo --output json").prints(t, `"newValuesNotInUndoLog": 3`)
}
