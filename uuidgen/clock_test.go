package uuidgen

import (
	"testing"
	"testing/synctest"
	"time"
)

// A Generator that is first used under the clock of a testing/synctest bubble follows it, and the
// real one afterwards.
func TestBubble(t *testing.T) {
	g := newGen(t, 7)
	synctest.Test(t, func(t *testing.T) {
		for range 5 {
			want := time.Now()
			got, err := Time(newUUID(t, g))
			if err != nil || want.Sub(got) < 0 || want.Sub(got) > 245 {
				t.Errorf("in the bubble: %v, %v; want %v", got, err, want)
			}
			time.Sleep(time.Second + 5*time.Millisecond)
		}
	})
	before := time.Now().Truncate(time.Millisecond)
	got, err := Time(newUUID(t, g))
	if err != nil || got.Before(before) || got.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("after the bubble: %v, %v; want %v", got, err, before)
	}
}
