package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
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
	from, ambiguous := e.Form, []any{}
	if u.Subtype != nil {
		from += fmt.Sprintf(": subtype %d, bytes %s", *u.Subtype, u.Octets)
	}
	if u.Ambiguous {
		ambiguous = []any{"", "the form does not determine the byte order; this is the UUID in network order.", "", "See below for the other orders."}
	}
	facts(w, slices.Concat([]any{"UUID", u.Value.UUID, "read from", from}, ambiguous,
		[]any{"variant", u.Value.Variant, "version", u.Value.Version, "time", at(u.Value.Time, time.RFC3339Nano)})...)

	section(w, "This UUID in each representation")
	list(w, u.Stored, func(s explain.Stored) []any { return []any{s.Representation, s.Subtype, s.Octets, s.Paste} }, "representation", "subtype", "bytes", "mongosh")
	fmt.Fprintln(w)
	list(w, u.Stored, func(s explain.Stored) []any { return []any{s.Representation, s.ExtJSON, cmp.Or(s.Legacy, s.Paste)} },
		"representation", "extended JSON", "newer mongosh and Compass")

	section(w, "The bytes "+u.Octets+" read in each byte order")
	list(w, u.Read, func(r explain.Reading) []any {
		return []any{r.Order, r.UUID, cmp.Or(r.Version, "– (variant: "+r.Variant+")"), at(r.Time, time.RFC3339)}
	}, "order", "UUID", "version", "time")

	others(w, u)
	if len(u.Drivers) == 0 {
		return
	}
	section(w, fmt.Sprintf("How programs print subtype %d with these bytes", *u.Subtype))
	list(w, u.Drivers, func(d explain.DriverReading) []any { return []any{d.Driver, d.Prints} }, "program", "prints")
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
			rows = append(rows, []any{r.Order, o.Format, at(o.Time, time.RFC3339Nano), o.Fields})
		}
	}
	if len(rows) > 0 {
		section(w, "Other formats that the bits fit")
		list(w, rows, func(row []any) []any { return row }, "order", "format", "time", "fields")
	}
}

func objectID(w io.Writer, form string, id explain.ObjectID) {
	facts(w, "ObjectID", id.Hex, "read from", form, "time", id.Time.Format(time.RFC3339), "process", id.Process+" (5 bytes, random for each process)",
		"counter", fmt.Sprintf("%d (%06x)", id.Counter, id.Counter), "base64", id.Base64, "mongosh", id.Paste, "extended JSON", id.ExtJSON)
}
