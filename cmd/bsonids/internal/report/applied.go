package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/duplicates"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/migrate"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Applied is what bsonids apply did, or would do.
type Applied migrate.Applied

// Text writes a as a table.
func (a Applied) Text(w io.Writer) {
	name := a.Database
	if a.Dump != nil {
		name = a.Dump.Path
	}
	fmt.Fprintf(w, "%s: %s%s\n\n", name, a.Dir, dry(a.Written))
	header := []any{"collection", "conversion", "values", "documents", "skipped", "status"}
	if !a.Written {
		header = []any{"collection", "conversion", "fields", "values", "status"}
	}
	t := newTable(w, header...)
	var skipped int64
	var lists []string
	why := rule.Tally{}
	if a.Dump != nil && a.Dump.SkipList != "" {
		lists = append(lists, a.Dump.SkipList)
	}
	for _, s := range a.Steps {
		row := []any{terminal.Cell(s.Collection), taskText(s.Task)}
		if a.Written {
			row = append(row, s.Values, s.Documents, s.Skipped, s.Status)
		} else {
			row = append(row, len(fieldsOf(s.Task)), s.Values, s.Status)
		}
		t.AppendRow(row)
		skipped += s.Skipped
		for reason, n := range s.SkippedFor {
			why.Add(reason, n)
		}
		if s.SkipList != "" && a.Dump == nil {
			lists = append(lists, s.SkipList)
		}
	}
	t.Render()
	for _, s := range a.Steps {
		findings(w, s.Task, s.Findings)
	}
	if len(why) > 0 {
		fmt.Fprintln(w)
		list(w, slices.Sorted(maps.Keys(why)), func(reason string) []any { return []any{reason, why[reason]} }, "skipped because", "times")
	}
	if skipped > 0 {
		fmt.Fprintf(w, "\n%d documents have values that are left as they are; the skip lists are in %s.\n", skipped, a.Dir)
	}
	for _, l := range lists {
		fmt.Fprintf(w, "  %s\n", l)
	}
	if a.Dump != nil && a.Dump.Constants > 0 {
		fmt.Fprintf(w, "\n%d constants in options, indexes and views are left as they are.\n", a.Dump.Constants)
	}
	for _, s := range a.Steps {
		if len(s.Leaves) > 0 {
			fmt.Fprintf(w, "\n%s: values would be left and listed:\n", terminal.Cell(s.Collection))
			for _, text := range s.Leaves {
				fmt.Fprintf(w, "  %s\n", terminal.Cell(text))
			}
		}
	}
	duplicated(w, a.Duplicates)
	for _, s := range a.Steps {
		if s.Late > 0 {
			fmt.Fprintf(w, "\n%s: services write old values all the time. The last pass still found %d documents, and there may be more: "+
				"let the services write the new form, and run the same command again.\n", terminal.Cell(s.Collection), s.Late)
		}
	}
	definitions(w, a.Definitions)
	a.end(w)
}

// duplicated writes how many documents would get a unique value of another one.
func duplicated(w io.Writer, r *duplicates.Report) {
	if r == nil {
		return
	}
	fmt.Fprintln(w)
	t := newTable(w, "collection", "unique index", "field", "would get the value of another document")
	for _, c := range r.Counted {
		t.AppendRow([]any{terminal.Cell(c.Collection), terminal.Cell(c.Index), terminal.Cell(c.Field), c.Documents})
	}
	for _, n := range r.NotCounted {
		t.AppendRow([]any{terminal.Cell(n.Collection), known(terminal.Cell(n.Index), "%s"), "", "not counted: " + n.Reason})
	}
	t.Render()
	if r.Any() {
		fmt.Fprintf(w, "\nThe conversion would leave these documents. Merge each pair before it; %s has the pairs of their _ids.\n", r.File)
	}
}

// end writes how the work ended, and what to do next.
func (a Applied) end(w io.Writer) {
	copies, found, late := 0, false, false
	var differ []string
	for _, s := range a.Steps {
		found, late = found || len(s.Findings) > 0, late || s.Late > 0
		if s.Into != "" {
			copies++
		}
		if s.Status == migrate.Unverified {
			differ = append(differ, terminal.Cell(s.Into))
		}
	}
	of := fmt.Sprintf("%d of %d copies", len(differ), copies)
	names := strings.Join(differ, ", ")
	switch {
	case a.Written && (!a.Finished || late):
	case !a.Written && a.Dump != nil:
		fmt.Fprintln(w, "\nTo write the converted dump, add --out.")
	case !a.Written:
		fmt.Fprintln(w, "\nTo change them, add --write.")
	case found:
		fmt.Fprintf(w, "\nEvery conversion has come to its end, but %s are not verified: %s; see the findings. Their collections were not changed.\n", of, names)
	case len(differ) > 0:
		fmt.Fprintf(w, "\nEvery conversion has come to its end, but %s still differed from their collections: %s. Other programs write to these. "+
			"Run the same command again, or put the copies in place with bsonids cutover, which brings them up to date.\n", of, names)
	case a.Dump != nil && a.Dump.Out == "-":
		fmt.Fprintf(w, "\nDone. To verify the conversion, run %s INPUT OUTPUT.\n", terminal.Command("bsonids", "verify", a.Dir))
	default:
		fmt.Fprintf(w, "\nDone. To verify the conversions, run %s.\n", terminal.Command("bsonids", "verify", a.Dir))
	}
}
