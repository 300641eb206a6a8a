package undolog

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"testing"
)

// The reader detects every wrong bit of a log, and every end that it lost, if the record tells how much was written. It does
// not change such a log.
func TestDamagedUndoLog(t *testing.T) {
	path := writtenLog(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	written := Extent{int64(len(whole)), crc32.Checksum(whole, crc32.MakeTable(crc32.Castagnoli))}
	if err := opened(t, path).Covers(written); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		u, err := Open(path)
		if err == nil {
			err = errors.Join(u.Covers(written), u.Close())
		}
		if err == nil {
			t.Errorf("%s: the log is whole", what)
		}
		if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, b) {
			t.Errorf("%s: the log is changed, %v", what, err)
		}
	}
	for i := range whole {
		for bit := range 8 {
			b := bytes.Clone(whole)
			b[i] ^= 1 << bit
			refused(fmt.Sprintf("bit %d of byte %d", bit, i), b)
		}
		refused(fmt.Sprintf("cut at %d", i), whole[:i])
	}
}
