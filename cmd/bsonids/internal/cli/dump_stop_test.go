package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	for form, in := range dumptest.Forms(t, shop(60)) {
		path := in
		switch form {
		case "directory":
			path = filepath.Join(in, "shop", "orders.bson")
		case "directory.gz":
			path = filepath.Join(in, "shop", "orders.bson.gz")
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, again, dir := planDump(t, in), filepath.Join(t.TempDir(), "m.d"), t.TempDir()
		dumptest.Write(t, path, b[:len(b)-9])
		command(t, "apply", m, "--out", filepath.Join(dir, "out"+filepath.Ext(in))).want(t, failure.ExitFailed, "is damaged at byte ", "was not written")
		if got := left(t, dir); len(got) > 0 {
			t.Errorf("%s: left %q", form, got)
		}
		command(t, "scan", "--dump", in).want(t, failure.ExitFailed)
		command(t, "plan", again, "--dump", in).want(t, failure.ExitFailed)
		dumptest.Write(t, path, b)
		command(t, "plan", again, "--dump", in).want(t, failure.ExitOK)
	}
}

// An output that failed leaves the earlier one with the list of its values, and what is known of it.
func TestDumpFailsLater(t *testing.T) {
	c := shop(60)
	c.Documents = append(c.Documents, bson.D{{Key: "_id", Value: int32(60)}, {Key: "u", Value: bson.Binary{Subtype: 3, Data: []byte("no version at all")[:16]}}})
	path := dumptest.Forms(t, c)["archive"]
	m, dir := planDump(t, path), t.TempDir()
	command(t, "apply", m, "--out", filepath.Join(dir, "first")).want(t, failure.ExitIncomplete)
	want := listing(t, m)
	ended, end := context.WithCancel(t.Context())
	end()
	var errs bytes.Buffer
	if code := Run(ended, []string{"apply", m, "--out", filepath.Join(dir, "second")}, io.Discard, &errs); code != failure.ExitInterrupted || !strings.Contains(errs.String(), "was not written") {
		t.Errorf("interrupted: exit code %d, %s", code, errs.String())
	}
	whole := dumptest.Archive(t, 100, c)
	dumptest.Write(t, path, whole[:len(whole)-40])
	command(t, "apply", m, "--out", filepath.Join(dir, "second")).want(t, failure.ExitFailed)
	dumptest.Write(t, path, whole)
	if got := listing(t, m); got != want || len(left(t, dir)) != 1 {
		t.Errorf("%s\nwant %s\nleft: %q", got, want, left(t, dir))
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
	v := command(t, "verify", m).want(t, failure.ExitIncomplete)
	_, status, _ := strings.Cut(command(t, "status", m).stdout, "\n") // the first line has the time
	return fmt.Sprint(string(b), left(t, m), v.stdout, status)
}

// If the disk is full, here by a limit on the size of files, nothing is left.
func TestDumpDiskFull(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no limit on the size of files")
	}
	for form, path := range dumptest.Forms(t, shop(2000)) {
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
// dump. The process is killed while it writes; the moments are random. The next run of the same command removes
// what it has left.
func TestDumpKill(t *testing.T) {
	kills := 120
	if testing.Short() {
		kills = 20
	}
	paths := dumptest.Forms(t, shop(3000))
	forms := []string{"directory", "archive", "archive.gz", "file", "directory.gz"}
	want, plans := make(map[string]string), make(map[string]string) // a conversion that nothing disturbed, and its plan, by form
	for _, form := range forms {
		plans[form], want[form] = planDump(t, paths[form]), filepath.Join(t.TempDir(), "want"+filepath.Ext(paths[form]))
		command(t, "apply", plans[form], "--out", want[form]).want(t, failure.ExitOK)
	}
	var none, remains int
	for i := range kills {
		form := forms[i%len(forms)]
		dir := t.TempDir()
		out := filepath.Join(dir, "out"+filepath.Ext(paths[form]))
		args := []string{"apply", plans[form], "--out", out}
		cmd := process(t, args...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go killInside(cmd, dir, time.Duration(rand.N(int64(25*time.Millisecond))))
		err := cmd.Wait()
		if _, e := os.Lstat(out); errors.Is(e, os.ErrNotExist) {
			if err == nil {
				t.Fatalf("%s: it ended by itself, and there is no output", form)
			}
			if none++; len(left(t, dir)) > 0 {
				remains++
			}
			command(t, args...).want(t, failure.ExitOK)
			if got := left(t, dir); len(got) != 1 {
				t.Errorf("%s: left %q", form, got)
			}
		}
		compare(t, want[form], out)
	}
	t.Logf("killed %d times: %d had no output, and %d of these left something", kills, none, remains)
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

// compare compares two dumps.
func compare(t *testing.T, want, got string) {
	t.Helper()
	if a, b := dumptest.Tree(t, want), dumptest.Tree(t, got); !maps.Equal(a, b) {
		t.Errorf("%s is not whole: %d files, want %d", got, len(b), len(a))
	}
}
