package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/offline"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// dumpProof writes the proof as a table.
func dumpProof(w io.Writer, p *migrate.DumpProof) {
	fmt.Fprintln(w)
	facts(w, "documents of "+p.Path, p.Documents, "documents of "+p.Out+" equal to their converted source", p.Equal, "different", p.Wrong,
		"missing", p.Missing, "without a source", p.Extra, "differences in metadata and files", p.Other)
	if len(p.Findings) == 0 {
		return
	}
	fmt.Fprintln(w)
	list(w, p.Findings, func(f offline.Finding) []any {
		id := ""
		if f.ID.Type != 0 {
			id = mongosh(f.ID)
		}
		return []any{terminal.Cell(f.Namespace), id, f.Reason}
	}, "collection", "_id", "finding")
}
