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
	"time"
)

func TestPace(t *testing.T) {
	if p := (*Pace)(nil); p.Batch(7) != 7 || p.Limited() || p.Wait(t.Context(), 1000) != nil {
		t.Error("no pace limits")
	}
	if p := (&Pace{clock: System, perSecond: 10}); p.Batch(1000) != 5 || p.Batch(3) != 3 || !p.Limited() {
		t.Error("wrong batches")
	}
	if (&Pace{clock: System, perSecond: 1}).Batch(1000) != 1 {
		t.Error("no batch")
	}
}

// steered is a Pace of files in a new directory, with what it said.
type steered struct {
	*Pace
	dir   string
	clock *testClock
	said  []string
}

func steer(t *testing.T, files map[string]string) *steered {
	s := &steered{dir: t.TempDir(), clock: &testClock{now: time.Unix(1e9, 0)}}
	for name, text := range files {
		s.write(t, name, text)
	}
	s.Pace = Steered(Steering{s.path("pause"), s.path("rate")}, s.clock.clock(), func(format string, args ...any) {
		s.said = append(s.said, fmt.Sprintf(format, args...))
	})
	return s
}

func (s *steered) path(name string) string { return filepath.Join(s.dir, name) }

func (s *steered) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wants fails unless exactly the messages with these words were said since the last call.
func (s *steered) wants(t *testing.T, words ...string) {
	t.Helper()
	ok := len(s.said) == len(words)
	for i := 0; ok && i < len(words); i++ {
		ok = strings.Contains(s.said[i], words[i])
	}
	if !ok {
		t.Errorf("said %q, want %q", s.said, words)
	}
	s.said = nil
}

// waits returns how long the documents wait.
func (s *steered) waits(t *testing.T, n int) time.Duration {
	t.Helper()
	begin := s.clock.now
	if err := s.Wait(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return s.clock.now.Sub(begin)
}

// Over any time, no more documents are admitted than the limit allows, but for one batch.
func TestSteeredRate(t *testing.T) {
	s := steer(t, nil)
	if d := s.waits(t, 1_000_000); d != 0 || s.Batch(1000) != 1000 {
		t.Errorf("without a file, it waits %v", d)
	}
	for _, perSecond := range []int{1, 3, 500, 100_000} {
		s.write(t, "rate", fmt.Sprintf(" %d\n", perSecond))
		s.waits(t, 0) // reads the file
		begin, admitted := s.clock.now, 0
		for range 200 {
			n := s.Batch(1000)
			if n < 1 || n > max(1, perSecond/2) || n > 1000 {
				t.Fatalf("%d per second: a batch of %d", perSecond, n)
			}
			s.waits(t, n)
			took := s.clock.now.Sub(begin).Seconds()
			if float64(admitted) > took*float64(perSecond)+0.001*float64(perSecond) {
				t.Fatalf("%d per second: %d documents in %v seconds before the last batch", perSecond, admitted, took)
			}
			admitted += n
		}
		if took := s.clock.now.Sub(begin).Seconds(); took > float64(admitted)/float64(perSecond)+1 {
			t.Errorf("%d per second: %d documents took %v seconds", perSecond, admitted, took)
		}
	}
	s.wants(t)
}

// A change of the limit holds for those that wait already.
func TestSteeredRateRaised(t *testing.T) {
	s := steer(t, map[string]string{"rate": "1"})
	s.waits(t, 3600)
	s.clock.cancel = func() {
		if s.clock.now.Sub(time.Unix(1e9, 0)) >= 5*time.Second {
			s.write(t, "rate", "0")
		}
	}
	if d := s.waits(t, 1); d > 6*time.Second {
		t.Errorf("waits %v for an hour of the old limit", d)
	}
	s.wants(t)
}

// What is not a number leaves the limit as it is, with one warning.
func TestSteeredNonsense(t *testing.T) {
	s := steer(t, map[string]string{"rate": "10"})
	for _, text := range []string{"", "fast", "-1", "1.5", "0x10", "1e3", "10 20", "99999999999", "2147483648"} {
		s.write(t, "rate", text)
		for range 3 {
			s.waits(t, 1)
		}
		if s.Batch(1000) != 5 {
			t.Errorf("%q changes the limit: batches of %d", text, s.Batch(1000))
		}
	}
	s.wants(t, "the limit stays at 10 documents per second")
	s.write(t, "rate", "2147483647")
	s.waits(t, 1)
	if s.Batch(1000) != 1000 {
		t.Errorf("batches of %d", s.Batch(1000))
	}
	if err := errors.Join(os.Remove(s.path("rate")), os.Mkdir(s.path("rate"), 0o700)); err != nil {
		t.Fatal(err)
	}
	s.waits(t, 1)
	s.wants(t, "the limit stays at 2147483647 documents per second")
	if err := os.Remove(s.path("rate")); err != nil {
		t.Fatal(err)
	}
	s.waits(t, 1)
	s.waits(t, 1)
	if s.Limited() {
		t.Error("there is a limit without a file")
	}
	s.wants(t)
}

// A pause lasts as long as its file, whatever that is.
func TestSteeredPause(t *testing.T) {
	s := steer(t, map[string]string{"pause": ""})
	s.wants(t, "until "+s.path("pause")+" is removed")
	remove := func(at int) {
		s.clock.slept = nil
		s.clock.cancel = func() {
			if len(s.clock.slept) == at {
				if err := os.Remove(s.path("pause")); err != nil {
					t.Error(err)
				}
			}
		}
	}
	remove(10)
	if s.waits(t, 1); len(s.clock.slept) != 10 {
		t.Errorf("slept %v", s.clock.slept)
	}
	s.wants(t, "going on")
	if d := s.waits(t, 1000); d != 0 {
		t.Errorf("waits %v after the pause", d)
	}
	if err := os.Symlink("nowhere", s.path("pause")); err != nil {
		t.Skip(err)
	}
	remove(2)
	s.waits(t, 1)
	s.wants(t, "nothing is written", "going on")
}

// What was admitted is held by a pause, and not by the limit.
func TestSteeredHold(t *testing.T) {
	s := steer(t, map[string]string{"rate": "1"})
	s.waits(t, 3600)
	if err := s.Hold(t.Context()); err != nil || len(s.clock.slept) != 0 {
		t.Errorf("%v, slept %v", err, s.clock.slept)
	}
	s.write(t, "pause", "")
	ctx, cancel := context.WithCancel(t.Context())
	s.clock.cancel = cancel
	if err := s.Hold(ctx); !errors.Is(err, context.Canceled) || len(s.clock.slept) != 1 {
		t.Errorf("%v, slept %v", err, s.clock.slept)
	}
	s.wants(t, "nothing is written")
	if err := (*Pace)(nil).Hold(ctx); err != nil {
		t.Error(err)
	}
}

func TestSteeredPauseEndsWithContext(t *testing.T) {
	s := steer(t, map[string]string{"pause": ""})
	ctx, cancel := context.WithCancel(t.Context())
	s.clock.cancel = cancel
	if err := s.Wait(ctx, 1); !errors.Is(err, context.Canceled) || len(s.clock.slept) != 1 {
		t.Errorf("%v after %v", err, s.clock.slept)
	}
	if err := s.Wait(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestSteering(t *testing.T) {
	if none := (Steering{}); none.Paused() {
		t.Error("no file pauses")
	}
	dir := t.TempDir()
	if !(Steering{Pause: filepath.Join(dir, strings.Repeat("x", 5000))}).Paused() {
		t.Error("what cannot be known is no pause")
	}
}

// A pipe in place of the file of the rate, which nobody writes, does not stop the work.
func TestRateIsPipe(t *testing.T) {
	rate := filepath.Join(t.TempDir(), "rate")
	if err := exec.Command("mkfifo", rate).Run(); err != nil {
		t.Skip(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := Steering{Rate: rate}.Limit()
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), rate) {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the pipe")
	}
}
