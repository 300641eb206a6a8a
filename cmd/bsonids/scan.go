package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/report"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

type scanOptions struct {
	databases, collections []string
	sample                 int64
	all                    bool
}

func (a *app) scanCommand() *cobra.Command {
	var o scanOptions
	cmd := &cobra.Command{
		Use:   "scan",
		Short: "Count the UUIDs of collections, by field and by how they are stored",
		Long: `scan walks documents at every depth and prints, for each collection and field,
how many values are binary subtype 4, subtype 3, subtype 0 of 16 octets, and
text UUIDs. Subtypes 3 and 0 don't say their byte order: for these it prints
the likeliest one, with the evidence and a probability. "cannot tell" is an
answer, and comes with what would settle it.

It reads a random sample of each collection, or everything with --all, and
changes nothing. Array positions are written as [], and * stands for field
names that are data, such as identifiers.`,
		Example: `  bsonids scan --db shop
  bsonids scan --db shop --collection orders --all --output html > orders.html`,
		Args: cobra.NoArgs,
		RunE: runE(func(cmd *cobra.Command, _ []string) error { return a.scan(cmd.Context(), o) }),
	}
	a.serverFlags(cmd)
	a.outputFlag(cmd, "table, json, html")
	cmd.Flags().StringSliceVar(&o.databases, "db", nil, "database; all but admin, config and local if absent")
	cmd.Flags().StringSliceVar(&o.collections, "collection", nil, "collection or view; all of the databases' collections if absent")
	cmd.Flags().Int64Var(&o.sample, "sample", 10_000, "how many documents of each collection to read, at random")
	cmd.Flags().BoolVar(&o.all, "all", false, "read every document")
	cmd.MarkFlagsMutuallyExclusive("sample", "all")
	return cmd
}

func (a *app) scan(ctx context.Context, o scanOptions) error {
	if !slices.Contains([]string{"table", "json", "html"}, a.output) {
		return badOutput(a.output, "table, json, html")
	}
	if o.sample < 1 {
		return server.Usagef("--sample %d: at least 1 document", o.sample)
	}
	client, err := server.Connect(ctx, a.connectionString(), server.Read)
	if err != nil {
		return err
	}
	defer disconnect(client)

	r := scan.Report{Server: server.Host(a.connectionString()), Time: time.Now().UTC().Truncate(time.Second), Collections: []scan.Collection{}}
	namespaces, err := listNamespaces(ctx, client, o)
	if err != nil {
		return err
	}
	var collectors []*scan.Collector
	read := make(map[string]*readout)
	for _, ns := range namespaces {
		coll := client.Database(ns[0]).Collection(ns[1])
		c := scan.NewCollector(ns[0] + "." + ns[1])
		m, err := a.collect(ctx, coll, c, o)
		if err != nil {
			return err
		}
		collectors = append(collectors, c)
		read[ns[0]+"."+ns[1]] = m
		if m.malformed > 0 {
			r.Warnings = append(r.Warnings, ns[0]+"."+ns[1]+" has documents that could not be walked")
		}
		if m.mode == "first" {
			r.Warnings = append(r.Warnings, ns[0]+"."+ns[1]+": the server cannot sample; the first documents were read, which are not a random sample")
		}
	}
	r.Collections = scan.Judge(collectors, r.Time)
	for i := range r.Collections {
		c := &r.Collections[i]
		m := read[c.Namespace]
		c.Mode, c.Documents, c.Malformed = m.mode, max(m.documents, c.Scanned), m.malformed
	}
	for _, w := range r.Warnings {
		a.warn("%s", w)
	}
	switch a.output {
	case "json":
		return a.json(r)
	case "html":
		return report.HTML(a.out, r)
	}
	report.Table(a.out, r)
	return nil
}

// readout says how a collection was read.
type readout struct {
	mode                 string
	documents, malformed int64
}

func (a *app) collect(ctx context.Context, coll *mongo.Collection, c *scan.Collector, o scanOptions) (*readout, error) {
	m := &readout{mode: "all"}
	var err error
	if m.documents, err = coll.EstimatedDocumentCount(ctx); err != nil {
		return nil, err
	}
	expect := m.documents
	var cur *mongo.Cursor
	if o.all || m.documents <= o.sample {
		cur, err = coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2000))
	} else {
		m.mode, expect = "sample", o.sample
		sample := bson.A{bson.D{{Key: "$sample", Value: bson.D{{Key: "size", Value: o.sample}}}}}
		cur, err = coll.Aggregate(ctx, sample, options.Aggregate().SetAllowDiskUse(true).SetBatchSize(2000))
		if cannotSample(err) { // for the disk, as in read-only mode, or by chance
			cur, err = coll.Aggregate(ctx, sample, options.Aggregate().SetBatchSize(2000))
		}
		if cannotSample(err) {
			m.mode = "first"
			cur, err = coll.Find(ctx, bson.D{}, options.Find().SetLimit(o.sample).SetBatchSize(2000))
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	bar := a.progress(expect, coll.Database().Name()+"."+coll.Name())
	defer bar.done()
	for cur.Next(ctx) {
		if err := c.Add(cur.Current); errors.Is(err, walk.ErrCorrupt) {
			m.malformed++
		} else if err != nil {
			return nil, err
		}
		bar.add(1)
	}
	return m, cur.Err()
}

// cannotSample reports whether the server refused $sample for what it is: neither lost nor wanting a privilege. A sample
// that took too long (MaxTimeMSExpired) is one.
func cannotSample(err error) bool {
	var se mongo.ServerError
	return errors.As(err, &se) && (se.HasErrorCode(50) || server.Explain(err, "").Kind == server.Failed)
}

// listNamespaces returns database and collection of everything that o asks for and the user has a privilege on. Views and
// the server's own collections are read only where they are named.
func listNamespaces(ctx context.Context, client *mongo.Client, o scanOptions) ([][2]string, error) {
	databases := o.databases
	if len(databases) == 0 {
		names, err := client.ListDatabaseNames(ctx, bson.D{}, options.ListDatabases().SetAuthorizedDatabases(true))
		if err != nil {
			return nil, err
		}
		databases = slices.DeleteFunc(names, func(n string) bool { return n == "admin" || n == "config" || n == "local" })
	}
	slices.Sort(databases)
	var out [][2]string
	for _, db := range slices.Compact(databases) {
		if !validDatabase(db) {
			return nil, server.Usagef("--db %q is not the name of a database", db)
		}
		specs, err := client.Database(db).ListCollectionSpecifications(ctx, bson.D{},
			options.ListCollections().SetNameOnly(true).SetAuthorizedCollections(true))
		if err != nil {
			return nil, err
		}
		if len(specs) == 0 && len(o.databases) > 0 {
			return nil, server.Usagef("there is no database %q, or the user may read nothing in it", db)
		}
		for _, s := range specs {
			wanted := s.Type != "view" && !strings.HasPrefix(s.Name, "system.")
			if len(o.collections) > 0 {
				wanted = slices.Contains(o.collections, s.Name)
			}
			if wanted {
				out = append(out, [2]string{db, s.Name})
			}
		}
	}
	for _, name := range o.collections {
		if !slices.ContainsFunc(out, func(ns [2]string) bool { return ns[1] == name }) {
			return nil, server.Usagef("there is no collection %q in %s", name, strings.Join(databases, ", "))
		}
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0]+"."+a[1], b[0]+"."+b[1]) })
	return out, nil
}

func validDatabase(name string) bool {
	return name != "" && len(name) < 64 && !strings.ContainsAny(name, "/\\. \"$\x00")
}

func disconnect(client *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = client.Disconnect(ctx)
}
