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
	ClientBulkWrite = &Feature{name: "client-level bulk write", probe: probeClientBulkWrite}
	// ChangeStreams need a replica set or a sharded cluster.
	ChangeStreams = &Feature{name: "change streams", probe: probeChangeStreams}
	// QueryValidators are validators of documents by query operators.
	QueryValidators = &Feature{name: "validators by query", probe: func(ctx context.Context, db *mongo.Database) error {
		return probeValidator(ctx, db, bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 1}}}}, db.CreateCollection)
	}}
	// JSONSchema is the validation of documents by $jsonSchema, with required and enum.
	JSONSchema = &Feature{name: "validators by $jsonSchema", probe: func(ctx context.Context, db *mongo.Database) error {
		return probeValidator(ctx, db, bson.D{{Key: "$jsonSchema", Value: bson.D{
			{Key: "required", Value: bson.A{"a"}},
			{Key: "properties", Value: bson.D{{Key: "a", Value: bson.D{{Key: "enum", Value: bson.A{1}}}}}},
		}}}, db.CreateCollection)
	}}
	// CollMod is the command that sets the validator of a collection that exists.
	CollMod = &Feature{name: "collMod", probe: func(ctx context.Context, db *mongo.Database) error {
		validator := bson.D{{Key: "a", Value: bson.D{{Key: "$gte", Value: 1}}}}
		return probeValidator(ctx, db, validator, func(ctx context.Context, name string, _ ...options.Lister[options.CreateCollectionOptions]) error {
			if err := db.CreateCollection(ctx, name); err != nil {
				return err
			}
			return db.RunCommand(ctx, bson.D{{Key: "collMod", Value: name}, {Key: "validator", Value: validator}}).Err()
		})
	}}
	// Sharding needs a sharded cluster.
	Sharding = &Feature{name: "sharding", probe: func(ctx context.Context, db *mongo.Database) error {
		return db.Client().Database("admin").RunCommand(ctx, bson.D{{Key: "listShards", Value: 1}}).Err()
	}}
	// DistinctSubtypes means that a unique index distinguishes binary values of the same bytes and
	// different subtypes, as that of MongoDB does.
	DistinctSubtypes = &Feature{name: "subtypes in unique indexes", probe: probeSubtypes}
	// BinaryOrder means that binary values are ordered by length, then by subtype, then byte by byte,
	// as MongoDB orders them.
	BinaryOrder = &Feature{name: "order of binary values", probe: probeOrder}
	// ExplainedIndexes means that explain names the index that a query uses.
	ExplainedIndexes = &Feature{name: "explained indexes", probe: probeExplain}
	// AtomicUpdates means that no update of a document is lost if several run at the same time.
	AtomicUpdates = &Feature{name: "atomic updates", probe: probeAtomicUpdates}
	// Merge is the stage $merge of an aggregation, with a pipeline for documents that are there.
	Merge = &Feature{name: "$merge with a pipeline", probe: probeMerge}
	// UniqueUpdates means that an update that a unique index forbids fails with the error for that.
	UniqueUpdates = &Feature{name: "unique indexes in updates", probe: probeUniqueUpdates}
	// Lookup is the stage $lookup of an aggregation.
	Lookup = &Feature{name: "$lookup", probe: func(ctx context.Context, db *mongo.Database) error {
		stage := bson.D{{Key: "from", Value: "probe"}, {Key: "localField", Value: "a"}, {Key: "foreignField", Value: "_id"}, {Key: "as", Value: "b"}}
		cursor, err := db.Collection("probe").Aggregate(ctx, mongo.Pipeline{{{Key: "$lookup", Value: stage}}})
		if err != nil {
			return err
		}
		return cursor.Close(ctx)
	}}
)

func probeClientBulkWrite(ctx context.Context, db *mongo.Database) error {
	if err := db.Client().Database("admin").RunCommand(ctx, bson.D{
		{Key: "bulkWrite", Value: 1},
		{Key: "ops", Value: bson.A{bson.D{{Key: "insert", Value: 0}, {Key: "document", Value: bson.D{{Key: "_id", Value: 1}}}}}},
		{Key: "nsInfo", Value: bson.A{bson.D{{Key: "ns", Value: db.Name() + ".probe"}}}},
	}).Err(); err != nil {
		return err
	}
	n, err := db.Collection("probe").CountDocuments(ctx, bson.D{{Key: "_id", Value: 1}})
	if err == nil && n != 1 {
		err = lacksError("bulkWrite inserted nothing")
	}
	return err
}

// probeChangeStreams waits for the event of an insert.
func probeChangeStreams(ctx context.Context, db *mongo.Database) error {
	if err := db.CreateCollection(ctx, "probe"); err != nil {
		return err
	}
	stream, err := db.Collection("probe").Watch(ctx, mongo.Pipeline{})
	if err != nil {
		return err
	}
	if _, err := db.Collection("probe").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		return errors.Join(err, stream.Close(ctx))
	}
	if !stream.Next(ctx) {
		err = lacksError(fmt.Sprintf("the stream has no event of an insert: %v", stream.Err()))
	}
	return errors.Join(err, stream.Close(ctx))
}

// probeValidator makes a collection that must accept {a: 1}, and refuse {a: 0} and {}.
func probeValidator(ctx context.Context, db *mongo.Database, validator bson.D,
	create func(context.Context, string, ...options.Lister[options.CreateCollectionOptions]) error,
) error {
	if err := create(ctx, "probe", options.CreateCollection().SetValidator(validator)); err != nil {
		return err
	}
	coll := db.Collection("probe")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "a", Value: 1}}); err != nil {
		return lacksError(fmt.Sprintf("a document that the validator %v accepts is refused: %v", validator, err))
	}
	for _, doc := range []bson.D{{{Key: "a", Value: 0}}, {}} {
		if _, err := coll.InsertOne(ctx, doc); err == nil {
			return lacksError(fmt.Sprintf("a document that the validator %v refuses is inserted: %v", validator, doc))
		}
	}
	return nil
}

func probeAtomicUpdates(ctx context.Context, db *mongo.Database) error {
	coll := db.Collection("probe")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: 0}}); err != nil {
		return err
	}
	const writers, each = 16, 25
	errs := make([]error, writers)
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			for range each {
				_, err := coll.UpdateByID(ctx, 1, bson.D{{Key: "$inc", Value: bson.D{{Key: "n", Value: 1}}}})
				errs[i] = errors.Join(errs[i], err)
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var doc struct{ N int }
	if err := coll.FindOne(ctx, bson.D{}).Decode(&doc); err != nil {
		return err
	}
	if doc.N != writers*each {
		return lacksError(fmt.Sprintf("%d updates at a time left %d of %d", writers, doc.N, writers*each))
	}
	return nil
}

func probeUniqueUpdates(ctx context.Context, db *mongo.Database) error {
	coll := db.Collection("probe")
	if _, err := coll.Indexes().CreateOne(ctx, mongo.IndexModel{Keys: bson.D{{Key: "u", Value: 1}}, Options: options.Index().SetUnique(true)}); err != nil {
		return err
	}
	if _, err := coll.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: 1}}, bson.D{{Key: "_id", Value: 2}, {Key: "u", Value: 2}}}); err != nil {
		return err
	}
	if _, err := coll.UpdateByID(ctx, 2, bson.D{{Key: "$set", Value: bson.D{{Key: "u", Value: 1}}}}); !mongo.IsDuplicateKeyError(err) {
		return lacksError(fmt.Sprintf("an update to a value that another document has: %v", err))
	}
	return nil
}

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

// probeTransactions aborts an insert and commits another.
func probeTransactions(ctx context.Context, db *mongo.Database) error {
	if err := db.CreateCollection(ctx, "probe"); err != nil {
		return err
	}
	coll := db.Collection("probe")
	err := db.Client().UseSession(ctx, func(ctx context.Context) error {
		session := mongo.SessionFromContext(ctx)
		for id, end := range []func(context.Context) error{session.AbortTransaction, session.CommitTransaction} {
			if err := session.StartTransaction(); err != nil {
				return err
			}
			var answer mongo.ServerError
			if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: id}}); errors.As(err, &answer) && answer.HasErrorCode(9) {
				return lacksError(err.Error()) // FailedToParse: the fields of a transaction are unknown
			} else if err != nil {
				return err
			}
			if err := end(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var docs []struct {
		ID int `bson:"_id"`
	}
	cur, err := coll.Find(ctx, bson.D{})
	if err != nil {
		return err
	}
	if err := cur.All(ctx, &docs); err != nil {
		return err
	}
	if len(docs) != 1 || docs[0].ID != 1 {
		return lacksError(fmt.Sprintf("after an aborted and a committed insert there are %v", docs))
	}
	return nil
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
	return lacksError(fmt.Sprintf("binary values are sorted as %v, and the range has %v", sorted, between))
}

type lacksError string

func (e lacksError) Error() string { return string(e) }

// probeMerge merges a document into another one.
func probeMerge(ctx context.Context, db *mongo.Database) error {
	coll := db.Collection("probe")
	if _, err := coll.InsertMany(ctx, []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "a", Value: int32(1)}}, bson.D{{Key: "_id", Value: int32(2)}, {Key: "b", Value: int32(2)}}}); err != nil {
		return err
	}
	matched := bson.A{bson.D{{Key: "$replaceWith", Value: bson.D{{Key: "$mergeObjects", Value: bson.A{"$$new", "$$ROOT"}}}}}}
	cur, err := coll.Aggregate(ctx, mongo.Pipeline{
		{{Key: "$match", Value: bson.D{{Key: "_id", Value: int32(1)}}}},
		{{Key: "$set", Value: bson.D{{Key: "_id", Value: int32(2)}}}},
		{{Key: "$merge", Value: bson.D{{Key: "into", Value: "probe"}, {Key: "whenMatched", Value: matched}, {Key: "whenNotMatched", Value: "discard"}}}},
	})
	if err != nil {
		return err
	}
	n, err := coll.CountDocuments(ctx, bson.D{{Key: "_id", Value: int32(2)}, {Key: "a", Value: int32(1)}, {Key: "b", Value: int32(2)}})
	if err == nil && n != 1 {
		err = lacksError("$merge does not merge")
	}
	return errors.Join(err, cur.Close(ctx))
}

func probeSubtypes(ctx context.Context, db *mongo.Database) error {
	octets := make([]byte, 16)
	_, err := db.Collection("probe").InsertMany(ctx, []any{
		bson.D{{Key: "_id", Value: bson.Binary{Subtype: bson.TypeBinaryUUIDOld, Data: octets}}},
		bson.D{{Key: "_id", Value: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: octets}}},
	})
	if mongo.IsDuplicateKeyError(err) {
		return lacksError("binary values of the same bytes and different subtypes are equal")
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
		if !s.Has(tb, f) {
			record(tb, "lacks", f)
			Skip(tb, fmt.Sprintf("the server lacks %s: %v", f.name, f.err))
		}
		tb.Cleanup(func() {
			if !tb.Failed() && !tb.Skipped() {
				record(tb, "ran", f)
			}
		})
	}
}

// Refuse skips the test if the server has a feature: the test is of a server without it.
func (s *Server) Refuse(tb testing.TB, f *Feature) {
	tb.Helper()
	if s.Has(tb, f) {
		Skip(tb, "the server has "+f.name)
	}
}

// Has reports whether the server has a feature. An error of the probe that does not mean that the
// server lacks it fails the test.
func (s *Server) Has(tb testing.TB, f *Feature) bool {
	tb.Helper()
	f.once.Do(func() { f.err = s.ask(f) })
	if f.err != nil && !Lacks(f.err) {
		tb.Fatalf("mongotest: asking for %s: %v", f.name, f.err)
	}
	return f.err == nil
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
