package servertest

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// setDecision edits the decision about a field, which the plan has once, and adds lines to it.
func setDecision(t testing.TB, file, field, decision string, lines ...string) {
	t.Helper()
	b := text(t, file)
	before, after, ok := strings.Cut(string(b), `- path: "`+field+`"`+"\n        stored: subtype 3\n")
	if !ok {
		t.Fatalf("no %s in %s", field, b)
	}
	_, after, _ = strings.Cut(after, "\n") // the decision
	after = strings.TrimPrefix(after, "        trust: true\n")
	text := before + `- path: "` + field + `"` + "\n        stored: subtype 3\n        decision: " + decision + "\n"
	for _, l := range lines {
		text += "        " + l + "\n"
	}
	put(t, file, text+after)
}

// late fills a collection with two fields in Java order. It returns its documents as they are when only a is
// in the order to, and when both are.
func late(t testing.TB, coll *mongo.Collection, n int, to uuidrep.Representation) (one, both map[string]bson.Raw) {
	t.Helper()
	one, both = make(map[string]bson.Raw), make(map[string]bson.Raw)
	var docs []any
	for i := range n {
		a, b := v4(i), v4(i)
		doc := func(of, other uuidrep.Representation) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(a, of)}, {Key: "b", Value: bson.A{in(b, other), in(b, other)}}}
		}
		docs = append(docs, doc(uuidrep.JavaLegacy, uuidrep.JavaLegacy))
		note(one, doc(to, uuidrep.JavaLegacy))
		note(both, doc(to, to))
	}
	insert(t, coll, docs)
	return one, both
}

// moved moves the directory of a migration. It returns the new paths of the directory and of the plan.
func moved(t testing.TB, dir string) (to, file string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(dir, to); err != nil {
		t.Fatal(err)
	}
	return to, filepath.Join(to, "plan.yaml")
}

// A field that was left is converted later, by a pass of its own, in a collection that is finished: in place,
// also within one subtype, and in a copy. The apply that does it lists the edit. Everything is proven, and the
// undo restores both.
func TestDecideLater(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		for _, copied := range []bool{false, true} {
			t.Run(to.String(), func(t *testing.T) {
				s, db := started(t)
				one, both := late(t, db.Collection("c"), 60, to)
				before := all(t, db.Collection("c"))
				file := planned(t, s, "--to", to.String())
				dir := filepath.Dir(file)
				args := []string{"apply", dir, "--batch", "10", "--write"}
				setDecision(t, file, "b[]", "leave")
				result := db.Collection("c")
				if copied {
					copyAlso(t, file, "c")
					result = db.Collection("c_standard")
				}
				command(t, s, args...).want(t, failure.ExitOK)
				equal(t, all(t, result), one)

				setDecision(t, file, "b[]", "convert from javaLegacy")
				change := `the collection "c": the field "b[]" (subtype 3): decision was leave and is convert from javaLegacy`
				for _, dry := range []string{"json", "table"} {
					command(t, s, "apply", dir, "--output", dry).want(t, failure.ExitOK).says(t, change)
				}
				equal(t, all(t, result), one)
				command(t, s, args...).want(t, failure.ExitOK).says(t, change)
				equal(t, all(t, result), both)
				if r := command(t, s, args...).want(t, failure.ExitOK); strings.Contains(r.stderr, "edited") { // nothing is left to do
					t.Error(r.stderr)
				}
				equal(t, all(t, result), both)
				dir, file = moved(t, dir)
				args[1] = dir
				command(t, s, "status", dir).want(t, failure.ExitOK)
				command(t, s, "verify", dir).want(t, failure.ExitOK)
				setDecision(t, file, "b[]", "leave")
				command(t, s, args...).want(t, failure.ExitUsage).says(t, "put this back")
				command(t, s, "undo", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
				equal(t, all(t, db.Collection("c")), before)
				if copied {
					drop(t, result)
				}
				// The decision is free again, and the files are new.
				command(t, s, args...).want(t, failure.ExitOK)
				equal(t, all(t, result), one)
				command(t, s, "verify", dir).want(t, failure.ExitOK)
				command(t, s, "undo", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
				equal(t, all(t, db.Collection("c")), before)
			})
		}
	}
}

// odd returns UUIDs that do not have the variant of RFC 9562 in any order.
func odd(n int) (out []uuid.UUID) {
	for len(out) < n {
		var u uuid.UUID
		rand.Read(u[:])
		for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy, uuidrep.CSharpLegacy} {
			if v := r.Permute(u); v[8]>>6 == 0b10 {
				u = uuid.Nil
				break
			}
		}
		if u != uuid.Nil {
			out = append(out, u)
		}
	}
	return out
}

// A field that is trusted from the start is converted whole, also if most of its values show the order.
func TestTrustFirst(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 200, uuidrep.JavaLegacy, v4)
	few := odd(3)
	fill(t, coll, 200, 3, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
	before := all(t, coll)
	file := planned(t, s)
	dir := filepath.Dir(file)
	setDecision(t, file, "a", "convert from javaLegacy", "trust: true")
	command(t, s, "apply", dir, "--write").want(t, failure.ExitOK)
	if converted, _ := held(t, coll, few, 200, uuidrep.JavaLegacy); converted != 3 {
		t.Errorf("%d of 3 values are converted", converted)
	}
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	command(t, s, "undo", dir, "--write").want(t, failure.ExitOK)
	equal(t, all(t, coll), before)
}

// With trust added, values that were listed are converted, each if it is as it was listed. Another value
// that a service has written is left.
func TestTrustLater(t *testing.T) {
	for _, to := range []uuidrep.Representation{uuidrep.Standard, uuidrep.CSharpLegacy} {
		for _, copied := range []bool{false, true} {
			t.Run(to.String(), func(t *testing.T) {
				s, db := started(t)
				coll := db.Collection("c")
				fill(t, coll, 0, 200, uuidrep.JavaLegacy, v4)
				few := odd(4)
				fill(t, coll, 200, 3, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
				before := all(t, coll)
				file := planned(t, s, "--to", to.String())
				dir := filepath.Dir(file)
				result := coll
				if copied {
					copyAlso(t, file, "c")
					result = db.Collection("c_standard")
				}
				setDecision(t, file, "a", "convert from javaLegacy")
				args := []string{"apply", dir, "--batch", "10", "--write"}
				command(t, s, args...).want(t, failure.ExitIncomplete)
				if _, left := held(t, result, few[:3], 200, uuidrep.JavaLegacy); left != 3 {
					t.Fatalf("%d of 3 values are as they were", left)
				}
				// A service changes one of them, and writes another one.
				changed := few[3]
				set(t, coll, 201, "a", in(changed, uuidrep.JavaLegacy))
				setDecision(t, file, "a", "convert from javaLegacy", "trust: true")
				command(t, s, "apply", dir).want(t, failure.ExitOK).says(t, `the field "a" (subtype 3): trust was none and is true`)
				command(t, s, args...).want(t, failure.ExitIncomplete)
				now := all(t, result)
				for i, want := range map[int32]bson.Binary{200: in(few[0], to), 201: in(changed, uuidrep.JavaLegacy), 202: in(few[2], to)} {
					if got := now[marshalled(t, i).String()].Lookup("a"); !got.Equal(marshalled(t, want)) {
						t.Errorf("%d: got %v, want %v", i, got, want)
					}
				}
				command(t, s, args...).want(t, failure.ExitIncomplete)
				if again := all(t, result); !same(now, again) {
					t.Error("the same command converted again")
				}
				dir, file = moved(t, dir)
				args[1] = dir
				if !copied {
					command(t, s, "verify", dir, "--allow-changed").want(t, failure.ExitOK)
				} else {
					command(t, s, "verify", dir).want(t, failure.ExitOK)
				}
				command(t, s, "status", dir).want(t, failure.ExitOK)
				setDecision(t, file, "a", "convert from javaLegacy")
				command(t, s, args...).want(t, failure.ExitUsage)
				command(t, s, "undo", dir, "--batch", "10", "--write").want(t, failure.ExitOK)
				delete(before, marshalled(t, int32(201)).String())
				now = all(t, coll)
				delete(now, marshalled(t, int32(201)).String())
				equal(t, now, before)
			})
		}
	}
}

// When every listed value was converted because a person vouched for it, nothing surprising is left, and each later
// apply ends with exit code 0. A value of a field that nobody vouched for still counts.
func TestTrustedNothingLeft(t *testing.T) {
	for _, copied := range []bool{false, true} {
		s, db := started(t)
		few := odd(6)
		var docs []any
		for i := range 120 {
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "a", Value: in(v4(i), uuidrep.JavaLegacy)}, {Key: "b", Value: in(v4(i), uuidrep.JavaLegacy)}})
		}
		for i := range 3 { // one of them has odd values in both fields
			doc := bson.D{{Key: "_id", Value: int32(200 + i)}, {Key: "a", Value: in(few[i], uuidrep.JavaLegacy)}}
			if i == 0 {
				doc = append(doc, bson.E{Key: "b", Value: in(few[3], uuidrep.JavaLegacy)})
			}
			docs = append(docs, doc)
		}
		insert(t, db.Collection("c"), docs)
		changes := []func(*plan.Plan){convertFields("javaLegacy", "", "a", "b")}
		if copied {
			changes = append(changes, intoNew("c"))
		}
		dir := prepared(t, s, "standard", changes...)
		skipped := func(args []string, code int, want int64) {
			t.Helper()
			var got struct {
				Steps []struct{ DocumentsSkipped int64 }
			}
			r := command(t, s, append(args, "--output", "json")...).want(t, code)
			decode(t, r.stdout, &got)
			n := int64(0)
			for _, st := range got.Steps {
				n += st.DocumentsSkipped
			}
			if n != want && (!copied || (n == 0) != (want == 0)) { // a copy that is compared again may count one twice
				t.Errorf("copied %v: %v: %d documents skipped, want %d", copied, args, n, want)
			}
		}
		skipped(applying(dir), failure.ExitIncomplete, 3)
		changePlan(t, dir, trusted("a"))
		for range 2 {
			skipped(applying(dir), failure.ExitIncomplete, 1)
		}
		changePlan(t, dir, trusted("b"))
		for range 2 {
			skipped(applying(dir), failure.ExitOK, 0)
		}
		skipped([]string{"apply", dir}, failure.ExitOK, 0)
		for _, c := range statusOf(t, s, dir).Conversions {
			if c.DocumentsSkipped != 0 {
				t.Errorf("copied %v: status says that %d documents are skipped", copied, c.DocumentsSkipped)
			}
		}
		command(t, s, "verify", dir).want(t, failure.ExitOK)
	}
}

// The skip list is read where it is, also after the directory was moved: a value that was left and looks
// converted is not a difference.
func TestProofOfMovedDirectory(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	fill(t, coll, 0, 200, uuidrep.JavaLegacy, v4)
	fill(t, coll, 200, 3, uuidrep.CSharpLegacy, v4) // of another service, in the new order
	file := planned(t, s, "--to", "csharpLegacy")
	dir := filepath.Dir(file)
	setDecision(t, file, "a", "convert from javaLegacy")
	command(t, s, "apply", dir, "--batch", "10", "--write").want(t, failure.ExitIncomplete)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	dir, _ = moved(t, dir)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
}
