package idoption

import (
	"errors"
	"testing"
	"time"
)

type option func(*Config) error

func TestApply(t *testing.T) {
	wait := func(d time.Duration) option {
		return func(c *Config) error {
			c.MaxWait = d
			return c.Check("WithMaxWait")
		}
	}
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		options []option
		want    string
	}{
		"none":                       {nil, ""},
		"one that applies":           {[]option{wait(1)}, ""},
		"nil":                        {[]option{wait(1), nil}, "ids: nil Option"},
		"one that does not apply":    {[]option{func(c *Config) error { return c.Check("WithClock") }}, "ids: WithClock does not apply to version 9"},
		"one with an invalid value":  {[]option{func(*Config) error { return broken }, wait(1)}, "ids: broken"},
		"the first error is the one": {[]option{nil, func(*Config) error { return broken }}, "ids: nil Option"},
	} {
		err := Apply(New("ids", "version 9", "WithMaxWait", "WithRandom"), test.options)
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if err := Apply(New("ids", ""), []option{func(*Config) error { return broken }}); !errors.Is(err, broken) {
		t.Errorf("%v does not wrap the error of the option", err)
	}

	// The last one is used.
	c := New("ids", "version 9", "WithMaxWait")
	if err := Apply(c, []option{wait(1), wait(2)}); err != nil || c.MaxWait != 2 {
		t.Errorf("%v, MaxWait %v, want 2ns", err, c.MaxWait)
	}
}

// The defaults that package uuidgen documents: no limit ahead, a minute back, two seconds of waiting.
func TestDefaults(t *testing.T) {
	c := New("ids", "")
	if c.MaxAhead != 1<<63-1 || c.MaxRollback != time.Minute || c.MaxWait != 2*time.Second || c.Now != nil || c.Random != nil {
		t.Errorf("%+v", c)
	}
}
