//go:build amd64

package objectidgen

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func TestMain(m *testing.M) {
	if os.Getpid() == 1 && os.Getenv("objectidgen") == "guest" { // from the kernel's command line
		guest()
	}
	os.Exit(m.Run())
}

// guest is all that runs in the virtual machine. It answers "ids" with ids of each method, and "set SECONDS" after
// setting the wall clock, as a time service does.
func guest() {
	g := Default()
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("guest: ready")
	for in.Scan() {
		var seconds int64
		if n, _ := fmt.Sscanf(in.Text(), "set %d", &seconds); n == 1 {
			err := syscall.Settimeofday(&syscall.Timeval{Sec: seconds})
			time.Sleep(2 * time.Millisecond)
			fmt.Println("guest: set", err)
			continue
		}
		batch := make([]bson.ObjectID, 2)
		g.Fill(batch)
		instant, err := g.NewObjectIDAt(time.Unix(1000, 0))
		fmt.Println("guest: ids", g.NewObjectID().Hex(), batch[0].Hex(), batch[1].Hex(), instant.Hex(), err)
	}
}

// machine is a virtual machine of QEMU.
type machine struct {
	t       *testing.T
	serial  net.Conn
	lines   *bufio.Scanner
	monitor net.Conn
	prompts *bufio.Reader
}

// startMachine boots the guest, or restores it if state is not empty.
func startMachine(t *testing.T, kernel, initrd, state string) *machine {
	dir := t.TempDir()
	listen := func(name string) (string, net.Listener) {
		path := filepath.Join(dir, name)
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return path, l
	}
	serialPath, serial := listen("serial")
	monitorPath, monitor := listen("monitor")
	args := []string{"-accel", "tcg", "-m", "256", "-display", "none", "-no-reboot", "-net", "none",
		"-kernel", kernel, "-initrd", initrd, "-append", "console=ttyS0 quiet panic=-1 objectidgen=guest",
		"-serial", "unix:" + serialPath, "-monitor", "unix:" + monitorPath}
	if state != "" {
		args = append(args, "-incoming", "exec:cat "+state)
	}
	cmd := exec.Command("qemu-system-x86_64", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("QEMU: %s", stderr.Bytes())
		}
	})
	m := &machine{t: t}
	var err error
	for _, l := range []struct {
		l net.Listener
		c *net.Conn
	}{{serial, &m.serial}, {monitor, &m.monitor}} {
		if err := l.l.(*net.UnixListener).SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		if *l.c, err = l.l.Accept(); err != nil {
			t.Fatal(err)
		}
		if err := (*l.c).SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	m.lines, m.prompts = bufio.NewScanner(m.serial), bufio.NewReader(m.monitor)
	m.untilPrompt()
	return m
}

// untilPrompt returns what the monitor prints.
func (m *machine) untilPrompt() string {
	var out strings.Builder
	for !strings.HasSuffix(out.String(), "(qemu) ") {
		b, err := m.prompts.ReadByte()
		if err != nil {
			m.t.Fatalf("monitor: %v after %q", err, out.String())
		}
		out.WriteByte(b)
	}
	return out.String()
}

func (m *machine) control(command string) string {
	if _, err := io.WriteString(m.monitor, command+"\n"); err != nil {
		m.t.Fatal(err)
	}
	return m.untilPrompt()
}

// answer returns the words of the guest's next line.
func (m *machine) answer() []string {
	for m.lines.Scan() {
		if _, words, ok := strings.Cut(m.lines.Text(), "guest: "); ok {
			return strings.Fields(words)
		}
	}
	m.t.Fatalf("the guest ended: %v", m.lines.Err())
	return nil
}

func (m *machine) ask(format string, args ...any) []string {
	if _, err := fmt.Fprintf(m.serial, format+"\n", args...); err != nil {
		m.t.Fatal(err)
	}
	return m.answer()
}

// ids returns the process value and the counter of the guest's ids, which tell copies apart whatever their clocks show.
func (m *machine) ids() []string {
	words := m.ask("ids")
	if len(words) != 6 || words[5] != "<nil>" {
		m.t.Fatalf("ids: %q", words)
	}
	for i := range words[1:5] {
		words[1+i] = words[1+i][8:]
	}
	return words[1:5]
}

func (m *machine) setClock(at time.Time) {
	if words := m.ask("set %d", at.Unix()); words[len(words)-1] != "<nil>" {
		m.t.Fatalf("set: %q", words)
	}
}

// initrd writes an archive of the test binary alone, in the format "newc" of cpio.
func initrd(t *testing.T, path string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range binary.Progs {
		if p.Type == elf.PT_INTERP {
			t.Skip("needs a test binary without libraries: CGO_ENABLED=0")
		}
	}
	var b bytes.Buffer
	for _, f := range []struct {
		name string
		mode int
		data []byte
	}{{"init", 0o100755, program}, {"TRAILER!!!", 0, nil}} {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 0, f.mode, 0, 0, 1, 0, len(f.data),
			0, 0, 0, 0, len(f.name)+1, 0)
		b.WriteString(f.name + "\x00")
		b.Write(make([]byte, -b.Len()&3))
		b.Write(f.data)
		b.Write(make([]byte, -b.Len()&3))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Copies of a virtual machine that is restored twice repeat ids until their clocks are set, and none from then on.
func TestRestoredMachine(t *testing.T) {
	if !long(t) {
		t.Skip("takes many seconds; " + longVariable + " runs it")
	}
	kernels, _ := filepath.Glob("/boot/vmlinuz-*-cloud-amd64")
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil || len(kernels) == 0 {
		t.Skip("needs the Debian packages qemu-system-x86 and linux-image-cloud-amd64")
	}
	dir := t.TempDir()
	archive, state := filepath.Join(dir, "initrd"), filepath.Join(dir, "state")
	initrd(t, archive)
	kernel := kernels[len(kernels)-1]

	original := startMachine(t, kernel, archive, "")
	if words := original.answer(); words[0] != "ready" {
		t.Fatalf("%q", words)
	}
	original.setClock(time.Now().Add(-time.Hour)) // when the snapshot is made
	before := original.ids()
	original.control("stop")
	if out := original.control(fmt.Sprintf("migrate \"exec:cat > %s\"", state)); strings.Contains(out, "Error") {
		t.Fatal(out)
	}
	for out := ""; !strings.Contains(out, "completed"); {
		if out = original.control("info migrate"); strings.Contains(out, "failed") {
			t.Fatal(out)
		}
		time.Sleep(10 * time.Millisecond)
	}

	copies := [2]*machine{startMachine(t, kernel, archive, state), startMachine(t, kernel, archive, state)}
	var ids [2][]string
	for i, m := range copies {
		for strings.Contains(m.control("info status"), "inmigrate") { // is being restored
			time.Sleep(10 * time.Millisecond)
		}
		m.control("cont")
		ids[i] = m.ids()
	}
	if fmt.Sprint(ids[0]) != fmt.Sprint(ids[1]) || ids[0][0] == before[0] {
		t.Errorf("the copies do not go on from the snapshot: %v, then %v and %v", before, ids[0], ids[1])
	}
	seen := map[string]bool{}
	for _, id := range append(before, ids[0]...) {
		seen[id[:10]] = true
	}
	for round := range 3 {
		for _, m := range copies {
			if round == 0 {
				m.setClock(time.Now())
			}
			var processes []string
			for _, id := range m.ids() {
				processes = append(processes, id[:10])
				if round == 0 && seen[id[:10]] {
					t.Errorf("%s has a process value of another copy", id)
				}
			}
			for _, p := range processes {
				seen[p] = true
			}
		}
	}
}
