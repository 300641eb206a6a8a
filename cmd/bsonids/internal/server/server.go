// Package server connects to a deployment, and tells what it can do, how its collections are sharded, and which validators
// they have.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/internal/redact"
)

// selectionTimeout is the server selection timeout if the connection string does not set one. The
// default of the driver, 30 seconds, is too long for a command that a user watches.
const selectionTimeout = 10 * time.Second

// Mode is the purpose of a client.
type Mode int

const (
	// Read uses the read preference of the connection string.
	Read Mode = iota
	// Write reads from the primary and, if the connection string does not set a write concern, uses
	// w: majority. Otherwise an update that a failover rolls back would be reported as done. The
	// driver does not retry writes: if the context has a deadline, it would do so without a pause
	// until then, with a new connection each time. The package patience retries with pauses. For
	// reads, see patience.Undated.
	//
	// The deadline of a context is the limit of the server (maxTimeMS), which no command has besides, because MongoDB refuses
	// a field that is there twice. The client waits a little longer for the answer. timeoutMS of the connection string limits
	// each read of a connection, and is not sent.
	Write
)

// Connect returns a client for uri after it has reached a server. The error is a *failure.Error
// without the credentials of the connection string.
func Connect(ctx context.Context, uri string, mode Mode) (*mongo.Client, error) {
	if uri == "" {
		return nil, &failure.Error{Kind: failure.Usage, Text: "no server; give --uri, or set MONGODB_URI"}
	}
	hide := redact.ConnectionString(uri)
	opts, err := clientopt.ApplyURI(uri)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "clientopt: ")
		if e := (*net.DNSError)(nil); errors.As(err, &e) { // mongodb+srv looks up the servers in DNS
			return nil, &failure.Error{Kind: failure.Unreachable, Text: "the server cannot be reached: " + hide.Text(text), Err: err}
		}
		return nil, &failure.Error{Kind: failure.Usage, Text: "invalid connection string: " + hide.Text(text)}
	}
	if opts.AppName == nil {
		opts.SetAppName("bsonids")
	}
	if opts.ServerSelectionTimeout == nil {
		opts.SetServerSelectionTimeout(selectionTimeout)
	}
	if mode == Write {
		opts.SetReadPreference(readpref.Primary()).SetRetryWrites(false)
		d := &dialer{}
		if opts.Timeout != nil && (opts.ConnectTimeout == nil || *opts.ConnectTimeout > 0) { // else the monitor has no deadline, either
			d.limit = *opts.Timeout
		}
		opts.SetDialer(d).Timeout = nil
		if opts.WriteConcern == nil {
			opts.SetWriteConcern(writeconcern.Majority())
		} else if opts.WriteConcern.W == nil { // only journal is set: the default of w on the server may be 1
			opts.SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: opts.WriteConcern.Journal})
		}
		if !opts.WriteConcern.Acknowledged() {
			return nil, &failure.Error{Kind: failure.Usage, Text: "the connection string has w=0; unacknowledged writes cannot be counted"}
		}
	}
	client, err := mongo.Connect(opts)
	if err == nil {
		if err = client.Ping(ctx, nil); err != nil {
			_ = client.Disconnect(context.WithoutCancel(ctx))
		}
	}
	if err != nil {
		return nil, failure.Explain(err, uri)
	}
	return client, nil
}

// Host returns the hosts of the deployment, without credentials.
func Host(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	if _, hosts, ok := strings.Cut(rest, "@"); ok {
		rest = hosts
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// Disconnect closes the client. It gives up after some seconds.
func Disconnect(client *mongo.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = client.Disconnect(ctx)
}

// Specification returns the specification of the collection, which has no name if there is none.
func Specification(ctx context.Context, coll *mongo.Collection) (s mongo.CollectionSpecification, err error) {
	specs, err := coll.Database().ListCollectionSpecifications(ctx, bson.D{{Key: "name", Value: coll.Name()}})
	if len(specs) > 0 {
		s = specs[0]
	}
	return s, err
}

// ErrMissing is wrapped by the error of a collection that does not exist.
var ErrMissing = errors.New("the collection does not exist")

// FindCollection is like [Specification]. A collection that does not exist is a usage error.
func FindCollection(ctx context.Context, coll *mongo.Collection) (*mongo.CollectionSpecification, error) {
	s, err := Specification(ctx, coll)
	if err == nil && s.Name == "" {
		err = &failure.Error{Kind: failure.Usage, Text: fmt.Sprintf("collection %s.%s does not exist", coll.Database().Name(), coll.Name()), Err: ErrMissing}
	}
	return &s, err
}

// EnforcesTime reports whether the server ends an update at the limit of maxTimeMS. It sends one that
// changes nothing, and that takes longer than its limit, a millisecond, to find that its filter does not
// match. A server that does not answer within two seconds does not. FerretDB 1 is not asked: it limits reads
// only, and a command that it ends can end another one on the same connection to its database.
func EnforcesTime(ctx context.Context, coll *mongo.Collection) (bool, error) {
	if WriteLimit(ctx, coll.Database().Client()) > 0 {
		return false, nil
	}
	// A server that does not end the update then looks at one document only.
	doc, err := coll.FindOne(ctx, bson.D{}, options.FindOne().SetProjection(bson.D{{Key: "_id", Value: 1}})).Raw()
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	limited, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	zero := bson.D{{Key: "$cond", Value: bson.A{bson.D{{Key: "$eq", Value: bson.A{"$_id", nil}}}, 1, 0}}}
	size := bson.D{{Key: "$size", Value: bson.D{{Key: "$range", Value: bson.A{zero, 1_000_000}}}}}
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: doc.Lookup("_id")}}}, {Key: "$expr", Value: bson.D{{Key: "$lt", Value: bson.A{size, 0}}}}}
	// With a deadline that it can see, the driver would send a limit of its own, too.
	err = coll.Database().RunCommand(patience.Undated(limited), bson.D{{Key: "update", Value: coll.Name()}, {Key: "updates", Value: bson.A{
		bson.D{{Key: "q", Value: filter}, {Key: "u", Value: bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}}}}}, {Key: "maxTimeMS", Value: 1}},
		options.RunCmd().SetReadPreference(readpref.Primary())).Err()
	var se mongo.ServerError
	switch {
	case limited.Err() != nil:
		return false, ctx.Err()
	case err == nil, !errors.As(err, &se), failure.Transient(err) && !failure.Means(err, failure.Expired):
		return false, err
	}
	return failure.Means(err, failure.Expired), nil // another error is of a server that does not know the operators
}

// WriteLimit returns how many concurrent updates the server can handle, or 0 if there is no limit.
// FerretDB 1 stops responding when more than a hundred are in progress.
func WriteLimit(ctx context.Context, client *mongo.Client) int {
	var info struct {
		FerretDB string `bson:"ferretdbVersion"`
	}
	// A server that does not answer is not FerretDB.
	_ = client.Database("admin").RunCommand(ctx, bson.D{{Key: "buildInfo", Value: 1}}).Decode(&info)
	if info.FerretDB != "" && !strings.HasPrefix(strings.TrimPrefix(info.FerretDB, "v"), "2.") { // a build may lack a version
		return 60
	}
	return 0
}

// Router is what a router of a sharded cluster says of itself.
type Router struct{ wire int32 }

// The wire versions of MongoDB.
const (
	wire50 = 13
	wire60 = 17
)

// RouterOf returns what the router says that the client is connected to, or nil if it is another server.
func RouterOf(ctx context.Context, db *mongo.Database) (*Router, error) {
	var is struct {
		Msg            string
		MaxWireVersion int32 `bson:"maxWireVersion"`
	}
	err := db.RunCommand(ctx, bson.D{{Key: "isMaster", Value: 1}}, options.RunCmd().SetReadPreference(readpref.Primary())).Decode(&is)
	if err != nil || is.Msg != "isdbgrid" {
		return nil, err
	}
	return &Router{is.MaxWireVersion}, nil
}

// Renames reports whether the server can rename a sharded collection: MongoDB from 5.0 on.
func (r *Router) Renames() bool { return r.wire >= wire50 }

// CountsOrphans reports whether an update by _id also counts copies of the document that are on other shards by
// mistake: it is sent to all shards by MongoDB before 6.0.
func (r *Router) CountsOrphans() bool { return r.wire < wire60 }

// Indexes returns the indexes of coll, except the one on _id.
func Indexes(ctx context.Context, coll *mongo.Collection) ([]bson.Raw, error) {
	cur, err := coll.Indexes().List(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	var out []bson.Raw
	for cur.Next(ctx) {
		name, _ := cur.Current.Lookup("name").StringValueOK()
		_, clustered := cur.Current.Lookup("clustered").BooleanOK()
		if name != "_id_" && !clustered {
			out = append(out, slices.Clone(cur.Current))
		}
	}
	return out, cur.Err()
}
