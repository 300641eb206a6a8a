package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
)

// Explanation is the description of one identifier. Its text has at most 80 columns and 24 lines, unless All is true.
type Explanation struct {
	explain.Explanation
	All bool `json:"-"`
}

// Text writes the description as tables.
func (e Explanation) Text(w io.Writer) {
	if e.ObjectID != nil {
		objectID(w, e.Form, *e.ObjectID)
		return
	}
	u := e.UUID
	from, order := e.Form, ""
	if u.Subtype != nil {
		from += fmt.Sprintf(", subtype %d", *u.Subtype)
	}
	octets, is := u.Octets, ""
	if u.Text != "" {
		octets = ""
		is = fmt.Sprintf("the text of a UUID, %d ASCII characters, in place of its 16 bytes", len(u.Text))
	}
	if u.Ambiguous {
		order = "network: the form does not determine it; below are the others"
	}
	facts(w, "UUID", u.Value.UUID, "read from", wrap(from), "has", is, "bytes", octets, "order", order,
		"variant", u.Value.Variant, "version", u.Value.Version, "time", at(u.Value.Time, time.RFC3339Nano))
	if !e.All {
		screen(w, u)
		return
	}

	section(w, "This UUID in each representation")
	list(w, u.Stored, func(s explain.Stored) []any { return []any{s.Representation, s.Subtype, s.Octets, s.Paste} }, "representation", "subtype", "bytes", "mongosh")
	fmt.Fprintln(w)
	list(w, u.Stored, func(s explain.Stored) []any { return []any{s.Representation, s.ExtJSON, cmp.Or(s.Legacy, s.Paste)} },
		"representation", "extended JSON", "newer mongosh and Compass")

	if u.Text == "" {
		section(w, "The bytes "+u.Octets+" read in each byte order")
		list(w, u.Read, func(r explain.Reading) []any {
			return []any{r.Order, r.UUID, cmp.Or(r.Version, "– (variant: "+r.Variant+")"), at(r.Time, time.RFC3339)}
		}, "order", "UUID", "version", "time")
	}

	others(w, u)
	if len(u.Drivers) == 0 {
		return
	}
	what := "these bytes"
	if u.Text != "" {
		what = "this text"
	}
	section(w, fmt.Sprintf("How programs print subtype %d with %s", *u.Subtype, what))
	list(w, u.Drivers, func(d explain.DriverReading) []any { return []any{d.Driver, d.Prints} }, "program", "prints")
}

// screen writes what is left of a screen: the readings if the order is not known, and otherwise the representations; and
// the names of other formats.
func screen(w io.Writer, u *explain.UUID) {
	readings := []explain.Reading{u.Value}
	fmt.Fprintln(w)
	if u.Ambiguous {
		readings = u.Read
		list(w, u.Read, func(r explain.Reading) []any {
			order, _, _ := strings.Cut(r.Order, " ")
			version, _, _ := strings.Cut(r.Version, ",")
			return []any{order, r.UUID, cmp.Or(version, "–"), at(r.Time, time.DateOnly)}
		}, "read as", "UUID", "version", "time")
	} else {
		list(w, u.Stored, func(s explain.Stored) []any { return []any{s.Representation, s.Subtype, s.Paste} }, "stored as", "subtype", "mongosh")
	}
	var formats []string
	for _, r := range readings {
		for _, o := range r.Others {
			if o.Time != nil {
				o.Format += " (" + at(o.Time, time.DateOnly) + ")"
			}
			if !slices.Contains(formats, o.Format) {
				formats = append(formats, o.Format)
			}
		}
	}
	fmt.Fprintln(w)
	facts(w, "also fits", wrap(strings.Join(formats, ", ")), "--all", "adds bytes, extended JSON, each byte order, what programs print")
}

// wrap breaks a value of facts into lines that a screen of 80 columns holds.
func wrap(s string) string { return strings.TrimSpace(text.WrapSoft(s, 64)) }

// others prints the formats that the bits may be in, in each byte order if the order is not known.
func others(w io.Writer, u *explain.UUID) {
	readings := []explain.Reading{u.Value}
	if u.Ambiguous {
		readings = u.Read
	}
	var rows [][]any
	for _, r := range readings {
		for _, o := range r.Others {
			rows = append(rows, []any{r.Order, o.Format, at(o.Time, time.RFC3339Nano), o.Fields})
		}
	}
	if len(rows) > 0 {
		section(w, "Other formats that the bits fit")
		list(w, rows, func(row []any) []any { return row }, "order", "format", "time", "fields")
	}
}

func objectID(w io.Writer, form string, id explain.ObjectID) {
	facts(w, "ObjectID", id.Hex, "read from", wrap(form), "time", id.Time.Format(time.RFC3339), "process", id.Process+" (5 bytes, random for each process)",
		"counter", fmt.Sprintf("%d (%06x)", id.Counter, id.Counter), "base64", id.Base64, "mongosh", id.Paste, "extended JSON", id.ExtJSON)
}
