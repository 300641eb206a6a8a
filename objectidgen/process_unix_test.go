//go:build unix

package objectidgen

import (
	"os"
	"strconv"
	"syscall"
	"testing"
)

// A process that executes itself anew keeps its number and its environment, and draws other random bytes.
func TestReexecutedProcess(t *testing.T) {
	switch value := os.Getenv(childVariable); value {
	case "":
		ids := runChild(t, "first")
		if len(ids) != 2 {
			t.Fatalf("ids %v", ids)
		}
		if a, b := Decode(ids[0]), Decode(ids[1]); a.Process == b.Process {
			t.Errorf("the same process value after exec: %+v, then %+v", a, b)
		}
	case "first":
		printMade()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(childVariable, strconv.Itoa(os.Getpid()))
		t.Fatal(syscall.Exec(self, os.Args, os.Environ()))
	default:
		if value != strconv.Itoa(os.Getpid()) {
			t.Fatalf("process %d, before exec %s", os.Getpid(), value)
		}
		printMade()
	}
}
