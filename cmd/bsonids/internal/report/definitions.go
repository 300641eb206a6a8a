package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Definition is a validator, a partial index or a view with UUIDs that are converted.
type Definition struct {
	Of string `json:"of"` // names it
	Is string `json:"is"` // an expression of mongosh
	// Becomes has the definition after the conversion: one, or one for each reading of UUIDs whose byte order cannot be told.
	Becomes []Becomes `json:"becomes"`
	When    string    `json:"when"` // to run the commands
}

// Becomes is a definition after the conversion.
type Becomes struct {
	// From is the kind as which UUIDs are read whose byte order cannot be told. It is empty if all can be told.
	From     string   `json:"from,omitempty"`
	Is       string   `json:"is"`
	Commands []string `json:"commands"` // for mongosh
}

// definitions writes the definitions that a person changes.
func definitions(w io.Writer, all []Definition) {
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
