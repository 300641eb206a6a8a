package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/plan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// definitions writes the definitions that a person changes.
func definitions(w io.Writer, all []plan.Rewritten) {
	if len(all) > 0 {
		fmt.Fprintln(w, "\nThese definitions have UUIDs that are converted. The plan accepts that you change them in mongosh, or keep them:")
	}
	for _, d := range all {
		fmt.Fprintf(w, "\n%s, to be changed %s\n  is: %s\n", terminal.Cell(d.Of), d.When, terminal.Cell(d.Is))
		for _, b := range d.Becomes {
			if b.From == "" {
				fmt.Fprintf(w, "  becomes: %s\n", terminal.Cell(b.Is))
			} else {
				fmt.Fprintf(w, "  becomes, if UUIDs whose byte order cannot be told are %s: %s\n", b.From, terminal.Cell(b.Is))
			}
			for _, c := range b.Commands {
				fmt.Fprintf(w, "    %s\n", terminal.Cell(c))
			}
		}
	}
}
