package cli

import (
	"bytes"
	"cmp"
	"errors"
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
		bits := i * 633                                             // different ones in each value, as in random ones
		b[1], b[15] = 0x40|byte(bits>>6)&0x0f, 0x80|byte(bits)&0x3f // where javaLegacy has the version and the variant
		c.Documents = append(c.Documents, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: bson.Binary{Subtype: 3, Data: b}}, {Key: "s", Value: strings.Repeat("s", 200)}})
	}
	return c
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

// A dump in any form is planned, converted and proven. A dry run writes nothing. The same documents in another form,
// and in another order of the collections, are the same dump.
func TestDump(t *testing.T) {
	paths := dumptest.Forms(t, shop(60), dumptest.Collection{Database: "shop", Name: "empty"})
	for form, path := range dumptest.Forms(t, shop(60)) {
		if strings.HasPrefix(form, "file") {
			paths[form] = path
		}
	}
	other := planDump(t, paths["directory"])
	from := paths["directory"]
	for form, path := range paths {
		command(t, "scan", "--dump", path).want(t, failure.ExitOK, "shop.orders: all 60 documents", "javaLegacy")
		m, dir := planDump(t, path), t.TempDir()
		out, before := filepath.Join(dir, "out"+filepath.Ext(path)), left(t, m)
		command(t, "apply", m).want(t, failure.ExitOK, "1      60")
		if got := left(t, m); !slices.Equal(got, before) {
			t.Errorf("%s: the dry run left %q", form, got)
		}
		command(t, "verify", m).want(t, failure.ExitUsage)
		command(t, "apply", m, "--out", out).want(t, failure.ExitOK, "60         60        0  done")
		command(t, "verify", m).want(t, failure.ExitOK, "Proven by the dump, and the evidence of its plan")
		command(t, "status", m).want(t, failure.ExitOK, "1 of 1 conversions done")
		command(t, "apply", m, "--out", out).want(t, failure.ExitUsage, "exists")
		// The dump itself is not its conversion, and the conversion is not the dump.
		command(t, "verify", m, path, path).want(t, failure.ExitIncomplete, "Not proven.")
		command(t, "verify", m, out, path).want(t, failure.ExitFailed, "not the dump that the plan was made of")
		for _, verb := range []string{"undo", "cutover", "release"} {
			command(t, verb, m).want(t, failure.ExitUsage)
		}
		if !strings.HasPrefix(form, "file") {
			edit(t, other, from+`"`, path+`"`)
			from = path
			command(t, "apply", other, "--out", filepath.Join(dir, "other"+filepath.Ext(path))).want(t, failure.ExitOK)
		}
		if got := left(t, dir); len(got) > 2 {
			t.Errorf("%s: left %q", form, got)
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
	if r := command(t, "apply", m, "--out", out).want(t, failure.ExitOK, "shop.lines"); strings.Contains(r.stdout, "archive.orders") {
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
	command(t, "apply", m, "--out", out).want(t, failure.ExitOK, "3          3        0  done")
	evidence := filepath.Join(m, "evidence.json")
	b, err := os.ReadFile(evidence)
	if err != nil {
		t.Fatal(err)
	}
	dumptest.Write(t, evidence, bytes.Replace(b, []byte("equality"), []byte("evidence"), 1))
	command(t, "apply", m, "--out", out+"2").want(t, failure.ExitFailed, "not the file that the plan names")
	command(t, "verify", m).want(t, failure.ExitFailed)
	if err := os.Remove(evidence); err != nil {
		t.Fatal(err)
	}
	command(t, "apply", m, "--out", out+"2").want(t, failure.ExitFailed, "put the file back, or make a new plan")
	dumptest.Write(t, evidence, b)
	edit(t, m, "{order: javaLegacy, by: equality}", "{order: javaLegacy, by: evidence, versions: [4]}")
	command(t, "apply", m, "--out", out+"2").want(t, failure.ExitUsage, "take the edit back")
}

// Combinations of flags that mean nothing are usage errors, and change nothing.
func TestDumpFlags(t *testing.T) {
	dir, out := dumptest.Forms(t, shop(60))["directory"], filepath.Join(t.TempDir(), "out")
	words := map[string]string{"D": dir, "O": out, "N": filepath.Join(dir, "none"), "D/new": filepath.Join(dir, "new"), "M": planDump(t, dir), "applied": planDump(t, dir)}
	for name, as := range map[string]string{"unknown": "unknown", "untrue": "convert from csharpLegacy", "nothing": "leave"} {
		words[name] = planDump(t, dir)
		edit(t, words[name], "decision: convert from javaLegacy", "decision: "+as)
	}
	words["into"] = planDump(t, dir)
	edit(t, words["into"], `  - name: "orders"`, `  - name: "orders"
    into: "copy"`)
	command(t, "apply", words["applied"], "--out", filepath.Join(t.TempDir(), "out")).want(t, failure.ExitOK)
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
		{"verify M", "bsonids apply --out has not converted the dump"},
		{"verify M D", "verify takes fewer arguments"},
		{"verify applied D O", "no such file"},
	} {
		args := strings.Fields(tt.args)
		for i, arg := range args {
			args[i] = cmp.Or(words[arg], arg)
		}
		command(t, args...).want(t, failure.ExitUsage, tt.want)
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
	paths, others := dumptest.Forms(t, shop(60)), dumptest.Forms(t, shop(61))
	for _, form := range []string{"archive", "archive.gz", "file"} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name+filepath.Ext(paths[form])) }
		pipe := func(path string, code int, text string, out io.Writer, args ...string) {
			t.Helper()
			if got, errs := piped(t, path, out, args...); got != code || !strings.Contains(errs, text) {
				t.Errorf("%s %q: exit code %d, %s", form, args, got, errs)
			}
		}
		m, args := filepath.Join(dir, "m.d"), []string{"--db", "shop", "--collection", "orders"}
		if form != "file" {
			args = nil
		}
		pipe(paths[form], failure.ExitOK, "", nil, append([]string{"plan", m, "--dump", "-"}, args...)...)
		pipe(paths[form], failure.ExitOK, "", nil, "apply", m, "--out", at("out"))
		command(t, "apply", planDump(t, paths[form]), "--out", at("whole")).want(t, failure.ExitOK)
		var piped, cut bytes.Buffer
		pipe(paths[form], failure.ExitOK, "60         60        0  done", &piped, "apply", m, "--out", "-")
		dumptest.Write(t, at("piped"), piped.Bytes())
		for _, name := range []string{"out", "piped"} {
			compare(t, at("whole"), at(name))
		}
		command(t, "verify", m).want(t, failure.ExitUsage, "both paths")
		command(t, "verify", m, paths[form], at("out")).want(t, failure.ExitOK)
		pipe(paths[form], failure.ExitOK, "", nil, "verify", m, "-", at("out"))
		pipe(others[form], failure.ExitFailed, "not the dump that the plan was made of", &cut, "apply", m, "--out", "-")
		dumptest.Write(t, at("cut"), cut.Bytes())
		command(t, "scan", "--dump", at("cut")).want(t, failure.ExitFailed, "damaged")
	}
}
