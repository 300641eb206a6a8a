package servertest

import (
	"crypto/md5"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// A conversion is not proven before it is finished, although each value in its undo log is correct. A byte that is changed
// afterwards is found without any flag.
func TestProofBeforeTheEnd(t *testing.T) {
	c := newScene(t, 40, uuidrep.JavaLegacy)
	c.through(lostAfter(t, c.s, 2, writesTo("c"))).run(failure.ExitUnreachable, "apply --write --batch 10")
	c.run(failure.ExitIncomplete, "verify").prints(t, "Not proven")
	c.run(failure.ExitIncomplete, "verify --allow-changed").prints(t, "Not proven")
	c.ok("apply --write --batch 10")
	c.converted()
	c.run(failure.ExitOK, "verify").prints(t, "Proven by the undo logs")
	set(t, c.coll, 3, "id", in([16]byte{1, 2, 3}, uuidrep.Standard))
	c.run(failure.ExitIncomplete, "verify")
	c.ok("verify --allow-changed")
}

// The proof says what it is based on. Values that the decision leaves as they are do not fail it, and are told.
func TestProofNamesItsBasis(t *testing.T) {
	for _, w := range works {
		s, db := started(t)
		seed(t, db.Collection("c"), 40, w.from)
		insert(t, db.Collection("c"), []any{bson.D{{Key: "_id", Value: "stray"}, {Key: "id", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}}}})
		c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
		c.plan(append(w.changes, convertFields(w.from.String()))...)
		c.run(failure.ExitIncomplete, "apply --write")
		basis, text := `"restsOn": "undoLog"`, "Proven by the undo logs"
		if w.changes != nil {
			basis, text = `"restsOn": "source"`, "Proven"
		}
		c.run(failure.ExitIncomplete, "verify --output json").prints(t, `"proven": true`, basis, `"valuesLeft": 1,`, `"oldValues": 0,`)
		c.run(failure.ExitIncomplete, "verify").prints(t, text, "all are converted but 1")
	}
}

// What a person said to leave is no surprise, and neither are nulls, empty strings, and values of other types in a
// field that is converted: apply and verify end with exit code 0, in place and into a copy. Text that is no UUID is of
// another type in all fields but those of text.
func TestNoSurprise(t *testing.T) {
	java := func(u uuid.UUID) any { return in(u, uuidrep.JavaLegacy) }
	for name, tt := range map[string]struct {
		from   string
		value  func(uuid.UUID) any
		others []any // beside those that all have
	}{
		"another subtype": {"javaLegacy", java, []any{bson.D{}, bson.D{{Key: "x", Value: 1}}}},
		"subtype 0":       {"generic", func(u uuid.UUID) any { return in(u, uuidrep.Unspecified) }, nil},
		"text":            {"text", func(u uuid.UUID) any { return u.String() }, []any{bson.D{}, bson.A{bson.D{{Key: "x", Value: "y"}}}}},
		"Go structs": {"goStruct", func(u uuid.UUID) any { return uuid.NullUUID{UUID: u, Valid: true} },
			[]any{v4(1).String(), bson.D{}, bson.D{{Key: "valid", Value: true}}, bson.D{{Key: "name", Value: "x"}}, bson.A{bson.D{{Key: "x", Value: bson.D{}}}}}},
	} {
		for way, changes := range ways {
			t.Run(name+", "+way, func(t *testing.T) {
				var docs []any
				for i := range 60 {
					sum := md5.Sum(fmt.Append(nil, i))
					docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: tt.value(v4(i))}, {Key: "sum", Value: bson.Binary{Subtype: 3, Data: sum[:]}}})
				}
				if tt.from != "text" {
					tt.others = append(tt.others, "x", "not a UUID at all")
				}
				for i, v := range append(tt.others, nil, "", int32(7), int64(7), 7.5, bson.NewObjectID(), true, bson.A{}, bson.A{nil, "", int32(1)},
					bson.Binary{Subtype: 3, Data: []byte("short")}, bson.Binary{Subtype: 5, Data: make([]byte, 16)}) {
					docs = append(docs, bson.D{{Key: "_id", Value: int32(100 + i)}, {Key: "id", Value: v}})
				}
				c := setting(t, docs)
				c.plan(append(changes, convertFields(tt.from, "id"))...)
				c.ok("apply", "apply --write", "apply --write", "verify", "undo --write")
			})
		}
	}
}

// An apply that is refused leaves no file, and a directory in the place of a file is refused.
func TestRefusedLeavesNothing(t *testing.T) {
	c := newScene(t, 12, uuidrep.JavaLegacy)
	t.Chdir(t.TempDir())
	for name, change := range map[string][]func(*plan.Plan){
		"another order": {convertFields("javaLegacy"), func(p *plan.Plan) { p.Collections[0].Fields[0].Decision = plan.Convert("csharpLegacy") }},
		"absent field":  {func(p *plan.Plan) { p.Collections[0].Fields[0].Path = "absent" }},
		"absent":        {func(p *plan.Plan) { p.Collections[0].Name = "absent" }},
		"filter":        {func(p *plan.Plan) { p.Collections[0].Filter = `{"_id": -1}` }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := prepared(t, c.s, change...)
			for range 2 {
				command(t, c.s, applying(dir)...).want(t, failure.ExitUsage)
			}
			left, err := filepath.Glob(filepath.Join(dir, "c*"))
			here, err2 := os.ReadDir(".")
			if err != nil || err2 != nil || len(left) > 0 || len(here) > 0 {
				t.Errorf("left %q and %v, %v, %v", left, here, err, err2)
			}
		})
	}
	for _, name := range []string{"c.skipped.jsonl"} {
		dir := prepared(t, c.s)
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if r := command(t, c.s, applying(dir)...).says(t, name); r.code == failure.ExitOK {
			t.Error(name)
		}
	}
	c.ok("apply --write")
}
