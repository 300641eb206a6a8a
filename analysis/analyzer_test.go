package analysis_test

import (
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
		"./clean", "./model", "./allregistered",
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
	vet := func(pkg string) (string, error) {
		cmd := exec.Command("go", "vet", "-vettool="+tool, pkg)
		cmd.Dir = "testdata"
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := vet("./planted")
	if n := strings.Count(out, "planted.go:"); err == nil || n != 10 {
		t.Errorf("go vet of the planted mistakes: %v, %d findings, want an error and 10\n%s", err, n, out)
	}
	if out, err := vet("./clean"); err != nil {
		t.Errorf("go vet of clean code: %v\n%s", err, out)
	}
}

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

// module returns the folder of a module with files, and the driver's two versions. The line that requires
// version 2 ends with comment.
func module(t *testing.T, comment string, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		b = regexp.MustCompile(`(?m)^.*bsonids/bsonids.*$`).ReplaceAll(b, nil)
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
