package uuidaudit

import (
	"context"
	"log/slog"
	"sync"
)

// Log returns a callback that logs each new finding once, as a warning: the second time that the
// same namespace, command, part, path and form is found, nothing is logged. It remembers at most
// 10,000 findings; later ones are logged each time. A nil logger is [slog.Default].
func Log(logger *slog.Logger) func(Finding) {
	var mu sync.Mutex
	seen := map[Finding]bool{}
	return func(f Finding) {
		count := f.Count
		f.Count = 0
		mu.Lock()
		known := seen[f]
		if len(seen) < 10_000 {
			seen[f] = true
		}
		mu.Unlock()
		if known {
			return
		}
		l := logger
		if l == nil {
			l = slog.Default()
		}
		form := slog.Int("subtype", int(f.Subtype))
		if f.Text {
			form = slog.Bool("text", true)
		}
		l.LogAttrs(context.Background(), slog.LevelWarn, "UUID in a foreign form",
			slog.String("database", f.Database), slog.String("collection", f.Collection),
			slog.String("command", f.Command), slog.String("part", f.Part),
			slog.String("path", f.Path), form, slog.Int("count", count))
	}
}

// Fail returns a callback that fails the test t, a [testing.TB], with each finding. The client must be
// disconnected before the test ends: package testing panics if a test that has ended is failed.
func Fail(t interface {
	Helper()
	Errorf(format string, args ...any)
}) func(Finding) {
	return func(f Finding) {
		t.Helper()
		t.Errorf("uuidaudit: %v", f)
	}
}
