//go:build unix

package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
)

// maxRSS is the most memory that a process had at once.
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
