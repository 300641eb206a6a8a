package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// UndoneJSON writes the result of an undo as JSON. id is the conversion that was undone. write is
// false for a dry run.
func UndoneJSON(w io.Writer, id convert.Identity, write bool, res convert.Undone) error {
	return JSON(w, struct {
		Collection string         `json:"collection"`
		Written    bool           `json:"written"`
		Result     convert.Undone `json:"result"`
	}{id.Database + "." + id.Collection, write, res})
}

// Undone writes the result of an undo.
func Undone(w io.Writer, id convert.Identity, write bool, res convert.Undone) {
	verb, how := written(write, "restored", "to restore")
	fmt.Fprintf(w, "%s.%s: back from %s to %s%s\n\n", id.Database, id.Collection, id.To, id.From, how)
	t := newTable(w)
	t.AppendRow([]any{"documents " + verb, res.Restored})
	t.AppendRow([]any{"already restored", res.Already})
	t.AppendRow([]any{"deleted since", res.Gone})
	t.AppendRow([]any{"with values that other programs changed since, which are left", res.Changed})
	t.AppendRow([]any{"values that are not restored", res.Left})
	if res.Foreign > 0 {
		t.AppendRow([]any{"new values that are not in the undo log", res.Foreign})
	}
	t.Render()
	findings(w, res.Skips)
	notRestored(w, res.Left, res.Foreign, write && !res.Accepted)
}

// notRestored says what an undo leaves, and with hint, how it can be ended.
func notRestored(w io.Writer, left, foreign int64, hint bool) {
	if foreign > 0 {
		fmt.Fprintf(w, "\n%d values of the new representation are not in the undo log: other programs or other runs wrote them, and undo leaves them.\n", foreign)
	}
	if left > 0 && hint {
		fmt.Fprintln(w, "\nTo accept the values that are not restored, and to end the undo, give --allow-changed.")
	}
}
