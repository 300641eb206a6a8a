package record

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/user"
	"strings"
	"sync"
)

// idle holds the tokens of the runs of this process that have ended without a write, although the
// record does not say so because the server was lost.
var idle sync.Map

func whoAmI(version string) Who {
	w := Who{PID: os.Getpid(), Token: NewID(), Version: version}
	if u, err := user.Current(); err == nil {
		w.User = u.Username
	}
	w.Host, _ = os.Hostname()
	return w
}

// FileID returns what identifies the file at path on this machine until it is started again, or "" if it
// is not known. A copy of the file has another one.
func FileID(path string) string {
	id := fileID(path)
	if id == "" {
		return ""
	}
	host, _ := os.Hostname()
	// The file exists on Linux.
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return host + " " + strings.TrimSpace(string(boot)) + " " + id
}

// NewID returns a random id: 16 hexadecimal digits.
func NewID() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
