package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
)

// CopyJSON writes the result of a conversion into a new collection as JSON.
func CopyJSON(w io.Writer, c Conversion, res convert.Copied) error {
	var examples []any
	for _, e := range res.Examples {
		examples = append(examples, map[string]any{"before": extended(e[0]), "after": extended(e[1])})
	}
	return JSON(w, c.json(!c.Failed && res.Verified, examples, res))
}

// Copy writes the result of a conversion into a new collection.
func Copy(w io.Writer, c Conversion, res convert.Copied) {
	verb, how := written(c.Write, "copied", "to copy")
	fmt.Fprintf(w, "%s into %s.%s%s: %s to %s%s\n\n", c.source(), c.Database, c.Into, c.part(), c.From.Name, c.To.Name, how)
	decision(w, c)
	fields(w, "values", res.Fields)
	fmt.Fprintf(w, "%d documents %s, with %d values converted\n", res.Documents, verb, res.Values)
	allRuns(w, res.Values, res.Documents, res.EarlierValues, res.Earlier)
	if len(res.Indexes) > 0 {
		fmt.Fprintf(w, "indexes: %s\n", strings.Join(res.Indexes, ", "))
	}
	for _, e := range res.Examples {
		fmt.Fprintf(w, "\n  %v\n  %v\n", e[0], e[1])
	}
	reasons(w, res.SkippedFor)
	skipList(w, c, res.Left)
	if c.Failed {
		return
	}
	if !c.Write {
		fmt.Fprintln(w, "\nAdd --write to create the collection.")
		return
	}
	if res.Followed > 0 {
		fmt.Fprintf(w, "%d copies were updated because their sources changed during the copy\n", res.Followed)
	}
	findings(w, append(res.Conflicts, res.Proof.Skips...))
	switch {
	case res.Verified && c.Part != "":
		fmt.Fprintf(w, "\nVerified: %s has the %d documents of this part, byte for byte.\nWhen all parts are done, run bsonids verify --into %s to verify the whole collection.\n", c.Into, res.Proof.Proven, c.Into)
	case res.Verified:
		fmt.Fprintf(w, "\nVerified: %s has the %d documents of %s, byte for byte, and no others.\n", c.Into, res.Proof.Proven, c.Collection)
	case len(res.Conflicts)+len(res.Proof.Skips) == 0:
		fmt.Fprintf(w, "\nNot verified: the source changed during each of %d passes. Stop the programs that write to it, and run the same command again.\n", res.Passes)
	default:
		fmt.Fprintln(w, "\nNot verified; see the findings. The source was not changed.")
	}
}
