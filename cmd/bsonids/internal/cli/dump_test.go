package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// asCommand is the environment variable that makes the test binary run as the command, so that a
// test can kill it.
const asCommand = "BSONIDS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// process returns the command in its own process.
func process(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	return cmd
}

// shop returns a collection with n documents of javaLegacy UUIDs of version 4.
func shop(n int) dumptest.Collection {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	c := dumptest.Collection{Database: "shop", Name: "orders", Metadata: `{"options":{},"indexes":[],"collectionName":"orders","type":"collection"}`}
	for i := range n {
		b := make([]byte, 16)
		for j := range b {
			b[j] = byte(r.UintN(256))
		}
		b[1], b[15] = 0x40|byte(i>>6)&0x0f, 0x80|byte(i)&0x3f // where javaLegacy has the version and the variant
		c.Documents = append(c.Documents, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: bson.Binary{Subtype: 3, Data: b}}, {Key: "s", Value: strings.Repeat("s", 200)}})
	}
	return c
}

// written writes a dump of n documents in each form.
func written(t *testing.T, n int) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"dir": filepath.Join(dir, "dump"), "dir.gz": filepath.Join(dir, "dumpz"), "a": filepath.Join(dir, "a"), "a.gz": filepath.Join(dir, "a.gz"),
		"c.bson": filepath.Join(dir, "shop", "orders.bson")}
	c := shop(n)
	dumptest.Directory(t, paths["dir"], false, c)
	dumptest.Directory(t, paths["dir.gz"], true, c)
	dumptest.Write(t, paths["a"], dumptest.Archive(t, 100, c))
	dumptest.Write(t, paths["a.gz"], dumptest.Gzip(t, dumptest.Archive(t, 100, c)))
	dumptest.Write(t, paths["c.bson"], dumptest.BSON(t, c.Documents...))
	return paths
}

// left returns what is in a directory.
func left(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// planDump makes the plan of a dump and returns its directory.
func planDump(t *testing.T, path string, args ...string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "m.d")
	command(t, append([]string{"plan", dir, "--dump", path}, args...)...).want(t, failure.ExitOK)
	return dir
}

// edit replaces text in the plan of a directory.
func edit(t *testing.T, dir, old, by string) {
	t.Helper()
	path := filepath.Join(dir, "plan.yaml")
	b, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(b), old) {
		t.Fatalf("%q is not in the plan: %v\n%s", old, err, b)
	}
	dumptest.Write(t, path, []byte(strings.ReplaceAll(string(b), old, by)))
}

// A dump in any form is planned, converted and proven. A dry run writes nothing.
func TestDump(t *testing.T) {
	for form, path := range written(t, 60) {
		if r := command(t, "scan", "--dump", path).want(t, failure.ExitOK); !strings.Contains(r.stdout, "shop.orders: all 60 documents") || !strings.Contains(r.stdout, "javaLegacy") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		m, dir := planDump(t, path), t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(path))
		before := left(t, m)
		if r := command(t, "apply", m).want(t, failure.ExitOK); !strings.Contains(r.stdout, "1      60") || fmt.Sprint(left(t, m)) != fmt.Sprint(before) {
			t.Errorf("%s: %s, %q", form, r.stdout, left(t, m))
		}
		command(t, "verify", m).want(t, failure.ExitUsage)
		if r := command(t, "apply", m, "--out", out).want(t, failure.ExitOK); !strings.Contains(r.stdout, "60         60        0  done") || len(left(t, dir)) != 1 {
			t.Errorf("%s: %s, %q", form, r.stdout, left(t, dir))
		}
		if r := command(t, "verify", m).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the dump, and the evidence of its plan") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		if r := command(t, "status", m).want(t, failure.ExitOK); !strings.Contains(r.stdout, "1 of 1 conversions done") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		if r := command(t, "apply", m, "--out", out).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "exists") {
			t.Errorf("%s: %s", form, r.stderr)
		}
		// The dump itself is not its conversion, and the conversion is not the dump.
		if r := command(t, "verify", m, path, path).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "Not proven.") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		if r := command(t, "verify", m, out, path).want(t, failure.ExitFailed); !strings.Contains(r.stderr, "not the dump that the plan was made of") {
			t.Errorf("%s: %s", form, r.stderr)
		}
		for _, verb := range []string{"undo", "cutover", "release"} {
			command(t, verb, m).want(t, failure.ExitUsage)
		}
	}
}

// The plan of a dump has all its databases, and their references. An edit of the plan takes effect, and what it
// leaves is copied.
func TestDumpDatabases(t *testing.T) {
	a, b := shop(60), shop(60)
	b.Database, b.Metadata = "archive", ""
	lines := dumptest.Collection{Database: "shop", Name: "lines"}
	for i, d := range a.Documents {
		lines.Documents = append(lines.Documents, bson.D{{Key: "_id", Value: int32(i)}, {Key: "of", Value: d.(bson.D)[1].Value}})
	}
	path := filepath.Join(t.TempDir(), "a")
	dumptest.Write(t, path, dumptest.Archive(t, 7, a, b, lines))
	m := planDump(t, path)
	text, err := os.ReadFile(filepath.Join(m, "plan.yaml"))
	if err != nil || strings.Contains(string(text), "\ndatabase:") || !strings.Contains(string(text), `between: ["shop.lines", "shop.orders"]`) || strings.Count(string(text), "between") != 1 {
		t.Errorf("%v\n%s", err, text)
	}
	at := strings.Index(string(text), `name: "archive.orders"`)
	edited := string(text[:at]) + strings.Replace(string(text[at:]), "convert from javaLegacy", "leave", 1)
	dumptest.Write(t, filepath.Join(m, "plan.yaml"), []byte(edited))
	out := filepath.Join(t.TempDir(), "out")
	if r := command(t, "apply", m, "--out", out).want(t, failure.ExitOK); !strings.Contains(r.stdout, "shop.lines") || strings.Contains(r.stdout, "archive.orders") {
		t.Error(r.stdout)
	}
	command(t, "verify", m).want(t, failure.ExitOK)
	r := command(t, "scan", "--dump", out, "--output", "json").want(t, failure.ExitOK)
	if strings.Count(r.stdout, `"subtype4": 60`) != 2 || strings.Count(r.stdout, `"subtype3": 60`) != 1 {
		t.Error(r.stdout)
	}
	// One database alone has the plan that a server with it has.
	one, err := os.ReadFile(filepath.Join(planDump(t, path, "--db", "shop"), "plan.yaml"))
	if err != nil || !strings.Contains(string(one), "database: \"shop\"\n") || !strings.Contains(string(one), `between: ["lines", "orders"]`) || strings.Contains(string(one), "archive") {
		t.Errorf("%v\n%s", err, one)
	}
}

// Values that are equal to UUIDs of known order are in the file of evidence, which the plan names by its
// checksum.
func TestDumpEvidence(t *testing.T) {
	standard, known := shop(60), dumptest.Collection{Database: "shop", Name: "some"}
	for i, d := range standard.Documents {
		b := slices.Clone(d.(bson.D)[1].Value.(bson.Binary).Data)
		if i < 3 { // too few for a decision by themselves
			known.Documents = append(known.Documents, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: bson.Binary{Subtype: 3, Data: slices.Clone(b)}}})
		}
		slices.Reverse(b[:8])
		slices.Reverse(b[8:])
		d.(bson.D)[1].Value = bson.Binary{Subtype: 4, Data: b}
	}
	path := filepath.Join(t.TempDir(), "a")
	dumptest.Write(t, path, dumptest.Archive(t, 7, standard, known))
	m := planDump(t, path)
	out := filepath.Join(t.TempDir(), "out")
	if r := command(t, "apply", m, "--out", out).want(t, failure.ExitOK); !strings.Contains(r.stdout, "3          3        0  done") {
		t.Error(r.stdout)
	}
	evidence := filepath.Join(m, "evidence.json")
	b, err := os.ReadFile(evidence)
	if err != nil {
		t.Fatal(err)
	}
	dumptest.Write(t, evidence, bytes.Replace(b, []byte("equality"), []byte("evidence"), 1))
	if r := command(t, "apply", m, "--out", out+"2").want(t, failure.ExitFailed); !strings.Contains(r.stderr, "not the file that the plan names") {
		t.Error(r.stderr)
	}
	command(t, "verify", m).want(t, failure.ExitFailed)
	if err := os.Remove(evidence); err != nil {
		t.Fatal(err)
	}
	if r := command(t, "apply", m, "--out", out+"2").want(t, failure.ExitFailed); !strings.Contains(r.stderr, "put the file back, or make a new plan") {
		t.Error(r.stderr)
	}
	dumptest.Write(t, evidence, b)
	edit(t, m, "{order: javaLegacy, by: equality}", "{order: javaLegacy, by: evidence, versions: [4]}")
	if r := command(t, "apply", m, "--out", out+"2").want(t, failure.ExitUsage); !strings.Contains(r.stderr, "take the edit back") {
		t.Error(r.stderr)
	}
}

// Combinations of flags that mean nothing are usage errors, and change nothing.
func TestDumpFlags(t *testing.T) {
	paths := written(t, 60)
	out := filepath.Join(t.TempDir(), "out")
	dir, m := paths["dir"], planDump(t, paths["dir"])
	unknown := planDump(t, dir)
	edit(t, unknown, "decision: convert from javaLegacy", "decision: unknown")
	untrue := planDump(t, dir)
	edit(t, untrue, "decision: convert from javaLegacy", "decision: convert from csharpLegacy")
	nothing := planDump(t, dir)
	edit(t, nothing, "decision: convert from javaLegacy", "decision: leave")
	into := planDump(t, dir)
	edit(t, into, `  - name: "orders"`, `  - name: "orders"
    into: "copy"`)
	for _, tt := range []struct{ args, want string }{
		{"scan --dump D --uri mongodb://x", "--uri has no effect with --dump"},
		{"scan --dump D --db none", `database "none" does not exist`},
		{"scan --dump N", "no such file"},
		{"plan O --dump D --collection c --collection d", "--collection may be given once with --dump"},
		{"plan O", "required flag"},
		{"plan O --dump D --uri mongodb://x", "--uri has no effect with --dump"},
		{"plan O --dump D --retry-for 1s", "--retry-for has no effect with --dump"},
		{"plan O --dump N", "no such file"},
		{"plan M --dump D", "has a plan already"},
		{"apply M --out O --write", "give --out"},
		{"apply M --out O --uri mongodb://x", "--uri has no effect with the plan of a dump"},
		{"apply M --out O --batch 5", "--batch has no effect with the plan of a dump"},
		{"apply unknown --out O", "is unknown"},
		{"apply untrue --out O", "the values are not csharpLegacy but javaLegacy"},
		{"apply nothing --out O", "every field is left"},
		{"apply into --out O", "a dump has no copies"},
		{"apply M --out D", "exists already"},
		{"apply M --out D/new", "directory of the input"},
		{"apply M --out -", "the dump is a directory"},
		{"verify M", "no plan was applied"},
		{"verify M D", "give the directory of a migration"},
		{"verify M D O", "no such file"},
	} {
		var args []string
		for _, arg := range strings.Fields(tt.args) {
			for name, path := range map[string]string{"D": dir, "O": out, "M": m, "N": filepath.Join(dir, "none"), "D/new": filepath.Join(dir, "new"),
				"unknown": unknown, "untrue": untrue, "nothing": nothing, "into": into} {
				if arg == name {
					arg = path
					break
				}
			}
			args = append(args, arg)
		}
		if strings.HasPrefix(tt.args, "verify M D O") { // there must be a plan that was applied
			command(t, "apply", m, "--out", filepath.Join(t.TempDir(), "out")).want(t, failure.ExitOK)
		}
		r := command(t, args...)
		if r.code != failure.ExitUsage || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s, want %q", tt.args, r.code, r.stderr, tt.want)
		}
		if n := left(t, filepath.Dir(out)); len(n) > 0 {
			t.Fatalf("%s: left behind: %q", tt.args, n)
		}
	}
	// --out is for dumps, and a directory in which reading has failed may be used again.
	command(t, "plan", out, "--dump", dir, "--db", "none").want(t, failure.ExitUsage)
	command(t, "plan", out, "--dump", dir).want(t, failure.ExitOK)
}

// piped runs the command with a file as a pipe to its standard input, and returns its exit code.
func piped(t *testing.T, path string, out io.Writer, args ...string) (code int, stderr string) {
	t.Helper()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	cmd := process(t, args...)
	var errs bytes.Buffer
	cmd.Stdin = io.MultiReader(in) // not a file, so that there is a pipe
	cmd.Stdout, cmd.Stderr = out, &errs
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), errs.String()
}

// A pipe is planned and converted, and gives the same as a file. Other documents in the second pipe are an
// error, and what was written has no valid end.
func TestDumpPipe(t *testing.T) {
	paths, others := written(t, 60), written(t, 61)
	for _, form := range []string{"a", "a.gz", "c.bson"} {
		dir := t.TempDir()
		m, whole, out := filepath.Join(dir, "m.d"), filepath.Join(dir, "whole"+filepath.Ext(form)), filepath.Join(dir, "out"+filepath.Ext(form))
		args := []string{"plan", m, "--dump", "-"}
		if form == "c.bson" {
			args = append(args, "--db", "shop", "--collection", "orders")
		}
		if code, errs := piped(t, paths[form], nil, args...); code != failure.ExitOK {
			t.Fatalf("%s: %s", form, errs)
		}
		if code, errs := piped(t, paths[form], nil, "apply", m, "--out", out); code != failure.ExitOK {
			t.Fatalf("%s: %s", form, errs)
		}
		command(t, "apply", planDump(t, paths[form]), "--out", whole).want(t, failure.ExitOK)
		compare(t, whole, out)
		var b bytes.Buffer
		if code, errs := piped(t, paths[form], &b, "apply", m, "--out", "-"); code != failure.ExitOK || !strings.Contains(errs, "60         60        0  done") {
			t.Fatalf("%s: exit code %d, %s", form, code, errs)
		}
		dumptest.Write(t, out, b.Bytes())
		compare(t, whole, out)
		if r := command(t, "verify", m).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "both paths") {
			t.Errorf("%s: %s", form, r.stderr)
		}
		command(t, "verify", m, paths[form], out).want(t, failure.ExitOK)
		if code, errs := piped(t, paths[form], nil, "verify", m, "-", out); code != failure.ExitOK {
			t.Errorf("%s: %s", form, errs)
		}
		b.Reset()
		code, errs := piped(t, others[form], &b, "apply", m, "--out", "-")
		if code != failure.ExitFailed || !strings.Contains(errs, "not the dump that the plan was made of") || !strings.Contains(errs, "no valid end") {
			t.Errorf("%s: exit code %d, %s", form, code, errs)
		}
		dumptest.Write(t, out, b.Bytes())
		if r := command(t, "scan", "--dump", out); r.code == failure.ExitOK {
			t.Errorf("%s: %s", form, r.stdout)
		}
	}
}

// Another order of the collections, as mongodump writes several at once, and another form are the same dump.
func TestDumpSame(t *testing.T) {
	paths := written(t, 60)
	for form, path := range paths {
		if form == "c.bson" {
			continue
		}
		m := planDump(t, paths["dir"])
		edit(t, m, paths["dir"]+`"`, path+`"`)
		command(t, "apply", m, "--out", filepath.Join(t.TempDir(), "out"+filepath.Ext(path))).want(t, failure.ExitOK)
	}
}
