package analysis_test

import (
	"os"
	"os/exec"
	"path/filepath"
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

// Documents are looked at in packages that import no driver, and version 1 of the driver in packages
// that do not import version 2.
func TestOtherPackages(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./models", "./onlyv1")
}

// Nothing else is found.
func TestClean(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./clean", "./model", "./nodriver", "./allregistered")
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

// Types that contain themselves, dot imports, aliases of imports, type parameters, embedded structs.
func TestForms(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./forms")
}

// No fix is suggested that would not compile or that a registry would refuse.
func TestUnfixed(t *testing.T) {
	for _, result := range analysistest.Run(t, analysistest.TestData(), analysis.Analyzer, "./unfixed") {
		for _, d := range result.Diagnostics {
			if len(d.SuggestedFixes) > 0 {
				t.Errorf("%s: a fix is suggested", d.Message)
			}
		}
	}
}
