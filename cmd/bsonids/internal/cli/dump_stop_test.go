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
		in := path
		if strings.HasPrefix(form, "dir") {
			in = filepath.Dir(filepath.Dir(path))
		}
		m := planDump(t, in)
		dumptest.Write(t, path, b[:len(b)-9])
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(in))
		r := command(t, "apply", m, "--out", out).want(t, failure.ExitFailed)
		if !strings.Contains(r.stderr, "is damaged at byte ") || !strings.Contains(r.stderr, "was not written") || len(left(t, dir)) > 0 {
			t.Errorf("%s: %s, %q", form, r.stderr, left(t, dir))
		}
		command(t, "scan", "--dump", in).want(t, failure.ExitFailed)
		again := filepath.Join(t.TempDir(), "m.d")
		command(t, "plan", again, "--dump", in).want(t, failure.ExitFailed)
		dumptest.Write(t, path, b)
		command(t, "plan", again, "--dump", in).want(t, failure.ExitOK)
	}
}

// An interrupt leaves nothing.
func TestDumpInterrupted(t *testing.T) {
	for form, path := range written(t, 2500) {
		dir := t.TempDir()
		m := planDump(t, path)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, errs bytes.Buffer
		code := Run(ctx, []string{"apply", m, "--out", filepath.Join(dir, "out"+filepath.Ext(path))}, &out, &errs)
		if code != failure.ExitInterrupted || !strings.Contains(errs.String(), "was not written") || len(left(t, dir)) > 0 {
			t.Errorf("%s: exit code %d, %s, %q", form, code, errs.String(), left(t, dir))
		}
	}
}

// An output that failed leaves the earlier one with the list of its values, and what is known of it.
func TestDumpFailsLater(t *testing.T) {
	c := shop(60)
	c.Documents = append(c.Documents, bson.D{{Key: "_id", Value: int32(60)}, {Key: "u", Value: bson.Binary{Subtype: 3, Data: []byte("no version at all")[:16]}}})
	path := filepath.Join(t.TempDir(), "a")
	whole := dumptest.Archive(t, 100, c)
	dumptest.Write(t, path, whole)
	m, dir := planDump(t, path), t.TempDir()
	command(t, "apply", m, "--out", filepath.Join(dir, "first")).want(t, failure.ExitIncomplete)
	want := listing(t, m)
	for name, failing := range map[string]func(out string) int{
		"interrupted": func(out string) int {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			return Run(ctx, []string{"apply", m, "--out", out}, io.Discard, io.Discard)
		},
		"cut": func(out string) int {
			dumptest.Write(t, path, whole[:len(whole)-40])
			defer dumptest.Write(t, path, whole)
			return command(t, "apply", m, "--out", out).code
		},
	} {
		if code := failing(filepath.Join(dir, "second")); code == failure.ExitOK || code == failure.ExitIncomplete {
			t.Errorf("%s: exit code %d", name, code)
		}
		if got := listing(t, m); got != want || len(left(t, dir)) != 1 {
			t.Errorf("%s: %s\nwant %s\nleft: %q", name, got, want, left(t, dir))
		}
	}
}

// listing returns what the directory of a dump's plan says of its last output, and the list of the values that
// it has left.
func listing(t *testing.T, m string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(m, "skipped.jsonl"))
	if err != nil {
		t.Error(err)
	}
	v := command(t, "verify", m).want(t, failure.ExitOK)
	_, status, _ := strings.Cut(command(t, "status", m).stdout, "\n") // the first line has the time
	return fmt.Sprint(string(b), left(t, m), v.stdout, status)
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
		sh := exec.Command("sh", "-c", `ulimit -f 100; trap "" XFSZ; exec "$@"`, "sh", cmd.Path, "apply", planDump(t, path), "--out", filepath.Join(dir, "out"))
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
	want, plans := make(map[string]string), make(map[string]string) // a conversion that nothing disturbed, and its plan, by form and kind
	targets := []string{"standard", "text"}                         // text changes the sizes of documents
	for _, form := range forms {
		for _, to := range targets {
			plans[form+to], want[form+to] = planDump(t, paths[form]), filepath.Join(t.TempDir(), "want"+filepath.Ext(paths[form]))
			if to == "text" {
				edit(t, plans[form+to], "decision: convert from javaLegacy", "decision: convert from javaLegacy to text")
			}
			command(t, "apply", plans[form+to], "--out", want[form+to]).want(t, failure.ExitOK)
		}
	}
	var whole, none int
	for i := range kills {
		form, to := forms[i%len(forms)], targets[i/len(forms)%len(targets)]
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(paths[form]))
		cmd := process(t, "apply", plans[form+to], "--out", out)
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
	args := []string{"apply", planDump(t, written(t, 3000)["dir"]), "--out", out}
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
