//go:build go1.27

package bench

import (
	"runtime"
	"testing"
	"uuid"
)

// The standard library has UUIDs from Go 1.27 on.
func init() {
	drawStdV7 = func(b *testing.B) {
		share(b, func(n int) error {
			var u uuid.UUID
			for range n {
				u = uuid.NewV7()
			}
			runtime.KeepAlive(u)
			return nil
		})
	}
	drawStdV4 = func(b *testing.B) {
		share(b, func(n int) error {
			var u uuid.UUID
			for range n {
				u = uuid.NewV4()
			}
			runtime.KeepAlive(u)
			return nil
		})
	}
}
