package servertest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

type statusConversion struct {
	Collection, Status, From, By, Reason                                      string
	Documents, DocumentsRead, DocumentsChanged, DocumentsSkipped, SecondsLeft int64
	DocumentsPerSecond                                                        float64
	Verified                                                                  *bool
}

type status struct {
	SchemaVersion int
	Conversions   []statusConversion
	Cutovers      []struct {
		State           string
		WaitsForRelease bool
	}
}

func statusOf(t *testing.T, s target, args ...string) (out status) {
	t.Helper()
	decode(t, command(t, s, append([]string{"status", "--output", "json"}, args...)...).want(t, failure.ExitOK).stdout, &out)
	if out.SchemaVersion != 1 {
		t.Errorf("%+v", out)
	}
	return out
}

// status shows the conversions of a plan that wait, run, were killed, are done and were undone, from
// the record and from the directory.
func TestStatus(t *testing.T) {
	s := mongotest.Start(t)
	m := newMixedShop(t, s, 20)
	inDB := []string{"--db", s.Database()}
	if got := statusOf(t, s, inDB...); len(got.Conversions) != 0 {
		t.Errorf("got %+v", got)
	}
	for _, c := range statusOf(t, s, m.dir).Conversions { // before it is applied
		if c.Status != "not begun" {
			t.Errorf("%+v", c)
		}
	}
	command(t, s, "apply", m.dir, "--write").want(t, failure.ExitOK)
	command(t, s, "verify", m.dir).want(t, failure.ExitOK)
	for _, where := range [][]string{inDB, {m.dir}} {
		var names []string
		for _, c := range statusOf(t, s, where...).Conversions {
			names = append(names, c.Collection)
			if c.Status != "done" || c.Documents != 20 || c.DocumentsRead != 20 || c.DocumentsChanged != 20 || c.Verified == nil || !*c.Verified {
				t.Errorf("%v: got %+v", where, c)
			}
		}
		slices.Sort(names)
		if strings.Join(names, " ") != "customers invoices orders sessions" {
			t.Errorf("%v: got %v", where, names)
		}
	}
	// A run that shows life, and one that does not.
	change := func(collection string, change ...bson.E) {
		t.Helper()
		change = append(change, bson.E{Key: "$unset", Value: bson.D{{Key: "ended", Value: ""}, {Key: "outcome", Value: ""}}})
		if _, err := m.db.Collection(record.Name).UpdateOne(t.Context(), bson.D{{Key: "collection", Value: collection}, {Key: "kind", Value: record.Convert}}, bson.D(change)); err != nil {
			t.Fatal(err)
		}
	}
	change("orders", bson.E{Key: "$set", Value: bson.D{{Key: "progress.read", Value: int64(5)}, {Key: "progress.changed", Value: int64(4)}}},
		bson.E{Key: "$currentDate", Value: bson.D{{Key: "updated", Value: true}}})
	change("invoices", bson.E{Key: "$set", Value: bson.D{{Key: "updated", Value: bson.DateTime(1e12)}}})
	of := make(map[string]statusConversion)
	for _, c := range statusOf(t, s, inDB...).Conversions {
		of[c.Collection] = c
	}
	if c := of["orders"]; c.Status != "running" || c.DocumentsRead != 5 || c.SecondsLeft < 0 || c.DocumentsPerSecond <= 0 {
		t.Errorf("got %+v", c)
	}
	if c := of["invoices"]; c.Status != "stopped" || c.Reason != "the run was killed" {
		t.Errorf("got %+v", c)
	}
	command(t, s, "status", "--db", s.Database()).want(t, failure.ExitOK).prints(t, "2 of 4 conversions done")
}

// statusCutovers returns the state of the only cutover that has not ended, or "".
func statusCutovers(t *testing.T, s target, args ...string) string {
	t.Helper()
	switch cutovers := statusOf(t, s, args...).Cutovers; {
	case len(cutovers) == 0:
		return ""
	case len(cutovers) > 1 || cutovers[0].WaitsForRelease != (cutovers[0].State == "switched"):
		t.Errorf("%+v", cutovers)
		fallthrough
	default:
		return cutovers[0].State
	}
}

// A command that fails says what it changed, and prints the commands to continue and to undo. A
// command that is refused says that it changed nothing.
func TestWayOn(t *testing.T) {
	c := newScene(t, 40, uuidrep.JavaLegacy)
	dir := filepath.Join(t.TempDir(), "it's the plan")
	again(t, c.file(plan.PlanFile), dir)
	c = c.in(dir)
	line := "apply --write --batch 10 --batch-timeout 3s"
	changePlan(t, dir, convertFields("csharpLegacy"))
	c.run(failure.ExitUsage, line).says(t, "the values are not csharpLegacy but javaLegacy", "; this command changed nothing\n")
	changePlan(t, dir, convertFields("javaLegacy"))
	p := lostAfter(t, c.s, 2, writesTo("c"))
	r := c.through(p).run(failure.ExitUnreachable, line)
	quoted := "'" + strings.ReplaceAll(dir, "'", `'\''`) + "'"
	result{stderr: strings.ReplaceAll(r.stderr, "'"+p.URI()+"'", p.URI())}.says(t, "changed: 60 values in 20 documents",
		"to continue: bsonids apply "+quoted+" --write --batch 10", "to undo: bsonids undo "+quoted+" --write --uri "+p.URI()[:10])
	// A run that continues counts what all runs changed.
	c.through(lostAfter(t, c.s, 1, writesTo("c"))).run(failure.ExitUnreachable, line).says(t, "changed: 30 values in 10 documents in this run, at least 30 documents in all runs")
}

// A copy that stops says that its source was not changed, and the same command continues it.
func TestWayOnOfCopy(t *testing.T) {
	c := newScene(t, 20, uuidrep.JavaLegacy, intoNew("c"))
	other := prepared(t, c.s, intoNew("c"))
	line := "apply --write --batch 5 --batch-timeout 1s" // another run waits for the batch without an answer
	c.through(lostAfter(t, c.s, 1, asks("insert", "c_standard"))).run(failure.ExitUnreachable, line).
		says(t, "changed: only the new collections c_standard, and not", "to continue: bsonids apply "+c.dir, "to undo: bsonids undo "+c.dir+" --write")
	// A collection of somebody else is not named.
	c.in(other).run(failure.ExitUsage, "apply --write").says(t, "changed nothing").lacks(t, "to undo")
	c.ok(line)
	c.converted()
}

// A conversion that stopped does not continue without the list that it wrote, in place or as a copy. With
// it, each value is listed once, and the exit code and the count are those of the whole conversion: the documents that the stopped run
// skipped are still skipped.
func TestSkipListContinued(t *testing.T) {
	for _, changes := range ways {
		const n = 40
		var docs []any
		for i := range n {
			// Text fits no order, and is left.
			odd := bson.Binary{Subtype: 3, Data: []byte("0123456789abcde" + string(rune('A'+i)))}
			docs = append(docs, bson.D{{Key: "_id", Value: i}, {Key: "a", Value: bson.A{in(v4(i), uuidrep.JavaLegacy), odd}}})
		}
		c := setting(t, docs, changes...)
		const line = "apply --write --batch 5 --workers 1"
		c.through(lostAfter(t, c.s, 3, writesTo("c", "c_standard"))).run(failure.ExitUnreachable, line)
		list := skipList(t, c.dir)
		is := text(t, list)
		if strings.Count(is, "\n") < 15 {
			t.Fatal(is)
		}
		for range 3 {
			c.run(failure.ExitIncomplete, line+" --output json").prints(t, `"documentsSkipped": 40`)
		}
		if is := lines(t, list); len(is) != n || len(slices.Compact(is)) != n {
			t.Errorf("%d lines of %d values", len(is), n)
		}
	}
}

const schemas = "../../../docs/schemas"

var compiled sync.Map // name of a schema to what compileSchema returns

// compileSchema compiles docs/schemas/NAME.schema.json. In the compiled schema, an object has only
// the keys that the schema lists: a document with any other key is valid, but not documented.
func compileSchema(t testing.TB, name string) *jsonschema.Schema {
	t.Helper()
	if s, ok := compiled.Load(name); ok {
		return s.(*jsonschema.Schema)
	}
	f, err := os.Open(filepath.Join(schemas, name+".schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	c.AssertContent()
	if err := c.AddResource(name, closed(doc)); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(name)
	if err != nil {
		t.Fatal(err)
	}
	compiled.Store(name, s)
	return s
}

// closed adds "additionalProperties": false to every schema of an object with listed properties.
func closed(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = closed(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = closed(v[k])
		}
		if _, ok := v["properties"].(map[string]any); ok && v["type"] == "object" && v["additionalProperties"] == nil {
			v["additionalProperties"] = false
		}
	}
	return v
}

// checkSchema fails the test unless the text is one JSON document of the schema.
func checkSchema(t testing.TB, name, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err == nil {
		err = compileSchema(t, name).Validate(doc)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", name, err, text)
	}
}

// A schema refuses a document without a version, of another version, with a wrong type, and, as the
// tests use it, with a key that it does not list. What a command writes with --output json is a document of its schema, whatever the
// outcome: the function command checks that in all tests.
func TestSchemasRefuse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schemas, "*.schema.json"))
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		compileSchema(t, strings.TrimSuffix(filepath.Base(file), ".schema.json"))
	}
	var r result
	for _, v := range []string{`BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")`, `{"$oid": "699dfad90ca573f85c0eec1c"}`, "00000000-0000-0000-0000-000000000000", "00112233-4455-6677-8899-aabbccddeeff",
		"Binary(b'00112233-4455-6677-8899-aabbccddeeff', 3)"} {
		r = command(t, nil, "show", v, "-o", "json").want(t, failure.ExitOK)
	}
	for what, change := range map[string]func(map[string]any){
		"no version":      func(m map[string]any) { delete(m, "schemaVersion") },
		"another version": func(m map[string]any) { m["schemaVersion"] = 2 },
		"a wrong type":    func(m map[string]any) { m["form"] = 1 },
		"another key":     func(m map[string]any) { m["other"] = 1 },
	} {
		var m map[string]any
		decode(t, r.stdout, &m)
		change(m)
		if compileSchema(t, "show").Validate(m) == nil {
			t.Errorf("%s is valid", what)
		}
	}
}

// Log lines have a schema, too.
func TestLogSchema(t *testing.T) {
	s := mongotest.Start(t)
	fill(t, connect(t, s).Collection("c"), 0, 30, uuidrep.JavaLegacy, v4)
	began := time.Now()
	r := command(t, s, "scan", "--db", s.Database(), "--fail-on", "legacy", "--log-format", "json").want(t, failure.ExitIncomplete)
	levels := make(map[string]int)
	for line := range strings.Lines(r.stderr) {
		checkSchema(t, "log", line)
		var l struct {
			Time  time.Time
			Level string
		}
		if decode(t, line, &l); l.Time.Before(began.Add(-time.Second)) || l.Time.Location() != time.UTC {
			t.Error(line)
		}
		levels[l.Level]++
	}
	if levels["INFO"] < 2 || levels["ERROR"] < 1 {
		t.Error(r.stderr)
	}
}
