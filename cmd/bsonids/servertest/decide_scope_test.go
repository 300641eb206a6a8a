package servertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// Values that were listed are not converted by a list that is damaged, or that is another one.
func TestTrustOfDamagedList(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		s := mongotest.Start(t)
		coll := connect(t, s).Collection("c")
		fill(t, coll, 0, 60, uuidrep.JavaLegacy, v4)
		few := odd(3)
		fill(t, coll, 60, 3, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
		dir := prepared(t, s, to.String(), convertFields("javaLegacy", ""))
		args := append([]string{"apply", dir, "--write"}, gentle...)
		command(t, s, args...).want(t, failure.ExitIncomplete)
		before, list := all(t, coll), skipList(t, dir)
		whole := text(t, list)
		changePlan(t, dir, trusted("a"))
		line, _, _ := strings.Cut(whole, "\n")
		for _, damaged := range []string{"", "{}\n", "text", line, whole[:len(whole)-1], whole + "{", strings.Replace(whole, `"subType":"03"`, `"subType":"04"`, 1),
			strings.Replace(whole, s.Database()+".c", "x.c", 1), line + "\n" + whole} {
			put(t, list, damaged)
			if r := command(t, s, args...); r.code == failure.ExitOK || !strings.Contains(r.stderr, list) {
				t.Errorf("%q: exit code %d\n%s", damaged, r.code, r.stderr)
			}
			equal(t, all(t, coll), before)
		}
		put(t, list, whole)
		command(t, s, args...).want(t, failure.ExitOK)
		now := all(t, coll)
		for i, u := range few {
			if b := now[marshalled(t, int32(60+i)).String()].Lookup("a"); !b.Equal(marshalled(t, in(u, to))) {
				t.Errorf("%d: %v", 60+i, b)
			}
		}
	}
}

// Services have begun to write another field since a collection was converted. The plan that is brought up to date
// has it, and the next apply converts it alone.
func TestNewFieldLater(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 50, uuidrep.JavaLegacy, v4)
	dir := prepared(t, s, "standard")
	args := append([]string{"apply", dir, "--write"}, gentle...)
	command(t, s, args...).want(t, failure.ExitOK)
	before := all(t, coll)
	var late []any
	ids := make(map[int32]uuid.UUID)
	for i := range int32(50) {
		ids[100+i] = uuid.New()
		late = append(late, bson.D{{Key: "_id", Value: 100 + i}, {Key: "later", Value: in(ids[100+i], uuidrep.JavaLegacy)}})
	}
	insert(t, coll, late)
	command(t, s, "plan", dir).want(t, failure.ExitOK)
	command(t, s, args...).want(t, failure.ExitUsage) // nothing is decided about the field
	setDecision(t, filepath.Join(dir, plan.PlanFile), "later", "convert from javaLegacy")
	command(t, s, args...).want(t, failure.ExitOK)
	now := all(t, coll)
	for i, u := range ids {
		id := marshalled(t, i).String()
		if b := now[id].Lookup("later"); !b.Equal(marshalled(t, in(u, uuidrep.Standard))) {
			t.Errorf("%d: %v", i, b)
		}
		delete(now, id)
	}
	equal(t, now, before)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
}
