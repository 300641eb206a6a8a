package servertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

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
// tests use it, with a key that it does not list.
func TestSchemasRefuse(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(schemas, "*.schema.json"))
	if err != nil || len(files) < 7 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		compileSchema(t, strings.TrimSuffix(filepath.Base(file), ".schema.json"))
	}
	r := command(t, nil, "show", "00112233-4455-6677-8899-aabbccddeeff", "-o", "json").want(t, failure.ExitOK)
	for what, change := range map[string]func(map[string]any){
		"no version":      func(m map[string]any) { delete(m, "schemaVersion") },
		"another version": func(m map[string]any) { m["schemaVersion"] = 2 },
		"a wrong type":    func(m map[string]any) { m["form"] = 1 },
		"another key":     func(m map[string]any) { m["other"] = 1 },
	} {
		var m map[string]any
		if err := json.Unmarshal([]byte(r.stdout), &m); err != nil {
			t.Fatal(err)
		}
		change(m)
		if compileSchema(t, "show").Validate(m) == nil {
			t.Errorf("%s is valid", what)
		}
	}
}

// Every command with --output json writes a document of its schema, whatever the outcome. The
// function command checks that, also in all other tests.
func TestSchemas(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var documents int
	run := func(code int, args ...string) {
		t.Helper()
		r := command(t, s, append(args, "--output", "json")...).want(t, code)
		if strings.HasPrefix(r.stdout, "{") {
			documents++
		} else {
			t.Errorf("%q writes no document: %s", args, r.stdout)
		}
	}
	for _, v := range []string{"00112233-4455-6677-8899-aabbccddeeff", `BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")`, `{"$oid": "699dfad90ca573f85c0eec1c"}`, "00000000-0000-0000-0000-000000000000"} {
		command(t, nil, "show", v, "-o", "json").want(t, failure.ExitOK)
	}

	fill(t, db.Collection("old"), 0, 60, uuidrep.JavaLegacy, v4)
	insert(t, db.Collection("odd"), []any{
		bson.D{{Key: "_id", Value: in(v4(1), uuidrep.JavaLegacy)}, {Key: "sum", Value: bson.Binary{Subtype: 3, Data: make([]byte, 5)}}, {Key: "t", Value: v4(2).String()}},
		bson.D{{Key: "_id", Value: "x\u202e"}, {Key: "b", Value: in(v4(3), uuidrep.JavaLegacy)}},
	})
	fill(t, db.Collection("odd"), 0, 60, uuidrep.JavaLegacy, v4)
	few := odd(3)
	fill(t, db.Collection("odd"), 60, 3, uuidrep.JavaLegacy, func(i int) uuid.UUID { return few[i] })
	run(failure.ExitOK, "scan", "--db", s.Database())
	file := planned(t, s, "--collection", "old")
	at := filepath.Dir(file)
	apply := append([]string{"apply", at, "--write"}, gentle...)
	run(failure.ExitOK, "apply", at)
	run(failure.ExitOK, "status", "--db", s.Database())
	run(failure.ExitOK, apply...)
	run(failure.ExitOK, apply...) // finished
	run(failure.ExitOK, "verify", at)
	run(failure.ExitOK, "status", at)
	run(failure.ExitOK, "undo", at)
	if _, err := db.Collection("old").DeleteOne(t.Context(), bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	run(failure.ExitIncomplete, "verify", at)
	run(failure.ExitOK, "undo", at, "--write")
	copyAlso(t, file, "old")
	run(failure.ExitOK, "apply", at)
	run(failure.ExitOK, apply...)
	run(failure.ExitOK, "verify", at)
	at = filepath.Dir(planned(t, s, "--collection", "odd"))
	changePlan(t, at, convertFields("javaLegacy", "", "a", "b"), trusted("b"))
	run(failure.ExitIncomplete, append([]string{"apply", at, "--write"}, gentle...)...)
	t.Logf("%d documents", documents)
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
		if err := json.Unmarshal([]byte(line), &l); err != nil || l.Time.Before(began.Add(-time.Second)) || l.Time.Location() != time.UTC {
			t.Errorf("%v: %s", err, line)
		}
		levels[l.Level]++
	}
	if levels["INFO"] < 2 || levels["ERROR"] < 1 {
		t.Error(r.stderr)
	}
}
