package mongotest

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

type skip struct{ test, reason string }

// Skip skips the test. Main prints the reason again at the end of the run.
func Skip(tb testing.TB, reason string) {
	tb.Helper()
	process.mu.Lock()
	process.skipped = append(process.skipped, skip{tb.Name(), reason})
	process.mu.Unlock()
	tb.Skip(reason)
}

// printSkipped lists the skipped tests by reason, in the order in which the reasons first occurred.
func printSkipped(w io.Writer, skipped []skip) {
	var reasons []string
	tests := make(map[string][]string)
	for _, s := range skipped {
		if tests[s.reason] == nil {
			reasons = append(reasons, s.reason)
		}
		tests[s.reason] = append(tests[s.reason], s.test)
	}
	for _, reason := range reasons {
		fmt.Fprintf(w, "mongotest: skipped %d: %s: %s\n", len(tests[reason]), reason, strings.Join(tests[reason], ", "))
	}
}
