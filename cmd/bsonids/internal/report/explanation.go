package report

import (
	"fmt"
	"io"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
)

// Explanation is the description of one identifier.
type Explanation explain.Explanation

// Text writes the description as tables.
func (e Explanation) Text(w io.Writer) {
	if e.ObjectID != nil {
		objectID(w, e.Form, *e.ObjectID)
		return
	}
	u := e.UUID
	t := newTable(w)
	t.AppendRow([]any{"UUID", u.Value.UUID})
	from := e.Form
	if u.Subtype != nil {
		from += fmt.Sprintf(": subtype %d, bytes %s", *u.Subtype, u.Octets)
	}
	t.AppendRow([]any{"read from", from})
	if u.Ambiguous {
		t.AppendRow([]any{"", "the form does not determine the byte order; this is the UUID in network order."})
		t.AppendRow([]any{"", "See below for the other orders."})
	}
	t.AppendRow([]any{"variant", u.Value.Variant})
	if u.Value.Version != "" {
		t.AppendRow([]any{"version", u.Value.Version})
	}
	if u.Value.Time != nil {
		t.AppendRow([]any{"time", u.Value.Time.Format(time.RFC3339Nano)})
	}
	t.Render()

	section(w, "This UUID in each representation")
	t = newTable(w, "representation", "subtype", "bytes", "mongosh")
	for _, s := range u.Stored {
		t.AppendRow([]any{s.Representation, s.Subtype, s.Octets, s.Paste})
	}
	t.Render()
	fmt.Fprintln(w)
	t = newTable(w, "representation", "extended JSON", "newer mongosh and Compass")
	for _, s := range u.Stored {
		legacy := s.Legacy
		if legacy == "" {
			legacy = s.Paste
		}
		t.AppendRow([]any{s.Representation, s.ExtJSON, legacy})
	}
	t.Render()

	section(w, "The bytes "+u.Octets+" read in each byte order")
	t = newTable(w, "order", "UUID", "version", "time")
	for _, r := range u.Read {
		version, at := r.Version, ""
		if version == "" {
			version = "– (variant: " + r.Variant + ")"
		}
		if r.Time != nil {
			at = r.Time.Format(time.RFC3339)
		}
		t.AppendRow([]any{r.Order, r.UUID, version, at})
	}
	t.Render()

	others(w, u)
	if len(u.Drivers) == 0 {
		return
	}
	section(w, fmt.Sprintf("How programs print subtype %d with these bytes", *u.Subtype))
	t = newTable(w, "program", "prints")
	for _, d := range u.Drivers {
		t.AppendRow([]any{d.Driver, d.Prints})
	}
	t.Render()
}

// others prints the formats that the bits may be in, in each byte order if the order is not known.
func others(w io.Writer, u *explain.UUID) {
	readings := []explain.Reading{u.Value}
	if u.Ambiguous {
		readings = u.Read
	}
	var rows [][]any
	for _, r := range readings {
		for _, o := range r.Others {
			at := ""
			if o.Time != nil {
				at = o.Time.Format(time.RFC3339Nano)
			}
			rows = append(rows, []any{r.Order, o.Format, at, o.Fields})
		}
	}
	if len(rows) == 0 {
		return
	}
	section(w, "Other formats that the bits fit")
	t := newTable(w, "order", "format", "time", "fields")
	for _, row := range rows {
		t.AppendRow(row)
	}
	t.Render()
}

func objectID(w io.Writer, form string, id explain.ObjectID) {
	t := newTable(w)
	t.AppendRow([]any{"ObjectID", id.Hex})
	t.AppendRow([]any{"read from", form})
	t.AppendRow([]any{"time", id.Time.Format(time.RFC3339)})
	t.AppendRow([]any{"process", id.Process + " (5 bytes, random for each process)"})
	t.AppendRow([]any{"counter", fmt.Sprintf("%d (%06x)", id.Counter, id.Counter)})
	t.AppendRow([]any{"base64", id.Base64})
	t.AppendRow([]any{"mongosh", id.Paste})
	t.AppendRow([]any{"extended JSON", id.ExtJSON})
	t.Render()
}
