package record

import (
	"errors"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// A directory knows of a conversion before the record, and of an epoch after it. So what one of the two lacks shows
// which is the copy from before, whenever a process is killed.
func TestFits(t *testing.T) {
	abandoned := time.Now()
	wrote := &Run{Kind: Convert, Conversion: "c", UndoSize: 1}
	for name, c := range map[string]struct {
		p        *Plan
		recorded int64
		known    []string
		runs     []*Run
		want     error
	}{
		"nothing was written":             {},
		"killed before the record":        {known: []string{"c"}},
		"killed before the epoch":         {p: &Plan{Epoch: 1}, known: []string{"c"}},
		"one command":                     {p: &Plan{Epoch: 1}, recorded: 1, known: []string{"c"}, runs: []*Run{wrote}},
		"a copy has begun, too":           {p: &Plan{Epoch: 2}, recorded: 1, known: []string{"c"}, runs: []*Run{wrote}},
		"the record was dropped":          {recorded: 1, known: []string{"c"}, want: ErrForgotten},
		"the record is older":             {p: &Plan{Epoch: 1}, recorded: 2, known: []string{"c"}, want: ErrForgotten},
		"the directory is older":          {p: &Plan{Epoch: 2}, recorded: 1, known: []string{"b"}, runs: []*Run{wrote}, want: ErrOlder},
		"of a copy: only that has counts": {p: &Plan{Epoch: 2}, recorded: 1, runs: []*Run{{Kind: Convert, Conversion: "c", Task: kinds.Task{Into: "d"}, Progress: Progress{Changed: 1}}}, want: ErrOlder},
		"another one has written nothing": {p: &Plan{Epoch: 2}, recorded: 1, runs: []*Run{{Kind: Convert, Conversion: "c"}}},
		"another one was undone":          {p: &Plan{Epoch: 2}, recorded: 1, runs: []*Run{{Kind: Convert, Conversion: "c", UndoSize: 1, Undone: &Undone{Complete: true}}}},
		"another one was undone in part":  {p: &Plan{Epoch: 2}, recorded: 1, runs: []*Run{{Kind: Convert, Conversion: "c", UndoSize: 1, Undone: &Undone{}}}, want: ErrOlder},
		"an undo":                         {p: &Plan{Epoch: 2}, recorded: 1, runs: []*Run{{Kind: Undo, Conversion: "c", UndoSize: 1}}},
		"abandoned":                       {p: &Plan{Epoch: 1, Abandoned: &abandoned}, recorded: 1, known: []string{"c"}, want: ErrAbandoned},
		"abandoned, and from before":      {p: &Plan{Epoch: 1, Abandoned: &abandoned}, recorded: 2, want: ErrAbandoned},
	} {
		if err := c.p.fits(c.recorded, c.known, c.runs); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
