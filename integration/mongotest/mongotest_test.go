package mongotest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/integration/mongotest"
)

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client
}

func TestDatabases(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	one, two := mongotest.Start(t), mongotest.Start(t)
	if one.Database() == two.Database() {
		t.Fatalf("two databases named %s", one.Database())
	}
	client := connect(t, one.With("appName=mongotest&uuidRepresentation=standard"))
	coll := func(s *mongotest.Server) *mongo.Collection { return client.Database(s.Database()).Collection("c") }
	if _, err := coll(one).InsertOne(ctx, bson.D{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		server *mongotest.Server
		want   int64
	}{{one, 1}, {two, 0}} {
		if n, err := coll(tt.server).CountDocuments(ctx, bson.D{}); err != nil || n != tt.want {
			t.Errorf("%s holds %d documents, want %d (%v)", tt.server.Database(), n, tt.want, err)
		}
	}
}

func TestURI(t *testing.T) {
	s := mongotest.Start(t)
	for _, uri := range []string{s.URI(), s.With("appName=x"), mongotest.URI(t)} {
		cs, err := connstring.ParseAndValidate(uri)
		if err != nil {
			t.Fatalf("%s: %v", uri, err)
		}
		if !strings.HasPrefix(cs.Database, "testuri_") {
			t.Errorf("%s: database %q", uri, cs.Database)
		}
	}
}

// TestDropped tests that the database is dropped when its test ends.
func TestDropped(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var database string
	t.Run("insert", func(t *testing.T) {
		s := mongotest.Start(t)
		database = s.Database()
		if _, err := connect(t, s.URI()).Database(database).Collection("c").InsertOne(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	})
	names, err := connect(t, mongotest.URI(t)).ListDatabaseNames(ctx, bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name == database {
			t.Errorf("%s is still there", name)
		}
	}
}
