package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

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

// A dump in any form is converted and proven. A dry run writes nothing.
func TestDump(t *testing.T) {
	for form, path := range written(t, 60) {
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(path))
		args := []string{"--dump", path, "--from", "javaLegacy"}
		if r := command(t, append([]string{"scan"}, args[:2]...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "shop.orders: all 60 documents") || !strings.Contains(r.stdout, "javaLegacy") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		if r := command(t, append([]string{"convert"}, args...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "60 values in 60 documents to change") || len(left(t, dir)) > 0 {
			t.Errorf("%s: %s", form, r.stdout)
		}
		args = append(args, "--out", out)
		if r := command(t, append([]string{"convert"}, args...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "60 values in 60 documents changed") || len(left(t, dir)) != 1 {
			t.Errorf("%s: %s, %q", form, r.stdout, left(t, dir))
		}
		if r := command(t, append([]string{"verify"}, args...)...).want(t, failure.ExitOK); !strings.Contains(r.stdout, "Proven by the input, and the decision") {
			t.Errorf("%s: %s", form, r.stdout)
		}
		if r := command(t, append([]string{"convert"}, args...)...).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "exists") {
			t.Errorf("%s: %s", form, r.stderr)
		}
		// The other way round, the proof fails.
		swapped := []string{"verify", "--dump", out, "--out", path, "--from", "standard", "--to", "csharpLegacy"}
		if r := command(t, swapped...).want(t, failure.ExitIncomplete); !strings.Contains(r.stdout, "Not proven.") {
			t.Errorf("%s: %s", form, r.stdout)
		}
	}
}

// Combinations of flags that mean nothing are usage errors, and change nothing.
func TestDumpFlags(t *testing.T) {
	paths := written(t, 60)
	out := filepath.Join(t.TempDir(), "out")
	dir := paths["dir"]
	for _, tt := range []struct{ args, want string }{
		{"scan --dump D --uri mongodb://x", "--uri has no effect with --dump"},
		{"scan --dump D --sample 5", "--sample has no effect with --dump"},
		{"scan --from javaLegacy", "--from requires --dump"},
		{"scan --dump D --from javaLegacy", "require --decision"},
		{"scan --dump D --decision O", "--decision requires --from"},
		{"scan --dump D --decision D --from javaLegacy", "exists"},
		{"scan --dump D --decision O --from javaLegacy --field nowhere", "--field nowhere"},
		{"scan --dump D --db none", `database "none" does not exist`},
		{"scan --dump N", "no such file"},
		{"convert --from javaLegacy", `required flag(s)`},
		{"convert --db a --collection b --from javaLegacy --out O", "--out requires --dump"},
		{"convert --dump D --from javaLegacy --write", "give --out"},
		{"convert --dump D --from javaLegacy --out O --into x", "--into has no effect"},
		{"convert --dump D --from javaLegacy --out O --state s", "--state has no effect"},
		{"convert --dump D --from javaLegacy --out O --undo-log s", "--undo-log has no effect"},
		{"convert --dump D --from javaLegacy --out O --query {}", "--query has no effect"},
		{"convert --dump D --from javaLegacy --out O --no-record", "--no-record has no effect"},
		{"convert --dump D --from javaLegacy --skip-list s", "without --out"},
		{"convert --dump D --from javaLegacy --out O --skip-list O", "same file"},
		{"convert --dump D --from javaLegacy --out O --skip-list D", "exists"},
		{"convert --dump D --from javaLegacy --to javaLegacy --out O", "are the same"},
		{"convert --dump D --from generic --out O", "the fields must be named"},
		{"convert --dump D --from csharpLegacy --out O", "nothing was converted"},
		{"convert --dump D --from text --out O", "--field: from text"},
		{"convert --dump D --from text --field u --out O", "no such field with a binary value of 16 bytes or text"},
		{"convert --dump D --from text --field s --out O", "nothing was converted: shop.orders s: no value is a UUID that is stored as text"},
		{"convert --dump D --from standard --to goStruct --out O", "bsonids undo restores them"},
		{"scan --dump D --decision O --from goStruct", "--field: from goStruct"},
		{"scan --dump D --decision O --from text --field nowhere", "no such field with a binary value of 16 bytes or text"},
		{"convert --dump D --from javaLegacy --out O --collection none", `collection "none" does not exist`},
		{"convert --dump D --from javaLegacy --out O --field nowhere", "no such field"},
		{"convert --dump D --from javaLegacy --out O --trust nowhere", "no such field"},
		{"convert --dump D --from javaLegacy --out O --decision N", "no such file"},
		{"convert --dump D --from javaLegacy --out O --decision A", "not a decision file"},
		{"convert --dump D --from javaLegacy --out O --decision A --trust u", "--trust"},
		{"convert --dump - --from javaLegacy --out O", "--dump -"},
		{"convert --dump D --from javaLegacy --out D", "input itself"},
		{"convert --dump D --from javaLegacy --out D/new", "directory of the input"},
		{"convert --dump A --from javaLegacy --out O.gz", "form of the input"},
		{"verify --dump D --from javaLegacy", "requires --out"},
		{"verify --dump D --from javaLegacy --out O", "no such file"},
		{"verify --dump D --from javaLegacy --out D --undo-log x", "--undo-log has no effect"},
		{"verify --db a --collection b --from javaLegacy --trust u", "--trust requires --dump"},
	} {
		var args []string
		for _, arg := range strings.Fields(tt.args) {
			for name, path := range map[string]string{"D": dir, "A": paths["a"], "O": out, "O.gz": out + ".gz", "N": filepath.Join(dir, "none"), "D/new": filepath.Join(dir, "new")} {
				if arg == name {
					arg = path
					break
				}
			}
			args = append(args, arg)
		}
		r := command(t, args...)
		if r.code != failure.ExitUsage || !strings.Contains(r.stderr, tt.want) {
			t.Errorf("%s: exit code %d, %s, want %q", tt.args, r.code, r.stderr, tt.want)
		}
		if n := left(t, filepath.Dir(out)); len(n) > 0 {
			t.Fatalf("%s: left behind: %q", tt.args, n)
		}
	}
}

// A pipe is converted by the decision that a scan made, and gives the same as a file.
func TestDumpPipe(t *testing.T) {
	paths := written(t, 60)
	for _, form := range []string{"a", "a.gz", "c.bson"} {
		dir := t.TempDir()
		decision, whole, piped := filepath.Join(dir, "decision.json"), filepath.Join(dir, "whole"+filepath.Ext(form)), filepath.Join(dir, "piped"+filepath.Ext(form))
		pipe := func(args ...string) {
			t.Helper()
			in, err := os.Open(paths[form])
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = in.Close() }()
			cmd := process(t, args...)
			cmd.Stdin = io.MultiReader(in) // not a file, so that there is a pipe
			if form == "c.bson" {
				cmd.Args = append(cmd.Args, "--db", "shop", "--collection", "orders")
			}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v: %s", form, err, out)
			}
		}
		pipe("scan", "--dump", "-", "--from", "javaLegacy", "--decision", decision)
		pipe("convert", "--dump", "-", "--from", "javaLegacy", "--decision", decision, "--out", piped)
		command(t, "convert", "--dump", paths[form], "--from", "javaLegacy", "--out", whole).want(t, failure.ExitOK)
		a, err := os.ReadFile(whole)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(piped); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s: the pipe gave something else: %v", form, err)
		}
		r := command(t, "verify", "--dump", paths[form], "--out", piped, "--from", "javaLegacy", "--decision", decision).want(t, failure.ExitOK)
		if !strings.Contains(r.stdout, "the decision in "+decision) {
			t.Error(r.stdout)
		}
		if r := command(t, "verify", "--dump", paths[form], "--out", piped, "--from", "csharpLegacy", "--decision", decision).want(t, failure.ExitUsage); !strings.Contains(r.stderr, "--from javaLegacy") {
			t.Error(r.stderr)
		}
	}
}

// A dump that is cut off is an error with its offset, and nothing is left.
func TestDumpDamaged(t *testing.T) {
	for form, path := range written(t, 60) {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			path, _ = filepath.Abs(filepath.Join(path, "shop", map[string]string{"dir": "orders.bson", "dir.gz": "orders.bson.gz"}[form]))
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dumptest.Write(t, path, b[:len(b)-9])
		in := path
		if strings.HasPrefix(form, "dir") {
			in = filepath.Dir(filepath.Dir(path))
		}
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(in))
		r := command(t, "convert", "--dump", in, "--from", "javaLegacy", "--out", out).want(t, failure.ExitFailed)
		if !strings.Contains(r.stderr, "is damaged at byte ") || !strings.Contains(r.stderr, "was not written") || len(left(t, dir)) > 0 {
			t.Errorf("%s: %s, %q", form, r.stderr, left(t, dir))
		}
		command(t, "scan", "--dump", in).want(t, failure.ExitFailed)
	}
}

// An interrupt leaves nothing.
func TestDumpInterrupted(t *testing.T) {
	for form, path := range written(t, 2500) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs bytes.Buffer
		code := Run(ctx, []string{"convert", "--dump", path, "--from", "javaLegacy", "--out", filepath.Join(dir, "out"+filepath.Ext(path))}, &out, &errs)
		if code != failure.ExitInterrupted || !strings.Contains(errs.String(), "was not written") || len(left(t, dir)) > 0 {
			t.Errorf("%s: exit code %d, %s, %q", form, code, errs.String(), left(t, dir))
		}
	}
}

// If the disk is full, here by a limit on the size of files, nothing is left.
func TestDumpDiskFull(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no limit on the size of files")
	}
	for form, path := range written(t, 2000) {
		if strings.HasSuffix(form, ".gz") {
			continue // too small
		}
		dir := t.TempDir()
		cmd := process(t)
		sh := exec.Command("sh", "-c", `ulimit -f 100; trap "" XFSZ; exec "$@"`, "sh", cmd.Path, "convert", "--dump", path, "--from", "javaLegacy", "--out", filepath.Join(dir, "out"))
		sh.Env = cmd.Env
		out, err := sh.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != failure.ExitFailed || !strings.Contains(string(out), "was not written") || len(left(t, dir)) > 0 {
			t.Errorf("%s: %v: %s, %q", form, err, out, left(t, dir))
		}
	}
}

// A conversion that is killed at any moment leaves either nothing under the final name or the whole
// dump. The process is killed while it writes; the moments are random.
func TestDumpKill(t *testing.T) {
	kills := 120
	if testing.Short() {
		kills = 20
	}
	paths := written(t, 3000)
	forms := []string{"dir", "a", "a.gz", "c.bson", "dir.gz"}
	want := make(map[string]string)         // path of a conversion that nothing disturbed, by form and kind
	targets := []string{"standard", "text"} // text changes the sizes of documents
	for _, form := range forms {
		for _, to := range targets {
			want[form+to] = filepath.Join(t.TempDir(), "want"+filepath.Ext(paths[form]))
			command(t, "convert", "--dump", paths[form], "--from", "javaLegacy", "--to", to, "--out", want[form+to]).want(t, failure.ExitOK)
		}
	}
	var whole, none int
	for i := range kills {
		form, to := forms[i%len(forms)], targets[i/len(forms)%len(targets)]
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(paths[form]))
		cmd := process(t, "convert", "--dump", paths[form], "--from", "javaLegacy", "--to", to, "--out", out)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go killInside(cmd, dir, time.Duration(rand.N(int64(25*time.Millisecond))))
		err := cmd.Wait()
		if _, e := os.Lstat(out); errors.Is(e, os.ErrNotExist) {
			none++
			if err == nil {
				t.Fatalf("%s: it ended by itself, and there is no output", form)
			}
			continue
		}
		whole++
		if form == "dir" || form == "dir.gz" {
			compare(t, filepath.Join(want[form+to], "shop"), filepath.Join(out, "shop"))
		} else {
			compare(t, want[form+to], out)
		}
	}
	t.Logf("killed %d times: %d had no output, %d the whole one", kills, none, whole)
}

// The next run of the same command removes what a killed one left.
func TestDumpAfterKill(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	args := []string{"convert", "--dump", written(t, 3000)["dir"], "--from", "javaLegacy", "--out", out}
	for range 50 {
		cmd := process(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		killInside(cmd, dir, 0)
		_ = cmd.Wait()
		if len(left(t, dir)) > 0 {
			break
		}
	}
	if err := os.RemoveAll(out); err != nil {
		t.Fatal(err)
	}
	command(t, args...).want(t, failure.ExitOK)
	if got := left(t, dir); len(got) != 1 || got[0] != "out" {
		t.Errorf("left: %q", got)
	}
}

// killInside kills a process some time after it has begun to write in dir.
func killInside(cmd *exec.Cmd, dir string, after time.Duration) {
	for range 1000 {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(syscall.SIGKILL)
}

// compare compares two files, or the files of two directories.
func compare(t *testing.T, want, got string) {
	t.Helper()
	names := []string{""}
	if info, err := os.Stat(want); err == nil && info.IsDir() {
		names = left(t, want)
		if fmt.Sprint(names) != fmt.Sprint(left(t, got)) {
			t.Errorf("files %q, want %q", left(t, got), names)
		}
	}
	for _, name := range names {
		a, err := os.ReadFile(filepath.Join(want, name))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(filepath.Join(got, name)); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not whole: %d bytes, want %d: %v", filepath.Join(got, name), len(b), len(a), err)
		}
	}
}
