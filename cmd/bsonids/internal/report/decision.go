package report

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
)

// decision writes the decision for each field, and the reason.
func decision(w io.Writer, c Conversion) {
	d := c.Decision
	if d == nil || len(d.Fields) == 0 {
		return
	}
	t := newTable(w, "field", "values", "distinct", "to convert", "decided by")
	for _, f := range d.Fields {
		t.AppendRow([]any{f.Path, f.Values, f.Distinct, convertible(f), why(d, f)})
	}
	t.Render()
	if c.Earlier {
		fmt.Fprintf(w, "\nThis was decided on %s from %d documents, and also applies to later ones.\n", d.Made.UTC().Format(time.DateTime), d.Documents)
	}
	fmt.Fprintln(w)
}

func convertible(f decide.Field) string {
	switch f.Basis {
	case decide.None:
		return "none"
	case decide.Symmetric:
		return "all"
	}
	if len(f.Against) == 0 && f.Basis == decide.Trust {
		return "all"
	}
	return fmt.Sprintf("%d distinct", f.Fits)
}

func why(d *decide.Decision, f decide.Field) string {
	var s string
	switch f.Basis {
	case decide.Evidence:
		s = d.From + " by variant and version " + versions(f.Versions)
	case decide.Symmetric:
		s = "the same in every order"
	case decide.Equality:
		s = "equality with values of known order; for the others, " + f.Reason
	case decide.Trust:
		s = "--trust"
	default:
		s = f.Reason
	}
	if n := len(f.Contradicted); n > 0 {
		s += fmt.Sprintf("; %d values equal ids in another order", n)
	}
	for _, r := range f.Against {
		switch {
		case f.Basis == decide.None:
		case r.Distinct == 0:
			s += fmt.Sprintf("; others were %s (version %s) in an earlier conversion", r.Order, versions(r.Versions))
		default:
			s += fmt.Sprintf("; %d values are %s (version %s)", r.Distinct, r.Order, versions(r.Versions))
		}
	}
	return s
}

func versions(v []int) string {
	var s []string
	for _, n := range v {
		s = append(s, strconv.Itoa(n))
	}
	return strings.Join(s, ", ")
}
