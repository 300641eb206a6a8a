package patience

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// steered is a Pace of the files pause and rate in a directory, with what it said.
type steered struct {
	*Pace
	*testing.T
	dir  string
	said []string
}

// steer calls test, in a bubble in which time passes only while everything waits, with a Pace of the text of the file rate,
// unless that is empty.
func steer(t *testing.T, rate string, test func(s *steered)) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := &steered{T: t, dir: dir}
		if rate != "" {
			s.write("rate", rate)
		}
		s.Pace = Steered(Steering{s.path("pause"), s.path("rate")}, func(format string, args ...any) {
			s.said = append(s.said, fmt.Sprintf(format, args...))
		})
		test(s)
	})
}

func (s *steered) path(name string) string { return filepath.Join(s.dir, name) }

func (s *steered) write(name, text string) { s.ok(os.WriteFile(s.path(name), []byte(text), 0o600)) }

func (s *steered) ok(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// wants fails unless exactly the messages with these words were said since the last call.
func (s *steered) wants(words ...string) {
	s.Helper()
	ok := len(s.said) == len(words)
	for i := 0; ok && i < len(words); i++ {
		ok = strings.Contains(s.said[i], words[i])
	}
	if !ok {
		s.Errorf("said %q, want %q", s.said, words)
	}
	s.said = nil
}

// waits returns how long the documents wait.
func (s *steered) waits(n int) time.Duration {
	s.Helper()
	begin := time.Now()
	s.ok(s.Wait(s.Context(), n))
	return time.Since(begin)
}

// Over any time, no more documents are admitted than the limit allows, but for one batch, of at most the documents of half a
// second. Without a limit, and without a Pace, nothing waits.
func TestRate(t *testing.T) {
	steer(t, "", func(s *steered) {
		for _, p := range []*Pace{s.Pace, nil} {
			begin := time.Now()
			if err := errors.Join(p.Wait(s.Context(), 1_000_000), p.Hold(s.Context())); err != nil || p.Batch(1000) != 1000 || p.Limited() || time.Since(begin) != 0 {
				s.Errorf("without a file, it waits %v, %v", time.Since(begin), err)
			}
		}
		for _, perSecond := range []int{1, 3, 500, 100_000} {
			s.write("rate", fmt.Sprintf(" %d\n", perSecond))
			s.waits(0) // reads the file
			begin, admitted := time.Now(), 0
			for range 200 {
				n := s.Batch(1000)
				if n < 1 || n > max(1, perSecond/2) || n > 1000 || s.Batch(1) != 1 || !s.Limited() {
					s.Fatalf("%d per second: a batch of %d", perSecond, n)
				}
				s.waits(n)
				if took := time.Since(begin).Seconds(); float64(admitted) > (took+0.001)*float64(perSecond) {
					s.Fatalf("%d per second: %d documents in %v seconds before the last batch", perSecond, admitted, took)
				}
				admitted += n
			}
			if took := time.Since(begin).Seconds(); took > float64(admitted)/float64(perSecond)+1 {
				s.Errorf("%d per second: %d documents took %v seconds", perSecond, admitted, took)
			}
		}
		s.wants()
	})
}

// A change of the limit holds for those that wait already.
func TestRateRaised(t *testing.T) {
	steer(t, "1", func(s *steered) {
		s.waits(3600)
		time.AfterFunc(4500*time.Millisecond, func() { s.write("rate", "0") })
		if d := s.waits(1); d != 5*time.Second {
			s.Errorf("waits %v for an hour of the old limit", d)
		}
		s.wants()
	})
}

// What is not a number leaves the limit as it is, with one warning.
func TestRateNonsense(t *testing.T) {
	steer(t, "10", func(s *steered) {
		for _, text := range []string{"", "fast", "-1", "1.5", "0x10", "1e3", "10 20", "99999999999", "2147483648"} {
			s.write("rate", text)
			for range 3 {
				s.waits(1)
			}
			if s.Batch(1000) != 5 {
				s.Errorf("%q changes the limit: batches of %d", text, s.Batch(1000))
			}
		}
		s.wants("the limit stays at 10 documents per second")
		s.write("rate", "2147483647")
		s.waits(1)
		if s.Batch(1000) != 1000 {
			s.Errorf("batches of %d", s.Batch(1000))
		}
		s.ok(errors.Join(os.Remove(s.path("rate")), os.Mkdir(s.path("rate"), 0o700)))
		s.waits(1)
		s.wants("the limit stays at 2147483647 documents per second")
		s.ok(os.Remove(s.path("rate")))
		s.waits(1)
		s.waits(1)
		if s.Limited() {
			s.Error("there is a limit without a file")
		}
		s.wants()
	})
}

// A pause lasts as long as its file, whatever that is, or until the context ends.
func TestPause(t *testing.T) {
	steer(t, "", func(s *steered) {
		for _, make := range []func() error{
			func() error { return os.WriteFile(s.path("pause"), nil, 0o600) },
			func() error { return os.Symlink("nowhere", s.path("pause")) },
		} {
			s.ok(make())
			time.AfterFunc(9500*time.Millisecond, func() { s.ok(os.Remove(s.path("pause"))) })
			if d := s.waits(1); d != 10*time.Second {
				s.Errorf("waits %v", d)
			}
			s.wants("nothing is written until "+s.path("pause")+" is removed", "going on")
			if d := s.waits(1000); d != 0 {
				s.Errorf("waits %v after the pause", d)
			}
		}
		s.write("pause", "")
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		for _, n := range []int{1, 0} {
			if err := s.Wait(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
				s.Error(err)
			}
		}
	})
}

// What was admitted is held by a pause, and not by the limit.
func TestHold(t *testing.T) {
	steer(t, "1", func(s *steered) {
		s.waits(3600)
		begin := time.Now()
		if err := s.Hold(s.Context()); err != nil || time.Since(begin) != 0 {
			s.Errorf("%v after %v", err, time.Since(begin))
		}
		s.write("pause", "")
		ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
		defer cancel()
		if err := s.Hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
			s.Errorf("%v after %v", err, time.Since(begin))
		}
		s.wants("nothing is written")
	})
}

// Without names there is no pause. What cannot be known is a pause, and a pipe in place of the file of the rate, which nobody
// writes, does not stop the work.
func TestSteering(t *testing.T) {
	dir := t.TempDir()
	if n, err := (Steering{}).Limit(); (Steering{}).Paused() || n != 0 || err != nil {
		t.Errorf("without files: %d, %v", n, err)
	}
	if !(Steering{Pause: filepath.Join(dir, strings.Repeat("x", 5000))}).Paused() {
		t.Error("what cannot be known is no pause")
	}
	rate := filepath.Join(dir, "rate")
	if err := exec.Command("mkfifo", rate).Run(); err != nil {
		t.Skip(err)
	}
	if _, err := (Steering{Rate: rate}).Limit(); err == nil || !strings.Contains(err.Error(), rate) { // or it never ends
		t.Error(err)
	}
}
