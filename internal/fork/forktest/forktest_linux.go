package forktest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// variable is set in the process that forks.
const variable = "BSONIDS_FORKTEST"

// MaxOutput is how many bytes a part may write.
const MaxOutput = 1 << 15

// Run starts the test binary again for the test that calls it. That process calls f for each part, in a fork of its own
// where the part says so. Run returns the bytes that f returned for each part, which are at least 1 and at most
// [MaxOutput].
//
// A forked process has one thread, and nothing works in it that needs another: f must not print, start goroutines or
// wait. The garbage collector is switched off.
func Run(t *testing.T, f func(part int) []byte) [parts][]byte {
	t.Helper()
	if os.Getenv(variable) != "" {
		forkAndExit(f)
	}
	self, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	for range attempts {
		out, err := run(self, t.Name())
		switch {
		case err == nil:
			return out
		case errors.Is(err, syscall.ENOEXEC):
			t.Skip("the process is emulated and cannot start itself: ", err)
		case !errors.Is(err, context.DeadlineExceeded):
			t.Fatal(err)
		}
	}
	t.Fatalf("%d processes did not end", attempts)
	panic("unreachable")
}

// A process that forks while one of its threads holds a lock of Go's runtime may wait for that lock
// forever. Then it is killed, and another one is started.
const (
	attempts = 10
	limit    = 20 * time.Second
)

// run starts the process that forks and returns what its parts wrote.
func run(self, test string) (out [parts][]byte, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-test.run=^"+test+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), variable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var readers [parts]*os.File
	for i := range readers {
		r, w, err := os.Pipe()
		if err != nil {
			return out, err
		}
		defer r.Close()
		defer w.Close()
		readers[i] = r
		cmd.ExtraFiles = append(cmd.ExtraFiles, w)
	}
	output, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	if err != nil {
		return out, fmt.Errorf("%w\n%s", err, output)
	}
	for i, r := range readers {
		_ = cmd.ExtraFiles[i].Close()
		if out[i], err = io.ReadAll(r); err != nil || len(out[i]) == 0 {
			return out, fmt.Errorf("part %d returned %d bytes, error %v", i, len(out[i]), err)
		}
	}
	return out, nil
}

// forkAndExit runs in the process that forks, and ends it. A step that fails is the status of the process.
func forkAndExit(f func(part int) []byte) {
	debug.SetGCPercent(-1)
	runtime.GOMAXPROCS(1)
	runtime.LockOSThread()
	write(Before, f)
	switch child := fork(); child {
	case 0:
		write(Child, f)
		switch grandchild := fork(); grandchild {
		case 0:
			write(Grandchild, f)
		default:
			wait(grandchild)
		}
	default:
		write(Parent, f)
		wait(child)
	}
	exit(0)
}

// fork returns the number of the new process, or 0 in that process.
func fork() int {
	flags, stack := uintptr(syscall.SIGCHLD), uintptr(0)
	if runtime.GOARCH == "s390x" { // has the first two arguments the other way around
		flags, stack = stack, flags
	}
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, flags, stack, 0, 0, 0, 0)
	if errno != 0 {
		exit(100 + int(errno))
	}
	return int(pid)
}

func wait(pid int) {
	var status int32
	for {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_WAIT4, uintptr(pid), uintptr(unsafe.Pointer(&status)), 0, 0, 0, 0)
		switch {
		case errno == syscall.EINTR:
		case errno != 0 || status != 0:
			exit(3)
		default:
			return
		}
	}
}

// write passes what f returns to the test, as file 3 and up of the process.
func write(part int, f func(part int) []byte) {
	b := f(part)
	if len(b) > MaxOutput {
		exit(4)
	}
	for len(b) > 0 {
		n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(3+part), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch {
		case errno == syscall.EINTR:
		case errno != 0:
			exit(5)
		default:
			b = b[n:]
		}
	}
}

// exit ends the process without what the Go runtime does at the end of one.
func exit(status int) {
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(status), 0, 0)
	panic("exit_group of status " + strconv.Itoa(status) + " returned")
}
