package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/explain"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

func (a *app) showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show VALUE",
		Short: "Explain a UUID or ObjectID in any form that shells and drivers write",
		Long: `show explains one identifier: its octets and subtype in every representation,
what each driver makes of them, its version, variant and time, and the text to
paste into mongosh. It needs no server.

VALUE is a UUID, 16 or 12 octets in hexadecimal, 16 octets in base64, what a
shell prints (UUID("…"), BinData(3, "…"), HexData(4, "…"),
Binary.createFromBase64('…', 3), JUUID("…"), CSUUID("…"), PYUUID("…"),
LegacyJavaUUID("…"), ObjectId("…")), or extended JSON ($uuid, $binary, $oid).`,
		Example: `  bsonids show 00112233-4455-6677-8899-aabbccddeeff
  bsonids show 'BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")'
  bsonids show '{"$oid": "699dfad90ca573f85c0eec1c"}' --output json`,
		Args: cobra.ExactArgs(1),
		RunE: runE(func(_ *cobra.Command, args []string) error {
			v, err := explain.Parse(args[0])
			if err != nil {
				return server.Usagef("%v", err)
			}
			e := explain.Explain(v)
			switch a.output {
			case "json":
				return a.json(e)
			case "table":
				a.printExplanation(e)
				return nil
			}
			return badOutput(a.output, "table, json")
		}),
	}
	a.outputFlag(cmd, "table, json")
	return cmd
}

func badOutput(got, want string) error {
	return server.Usagef("--output %s: the formats are %s", got, want)
}

func (a *app) printExplanation(e explain.Explanation) {
	if id := e.ObjectID; id != nil {
		t := a.table()
		t.AppendRow([]any{"ObjectID", id.Hex})
		t.AppendRow([]any{"read from", e.Form})
		t.AppendRow([]any{"time", id.Time.Format(time.RFC3339)})
		t.AppendRow([]any{"process", id.Process + " (5 octets, random once per process)"})
		t.AppendRow([]any{"counter", fmt.Sprintf("%d (%06x)", id.Counter, id.Counter)})
		t.AppendRow([]any{"base64", id.Base64})
		t.AppendRow([]any{"mongosh", id.Paste})
		t.AppendRow([]any{"extended JSON", id.ExtJSON})
		t.Render()
		return
	}

	u := e.UUID
	t := a.table()
	t.AppendRow([]any{"UUID", u.Value.UUID})
	from := e.Form
	if u.Subtype != nil {
		from += fmt.Sprintf(": subtype %d, octets %s", *u.Subtype, u.Octets)
	}
	t.AppendRow([]any{"read from", from})
	if u.Ambiguous {
		t.AppendRow([]any{"", "the form doesn't say the byte order; this is the UUID in network order,"})
		t.AppendRow([]any{"", "see below for what the octets are in the others"})
	}
	t.AppendRow([]any{"variant", u.Value.Variant})
	if u.Value.Version != "" {
		t.AppendRow([]any{"version", u.Value.Version})
	}
	if u.Value.Time != nil {
		t.AppendRow([]any{"time", u.Value.Time.Format(time.RFC3339Nano)})
	}
	t.Render()

	a.section("This UUID in each representation")
	t = a.table("representation", "subtype", "octets", "mongosh")
	for _, s := range u.Stored {
		t.AppendRow([]any{s.Representation, s.Subtype, s.Octets, s.Paste})
	}
	t.Render()
	fmt.Fprintln(a.out)
	t = a.table("representation", "extended JSON")
	for _, s := range u.Stored {
		t.AppendRow([]any{s.Representation, s.ExtJSON})
	}
	t.Render()

	a.section("The octets " + u.Octets + " read in each byte order")
	t = a.table("order", "UUID", "version", "time")
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

	if len(u.Drivers) == 0 {
		return
	}
	a.section(fmt.Sprintf("What programs make of subtype %d with these octets", *u.Subtype))
	t = a.table("program", "prints")
	for _, d := range u.Drivers {
		t.AppendRow([]any{d.Driver, d.Prints})
	}
	t.Render()
}

func (a *app) section(title string) {
	fmt.Fprintf(a.out, "\n%s\n%s\n", title, strings.Repeat("─", len([]rune(title))))
}
