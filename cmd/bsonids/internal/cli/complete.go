package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// completionLimit is how long the completion of a value may take. A user waits for it.
const completionLimit = 1500 * time.Millisecond

// completeNames completes --db and --collection, if cmd has them, with names from the server. Arguments are
// completed with directories, or with the ids of cutovers if there is a database and cmd takes one then.
func (c *console) completeNames(cmd *cobra.Command) {
	collections := func(ctx context.Context, client *mongo.Client) (all []string, err error) {
		db := cmd.Flag("db").Value
		var dbs []string
		if list, ok := db.(pflag.SliceValue); ok {
			dbs = list.GetSlice()
		} else if db.String() != "" {
			dbs = []string{db.String()}
		}
		names, views, err := scan.Namespaces(ctx, client, dbs, nil)
		for _, ns := range slices.Concat(names, views) {
			all = append(all, ns.Collection)
		}
		return all, err
	}
	cutovers := func(ctx context.Context, client *mongo.Client) (ids []string, err error) {
		all, err := record.Cutovers(ctx, client.Database(cmd.Flag("db").Value.String()))
		for _, c := range all {
			if c.Open() {
				ids = append(ids, c.Conversion())
			}
		}
		return ids, err
	}
	// The errors are that there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("db", c.fromServer(scan.Databases))
	_ = cmd.RegisterFlagCompletionFunc("collection", c.fromServer(collections))
	if !strings.Contains(cmd.Use, "DIR") {
		return
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case strings.Contains(cmd.Use, "DATABASE ID") && cmd.Flags().Changed("db"):
			return c.fromServer(cutovers)(cmd, args, toComplete)
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
}

// fromServer returns a completion function for names that the server lists. It completes nothing
// if the server does not answer in time, or if the password is missing, and never shows an error,
// because the shell shows what it prints in the middle of the command line.
func (c *console) fromServer(list func(context.Context, *mongo.Client) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionLimit)
		defer cancel()
		found := make(chan []string, 1)
		// The lookup of mongodb+srv in DNS and reading --uri-file from a pipe cannot be canceled.
		go func() {
			var names []string
			defer func() { found <- names }()
			if c.readURI() != nil {
				return
			}
			if _, missing := withoutPassword(c.connectionString()); missing {
				return
			}
			client, err := server.Connect(ctx, c.connectionString(), server.Read)
			if err != nil {
				return
			}
			defer server.Disconnect(client)
			if all, err := list(ctx, client); err == nil {
				names = all
			}
		}()
		select {
		case names := <-found:
			return candidates(names, toComplete), cobra.ShellCompDirectiveNoFileComp
		case <-ctx.Done():
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
}

// candidates returns the names that complete a value, which may be a list with commas, in order. It
// leaves out names that a shell may interpret.
func candidates(names []string, toComplete string) []string {
	before := toComplete[:strings.LastIndexByte(toComplete, ',')+1]
	var out []string
	for _, name := range names {
		if terminal.Cell(name) == name && !strings.ContainsAny(name, " ,'\"`\\$;&|<>()*?[]{}!#~") && strings.HasPrefix(before+name, toComplete) {
			out = append(out, before+name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// completeWords completes a flag with fixed words, a list of words after each comma.
func completeWords(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, toComplete string) ([]string, cobra.ShellCompDirective) {
		directive := cobra.ShellCompDirectiveNoFileComp
		if _, several := cmd.Flag(flag).Value.(pflag.SliceValue); several {
			directive |= cobra.ShellCompDirectiveNoSpace
		}
		return candidates(words, toComplete), directive
	})
}
