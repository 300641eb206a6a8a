package mongotest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Feature is what not every server has. Whether one has it is asked of the server itself, once in a test binary.
type Feature struct {
	name  string
	probe func(context.Context, *mongo.Database) error // an error for which Lacks is true where it is missing
	once  sync.Once
	err   error
}

var (
	// Transactions over several documents: a replica set or a sharded cluster.
	Transactions = &Feature{name: "transactions", probe: probeTransactions}
	// ClientBulkWrite is the bulkWrite command: server 8.0.
	ClientBulkWrite = &Feature{name: "client-level bulk write", probe: func(ctx context.Context, db *mongo.Database) error {
		return db.Client().Database("admin").RunCommand(ctx, bson.D{
			{Key: "bulkWrite", Value: 1},
			{Key: "ops", Value: bson.A{bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}}},
			{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: db.Name() + ".probe"}}}},
		}).Err()
	}}
	// ChangeStreams: a replica set or a sharded cluster.
	ChangeStreams = &Feature{name: "change streams", probe: func(ctx context.Context, db *mongo.Database) error {
		if err := db.CreateCollection(ctx, "probe"); err != nil {
			return err
		}
		stream, err := db.Collection("probe").Watch(ctx, mongo.Pipeline{})
		if err != nil {
			return err
		}
		return stream.Close(ctx)
	}}
	// JSONSchema is validation of documents by $jsonSchema.
	JSONSchema = &Feature{name: "$jsonSchema", probe: func(ctx context.Context, db *mongo.Database) error {
		schema := bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "bsonType", Value: "object"}}}}
		return db.CreateCollection(ctx, "probe", options.CreateCollection().SetValidator(schema))
	}}
	// Sharding: a sharded cluster.
	Sharding = &Feature{name: "sharding", probe: func(ctx context.Context, db *mongo.Database) error {
		return db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "listShards", Value: 1}}).Err()
	}}
	// DistinctSubtypes is that binary values of the same octets and different subtypes differ in a unique index. A
	// server of MongoDB that mixes them up has an error, FerretDB a known limit.
	DistinctSubtypes = &Feature{name: "subtypes in unique indexes", probe: probeSubtypes}
)

func probeTransactions(ctx context.Context, db *mongo.Database) error {
	if err := db.CreateCollection(ctx, "probe"); err != nil {
		return err
	}
	return db.Client().UseSession(ctx, func(ctx context.Context) error {
		session := mongo.SessionFromContext(ctx)
		if err := session.StartTransaction(); err != nil {
			return err
		}
		if err := db.Collection("probe").FindOne(ctx, bson.D{}).Err(); err != nil && !errors.Is(err, mongo.ErrNoDocuments) {
			return err
		}
		return session.CommitTransaction(ctx)
	})
}

type lacksError string

func (e lacksError) Error() string { return string(e) }

func probeSubtypes(ctx context.Context, db *mongo.Database) error {
	octets := make([]byte, 16)
	_, err := db.Collection("probe").InsertMany(ctx, []any{
		bson.D{{Key: "_id", Value: bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: octets}}},
		bson.D{{Key: "_id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: octets}}},
	})
	if !mongo.IsDuplicateKeyError(err) {
		return err
	}
	info, infoErr := db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw()
	if infoErr != nil {
		return infoErr
	}
	if _, notFerret := info.LookupErr("ferretdbVersion"); notFerret != nil {
		return err
	}
	return lacksError("FerretDB takes the same octets in two subtypes for duplicates")
}

// Codes of a server that doesn't know a command, a stage or an option, or has it only in another deployment.
var lackCodes = []int{
	20,    // IllegalOperation: a transaction on a standalone server
	59,    // CommandNotFound
	115,   // CommandNotSupported
	238,   // NotImplemented
	40324, // an unknown pipeline stage
	40573, // $changeStream on a standalone server
}

// Lacks reports whether err is a server's answer that it does not have what it was asked for.
func Lacks(err error) bool {
	var own lacksError
	if errors.As(err, &own) {
		return true
	}
	var answer mongo.ServerError
	if !errors.As(err, &answer) {
		return false
	}
	for _, code := range lackCodes {
		if answer.HasErrorCode(code) {
			return true
		}
	}
	return false
}

// Require skips the test, with the server's answer as the reason, where the server lacks a feature. Any other error of
// asking fails the test.
func (s *Server) Require(tb testing.TB, features ...*Feature) {
	tb.Helper()
	for _, f := range features {
		f.once.Do(func() { f.err = s.ask(f) })
		switch {
		case f.err == nil:
		case Lacks(f.err):
			Skip(tb, fmt.Sprintf("the server lacks %s: %v", f.name, f.err))
		default:
			tb.Fatalf("mongotest: asking for %s: %v", f.name, f.err)
		}
	}
}

// ask probes in a database of its own.
func (s *Server) ask(f *Feature) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(s.uri.with("", "")))
	if err != nil {
		return err
	}
	db := client.Database(databaseName("probe"))
	process.begin(db.Name())
	defer process.end(db.Name())
	err = f.probe(ctx, db)
	if after := errors.Join(db.Drop(ctx), client.Disconnect(ctx)); err == nil {
		return after
	}
	return err
}
