//go:build !windows

package record

import (
	"fmt"
	"os"
	"syscall"
)

func fileID(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(s.Dev, " ", s.Ino)
}
