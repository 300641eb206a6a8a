package record

import (
	"errors"
	"testing"
	"time"
)

// A run that reads the undo log of another one, with another filter, may begin after it: at once if it has the lock of its
// directory, or else when the other one shows no sign of life. Runs that read no logs of each other may not.
func TestKnownLogs(t *testing.T) {
	knows := func(conversion, lock string) func(*Run) {
		return func(r *Run) { r.Knows, r.Lock = []string{conversion}, lock }
	}
	soon, late := begun.Add(time.Second), begun.Add(time.Hour)
	for name, tt := range map[string]struct {
		want *Run
		now  time.Time
		held bool
	}{
		"no log is read":              {run(2, "two"), late, true},
		"it has the lock":             {run(2, "two", knows("one", "lock")), soon, false},
		"another one may have it":     {run(2, "two", knows("one", "other")), soon, true},
		"no lock is known":            {run(2, "two", knows("one", "")), soon, true},
		"another one shows no life":   {run(2, "two", knows("one", "other")), late, false},
		"the log of another is read":  {run(2, "two", knows("x", "lock")), late, true},
		"it continues the other, too": {run(2, "one", knows("one", "lock")), soon, false},
	} {
		_, err := judge([]*Run{run(1, "one", lock("lock"))}, tt.want, false, tt.now)
		if errors.Is(err, ErrHeld) != tt.held || err != nil && !tt.held {
			t.Errorf("%s: %v", name, err)
		}
	}
	earlier := []*Run{run(1, "one", ended(Done))}
	if err := conflict(earlier, run(2, "two")); !errors.Is(err, ErrTwice) {
		t.Errorf("no log is read: %v", err)
	}
	if err := conflict(earlier, run(2, "two", knows("one", ""))); err != nil {
		t.Errorf("the log is read: %v", err)
	}
}
