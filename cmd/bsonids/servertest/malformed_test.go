package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// leaveMalformed is what a person does who knows of malformed values.
func leaveMalformed(p *plan.Plan) {
	eachField(p, func(f *plan.Field) {
		if f.Stored == kinds.OfMalformed {
			f.Decision = plan.Leave
		}
	})
}

// withMalformed returns documents with n UUIDs in Java order, and with what the subtypes 3 and 4 have there that is none: a value
// that was cut off, text with a wrong character, one byte too many, and nothing.
func withMalformed(n int) (old, converted []any) {
	for i := range n {
		u := v4(i)
		old = append(old, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(u, uuidrep.JavaLegacy)}})
		converted = append(converted, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(u, uuidrep.Standard)}})
	}
	for i, v := range []any{bson.Binary{Subtype: 3, Data: make([]byte, 15)}, bson.A{bson.Binary{Subtype: 3, Data: []byte("00112233-4455-6677-8899-aabbccddeef_")}},
		bson.Binary{Subtype: 4, Data: make([]byte, 17)}, bson.Binary{Subtype: 4}} {
		doc := bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "id", Value: v}}
		old, converted = append(old, doc), append(converted, doc)
	}
	return old, converted
}

// Values of subtypes 3 and 4 that are no UUIDs are in the plan, listed with the reason, and counted as left, until a person leaves
// them: beside UUIDs in place and in a copy, and alone.
func TestMalformed(t *testing.T) {
	for way, changes := range ways {
		t.Run(way, func(t *testing.T) {
			s, db := started(t)
			old, converted := withMalformed(30)
			insert(t, db.Collection("c"), old)
			command(t, s, "scan", "--db", db.Name(), "--all", "--fail-on", "legacy").want(t, failure.ExitIncomplete)
			c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c"), want: make(map[string]bson.Raw)}
			for _, doc := range converted {
				note(c.want, doc.(bson.D))
			}
			c.plan(changes...)
			plain := text(t, filepath.Join(c.dir, plan.PlanFile))
			if strings.Count(plain, "stored: malformed") != 1 || strings.Count(plain, "decision: list\n") != 1 { // single values and elements of an array are one field
				t.Errorf("%s", plain)
			}
			c.run(failure.ExitIncomplete, "apply --write").prints(t, "javaLegacy")
			c.converted()
			skipped := text(t, skipList(t, c.dir))
			for _, want := range []string{"15 bytes of subtype 3 are no UUID", "36 bytes of subtype 3", "17 bytes of subtype 4", "0 bytes of subtype 4", `"path":"id.0"`} {
				if strings.Count(skipped, want) != 1 || strings.Count(skipped, "\n") != 4 {
					t.Errorf("%s: %s", want, skipped)
				}
			}
			if r := c.run(failure.ExitIncomplete, "verify"); strings.Contains(r.stdout, "all values are converted") || way == "in place" && !strings.Contains(r.stdout, "all are converted but 4") {
				t.Error(r.stdout)
			}
			changePlan(t, c.dir, leaveMalformed) // after the fact
			c.ok("apply --write", "apply --write")
			if r := c.run(failure.ExitOK, "verify"); !strings.Contains(r.stdout, "all values are converted") {
				t.Error(r.stdout)
			}
			c.ok("undo --write")
			c.unchanged()
			if way != "in place" {
				return
			}
			c.plan(leaveMalformed)
			c.ok("apply", "apply --write", "verify", "undo --write")
			c.unchanged()
		})
	}
	t.Run("alone", func(t *testing.T) {
		s, db := started(t)
		old, _ := withMalformed(0)
		insert(t, db.Collection("c"), old)
		c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
		c.plan()
		c.run(failure.ExitIncomplete, "apply --write").prints(t, "malformed values, which stay")
		c.unchanged()
		c.run(failure.ExitIncomplete, "verify").lacks(t, "all values are converted")
		c.plan(leaveMalformed)
		c.run(failure.ExitUsage, "apply --write").says(t, "every field is left")
	})
}

// A dump with malformed values is converted byte for byte as it would be without, and its conversion lists them.
func TestMalformedInDump(t *testing.T) {
	old, converted := withMalformed(30)
	dir := t.TempDir()
	dumptest.Directory(t, filepath.Join(dir, "dump"), false, dumptest.Collection{Database: "d", Name: "c", Documents: old})
	want := ""
	for _, doc := range converted {
		want += string(marshal(t, doc.(bson.D)))
	}
	for code, change := range map[int]func(*plan.Plan){failure.ExitIncomplete: nil, failure.ExitOK: leaveMalformed} {
		out := filepath.Join(t.TempDir(), "out")
		made := convertDump(t, filepath.Join(dir, "dump"), out, code, change)
		if got := text(t, filepath.Join(out, "d", "c.bson")); got != want {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
		if code == failure.ExitIncomplete && strings.Count(text(t, filepath.Join(made, plan.SkipFile)), "are no UUID") != 4 {
			t.Error(text(t, filepath.Join(made, plan.SkipFile)))
		}
	}
}
