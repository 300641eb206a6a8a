package source

import (
	"math"
	"testing"
)

// A sample of n of all documents contains none of r documents with a probability of about (1-n/all)^r.
func TestMissed(t *testing.T) {
	for _, tt := range []struct{ read, all int64 }{{10, 200}, {10_000, 50_000}, {1, 10}, {10_000, 1 << 30}, {199, 200}} {
		r := Missed(tt.read, tt.all)
		missed := func(r int64) float64 { return math.Pow(1-float64(tt.read)/float64(tt.all), float64(r)) }
		if missed(r) > .05 && r < tt.all || missed(r-1) <= .05 {
			t.Errorf("%d of %d: %d", tt.read, tt.all, r)
		}
	}
	for _, tt := range []struct{ read, all, want int64 }{{0, 0, 0}, {5, 5, 1}, {6, 5, 1}, {0, 5, 5}, {1, 2, 2}} {
		if got := Missed(tt.read, tt.all); got != tt.want {
			t.Errorf("%d of %d: %d, want %d", tt.read, tt.all, got, tt.want)
		}
	}
}
