package main

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

func (a *app) verifyCommand() *cobra.Command {
	var f conversionFlags
	var undo string
	var strict bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a conversion is complete and lost nothing",
		Long: `verify reads the whole collection and proves that no value of the old kind is
left. With the undo log it proves besides that every converted value maps back
to the one that was there; with --into, that the new collection holds the
converted documents of the old one, octet for octet, and no others.

It changes nothing. The exit code is 0 where the proof holds and 3 where it
doesn't. What other programs changed or deleted since is counted, and fails the
proof with --strict only.`,
		Example: `  bsonids verify --db shop --collection orders --from javaLegacy --to standard --undo orders.undo
  bsonids verify --db shop --collection users --from csharpLegacy --to standard --into users_standard`,
		Args: cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) error { return a.verify(cmd.Context(), f, undo, strict) }),
	}
	a.serverFlags(cmd)
	a.outputFlag(cmd, "table, json")
	f.add(cmd)
	cmd.Flags().StringVar(&f.into, "into", "", "the new collection of the conversion")
	cmd.Flags().StringVar(&undo, "undo", "", "the undo log of the conversion")
	cmd.Flags().BoolVar(&strict, "strict", false, "fail for documents that other programs changed or deleted since")
	cmd.MarkFlagsMutuallyExclusive("into", "undo")
	return cmd
}

func (a *app) verify(ctx context.Context, f conversionFlags, undo string, strict bool) error {
	conv, id, err := f.conversion()
	if err != nil {
		return err
	}
	if a.output != "table" && a.output != "json" {
		return badOutput(a.output, "table, json")
	}
	if conv.SameSubtype() && undo == "" && f.into == "" {
		return server.Usagef("from %s to %s the old and the new values have subtype 3: only the undo log proves such a conversion; give --undo", conv.From.Name, conv.To.Name)
	}
	var log *convert.UndoReader
	if undo != "" {
		if log, err = convert.ReadUndoLog(undo); err != nil {
			return server.Usagef("--undo: %v", err)
		}
		defer func() { _ = log.Close() }()
		if got := log.Identity; got.Database != id.Database || got.Collection != id.Collection || got.From != id.From || got.To != id.To {
			return server.Usagef("--undo %s is the log of another conversion: of %s.%s from %s to %s", undo, got.Database, got.Collection, got.From, got.To)
		}
	}
	client, err := server.Connect(ctx, a.connectionString(), server.Write)
	if err != nil {
		return err
	}
	defer disconnect(client)
	db := client.Database(f.database)
	for _, name := range []string{f.collection, f.into} {
		if name == "" {
			continue
		}
		if _, err := find(ctx, db.Collection(name)); err != nil {
			return err
		}
	}
	total, err := db.Collection(f.collection).EstimatedDocumentCount(ctx)
	if err != nil {
		return err
	}
	bar := a.progress(total, f.database+"."+f.collection)
	var v convert.Verified
	if f.into != "" {
		v, err = convert.VerifyInto(ctx, db.Collection(f.collection), db.Collection(f.into), conv, bar.add)
	} else {
		v, err = convert.VerifyInPlace(ctx, db.Collection(f.collection), conv, log, bar.add)
	}
	bar.done()
	if err != nil {
		return err
	}
	holds := v.Holds(strict)
	if a.output == "json" {
		err = a.json(struct {
			Collection string           `json:"collection"`
			Proven     bool             `json:"proven"`
			Result     convert.Verified `json:"result"`
		}{f.database + "." + f.collection, holds, v})
	} else {
		a.printProof(f, conv, v, log != nil, holds)
	}
	if err == nil && !holds {
		err = errIncomplete
	}
	return err
}

func (a *app) printProof(f conversionFlags, conv convert.Conversion, v convert.Verified, log, holds bool) {
	fmt.Fprintf(a.out, "%s.%s: %s to %s\n\n", f.database, f.collection, conv.From.Name, conv.To.Name)
	t := a.table()
	if v.Read > 0 {
		t.AppendRow([]any{"documents read", v.Read})
	}
	if !conv.SameSubtype() {
		t.AppendRow([]any{fmt.Sprintf("values of subtype %d left", conv.From.Subtype), v.Old})
		for _, field := range slices.Sorted(maps.Keys(v.Fields)) {
			t.AppendRow([]any{"  in " + field, v.Fields[field]})
		}
		t.AppendRow([]any{fmt.Sprintf("values of subtype %d", conv.To.Subtype), v.New})
	}
	switch {
	case f.into != "":
		t.AppendRow([]any{"documents equal to their converted source", v.Proven})
		t.AppendRow([]any{"different", v.Wrong})
		t.AppendRow([]any{"missing in " + f.into, v.Missing})
		t.AppendRow([]any{"in " + f.into + " without a source", v.Extra})
	case log:
		t.AppendRow([]any{"documents that map back to the undo log", v.Proven})
		t.AppendRow([]any{"documents that don't", v.Wrong})
		t.AppendRow([]any{"changed since by other programs", v.Changed})
		t.AppendRow([]any{"deleted since", v.Gone})
	}
	t.Render()
	a.printFindings(v.Skips)
	switch {
	case holds && f.into == "" && !log:
		fmt.Fprintln(a.out, "\nProven: no value of the old kind is left. That the new ones are right, the undo log would prove.")
	case holds:
		fmt.Fprintln(a.out, "\nProven.")
	default:
		fmt.Fprintln(a.out, "\nNot proven.")
	}
}
