package mongotest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Feature is a capability that some servers lack. Each test binary probes its server once per
// feature.
type Feature struct {
	name  string
	probe func(context.Context, *mongo.Database) error // if the feature is missing, Lacks reports true for the error
	once  sync.Once
	err   error
}

var (
	// Transactions are transactions over several documents. They need a replica set or a sharded
	// cluster.
	Transactions = &Feature{name: "transactions", probe: probeTransactions}
	// ClientBulkWrite is the bulkWrite command of server 8.0.
	ClientBulkWrite = &Feature{name: "client-level bulk write", probe: func(ctx context.Context, db *mongo.Database) error {
		return db.Client().Database("admin").RunCommand(ctx, bson.D{
			{Key: "bulkWrite", Value: 1},
			{Key: "ops", Value: bson.A{bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{}}}}},
			{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: db.Name() + ".probe"}}}},
		}).Err()
	}}
	// ChangeStreams need a replica set or a sharded cluster.
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
	// JSONSchema is the validation of documents by $jsonSchema.
	JSONSchema = &Feature{name: "validators", probe: func(ctx context.Context, db *mongo.Database) error {
		schema := bson.D{{Key: "$jsonSchema", Value: bson.D{{Key: "bsonType", Value: "object"}}}}
		return db.CreateCollection(ctx, "probe", options.CreateCollection().SetValidator(schema))
	}}
	// Sharding needs a sharded cluster.
	Sharding = &Feature{name: "sharding", probe: func(ctx context.Context, db *mongo.Database) error {
		return db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "listShards", Value: 1}}).Err()
	}}
	// DistinctSubtypes means that a unique index distinguishes binary values of the same bytes and
	// different subtypes. MongoDB does. If a server that identifies itself as MongoDB does not, the
	// probe returns an error. FerretDB and SecantusDB are known not to.
	DistinctSubtypes = &Feature{name: "subtypes in unique indexes", probe: probeSubtypes}
	// BinaryOrder means that binary values are ordered by length, then by subtype, then byte by byte,
	// as MongoDB orders them. If a server that identifies itself as MongoDB does not, the probe
	// returns an error.
	BinaryOrder = &Feature{name: "order of binary values", probe: probeOrder}
	// ExplainedIndexes means that explain names the index that a query uses. FerretDB scans.
	ExplainedIndexes = &Feature{name: "explained indexes", probe: probeExplain}
)

func probeExplain(ctx context.Context, db *mongo.Database) error {
	_, err := db.Collection("probe").Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "a", Value: 1}}})
	if err != nil {
		return err
	}
	find := bson.D{{Key: "find", Value: "probe"}, {Key: "filter", Value: bson.D{{Key: "a", Value: 1}}}}
	plan, err := db.RunCommand(ctx, bson.D{{Key: "explain", Value: find}}).Raw()
	if err != nil {
		return err
	}
	if _, err := plan.LookupErr("queryPlanner", "winningPlan"); err != nil {
		return lacksError("explain shows no winning plan")
	}
	return nil
}

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

// probeOrder sorts binary values, and selects those of one length and subtype by a range.
func probeOrder(ctx context.Context, db *mongo.Database) error {
	var docs []any
	for i, b := range []bson.Binary{
		{Subtype: 0x80, Data: []byte{9}},
		{Subtype: 0, Data: []byte{1, 0xff}},
		{Subtype: 3, Data: []byte{0, 0}},
		{Subtype: 3, Data: []byte{0xff, 0xff}},
		{Subtype: 4, Data: []byte{0, 0}},
		{Subtype: 0, Data: []byte{0, 0, 0}},
	} {
		docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "b", Value: b}})
	}
	coll := db.Collection("probe")
	if _, err := coll.InsertMany(ctx, docs); err != nil {
		return err
	}
	ids := func(filter any) ([]int32, error) {
		cur, err := coll.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "b", Value: 1}}))
		if err != nil {
			return nil, err
		}
		var found []struct {
			ID int32 `bson:"_id"`
		}
		err = cur.All(ctx, &found)
		var ids []int32
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		return ids, err
	}
	sorted, err := ids(bson.D{})
	if err != nil {
		return err
	}
	between, err := ids(bson.D{{Key: "b", Value: bson.D{{Key: "$gte", Value: bson.Binary{Subtype: 3, Data: []byte{0, 0}}}, {Key: "$lte", Value: bson.Binary{Subtype: 3, Data: []byte{0xff, 0xff}}}}}})
	if err != nil {
		return err
	}
	if slices.Equal(sorted, []int32{0, 1, 2, 3, 4, 5}) && slices.Equal(between, []int32{2, 3}) {
		return nil
	}
	err = fmt.Errorf("binary values are sorted as %v, and the range has %v", sorted, between)
	info, infoErr := db.RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Raw()
	if infoErr != nil {
		return infoErr
	}
	for _, server := range mixesSubtypes {
		if _, lookupErr := info.LookupErr(server.field); lookupErr == nil {
			return lacksError(server.name + ": " + err.Error())
		}
	}
	return err
}

type lacksError string

func (e lacksError) Error() string { return string(e) }

// mixesSubtypes maps a field of buildInfo to the server that it identifies, for servers that are
// known to treat binary values of the same bytes and different subtypes as equal.
var mixesSubtypes = []struct{ field, name string }{
	{"ferretdbVersion", "FerretDB"},
	{"secantusVersion", "SecantusDB"},
}

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
	for _, server := range mixesSubtypes {
		if _, lookupErr := info.LookupErr(server.field); lookupErr == nil {
			return lacksError(server.name + " takes binary values of the same bytes and different subtypes for equal")
		}
	}
	return err
}

// lackCodes are the error codes of a server that does not support a command, a stage or an option,
// or that supports it only in another deployment.
var lackCodes = []int{
	20,    // IllegalOperation: a transaction on a standalone server
	59,    // CommandNotFound
	115,   // CommandNotSupported
	238,   // NotImplemented
	40324, // an unknown pipeline stage
	40573, // $changeStream on a standalone server
}

// Lacks reports whether err is the answer of a server that lacks a feature.
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

// Require skips the test if the server lacks a feature. The reason is the answer of the server. Any
// other error of the probe fails the test. If BSONIDS_FEATURES names a file, Require appends a line
// to it for each feature: "ran FEATURE" when the test has passed, "lacks FEATURE" if the test was
// skipped. A run over several servers uses the file to find the features that no server has.
func (s *Server) Require(tb testing.TB, features ...*Feature) {
	tb.Helper()
	for _, f := range features {
		f.once.Do(func() { f.err = s.ask(f) })
		switch {
		case f.err == nil:
			tb.Cleanup(func() {
				if !tb.Failed() && !tb.Skipped() {
					record(tb, "ran", f)
				}
			})
		case Lacks(f.err):
			record(tb, "lacks", f)
			Skip(tb, fmt.Sprintf("the server lacks %s: %v", f.name, f.err))
		default:
			tb.Fatalf("mongotest: asking for %s: %v", f.name, f.err)
		}
	}
}

// record appends a line to the file BSONIDS_FEATURES. One short write in append mode is not mixed
// with the writes of other processes.
func record(tb testing.TB, what string, f *Feature) {
	tb.Helper()
	name := os.Getenv("BSONIDS_FEATURES")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintf(file, "%s %s\n", what, f.name)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		tb.Errorf("mongotest: BSONIDS_FEATURES: %v", err)
	}
}

// ask runs the probe in a new database.
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
