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
	verb, how := "restored", ""
	if !write {
		verb, how = "to restore", "; dry run, nothing was changed"
	}
	fmt.Fprintf(w, "%s.%s: back from %s to %s%s\n\n", id.Database, id.Collection, id.To, id.From, how)
	t := newTable(w)
	t.AppendRow([]any{"documents " + verb, res.Restored})
	t.AppendRow([]any{"already restored", res.Already})
	t.AppendRow([]any{"deleted since", res.Gone})
	t.AppendRow([]any{"changed since by other programs, left unchanged", res.Changed})
	t.Render()
	findings(w, res.Skips)
}
