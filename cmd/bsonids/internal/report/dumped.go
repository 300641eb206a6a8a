package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// DumpProof is the result of the comparison of a dump with its conversion.
type DumpProof struct {
	Path string `json:"path"`
	Out  string `json:"out"`
	offline.Verified
}

// write writes the proof as a table.
func (p *DumpProof) write(w io.Writer) {
	t := newTable(w)
	t.AppendRow([]any{"documents of " + p.Path, p.Documents})
	t.AppendRow([]any{"documents of " + p.Out + " equal to their converted source", p.Equal})
	t.AppendRow([]any{"different", p.Wrong})
	t.AppendRow([]any{"missing", p.Missing})
	t.AppendRow([]any{"without a source", p.Extra})
	t.AppendRow([]any{"differences in metadata and files", p.Other})
	fmt.Fprintln(w)
	t.Render()
	if len(p.Findings) == 0 {
		return
	}
	fmt.Fprintln(w)
	t = newTable(w, "collection", "_id", "finding")
	for _, f := range p.Findings {
		id := ""
		if f.ID.Type != 0 {
			id = mongosh(f.ID)
		}
		t.AppendRow([]any{terminal.Cell(f.Namespace), id, f.Reason})
	}
	t.Render()
}
