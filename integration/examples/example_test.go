package examples

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/cursors"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/mixedrep"
	"github.com/bsonids/bsonids/uuidaudit"
	"github.com/bsonids/bsonids/uuidrep"
)

// server is the connection string of the server, without options.
var server string

func TestMain(m *testing.M) {
	s, err := embedded.Start()
	if err != nil {
		log.Fatal(err)
	}
	server = s.URI()
	code := m.Run()
	if err := s.Close(); err != nil {
		log.Print(err)
	}
	os.Exit(code)
}

var (
	ctx  = context.Background()
	ada  = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	carl = uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
)

func connect(rep uuidrep.Representation, opts ...clientopt.Option) *mongo.Client {
	client, err := clientopt.Connect(server, append(opts, clientopt.WithDefaultRepresentation(rep))...)
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// A collection holds one customer in both representations. The filter finds both, and a document that is inserted has the
// one that is written.
func Example_mixedrep() {
	java, standard := connect(uuidrep.JavaLegacy), connect(uuidrep.Standard)
	defer java.Disconnect(ctx)
	defer standard.Disconnect(ctx)
	for i, client := range []*mongo.Client{java, standard} {
		_, err := client.Database("mixed").Collection("orders").InsertOne(ctx, bson.D{{Key: "_id", Value: i}, {Key: "customer", Value: ada}})
		must(err)
	}

	plain := java.Database("mixed").Collection("orders")
	orders, err := mixedrep.Wrap(plain, uuidrep.JavaLegacy, uuidrep.Standard)
	must(err)
	one, err := plain.CountDocuments(ctx, bson.M{"customer": ada})
	must(err)
	both, err := orders.CountDocuments(ctx, bson.M{"customer": ada})
	must(err)
	fmt.Println(one, both)

	filter, err := mixedrep.Match("customer", ada, uuidrep.JavaLegacy, uuidrep.Standard)
	must(err)
	byHand, err := plain.CountDocuments(ctx, filter)
	fmt.Println(byHand, err)

	_, err = orders.UpdateOne(ctx, bson.M{"customer": carl}, bson.M{"$set": bson.M{"n": 1}}, options.UpdateOne().SetUpsert(true))
	fmt.Println(errors.As(err, new(*mixedrep.UncoveredError)))
	// Output:
	// 1 2
	// 2 <nil>
	// true
}

// A program stores a UUID by hand and forgets the subtype, and asks for another one by its text.
func Example_uuidaudit() {
	client := connect(uuidrep.Standard, clientopt.WithAudit(func(f uuidaudit.Finding) { fmt.Println(f) }, uuidaudit.WithText()))
	defer client.Disconnect(ctx)
	users := client.Database("audited").Collection("users")
	_, err := users.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}, {Key: "session", Value: bson.Binary{Data: ada[:]}}})
	must(err)
	fmt.Println(users.FindOne(ctx, bson.D{{Key: "session", Value: ada.String()}}).Err())
	fmt.Println(users.Distinct(ctx, "session", bson.D{}).Err())
	// Output:
	// audited.users: insert: document: *.session: 1 16-byte binary of subtype 0
	// audited.users: find: filter: session: 1 UUID as text
	// mongo: no documents in result
	// audited.users: distinct: reply: session: 1 16-byte binary of subtype 0
	// <nil>
}

func Example_cursors() {
	client := connect(uuidrep.Standard)
	defer client.Disconnect(ctx)
	type user struct {
		ID   uuid.UUID `bson:"_id"`
		Name string
	}
	users := client.Database("read").Collection("users")
	_, err := users.InsertMany(ctx, []any{user{ada, "Ada"}, user{carl, "Carl"}})
	must(err)

	u, err := cursors.One[user](users.FindOne(ctx, bson.M{"_id": ada}))
	fmt.Println(u.Name, err)
	_, err = cursors.One[user](users.FindOne(ctx, bson.M{"_id": uuid.Nil}))
	fmt.Println(errors.Is(err, mongo.ErrNoDocuments))

	cursor, err := users.Find(ctx, bson.D{}, options.Find().SetSort(bson.M{"_id": 1}).SetBatchSize(1))
	must(err)
	for u, err := range cursors.Values[user](ctx, cursor) {
		fmt.Println(u.ID, u.Name, err)
	}
	// Output:
	// Ada <nil>
	// true
	// 00112233-4455-6677-8899-aabbccddeeff Ada <nil>
	// 017f22e2-79b0-7cc3-98c4-dc0c0c07398f Carl <nil>
}

// The metadata of a file holds a UUID. The driver's own bucket stores it as subtype 0.
func Example_gridFS() {
	client := connect(uuidrep.Standard)
	defer client.Disconnect(ctx)
	setup, err := clientopt.Check(client)
	fmt.Println(setup, err)

	plain := client.Database("files").GridFSBucket()
	bucket, err := clientopt.GridFS(plain)
	must(err)
	opts := options.GridFSUpload().SetMetadata(bson.M{"owner": ada})
	must(plain.UploadFromStreamWithID(ctx, 1, "plain", strings.NewReader("text"), opts))
	must(bucket.UploadFromStreamWithID(ctx, 2, "ours", strings.NewReader("text"), opts))

	cursor, err := bucket.GetFilesCollection().Find(ctx, bson.D{}, options.Find().SetSort(bson.M{"_id": 1}))
	must(err)
	for file, err := range cursors.Values[bson.Raw](ctx, cursor) {
		must(err)
		subtype, _ := file.Lookup("metadata", "owner").Binary()
		fmt.Println(file.Lookup("filename").StringValue(), subtype)
	}
	// Output:
	// standard <nil>
	// plain 0
	// ours 4
}
