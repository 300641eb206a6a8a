package main

import "testing"

// The list of equal changes names one change of a line, though the line has the same one again.
func TestKeysTellTheChangesOfALineApart(t *testing.T) {
	const source = "return b[:8], b[8:], n < 8"
	change := func(line, start int, was, text string) mutant {
		return mutant{file: "a.go", within: "f", line: line, start: start, was: was, text: text, source: source}
	}
	mutants := []mutant{change(3, 25, "8", "9"), change(3, 10, "8", "9"), change(3, 23, "<", "<="), change(3, 16, "8", "9"), change(4, 40, "8", "9")}
	number(mutants)
	want := map[int]string{10: "8 -> 9", 16: "8 -> 9 (2)", 23: "< -> <=", 25: "8 -> 9 (3)", 40: "8 -> 9"}
	for _, m := range mutants {
		if key := "a.go\tf\t" + source + "\t" + want[m.start]; m.key() != key {
			t.Errorf("the change at %d: got %q, want %q", m.start, m.key(), key)
		}
	}
}
