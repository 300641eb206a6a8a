package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

func (a *app) undoCommand() *cobra.Command {
	var write bool
	var batch int
	cmd := &cobra.Command{
		Use:   "undo FILE",
		Short: "Put back the values that an undo log of convert holds",
		Long: `undo puts every value back that bsonids convert --undo FILE wrote down, where the
converted one still stands; what other programs changed since is left as it is
and listed. Without --write it changes nothing and says what it would do.

It can be stopped at any moment and run again. Move the state file of the
conversion away afterwards: it says that the conversion was done.`,
		Example: `  bsonids undo orders.undo
  bsonids undo orders.undo --write`,
		Args: cobra.ExactArgs(1),
		RunE: runE(func(cmd *cobra.Command, args []string) error { return a.undo(cmd.Context(), args[0], write, batch) }),
	}
	a.serverFlags(cmd)
	a.outputFlag(cmd, "table, json")
	cmd.Flags().BoolVar(&write, "write", false, "change the documents")
	cmd.Flags().IntVar(&batch, "batch", 1000, "how many documents to read and to write at a time")
	return cmd
}

func (a *app) undo(ctx context.Context, path string, write bool, batch int) error {
	if a.output != "table" && a.output != "json" {
		return badOutput(a.output, "table, json")
	}
	if batch < 1 || batch > 10_000 {
		return server.Usagef("--batch %d: from 1 to 10000", batch)
	}
	mode, open := server.Read, convert.ReadUndoLog
	if write {
		mode, open = server.Write, convert.ReadUndoLogAlone
	}
	log, err := open(path)
	if err != nil {
		return server.Usagef("%v", err)
	}
	defer func() { _ = log.Close() }()
	client, err := server.Connect(ctx, a.connectionString(), mode)
	if err != nil {
		return err
	}
	defer disconnect(client)
	id := log.Identity
	coll := client.Database(id.Database).Collection(id.Collection)
	if _, err := find(ctx, coll); err != nil {
		return err
	}
	bar := a.progress(-1, id.Database+"."+id.Collection)
	res, err := convert.Undo(ctx, coll, log, write, batch, bar.add)
	bar.done()
	if a.output == "json" {
		err = errors.Join(err, a.json(struct {
			Collection string         `json:"collection"`
			Written    bool           `json:"written"`
			Result     convert.Undone `json:"result"`
		}{id.Database + "." + id.Collection, write, res}))
	} else {
		verb, how := "restored", ""
		if !write {
			verb, how = "to restore", "; dry run, nothing is changed"
		}
		fmt.Fprintf(a.out, "%s.%s: back from %s to %s%s\n\n", id.Database, id.Collection, id.To, id.From, how)
		t := a.table()
		t.AppendRow([]any{"documents " + verb, res.Restored})
		t.AppendRow([]any{"already as before", res.Already})
		t.AppendRow([]any{"deleted since", res.Gone})
		t.AppendRow([]any{"changed since by other programs, left as they are", res.Changed})
		t.Render()
		a.printFindings(res.Skips)
	}
	if err != nil {
		return err
	}
	if res.Changed > 0 || len(res.Skips) > 0 {
		return errIncomplete
	}
	return nil
}
