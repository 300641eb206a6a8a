package analysis_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/bsonids/bsonids/analysis"
)

// The test data is a module of its own, with the driver itself. Its modules are downloaded here:
// package analysistest does not.
func TestMain(m *testing.M) {
	download := exec.Command("go", "mod", "download")
	download.Dir = "testdata"
	download.Env = append(os.Environ(), "GOWORK=off")
	if out, err := download.CombinedOutput(); err != nil {
		os.Stderr.Write(out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A code base with ten mistakes gets ten findings.
func TestPlanted(t *testing.T) {
	results := analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analysis.Analyzer, "./planted")
	categories := map[string]int{}
	for _, r := range results {
		for _, d := range r.Diagnostics {
			categories[d.Category]++
		}
	}
	for category, want := range map[string]int{"octets": 4, "registry": 3, "unregistered": 1, "v1": 2} {
		if categories[category] != want {
			t.Errorf("%d findings of the category %s, want %d", categories[category], category, want)
		}
	}
}

func TestVersion1(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analysis.Analyzer, "./version1")
}

// What compiles, returns no error, and does not do what it says.
func TestMistakes(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), analysis.Analyzer, "./mistakes")
}

// The packages are loaded together, which takes most of the time.
func TestFindings(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analysis.Analyzer,
		// Nothing is found.
		"./clean", "./model",
		// Types that contain themselves, dot imports, aliases, type parameters, embedded structs.
		"./forms", "./forms2",
		// Documents in packages that import no driver; version 1 of the driver without version 2.
		"./models", "./nodriver", "./onlyv1",
		// Types are followed into what stores them: functions that take any, and generic functions and
		// types, of other packages too.
		"./repo", "./generic", "./untagged",
		// A client without a registry, and documents with UUIDs: in one package, or in those of a program.
		"./client", "./given", "./tagged", "./program/...",
		// What a hand-written codec writes, and what it does not check.
		"./codecs",
		// A source of autoid does not fit the _id of what is inserted.
		"./sources", "./ids",
	)
}

// A new user makes mistakes of these kinds. Each package of testdata/_modules/kinds has one of them in several forms, and
// beside it code that looks like it and is right.
var kinds = []struct{ name, category, mistake string }{
	{"connect", "client", "mongo.Connect in place of clientopt.Connect, and documents with UUIDs"},
	{"uri", "client", "uuidRepresentation in a connection string that is given to the driver"},
	{"setregistry", "client", "SetRegistry on the options that clientopt.ApplyURI made"},
	{"bytes", "octets", "u[:] as a value, also of a registered type of one's own"},
	{"filtertext", "octets", "the text of a UUID, or a parameter of a request, in a filter"},
	{"updatetext", "octets", "the text of a UUID in $in or in an update"},
	{"marshal", "registry", "bson.Marshal and its kin, also behind a function of one's own"},
	{"gridfs", "registry", "a UUID in the metadata of a file"},
	{"pipeline", "octets", "a function for stages of pipelines with a parameter of type any"},
	{"unregistered", "unregistered", "a UUID type of one's own, or of another library, that is not registered"},
	{"embedded", "unregistered", "a struct that embeds a UUID"},
	{"private", "unregistered", "a struct around a UUID that is not exported"},
	{"optional", "unregistered", "a UUID and a bool, and sql.Null"},
	{"pointer", "unregistered", "methods for BSON on the pointer of a type that is stored as a value"},
	{"promoted", "unregistered", "a UUID type that is embedded beside other fields"},
	{"subtype0", "registry", "a method MarshalBSONValue that calls bson.MarshalValue"},
	{"upserted", "assertion", "UpsertedID.(uuid.UUID)"},
	{"past", "id", "an insert into the collection that an autoid.Collection embeds"},
	{"representation", "representation", "a uuid.UUID in a filter for a field of another representation"},
	{"ranges", "representation", "a range of version 7 in a client that is javaLegacy"},
}

func TestKinds(t *testing.T) {
	categories := map[string]map[string]int{}
	for _, name := range []string{"kinds", "java"} {
		for _, r := range analysistest.Run(t, copied(t, name), analysis.Analyzer, "./...") {
			found := map[string]int{}
			for _, d := range r.Diagnostics {
				found[d.Category]++
			}
			categories[r.Pass.Pkg.Name()] = found
		}
	}
	for _, kind := range kinds {
		if categories[kind.name][kind.category] == 0 {
			t.Errorf("%s is not found: %s", kind.name, kind.mistake)
		}
	}
}

// What a package registers is registered for the packages that it does not import, too.
func TestRegisteredElsewhere(t *testing.T) {
	for _, name := range []string{"all", "registered", "unclear"} {
		analysistest.Run(t, copied(t, name), analysis.Analyzer, "./...")
	}
}

func TestRegisteredFlag(t *testing.T) {
	if err := analysis.Analyzer.Flags.Set("registered", "example.com/shop/flagged.Known, example.com/other.T"); err != nil {
		t.Fatal(err)
	}
	defer analysis.Analyzer.Flags.Set("registered", "")
	analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./flagged")
}

// go vet runs the command, which reports what the analyzer does, and fails.
func TestVetTool(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	tool := filepath.Join(t.TempDir(), "bsonidsvet")
	if out, err := exec.Command("go", "build", "-o", tool, "./cmd/bsonidsvet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.Command(name, args...)
		cmd.Dir = "testdata"
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	vet := func(args ...string) (string, error) {
		return run("go", append([]string{"vet", "-vettool=" + tool}, args...)...)
	}
	out, err := vet("./planted")
	if n := strings.Count(out, "planted.go:"); err == nil || n != 10 {
		t.Errorf("go vet of the planted mistakes: %v, %d findings, want an error and 10\n%s", err, n, out)
	}
	if out, err := vet("./clean"); err != nil {
		t.Errorf("go vet of clean code: %v\n%s", err, out)
	}
	// The flag has the name that the messages have.
	known := "-registered=example.com/shop/flagged.Known"
	for _, out := range []string{first(vet("./flagged")), first(run(tool, "./flagged"))} {
		if strings.Count(out, "refuses Known") == 0 || !strings.Contains(out, "the flag -registered") {
			t.Errorf("without %s:\n%s", known, out)
		}
	}
	for _, out := range []string{first(vet(known, "./flagged")), first(run(tool, known, "./flagged"))} {
		if strings.Contains(out, "refuses Known") || strings.Count(out, "refuses Unknown") == 0 {
			t.Errorf("with %s:\n%s", known, out)
		}
	}
}

func first(out string, _ error) string { return out }

// No fix is suggested that would not compile or that a registry would refuse.
func TestUnfixed(t *testing.T) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./unfixed", "./generated", "./elsewhere") {
		for _, d := range result.Diagnostics {
			if len(d.SuggestedFixes) > 0 {
				t.Errorf("%s: a fix is suggested", d.Message)
			}
		}
	}
}

// A module that requires version 2 of the driver only for what it imports uses version 1.
func TestIndirectRequirement(t *testing.T) {
	dir := module(t, " // indirect", map[string]string{
		"shop.go": "package shop\n\nimport _ \"go.mongodb.org/mongo-driver/bson/bsontype\"\n",
	})
	analysistest.Run(t, dir, analysis.Analyzer, ".")
}

// An option of the client that another package of the module sets is obeyed.
func TestOptionElsewhere(t *testing.T) {
	files := map[string]string{"repo/repo.go": `package repo // want package:"driver: "

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

type Text struct {
	ID string ` + "`bson:\"_id\"`" + `
}

func find(ctx context.Context, coll *mongo.Collection, t Text) any {
	var m bson.M
	_ = coll.FindOne(ctx, bson.M{}).Decode(&m)
	_, _ = bson.ObjectIDFromHex(t.ID)
	return m["address"].(bson.M)
}
`}
	results := analysistest.Run(failures{}, module(t, "", files), analysis.Analyzer, "./repo")
	if n := len(results[0].Diagnostics); n != 2 {
		t.Errorf("%d findings without the options, want 2", n)
	}
	files["db/db.go"] = `package db

import "go.mongodb.org/mongo-driver/v2/mongo/options"

var Options = options.BSONOptions{ObjectIDAsHexString: true, DefaultDocumentM: true}
`
	analysistest.Run(t, module(t, "", files), analysis.Analyzer, "./repo")
}

// failures takes the errors of a run whose findings are counted.
type failures struct{}

func (failures) Errorf(string, ...any) {}

// copied returns a module with the packages in testdata/_modules/name. They are in a module of their own, because what
// one of them says holds for its module: which types are registered, and the representation of clients.
func copied(t *testing.T, name string) string {
	t.Helper()
	files := map[string]string{}
	dir := os.DirFS(filepath.Join("testdata", "_modules", name))
	err := fs.WalkDir(dir, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(dir, path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return module(t, "", files)
}

// module returns the folder of a module with files, this library and the driver's two versions. The line that requires
// version 2 of the driver ends with comment.
func module(t *testing.T, comment string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.ReplaceAll(b, []byte("=> ../.."), []byte("=> "+root))
		b = regexp.MustCompile(`(?m)^(\s+go.mongodb.org/mongo-driver/v2 v.*)$`).ReplaceAll(b, []byte("${1}"+comment))
		files[name] = string(b)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
