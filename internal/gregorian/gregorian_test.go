package gregorian

import (
	"math/big"
	"testing"
	"testing/quick"
	"time"
)

var first = time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)

func TestTimestamp(t *testing.T) {
	// RFC 9562, appendix A.1: the timestamp of 2022-02-22T19:22:22Z.
	at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	if got, ok := Timestamp(at); got != 0x1EC9414C232AB00 || !ok {
		t.Errorf("%#x, %t", got, ok)
	}
	last := time.Date(5236, 3, 31, 21, 21, 0, 684_697_500, time.UTC)
	for _, tt := range []struct {
		at   time.Time
		want uint64
		ok   bool
	}{
		{first, 0, true},
		{first.Add(99), 0, true},
		{first.Add(100), 1, true},
		{time.Unix(0, 0), Unix, true},
		{time.Unix(0, -1), Unix - 1, true},
		{last, 1<<60 - 1, true},
		{last.Add(99), 1<<60 - 1, true},
		{at: last.Add(100)},
		{at: first.Add(-1)},
		{at: time.Time{}},
		{at: time.Unix(1<<62, 0)},
		{at: time.Unix(-1<<62, 0)},
	} {
		got, ok := Timestamp(tt.at)
		if ok != tt.ok || ok && got != tt.want {
			t.Errorf("%v: %d, %t; want %d, %t", tt.at, got, ok, tt.want, tt.ok)
		}
	}
}

// A timestamp is the number of whole ticks since the first instant, in arbitrary precision, and
// Time is the inverse.
func TestInverse(t *testing.T) {
	property := func(timestamp uint64, ns uint8) bool {
		timestamp >>= 64 - Bits
		at := Time(timestamp)
		elapsed := new(big.Int).Mul(big.NewInt(at.Unix()-first.Unix()), big.NewInt(1e9))
		elapsed.Add(elapsed, big.NewInt(int64(at.Nanosecond())))
		if elapsed.Div(elapsed, big.NewInt(100)).Uint64() != timestamp || at.Location() != time.UTC {
			return false
		}
		back, ok := Timestamp(at.Add(time.Duration(ns % 100)))
		return ok && back == timestamp
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}
