package embedded_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.uber.org/goleak"

	"github.com/bsonids/bsonids/integration/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, uri string) *mongo.Client {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestStart(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	began := time.Now()
	s, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(s.URI(), "mongodb://127.0.0.1:") {
		t.Errorf("URI %q is not on loopback", s.URI())
	}
	client := connect(t, s.URI())
	coll := client.Database("db").Collection("c")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Fatal(err)
	}
	if n, err := coll.CountDocuments(ctx, bson.D{}); err != nil || n != 1 {
		t.Fatalf("count %d, %v", n, err)
	}
	if err := client.Disconnect(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatalf("second Close: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	t.Logf("start, insert, count, stop: %v", time.Since(began))
}

// TestRestart tests that a server that is started again with the same directory and address has the
// data, and that a client that was connected before can continue.
func TestRestart(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	s, err := embedded.Start(embedded.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, s.URI())
	defer func() {
		if err := client.Disconnect(ctx); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	coll := client.Database("db").Collection("c")
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "_id", Value: "kept"}}); err != nil {
		t.Fatal(err)
	}
	addr := s.Addr()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = embedded.Start(embedded.WithDir(dir), embedded.WithAddr(addr)); err != nil {
		t.Fatal(err)
	}
	if s.Addr() != addr {
		t.Fatalf("address %s, want %s", s.Addr(), addr)
	}
	if n, err := coll.CountDocuments(ctx, bson.D{{Key: "_id", Value: "kept"}}); err != nil || n != 1 {
		t.Fatalf("after the restart: count %d, %v", n, err)
	}
}

func TestTwoServers(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var counts [2]int64
	for i := range counts {
		s, err := embedded.Start()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		client := connect(t, s.URI())
		defer client.Disconnect(ctx)
		coll := client.Database("db").Collection("c")
		if i == 0 {
			if _, err := coll.InsertOne(ctx, bson.D{}); err != nil {
				t.Fatal(err)
			}
		}
		if counts[i], err = coll.CountDocuments(ctx, bson.D{}); err != nil {
			t.Fatal(err)
		}
	}
	if counts != [2]int64{1, 0} {
		t.Fatalf("counts %v: the servers share their data", counts)
	}
}

func TestStartErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, tt := range []struct {
		name string
		opts []embedded.Option
		want string
	}{
		{"no directory", []embedded.Option{embedded.WithDir(filepath.Join(t.TempDir(), "none"))}, "no such file"},
		{"file", []embedded.Option{embedded.WithDir(file)}, "not a directory"},
		{"address", []embedded.Option{embedded.WithAddr("nowhere")}, "missing port"},
		{"port taken", []embedded.Option{embedded.WithAddr(s.Addr())}, "address already in use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			got, err := embedded.Start(tt.opts...)
			if err == nil {
				got.Close()
				t.Fatal("no error")
			}
			if msg := err.Error(); !strings.HasPrefix(msg, "embedded: ") || !strings.Contains(msg, tt.want) {
				t.Errorf("error %q, want %q in it", msg, tt.want)
			}
			if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// A server with a front refuses what MongoDB refuses, does everything else, and keeps its address.
func TestFront(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s, err := embedded.Start(embedded.WithFront())
	if err != nil {
		t.Fatal(err)
	}
	client := connect(t, s.URI())
	db := client.Database("db")
	wantCode := func(code int, command bson.D) {
		t.Helper()
		var got mongo.CommandError
		if err := db.RunCommand(ctx, command).Err(); !errors.As(err, &got) || int(got.Code) != code {
			t.Errorf("%v: %v", command, err)
		}
	}
	wantCode(40413, bson.D{{Key: "count", Value: "c"}, {Key: "maxTimeMS", Value: 1000}}) // the driver adds it because of the deadline
	wantCode(40415, bson.D{{Key: "count", Value: "c"}, {Key: "filter", Value: bson.D{}}})
	if _, err := db.Collection("c").InsertOne(ctx, bson.D{{Key: "_id", Value: 1}}); err != nil {
		t.Error(err)
	}
	if n, err := db.Collection("c").CountDocuments(ctx, bson.D{}); err != nil || n != 1 {
		t.Errorf("count %d, %v", n, err)
	}
	if _, err := embedded.Start(embedded.WithFront(), embedded.WithAddr(s.Addr())); err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Error(err)
	}
	if err := s.Close(); err != nil { // with an open connection
		t.Error(err)
	}
	if err := client.Disconnect(ctx); err != nil {
		t.Error(err)
	}
}
