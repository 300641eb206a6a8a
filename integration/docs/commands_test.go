package docs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
)

// seedVariable holds the connection string in a process that a page's "seed" or "dump" starts.
const seedVariable = "BSONIDS_DOCS_SEED"

func TestMain(m *testing.M) {
	if uri := os.Getenv(seedVariable); uri != "" && len(os.Args) > 3 {
		run := seed
		if os.Args[1] == "dump" {
			run = dump
		}
		if err := run(uri, os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", os.Args[1], err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// seed inserts documents in Extended JSON into a collection, which is named with its database.
func seed(uri, namespace string, documents []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	database, collection, _ := strings.Cut(namespace, ".")
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	for _, text := range documents {
		var doc bson.D
		if err := bson.UnmarshalExtJSON([]byte(text), false, &doc); err != nil {
			return err
		}
		if _, err := client.Database(database).Collection(collection).InsertOne(ctx, doc); err != nil {
			return err
		}
	}
	return client.Disconnect(ctx)
}

// dump writes the collections of a database to a directory, in the files of mongodump.
func dump(uri, database string, to []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		return err
	}
	dir := filepath.Join(to[0], database)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	names, err := client.Database(database).ListCollectionNames(ctx, bson.D{})
	if err != nil {
		return err
	}
	for _, name := range names {
		cur, err := client.Database(database).Collection(name).Find(ctx, bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
		if err != nil {
			return err
		}
		var docs []bson.Raw
		if err := cur.All(ctx, &docs); err != nil {
			return err
		}
		var b []byte
		for _, d := range docs {
			b = append(b, d...)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".bson"), b, 0o644); err != nil {
			return err
		}
		metadata := fmt.Sprintf(`{"options":{},"indexes":[{"v":{"$numberInt":"2"},"key":{"_id":{"$numberInt":"1"}},"name":"_id_"}],"collectionName":%q,"type":"collection"}`, name)
		if err := os.WriteFile(filepath.Join(dir, name+".metadata.json"), []byte(metadata), 0o644); err != nil {
			return err
		}
	}
	return client.Disconnect(ctx)
}

// localhost is the server that the pages speak to.
var localhost = regexp.MustCompile(`mongodb://(localhost|127\.0\.0\.1)(:27017)?\b`)

//go:embed service.py
var service string

// shell runs the commands of one page, in one directory and on one server.
type shell struct {
	dir, uri string
	env      []string
}

// newShell starts an empty server. It puts the programs seed and dump, service if there is a Python with
// PyMongo, and those in bin into the path. REPOSITORY is the top of this repository, where a page needs a clone of it.
func newShell(t *testing.T, bin, python string) *shell {
	t.Helper()
	server, err := embedded.Start(embedded.WithFront())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	uri := strings.TrimSuffix(server.URI(), "/")
	own := t.TempDir()
	for _, name := range []string{"seed", "dump"} {
		script := fmt.Sprintf("#!/bin/sh\n%s=%q exec %q %s \"$@\"\n", seedVariable, uri, self, name)
		if err := os.WriteFile(filepath.Join(own, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if python != "" {
		file := filepath.Join(own, "service.py")
		script := fmt.Sprintf("#!/bin/sh\nexec %q %q %q \"$@\"\n", python, file, uri)
		if err := errors.Join(os.WriteFile(file, []byte(service), 0o644), os.WriteFile(filepath.Join(own, "service"), []byte(script), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	path := strings.Join([]string{own, bin, os.Getenv("PATH")}, string(os.PathListSeparator))
	env := append(os.Environ(), "PATH="+path, "MONGODB_URI="+uri, "REPOSITORY="+repository)
	return &shell{dir: t.TempDir(), uri: uri, env: append(env, modules(t)...)}
}

// modules returns the environment in which a module of a page takes its modules from the cache first, whose files were
// verified when they came there.
func modules(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, proxy, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return []string{"GOWORK=off", "GOSUMDB=off", "GOPROXY=file://" + filepath.ToSlash(cache) + "/cache/download," + proxy}
}

// run returns the output of a block, and an error if its exit code is not the one that the page expects.
func (s *shell) run(ctx context.Context, b block) (string, error) {
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", localhost.ReplaceAllLiteralString(b.setup+b.text, s.uri))
	cmd.Dir, cmd.Env = s.dir, s.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return string(out), err
	}
	if code := cmd.ProcessState.ExitCode(); code != b.exit {
		return string(out), fmt.Errorf("exit code %d, want %d", code, b.exit)
	}
	return string(out), nil
}

func TestCommands(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a Unix shell")
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, "github.com/bsonids/bsonids/cmd/bsonids").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for page, blocks := range pages(t) {
		t.Run(page, func(t *testing.T) {
			var python string
			for _, b := range blocks {
				if strings.HasPrefix(b.setup, "service ") {
					python = mongotest.Python(t)
				}
			}
			s := newShell(t, bin, python)
			for _, b := range blocks {
				if b.lang != "sh" {
					continue
				}
				t.Run(fmt.Sprint(b.line), func(t *testing.T) {
					if b.not != "" {
						t.Skip(b.not)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
					defer cancel()
					out, err := s.run(ctx, b)
					if err != nil {
						t.Errorf("%s:%d: %v\n%s", page, b.line, err, out)
					}
				})
			}
		})
	}
}

func TestShell(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a Unix shell")
	}
	s := newShell(t, t.TempDir(), "")
	for _, tt := range []struct {
		b         block
		out, want string // in the output, and of the error
	}{
		{block{text: "echo one >file\n"}, "", ""},
		{block{text: "cat file\n"}, "one", ""},
		{block{setup: "seed a.b '{\"_id\": 1}'\n", text: "echo mongodb://localhost:27017/?x\n"}, s.uri + "/?x", ""},
		{block{text: "seed a.b '{\"_id\": 1}'\n"}, "duplicate key", "exit code 1, want 0"},
		{block{text: "exit 3\n", exit: 3}, "", ""},
		{block{text: "true\n", exit: 3}, "", "exit code 0, want 3"},
		{block{text: "false\ntrue\n"}, "", "exit code 1, want 0"},
		{block{text: "echo $NONE\n"}, "NONE", "exit code"},
	} {
		out, err := s.run(t.Context(), tt.b)
		if !strings.Contains(out, tt.out) || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %q, %v", tt.b, out, err)
		}
	}
}

// A careful administrator reads all of the page about a first conversion.
func TestFirstConversionIsShort(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "first-conversion.md"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(page), "\n"); lines > 60 {
		t.Errorf("%d lines", lines)
	}
}
