package wait

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		limit time.Duration
		try   func(asks int) (bool, error)
		want  error
		asks  int // 0: not said
	}{
		"at once":     {0, func(int) (bool, error) { return true, nil }, nil, 1},
		"no wait":     {0, func(int) (bool, error) { return false, nil }, Err, 1},
		"later":       {time.Second, func(asks int) (bool, error) { return asks == 200, nil }, nil, 200},
		"never":       {time.Second, func(int) (bool, error) { return false, nil }, Err, 0},
		"fails":       {time.Second, func(asks int) (bool, error) { return false, broken }, broken, 1},
		"fails later": {time.Second, func(asks int) (bool, error) { return false, map[bool]error{true: broken}[asks == 100] }, broken, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			asks := 0
			began := time.Now()
			v, err := For(test.limit, "name", func() (int, bool, error) {
				asks++
				ok, err := test.try(asks)
				return asks, ok, err
			})
			if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) || test.asks != 0 && asks != test.asks || err == nil && v != asks {
				t.Errorf("%s: %d, %v after %d asks", name, v, err, asks)
			}
			if d := time.Since(began); errors.Is(err, Err) && (d < test.limit || d > test.limit || !strings.HasPrefix(err.Error(), "name: ")) {
				t.Errorf("%s: %v after %v", name, err, d)
			}
		})
	}
}
