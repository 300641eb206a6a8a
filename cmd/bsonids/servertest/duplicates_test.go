package servertest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// switched fills a collection as a service leaves it that was switched to standard without a conversion: a third of n
// documents are of the old order, a third are written for the same entities after the switch, and a third were left alone. field has
// their UUIDs. It returns the pairs of the _ids, as the file has them.
func switched(t testing.TB, coll *mongo.Collection, field string, n int) (pairs []string) {
	t.Helper()
	var docs []any
	for i := range n / 3 {
		twice, once := v4(i), v4(i+n)
		for j, v := range []bson.Binary{in(twice, uuidrep.JavaLegacy), in(twice, uuidrep.Standard), in(once, uuidrep.JavaLegacy)} {
			doc := bson.D{{Key: "_id", Value: int32(3*i + j)}, {Key: "n", Value: int32(j)}}
			if field == "_id" {
				doc = bson.D{{Key: "_id", Value: v}, {Key: "n", Value: int32(j)}}
			} else {
				doc = append(doc, bson.E{Key: field, Value: v})
			}
			docs = append(docs, doc)
		}
		id := func(j int) string {
			b, err := bson.MarshalExtJSON(docs[3*i+j].(bson.D)[:1], true, false)
			check(t, err)
			return strings.TrimSuffix(strings.TrimPrefix(string(b), `{"_id":`), "}")
		}
		pairs = append(pairs, fmt.Sprintf(`{"collection":%q,"field":%q,"_id":%s,"other":%s}`, coll.Database().Name()+"."+coll.Name(), field, id(0), id(1)))
	}
	insert(t, coll, docs)
	slices.Sort(pairs)
	return pairs
}

// unique makes unique indexes of a collection, each with the options.
func unique(t testing.TB, coll *mongo.Collection, keys bson.D, opts *options.IndexOptionsBuilder) {
	t.Helper()
	did(t)(coll.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: keys, Options: opts.SetUnique(true)}))
}

// sortedLines returns the lines of a file, sorted.
func sortedLines(t testing.TB, file string) []string {
	t.Helper()
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(text(t, file)), "\n"))
}

// A service was switched to standard without a conversion, and wrote new documents for old entities. plan and a dry run say how
// many documents would get the value of another one, as many as apply then leaves, and name their pairs. When the pairs are
// merged, nothing is left.
func TestAlreadySwitched(t *testing.T) {
	s, db := started(t)
	for field, n := range map[string]int{"user": 40, "_id": 300} {
		t.Run(field, func(t *testing.T) {
			name := "c" + strings.Trim(field, "_")
			coll := db.Collection(name)
			if field != "_id" {
				unique(t, coll, bson.D{{Key: field, Value: 1}}, options.Index())
			}
			pairs := switched(t, coll, field, 3*n)
			dir := filepath.Join(t.TempDir(), "d")
			file := filepath.Join(dir, plan.DuplicatesFile)
			says := fmt.Sprintf("%s, %s: %d documents would get the value of another one", name, field, n)
			found := func() {
				t.Helper()
				if got := sortedLines(t, file); !slices.Equal(got, pairs) {
					t.Errorf("%d pairs, want %d: %.300s", len(got), len(pairs), got)
				}
			}
			command(t, s, "plan", dir, "--db", s.Database(), "--collection", name).want(t, failure.ExitOK).says(t, says, plan.DuplicatesFile)
			found()
			head := "#   " + says + "; the pairs are in " + plan.DuplicatesFile
			if made := text(t, filepath.Join(dir, plan.PlanFile)); !strings.Contains(made, head) {
				t.Error(made)
			}
			removed(t, file)
			command(t, s, "apply", dir).want(t, failure.ExitIncomplete).prints(t, name, "would get the value of another", file)
			found()
			var report struct {
				Duplicates struct {
					Counted []struct {
						Collection, Field string
						Documents         int
					}
					File string
				}
			}
			decode(t, command(t, s, "apply", dir, "--output", "json").want(t, failure.ExitIncomplete).stdout, &report)
			if d := report.Duplicates; len(d.Counted) != 1 || d.Counted[0].Collection != name || d.Counted[0].Field != field || d.Counted[0].Documents != n || d.File != file {
				t.Errorf("%+v", d)
			}

			merged(t, coll, pairs)
			command(t, s, "plan", dir).want(t, failure.ExitOK).lacks(t, "would get the value")
			if made := text(t, filepath.Join(dir, plan.PlanFile)); strings.Contains(made, "would get the value") {
				t.Error(made)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			command(t, s, "apply", dir).want(t, failure.ExitOK)
			command(t, s, applying(dir)...).want(t, failure.ExitOK)
			command(t, s, "verify", dir).want(t, failure.ExitOK)
		})
	}
}

// merged deletes one document of each pair: the old one or the new one by turns.
func merged(t testing.TB, coll *mongo.Collection, pairs []string) {
	t.Helper()
	for i, line := range pairs {
		p := pairOf(t, line)
		did(t)(coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: []bson.RawValue{p.ID, p.Other}[i%2]}}))
	}
}

// pair is a line of the file with the pairs.
type pair struct {
	ID    bson.RawValue `bson:"_id"`
	Other bson.RawValue
}

func pairOf(t testing.TB, line string) (p pair) {
	t.Helper()
	check(t, bson.UnmarshalExtJSON([]byte(line), true, &p))
	return p
}

// What apply leaves is what the dry run has counted, also if a filter selects some of the documents: others have the values. When
// the pairs are merged later, a plan in a new directory converts what is left.
func TestDuplicatesLeft(t *testing.T) {
	s, db := started(t, mongotest.UniqueUpdates)
	n := some(t, s, 60)
	coll := db.Collection("c")
	unique(t, coll, bson.D{{Key: "user", Value: 1}}, options.Index())
	pairs := switched(t, coll, "user", 3*n)
	for _, filter := range []string{"", `{"n":{"$lt":1}}`} { // n of the old documents of pairs is 0
		file := planned(t, s)
		dir := filepath.Dir(file)
		if filter != "" {
			filtered(t, s, file, []string{filter}, []string{"", ""})
		}
		command(t, s, "apply", dir).want(t, failure.ExitIncomplete)
		if got := sortedLines(t, filepath.Join(dir, plan.DuplicatesFile)); !slices.Equal(got, pairs) {
			t.Errorf("%q: %d pairs, want %d", filter, len(got), len(pairs))
		}
		var report struct {
			Steps []struct{ DocumentsSkipped int }
		}
		decode(t, command(t, s, applying(dir, "--output", "json")...).want(t, failure.ExitIncomplete).stdout, &report)
		if len(report.Steps) != 1 || report.Steps[0].DocumentsSkipped != n {
			t.Errorf("%q: %+v, want %d documents", filter, report, n)
		}
	}
	merged(t, coll, pairs)
	dir := filepath.Dir(planned(t, s))
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	wantNew(t, coll, "user")
}

// A copy that lacks the documents of pairs is completed by the next apply when the pairs are merged.
func TestDuplicatesOfCopyMergedLater(t *testing.T) {
	s, db := started(t)
	coll := db.Collection("c")
	pairs := switched(t, coll, "_id", 60)
	dir := filepath.Dir(planned(t, s))
	var report struct {
		Steps []struct{ Findings []struct{ Reason string } }
	}
	decode(t, command(t, s, applying(dir, "--output", "json")...).want(t, failure.ExitIncomplete).stdout, &report)
	if len(report.Steps) != 1 || len(report.Steps[0].Findings) != len(pairs) {
		t.Errorf("%+v, want %d", report, len(pairs))
	}
	command(t, s, "apply", dir).want(t, failure.ExitIncomplete)
	merged(t, coll, pairs)
	command(t, s, "apply", dir).want(t, failure.ExitOK)
	command(t, s, applying(dir)...).want(t, failure.ExitOK)
	command(t, s, "verify", dir).want(t, failure.ExitOK)
	wantNew(t, db.Collection("c_standard"), "_id")
}

// pipelines returns the aggregations of docs/already-switched.md: the one that shows pairs, and the one that merges them.
func pipelines(t *testing.T) (all []bson.A) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/already-switched.md")
	check(t, err)
	for _, m := range regexp.MustCompile(`(?s)db\.pairs\.aggregate\(EJSON\.deserialize\((.*?)\)\)\n`).FindAllSubmatch(page, -1) {
		var p struct{ P bson.A }
		check(t, bson.UnmarshalExtJSON(fmt.Appendf(nil, `{"p":%s}`, m[1]), false, &p))
		all = append(all, p.P)
	}
	if len(all) != 2 {
		t.Fatalf("%d aggregations", len(all))
	}
	return all
}

// The aggregations of the page show both documents of each pair, and merge the old one into the new one: what only the old one
// has is added, and what the new one has stays. Nothing is counted when the old ones are deleted.
func TestMergedByHand(t *testing.T) {
	s, db := started(t, mongotest.Merge)
	named := s.Database()
	ofPage := pipelines(t)
	for _, field := range []string{"_id", "user"} {
		t.Run(field, func(t *testing.T) {
			coll, pairs := db.Collection("users"), db.Collection("pairs")
			drop(t, coll)
			drop(t, pairs)
			if field != "_id" {
				unique(t, coll, bson.D{{Key: field, Value: 1}}, options.Index())
			}
			lines := switched(t, coll, field, 90)
			did(t)(coll.UpdateMany(t.Context(), bson.D{{Key: "n", Value: 0}}, bson.D{{Key: "$set", Value: bson.D{{Key: "old", Value: "o"}, {Key: "both", Value: "o"}}}}))
			did(t)(coll.UpdateMany(t.Context(), bson.D{{Key: "n", Value: 1}}, bson.D{{Key: "$set", Value: bson.D{{Key: "new", Value: "n"}, {Key: "both", Value: "n"}}}}))
			dir := filepath.Join(t.TempDir(), "d")
			planned := []string{"plan", dir, "--db", s.Database(), "--collection", "users"}
			command(t, s, planned...).want(t, failure.ExitOK)
			for line := range strings.Lines(text(t, filepath.Join(dir, plan.DuplicatesFile))) { // as mongoimport does
				var doc bson.D
				check(t, bson.UnmarshalExtJSON([]byte(strings.Replace(line, named+".", "shop.", 1)), true, &doc))
				did(t)(pairs.InsertOne(t.Context(), doc))
			}

			cur, err := pairs.Aggregate(t.Context(), ofPage[0])
			check(t, err)
			var shown []struct{ Old, New []struct{ Both string } }
			check(t, cur.All(t.Context(), &shown))
			if len(shown) != 20 {
				t.Errorf("%d pairs are shown", len(shown))
			}
			for _, p := range shown {
				if len(p.Old) != 1 || len(p.New) != 1 || p.Old[0].Both != "o" || p.New[0].Both != "n" {
					t.Errorf("%+v", p)
				}
			}

			cur, err = pairs.Aggregate(t.Context(), ofPage[1])
			check(t, err)
			check(t, cur.Close(t.Context()))
			for _, line := range lines {
				p := pairOf(t, line)
				did(t)(coll.DeleteOne(t.Context(), bson.D{{Key: "_id", Value: p.ID}}))
				var got struct{ Old, New, Both string }
				check(t, coll.FindOne(t.Context(), bson.D{{Key: "_id", Value: p.Other}}).Decode(&got))
				if got.Old != "o" || got.New != "n" || got.Both != "n" {
					t.Errorf("%+v", got)
				}
			}
			drop(t, pairs)
			command(t, s, "plan", dir).want(t, failure.ExitOK)
			command(t, s, applying(dir)...).want(t, failure.ExitOK)
			command(t, s, "verify", dir).want(t, failure.ExitOK)
		})
	}
}
