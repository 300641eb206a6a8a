package servertest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/uuidrep"
)

// setDecision changes the decision about a field of subtype 3, which the plan has once.
func setDecision(t testing.TB, file, field, decision string) {
	t.Helper()
	n := 0
	changePlan(t, filepath.Dir(file), func(p *plan.Plan) {
		eachField(p, func(f *plan.Field) {
			if f.Path == field && f.Stored == kinds.Subtype3 {
				f.Decision, f.Trust = plan.Decision(decision), false
				n++
			}
		})
	})
	if n != 1 {
		t.Fatalf("the plan has %s %d times", field, n)
	}
}

// eachField calls f for each field of a plan.
func eachField(p *plan.Plan, f func(*plan.Field)) {
	for _, c := range p.Collections {
		for i := range c.Fields {
			f(&c.Fields[i])
		}
	}
}

// late fills a collection with two fields in Java order. It returns its documents as they are when only a is
// converted, and when both are.
func late(t testing.TB, coll *mongo.Collection, n int) (one, both map[string]bson.Raw) {
	t.Helper()
	one, both = make(map[string]bson.Raw), make(map[string]bson.Raw)
	var docs []any
	for i := range n {
		a, b := v4(i), v4(i)
		doc := func(of, other uuidrep.Representation) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(a, of)}, {Key: "b", Value: bson.A{in(b, other), in(b, other)}}}
		}
		docs = append(docs, doc(uuidrep.JavaLegacy, uuidrep.JavaLegacy))
		note(one, doc(uuidrep.Standard, uuidrep.JavaLegacy))
		note(both, doc(uuidrep.Standard, uuidrep.Standard))
	}
	insert(t, coll, docs)
	return one, both
}

// moved moves the directory of a migration, and returns its new path.
func moved(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "moved")
	check(t, os.Rename(dir, to))
	return to
}

// eachWay calls f for a conversion of the collection c, in place and, by the change of the plan, into a copy.
func eachWay(t *testing.T, f func(t *testing.T, c *scene, way ...func(*plan.Plan))) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			s, db := started(t)
			f(t, &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}, way...)
		})
	}
}

// The lines of commands that most tests of edits run.
const (
	applyBatches = "apply --write --batch 10"
	undoBatches  = "undo --write --batch 10"
)

// A field that was left is converted later, in a collection that is finished: in place,
// and in a copy. Everything is proven, and the undo restores both.
func TestDecideLater(t *testing.T) {
	eachWay(t, func(t *testing.T, c *scene, way ...func(*plan.Plan)) {
		one, both := late(t, c.coll, 60)
		c.plan(way...)
		setDecision(t, c.file(plan.PlanFile), "b[]", "leave")
		c.ok(applyBatches)
		equal(t, all(t, c.result), one)

		setDecision(t, c.file(plan.PlanFile), "b[]", "convert from javaLegacy")
		for _, dry := range []string{"json", "table"} {
			c.ok("apply --output " + dry)
		}
		equal(t, all(t, c.result), one)
		for range 2 { // nothing is left to do by the second
			c.ok(applyBatches)
			equal(t, all(t, c.result), both)
		}
		c.dir = moved(t, c.dir)
		c.ok("status", "verify")
		setDecision(t, c.file(plan.PlanFile), "b[]", "leave")
		c.run(failure.ExitUsage, applyBatches).says(t, "put this back")
		c.ok(undoBatches)
		c.unchanged()
		if c.result != c.coll {
			drop(t, c.result)
		}
		// The decision is free again, and the files are new.
		c.ok(applyBatches)
		equal(t, all(t, c.result), one)
		c.ok("verify", undoBatches)
		c.unchanged()
	})
}

// odd returns UUIDs that do not have the variant of RFC 9562 in any order.
func odd(n int) (out []uuid.UUID) {
	for len(out) < n {
		var u uuid.UUID
		rand.Read(u[:])
		if !slices.ContainsFunc([]uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy, uuidrep.CSharpLegacy}, func(r uuidrep.Representation) bool {
			return r.Permute(u)[8]>>6 == 0b10
		}) {
			out = append(out, u)
		}
	}
	return out
}

// fillOdd fills the field a with 200 UUIDs in Java order and, from the _id 200 on, with n of which no value shows that.
func fillOdd(t testing.TB, coll *mongo.Collection, n int) (few []uuid.UUID) {
	t.Helper()
	fill(t, coll, 0, 200, uuidrep.JavaLegacy, v4)
	few = odd(n)
	return fill(t, coll, 200, n, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
}

// A field that is trusted from the start is converted whole, also if most of its values show the order.
func TestTrustFirst(t *testing.T) {
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
	few := fillOdd(t, c.coll, 3)
	c.plan(convertFields("javaLegacy"), trusted("a"))
	c.ok("apply --write")
	wantValues(t, c.coll, few, 200, uuidrep.Standard)
	c.ok("verify", "undo --write")
	c.unchanged()
}

// With trust added, values that were listed are converted, also one that a service has written since.
func TestTrustLater(t *testing.T) {
	eachWay(t, func(t *testing.T, c *scene, way ...func(*plan.Plan)) {
		few := fillOdd(t, c.coll, 3)
		c.plan(append(way, convertFields("javaLegacy"))...)
		c.run(failure.ExitIncomplete, applyBatches)
		wantValues(t, c.result, few, 200, uuidrep.JavaLegacy)
		// A service changes one of them, and writes another one.
		changed := odd(1)
		set(t, c.coll, 201, "a", in(changed[0], uuidrep.JavaLegacy))
		changePlan(t, c.dir, trusted("a"))
		c.ok("apply", applyBatches)
		wantValues(t, c.result, few[:1], 200, uuidrep.Standard)
		wantValues(t, c.result, changed, 201, uuidrep.Standard)
		wantValues(t, c.result, few[2:], 202, uuidrep.Standard)
		now := all(t, c.result)
		c.ok(applyBatches)
		equal(t, all(t, c.result), now)
		c.dir = moved(t, c.dir)
		c.ok("verify", "status")
		setDecision(t, c.file(plan.PlanFile), "a", "convert from javaLegacy")
		c.run(failure.ExitUsage, applyBatches)
		c.ok(undoBatches)
		note(c.before, bson.D{{Key: "_id", Value: int32(201)}, {Key: "a", Value: in(changed[0], uuidrep.JavaLegacy)}})
		c.unchanged()
	})
}

// When every listed value was converted because a person vouched for it, nothing surprising is left, and each later
// apply ends with exit code 0. A value of a field that nobody vouched for still counts.
func TestTrustedNothingLeft(t *testing.T) {
	eachWay(t, func(t *testing.T, c *scene, way ...func(*plan.Plan)) {
		late(t, c.coll, 120)
		few := odd(4)
		var docs []any
		for i, u := range few[:3] {
			docs = append(docs, bson.D{{Key: "_id", Value: int32(200 + i)}, {Key: "a", Value: in(u, uuidrep.JavaLegacy)}})
		}
		insert(t, c.coll, docs)
		set(t, c.coll, 200, "b", bson.A{in(few[3], uuidrep.JavaLegacy)}) // one has odd values in both fields
		c.plan(append(way, convertFields("javaLegacy", "a", "b"))...)
		skipped := func(line string, code int, want int64) {
			t.Helper()
			var got struct {
				Steps []struct{ DocumentsSkipped int64 }
			}
			decode(t, c.run(code, line+" --output json").stdout, &got)
			n := int64(0)
			for _, st := range got.Steps {
				n += st.DocumentsSkipped
			}
			if n != want && (c.result == c.coll || (n == 0) != (want == 0)) { // a copy that is compared again may count one twice
				t.Errorf("%v: %d documents skipped, want %d", line, n, want)
			}
		}
		skipped(applyBatches, failure.ExitIncomplete, 3)
		changePlan(t, c.dir, trusted("a"))
		for range 2 {
			skipped(applyBatches, failure.ExitIncomplete, 1)
		}
		changePlan(t, c.dir, trusted("b"))
		for range 2 {
			skipped(applyBatches, failure.ExitOK, 0)
		}
		skipped("apply", failure.ExitOK, 0)
		for _, st := range statusOf(t, c.s, c.dir).Conversions {
			if st.DocumentsSkipped != 0 {
				t.Errorf("status says that %d documents are skipped", st.DocumentsSkipped)
			}
		}
		c.ok("verify")
	})
}

// An undo, dry or not, counts the new values of a service and not those of the plan's own conversions, also if some were converted later.
func TestUndoCountsOfTrusted(t *testing.T) {
	s, db := started(t)
	c := &scene{TB: t, s: s, at: s, db: db, coll: db.Collection("c")}
	fillOdd(t, c.coll, 3)
	c.plan(convertFields("javaLegacy"))
	c.run(failure.ExitIncomplete, applyBatches)
	changePlan(t, c.dir, trusted("a"))
	c.ok(applyBatches)
	insert(t, c.coll, []any{bson.D{{Key: "_id", Value: 900}, {Key: "a", Value: in(v4(1), uuidrep.Standard)}}, bson.D{{Key: "_id", Value: 901}, {Key: "a", Value: in(v4(2), uuidrep.Standard)}}})
	for _, line := range []string{"undo --output json", undoBatches + " --output json"} {
		var got struct{ Steps []migrate.UndoneStep }
		decode(t, c.run(failure.ExitOK, line).stdout, &got)
		foreign := int64(0)
		for _, st := range got.Steps {
			foreign += st.Result.Foreign
		}
		if foreign != 2 || len(got.Steps) != 1 {
			t.Errorf("%s: %d values of a service in %d steps", line, foreign, len(got.Steps))
		}
	}
}

// Services have begun to write another field since a collection was converted. The plan that is brought up to date
// has it, and the next apply converts it alone.
func TestNewFieldLater(t *testing.T) {
	c := newScene(t, 50, uuidrep.JavaLegacy)
	c.ok(applyBatches)
	var later []any
	for i := range int32(50) {
		u := uuid.New()
		later = append(later, bson.D{{Key: "_id", Value: 100 + i}, {Key: "later", Value: in(u, uuidrep.JavaLegacy)}})
		note(c.want, bson.D{{Key: "_id", Value: 100 + i}, {Key: "later", Value: in(u, uuidrep.Standard)}})
	}
	insert(t, c.coll, later)
	c.ok("plan")
	c.run(failure.ExitUsage, applyBatches) // nothing is decided about the field
	setDecision(t, c.file(plan.PlanFile), "later", "convert from javaLegacy")
	c.ok(applyBatches)
	c.converted()
	c.ok("verify", undoBatches)
}
