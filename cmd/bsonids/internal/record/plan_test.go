package record

import (
	"errors"
	"testing"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A directory knows of a conversion before the record. So one that lacks a conversion of the record is a copy from before,
// whenever a process is killed.
func TestFits(t *testing.T) {
	wrote := &Run{Kind: Convert, Conversion: "c", UndoSize: 1}
	for name, c := range map[string]struct {
		known []string
		runs  []*Run
		older bool
	}{
		"nothing was written":             {},
		"killed before the record":        {known: []string{"c"}},
		"one conversion":                  {known: []string{"c"}, runs: []*Run{wrote}},
		"the directory is older":          {known: []string{"b"}, runs: []*Run{wrote}, older: true},
		"of a copy: only that has counts": {runs: []*Run{{Kind: Convert, Conversion: "c", Task: kinds.Task{Into: "d"}, Progress: Progress{Changed: 1}}}, older: true},
		"another one has written nothing": {runs: []*Run{{Kind: Convert, Conversion: "c"}}},
		"another one was undone":          {runs: []*Run{{Kind: Convert, Conversion: "c", UndoSize: 1, Undone: &Undone{Complete: true}}}},
		"another one was undone in part":  {runs: []*Run{{Kind: Convert, Conversion: "c", UndoSize: 1, Undone: &Undone{}}}, older: true},
		"an undo":                         {runs: []*Run{{Kind: Undo, Conversion: "c", UndoSize: 1}}},
	} {
		if err := fits(c.known, c.runs); errors.Is(err, ErrOlder) != c.older || (err == nil) == c.older {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
