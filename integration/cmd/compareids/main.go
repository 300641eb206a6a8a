// Command compareids measures on a server how the choice of an _id affects the insert rate and the
// size of the index on _id, with random keys and with ordered keys.
//
//	go run ./integration/cmd/compareids              on a server inside the process (FerretDB on SQLite)
//	go run ./integration/cmd/compareids --uri URI    on yours, in a database that is dropped afterwards
//
// Every kind of key gets a new collection in every round, and one collection is filled after the
// other. The order of the kinds rotates from round to round. The time is the time of the InsertMany
// calls; the generation of keys and documents is not included. The command prints a Markdown table:
// the median and the range of the insert rates of all rounds, and the size of the index and of the
// documents after the last round, as collStats reports them.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/objectidgen"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

type config struct {
	uri                      string
	documents, batch, rounds int
}

func main() {
	var cfg config
	flag.StringVar(&cfg.uri, "uri", "", "connection string of the server; by default, a server is started in this process")
	flag.IntVar(&cfg.documents, "documents", 200_000, "number of documents in each collection")
	flag.IntVar(&cfg.batch, "batch", 1000, "number of documents in each insert")
	flag.IntVar(&cfg.rounds, "rounds", 3, "number of measurements of each kind of key")
	flag.Parse()
	if flag.NArg() > 0 || cfg.documents < 1 || cfg.batch < 1 || cfg.rounds < 1 {
		fmt.Fprintln(os.Stderr, "compareids: takes no arguments, and all numbers must be positive")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Stderr, cfg); err != nil {
		fmt.Fprintln(os.Stderr, "compareids:", err)
		stop()
		os.Exit(1)
	}
}

// kind is a kind of key. The function fill makes a batch of keys.
type kind struct {
	name string
	fill func(ids []any) error
}

// kinds returns all kinds of keys. A UUID is stored as the Binary of a representation or as text.
func kinds() ([]kind, error) {
	v4, err := uuidgen.NewV4Generator()
	if err != nil {
		return nil, err
	}
	v6, err := uuidgen.NewV6Generator()
	if err != nil {
		return nil, err
	}
	v7, err := uuidgen.NewV7Generator()
	if err != nil {
		return nil, err
	}
	v8csharp, err := uuidgen.NewV8Generator(uuidrep.CSharpLegacy)
	if err != nil {
		return nil, err
	}
	v8java, err := uuidgen.NewV8Generator(uuidrep.JavaLegacy)
	if err != nil {
		return nil, err
	}
	oids, err := objectidgen.NewGenerator()
	if err != nil {
		return nil, err
	}
	uuids := func(g *uuidgen.Generator, store func(uuid.UUID) (any, error)) func([]any) error {
		return func(ids []any) error {
			batch := make([]uuid.UUID, len(ids))
			if err := g.Fill(batch); err != nil {
				return err
			}
			for i, u := range batch {
				var err error
				if ids[i], err = store(u); err != nil {
					return err
				}
			}
			return nil
		}
	}
	as := func(r uuidrep.Representation) func(uuid.UUID) (any, error) {
		return func(u uuid.UUID) (any, error) { return uuidrep.NewBinaryWithRepresentation(u, r) }
	}
	text := func(u uuid.UUID) (any, error) { return u.String(), nil }
	return []kind{
		{"ObjectID", func(ids []any) error {
			batch := make([]bson.ObjectID, len(ids))
			oids.Fill(batch)
			for i, id := range batch {
				ids[i] = id
			}
			return nil
		}},
		{"version 7, standard", uuids(v7, as(uuidrep.Standard))},
		{"version 6, standard", uuids(v6, as(uuidrep.Standard))},
		{"version 4, standard", uuids(v4, as(uuidrep.Standard))},
		{"version 7, csharpLegacy", uuids(v7, as(uuidrep.CSharpLegacy))},
		{"version 7, javaLegacy", uuids(v7, as(uuidrep.JavaLegacy))},
		{"version 8, csharpLegacy", uuids(v8csharp, as(uuidrep.CSharpLegacy))},
		{"version 8, javaLegacy", uuids(v8java, as(uuidrep.JavaLegacy))},
		{"version 7, text", uuids(v7, text)},
		{"version 4, text", uuids(v4, text)},
	}, nil
}

// result holds the results of one kind of key.
type result struct {
	rates []float64 // documents per second, one for each round
	sizes sizes
}

// sizes are sizes of collStats, in bytes.
type sizes struct {
	Index     int64 `bson:"totalIndexSize"`
	Documents int64 `bson:"size"`
	Storage   int64 `bson:"storageSize"`
}

func run(ctx context.Context, out, progress io.Writer, cfg config) (err error) {
	if cfg.uri == "" {
		s, err := embedded.Start()
		if err != nil {
			return err
		}
		defer func() { _ = s.Close() }()
		cfg.uri = s.URI()
	}
	client, err := mongo.Connect(options.Client().ApplyURI(cfg.uri))
	if err != nil {
		return err
	}
	db := client.Database("compareids_" + bson.NewObjectID().Hex())
	defer func() {
		// The run may have ended because its context is done.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		dropErr := db.Drop(ctx)
		if err == nil {
			err = dropErr
		}
		_ = client.Disconnect(ctx)
	}()

	all, err := kinds()
	if err != nil {
		return err
	}
	results := make([]result, len(all))
	for round := range cfg.rounds {
		for i := range all {
			if round%2 == 1 {
				i = len(all) - 1 - i
			}
			k, res := all[i], &results[i]
			coll := db.Collection(fmt.Sprintf("k%d", i))
			elapsed, err := insert(ctx, coll, k, cfg)
			if err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
			rate := float64(cfg.documents) / elapsed.Seconds()
			res.rates = append(res.rates, rate)
			if err := db.RunCommand(ctx, bson.D{{Key: "collStats", Value: coll.Name()}}).Decode(&res.sizes); err != nil {
				return fmt.Errorf("%s: collStats: %w", k.name, err)
			}
			fmt.Fprintf(progress, "round %d of %d, %s: %.0f documents per second\n", round+1, cfg.rounds, k.name, rate)
			if err := coll.Drop(ctx); err != nil {
				return fmt.Errorf("%s: %w", k.name, err)
			}
		}
	}
	return writeTable(out, all, results, cfg)
}

// insert fills a collection and returns the duration of the inserts.
func insert(ctx context.Context, coll *mongo.Collection, k kind, cfg config) (time.Duration, error) {
	var elapsed time.Duration
	ids, docs := make([]any, cfg.batch), make([]any, cfg.batch)
	for n := 0; n < cfg.documents; n += len(ids) {
		ids = ids[:min(cfg.batch, cfg.documents-n)]
		if err := k.fill(ids); err != nil {
			return 0, err
		}
		for i, id := range ids {
			docs[i] = bson.D{
				{Key: "_id", Value: id},
				{Key: "number", Value: n + i},
				{Key: "name", Value: "Ada Lovelace"},
				{Key: "street", Value: "12 St James's Square"},
				{Key: "city", Value: "London"},
				{Key: "paid", Value: true},
				{Key: "total", Value: 129.95},
			}
		}
		start := time.Now()
		_, err := coll.InsertMany(ctx, docs[:len(ids)])
		elapsed += time.Since(start)
		if err != nil {
			return 0, err
		}
	}
	return elapsed, nil
}

func writeTable(w io.Writer, all []kind, results []result, cfg config) error {
	median := func(rates []float64) float64 {
		slices.Sort(rates)
		return (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2
	}
	base := median(results[0].rates)
	n := int64(cfg.documents)
	_, err := fmt.Fprintf(w, "| _id | documents per second | of %s | range | index on _id, bytes per document | bytes per document |\n"+
		"|---|---:|---:|---|---:|---:|\n", all[0].name)
	if err != nil {
		return err
	}
	for i, k := range all {
		r := results[i]
		rate := median(r.rates)
		if _, err := fmt.Fprintf(w, "| %s | %.0f | %.2f | %.0f–%.0f | %.1f | %.1f |\n", k.name, rate, rate/base,
			r.rates[0], r.rates[len(r.rates)-1], float64(r.sizes.Index)/float64(n), float64(r.sizes.Documents)/float64(n)); err != nil {
			return err
		}
	}
	return nil
}
