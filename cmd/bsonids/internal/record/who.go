package record

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"os/user"
	"strings"
	"sync"
)

// running holds the tokens of the runs of this process that have not ended.
var running sync.Map

// idle holds the tokens of the runs of this process that have ended without a write, although the
// record does not say so because the server was lost.
var idle sync.Map

// newToken returns 16 random hexadecimal digits.
func newToken() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// NewConversion returns a name for a new conversion.
func NewConversion() string { return newToken() }

func whoAmI(version string) Who {
	w := Who{PID: os.Getpid(), Token: newToken(), Version: version}
	if u, err := user.Current(); err == nil {
		w.User = u.Username
	}
	w.Host, _ = os.Hostname()
	// The file exists on Linux. On other systems, the host name has to suffice.
	if b, err := os.ReadFile("/etc/machine-id"); err == nil {
		w.Machine = strings.TrimSpace(string(b))
	}
	return w
}

// here reports whether w is of the same machine as me.
func (w Who) here(me Who) bool { return w.Host == me.Host && w.Machine == me.Machine && me.Host != "" }

// alive reports whether the process of a run of this machine is still running. If another process
// has its process ID, it is taken to be running.
func (w Who) alive() bool {
	if w.PID == os.Getpid() {
		_, ok := running.Load(w.Token)
		return ok
	}
	return processExists(w.PID)
}
