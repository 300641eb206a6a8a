package bench

import (
	"runtime"
	"testing"
)

// BenchmarkAll runs every case once under go test to check that it works. The command cmd/run takes
// the measurements.
func BenchmarkAll(b *testing.B) {
	for _, c := range All() {
		b.Run(c.Work+"/impl="+c.Impl, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(c.Procs, 1)))
			c.Run(b)
		})
	}
}
