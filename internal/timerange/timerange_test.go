package timerange

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// tens is a format whose ids are numbers: ten for each of the seconds 100 to 199, from 1000 to 1999.
var tens = Format[int]{Begin: time.Unix(100, 0), First: 1000, Last: 1999, Bound: func(t time.Time, upper bool) (int, error) {
	s := t.Unix()
	if s < 100 || s > 199 {
		return 0, fmt.Errorf("tens: %w", Err)
	}
	if upper {
		return int(s)*10 + 9, nil
	}
	return int(s) * 10, nil
}}

func TestBounds(t *testing.T) {
	const open, closed = true, false
	for name, test := range map[string]struct {
		from, to int64
		halfOpen bool
		want     Bounds[int]
	}{
		"half-open":                 {110, 120, open, Bounds[int]{1100, 1200, true}},
		"closed":                    {110, 120, closed, Bounds[int]{1100, 1209, false}},
		"one unit, half-open":       {110, 110, open, Bounds[int]{}},
		"one unit, closed":          {110, 110, closed, Bounds[int]{1100, 1109, false}},
		"from before the first":     {0, 120, open, Bounds[int]{1000, 1200, true}},
		"to after the last":         {110, 500, open, Bounds[int]{1100, 1999, false}},
		"to after the last, closed": {110, 500, closed, Bounds[int]{1100, 1999, false}},
		"all":                       {-1, 500, open, Bounds[int]{1000, 1999, false}},
		"up to the first":           {0, 100, open, Bounds[int]{}},
		"up to the first, closed":   {0, 100, closed, Bounds[int]{1000, 1009, false}},
		"before the first":          {0, 99, closed, Bounds[int]{}},
		"after the last":            {200, 300, closed, Bounds[int]{}},
		"the last":                  {199, 200, open, Bounds[int]{1990, 1999, false}},
	} {
		got, err := tens.Bounds(time.Unix(test.from, 0), time.Unix(test.to, 0), test.halfOpen)
		if err != nil || got != test.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, test.want)
		}
	}
}

// An id is in the range exactly if its second is from that of from to that of to.
func TestBoundsHoldTheIDsOfTheSpan(t *testing.T) {
	for range 20_000 {
		id := 1000 + rand.IntN(1000)
		from := time.Unix(90+rand.Int64N(120), rand.Int64N(1e9))
		to := from.Add(time.Duration(rand.Int64N(int64(20 * time.Second))))
		for _, halfOpen := range []bool{false, true} {
			b, err := tens.Bounds(from, to, halfOpen)
			if err != nil {
				t.Fatal(err)
			}
			second := int64(id / 10)
			want := from.Unix() <= second && (second < to.Unix() || second == to.Unix() && !halfOpen)
			if got := b != (Bounds[int]{}) && b.Low <= id && (id < b.High || id == b.High && !b.Open); got != want {
				t.Fatalf("%d from %v to %v, half-open %t: %+v contains it %t, want %t", id, from.Unix(), to.Unix(), halfOpen, b, got, want)
			}
		}
	}
}

func TestBoundsErrors(t *testing.T) {
	at := time.Unix(110, 0)
	if b, err := tens.Bounds(at, at.Add(-1), false); err == nil || !strings.Contains(err.Error(), "after its end") || b != (Bounds[int]{}) {
		t.Errorf("backwards: %+v, %v", b, err)
	}
	broken := errors.New("broken")
	for failing := range 2 {
		f, calls := tens, 0
		f.Bound = func(time.Time, bool) (int, error) {
			if calls++; calls > failing {
				return 0, broken
			}
			return 1100, nil
		}
		if b, err := f.Bounds(at, at.Add(time.Second), false); !errors.Is(err, broken) || b != (Bounds[int]{}) {
			t.Errorf("Bound fails in call %d: %+v, %v", failing, b, err)
		}
	}
}

func TestCheckField(t *testing.T) {
	for field, ok := range map[string]bool{"_id": true, "a.b": true, "a$": true, "": false, "$a": false, "a\x00b": false} {
		if err := CheckField(field); (err == nil) != ok {
			t.Errorf("%q: %v", field, err)
		}
	}
}
