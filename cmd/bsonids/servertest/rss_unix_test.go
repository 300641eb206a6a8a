//go:build unix

package servertest

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// maxRSS returns the maximum resident set size of a process.
func maxRSS(s *os.ProcessState) string {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return "an unknown amount"
	}
	kib := int64(u.Maxrss)
	if runtime.GOOS == "darwin" {
		kib /= 1024
	}
	return fmt.Sprintf("%d MiB", kib/1024)
}
