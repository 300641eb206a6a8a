package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

var (
	scanDocuments    = flag.Int("scan-documents", 0, "scan a collection of this many documents and report the memory")
	convertDocuments = flag.Int("convert-documents", 0, "documents of the benchmark of convert beside the driver's own loop; 300 if 0")
)

// asCommand makes the test binary the command itself, to be killed.
const asCommand = "BSONIDS_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(interruptible(os.Args[1:]))
	}
	mongotest.Main(m)
}

// embedded servers can take no more than a hundred updates at a time in all, and walk the collection for each.
var gentle = []string{"--batch", "10", "--workers", "2"}

// target is a server, or what stands before one.
type target interface{ URI() string }

type result struct {
	code           int
	stdout, stderr string
}

func command(t testing.TB, s target, args ...string) result {
	t.Helper()
	if s != nil {
		args = append(args, "--uri", s.URI())
	}
	var out, errs bytes.Buffer
	code := run(t.Context(), args, &out, &errs)
	return result{code, out.String(), errs.String()}
}

func (r result) want(t testing.TB, code int) result {
	t.Helper()
	if r.code != code {
		t.Fatalf("exit code %d, want %d\n%s%s", r.code, code, r.stdout, r.stderr)
	}
	return r
}

func connect(t testing.TB, s *mongotest.Server) *mongo.Database {
	t.Helper()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Disconnect(context.Background()) })
	return client.Database(s.Database())
}

func insert(t testing.TB, coll *mongo.Collection, docs []any) {
	t.Helper()
	for len(docs) > 0 {
		n := min(len(docs), 5000)
		if _, err := coll.InsertMany(t.Context(), docs[:n]); err != nil {
			t.Fatal(err)
		}
		docs = docs[n:]
	}
}

func all(t testing.TB, coll *mongo.Collection) map[string]bson.Raw {
	t.Helper()
	cur, err := coll.Find(context.Background(), bson.D{})
	if err != nil {
		t.Fatal(err)
	}
	var docs []bson.Raw
	if err := cur.All(context.Background(), &docs); err != nil {
		t.Fatal(err)
	}
	out := make(map[string]bson.Raw, len(docs))
	for _, d := range docs {
		out[d.Lookup("_id").String()] = d
	}
	return out
}

// in is a UUID as the representation stores it; in subtype 0 where r is Unspecified.
func in(u uuid.UUID, r uuidrep.Representation) bson.Binary {
	if r == uuidrep.Unspecified {
		return bson.Binary{Data: u[:]}
	}
	b, err := uuidrep.NewBinaryWithRepresentation(u, r)
	if err != nil {
		panic(err)
	}
	return b
}

var legacy = []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy}

func scanned(t testing.TB, s *mongotest.Server, args ...string) map[string]scan.Field {
	t.Helper()
	r := command(t, s, append([]string{"scan", "--db", s.Database(), "--output", "json"}, args...)...).want(t, exitOK)
	var report scan.Report
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]scan.Field)
	for _, c := range report.Collections {
		for _, f := range c.Fields {
			fields[strings.TrimPrefix(c.Namespace, s.Database()+".")+" "+f.Path] = f
		}
	}
	return fields
}

// A thousand random UUIDs in each representation, and octets without version bits.
func TestScan(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for _, r := range legacy {
		var docs []any
		for range 1000 {
			docs = append(docs, bson.D{{Key: "id", Value: in(uuid.New(), r)}, {Key: "list", Value: bson.A{in(uuid.New(), uuidrep.Standard), in(uuid.New(), r)}}})
		}
		insert(t, db.Collection(r.String()), docs)
	}
	var docs []any
	for range 1000 {
		var sum [16]byte
		for i := range sum {
			sum[i] = byte(rand.Uint32())
		}
		docs = append(docs, bson.D{{Key: "sum", Value: in(sum, uuidrep.JavaLegacy)}, {Key: "go", Value: in(uuid.New(), uuidrep.Unspecified)}, {Key: "text", Value: uuid.NewString()}})
	}
	insert(t, db.Collection("others"), docs)
	fields := scanned(t, s, "--all")
	for _, r := range legacy {
		for _, path := range []string{" id", " list[]"} {
			f := fields[r.String()+path]
			if f.Counts.Legacy != 1000 || len(f.Evidence) != 1 || f.Evidence[0].Verdict != r.String() || f.Evidence[0].Confidence < .99 {
				t.Errorf("%v%s: %+v", r, path, f)
			}
		}
	}
	if f := fields["others sum"]; f.Counts.Legacy != 1000 || f.Evidence[0].Verdict != "cannot tell" {
		t.Errorf("%+v", f)
	}
	if f := fields["others go"]; f.Counts.Generic != 1000 || f.Evidence[0].Verdict != "generic" {
		t.Errorf("%+v", f)
	}
	if f := fields["others text"]; f.Counts.Text != 1000 {
		t.Errorf("%+v", f)
	}
	if r := command(t, s, "scan", "--db", s.Database(), "-o", "html").want(t, exitOK); !strings.Contains(r.stdout, "<!DOCTYPE html>") {
		t.Error(r.stdout)
	}
	if r := command(t, s, "scan", "--db", s.Database(), "--sample", "50", "--collection", "others").want(t, exitOK); !strings.Contains(r.stdout, "50 of about 1000") {
		t.Error(r.stdout)
	}
	command(t, s, "scan", "--db", s.Database(), "--collection", "nowhere").want(t, exitUsage)
}

const pymongo = `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD, PYTHON_LEGACY, JAVA_LEGACY, CSHARP_LEGACY
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
def coll(name, rep):
    return db.get_collection(name, codec_options=CodecOptions(uuid_representation=rep))
reps = {'standard': STANDARD, 'pythonLegacy': PYTHON_LEGACY, 'javaLegacy': JAVA_LEGACY, 'csharpLegacy': CSHARP_LEGACY}
for name, rep in reps.items():
    coll(name, rep).insert_many([{'_id': i, 'id': uuid.uuid4(), 'at': uuid.uuid1(), 'in': {'l': [uuid.uuid4()]}} for i in range(1000)])
for rep in (JAVA_LEGACY, CSHARP_LEGACY, STANDARD):
    coll('mixed', rep).insert_many([{'id': uuid.uuid4()} for i in range(300)])
coll('few', JAVA_LEGACY).insert_many([{'_id': i, 'id': uuid.UUID(int=i << 64 | i)} for i in range(1, 61)])
`

// python returns an interpreter that has PyMongo.
func python(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if path, err := exec.LookPath(name); err == nil && exec.Command(path, "-c", "import pymongo").Run() == nil {
			return path
		}
	}
	mongotest.Skip(t, "no Python with PyMongo (Debian: python3-pymongo)")
	return ""
}

// What another driver wrote, in each representation and mixed; and what convert makes of it, it reads as the same UUIDs.
func TestPyMongo(t *testing.T) {
	py := python(t)
	s := mongotest.Start(t)
	if out, err := exec.Command(py, "-c", pymongo, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	fields := scanned(t, s, "--all")
	for _, r := range legacy {
		for _, path := range []string{" id", " at", " in.l[]"} {
			if f := fields[r.String()+path]; f.Counts.Legacy != 1000 || f.Evidence[0].Verdict != r.String() {
				t.Errorf("%v%s: %+v", r, path, f)
			}
		}
	}
	if f := fields["standard id"]; f.Counts.Standard != 1000 || len(f.Evidence) != 0 {
		t.Errorf("%+v", f)
	}
	if f := fields["mixed id"]; f.Counts.Standard != 300 || f.Evidence[0].Verdict != "mixed" {
		t.Errorf("%+v", f)
	}
	if f := fields["few id"]; f.Evidence[0].Verdict != "cannot tell" {
		t.Errorf("%+v", f)
	}

	args := append([]string{"convert", "--db", s.Database(), "--collection", "few", "--from", "javaLegacy", "--write"}, gentle...)
	command(t, s, args...).want(t, exitOK)
	check := `
import sys, uuid
from pymongo import MongoClient
from bson.binary import STANDARD
from bson.codec_options import CodecOptions
db = MongoClient(sys.argv[1])[sys.argv[2]]
docs = list(db.get_collection('few', codec_options=CodecOptions(uuid_representation=STANDARD)).find())
assert len(docs) == 60
for d in docs:
    assert d['id'] == uuid.UUID(int=d['_id'] << 64 | d['_id']), d
raw = list(db.get_collection('few').find({'id': {'$type': 5}}))
assert len(raw) == 60
`
	if out, err := exec.Command(py, "-c", check, s.URI(), s.Database()).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// seed fills a collection with UUIDs in the representation r, at every depth, and returns the documents that a
// conversion to the representation to must leave.
func seed(t testing.TB, coll *mongo.Collection, n int, r, to uuidrep.Representation) map[string]bson.Raw {
	t.Helper()
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range n {
		a, b, c := uuid.New(), uuid.New(), uuid.New()
		doc := func(r uuidrep.Representation) bson.D {
			return bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(a, r)}, {Key: "n", Value: int32(0)},
				{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: in(b, r)}, {Key: "name", Value: "x"}}, in(c, r), nil}},
				{Key: "odd", Value: bson.Binary{Subtype: 3, Data: []byte("short")}}, {Key: "md5", Value: bson.Binary{Subtype: 5, Data: a[:]}}}
		}
		docs = append(docs, doc(r))
		raw, err := bson.Marshal(doc(to))
		if err != nil {
			t.Fatal(err)
		}
		want[bson.Raw(raw).Lookup("_id").String()] = raw
	}
	insert(t, coll, docs)
	return want
}

func equal(t testing.TB, got, want map[string]bson.Raw) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d documents, want %d", len(got), len(want))
	}
	wrong := 0
	for id, doc := range want {
		if !bytes.Equal(got[id], doc) {
			if wrong++; wrong < 4 {
				t.Errorf("%s: got %v, want %v", id, got[id], doc)
			}
		}
	}
	if wrong > 3 {
		t.Errorf("… and %d more", wrong-3)
	}
}

func TestConvert(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	dir := t.TempDir()
	want := seed(t, db.Collection("c"), 60, uuidrep.JavaLegacy, uuidrep.Standard)
	before := all(t, db.Collection("c"))
	args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}, gentle...)
	verify := []string{"verify", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
	undo := filepath.Join(dir, "undo")

	// A dry run says what there is to do and does nothing.
	r := command(t, s, args...).want(t, exitOK)
	if !strings.Contains(r.stdout, "180 values in 60 documents to change, of 60 documents read") || !strings.Contains(r.stdout, "dry run") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("c")), before)
	command(t, s, verify...).want(t, exitIncomplete)

	// A slip in --from is noticed.
	wrong := append(append([]string{}, args...), "--from", "csharpLegacy", "--write")
	if r := command(t, s, wrong...).want(t, exitUsage); !strings.Contains(r.stderr, "most likely javaLegacy") {
		t.Error(r.stderr)
	}
	equal(t, all(t, db.Collection("c")), before)

	// One field only.
	r = command(t, s, append(args, "--field", "items[].sku", "--output", "json")...).want(t, exitOK)
	var report struct {
		Result struct {
			ValuesChanged int
			Fields        map[string]int
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &report); err != nil || report.Result.ValuesChanged != 60 || report.Result.Fields["items[].sku"] != 60 {
		t.Errorf("%v: %s", err, r.stdout)
	}

	// Written, proven, idempotent, undone.
	write := append(args, "--write", "--state", filepath.Join(dir, "state"), "--undo", undo)
	command(t, s, write...).want(t, exitOK)
	equal(t, all(t, db.Collection("c")), want)
	if r := command(t, s, append(verify, "--undo", undo)...).want(t, exitOK); !strings.Contains(r.stdout, "Proven.") {
		t.Error(r.stdout)
	}
	if r := command(t, s, write...).want(t, exitOK); !strings.Contains(r.stdout, "finished") {
		t.Error(r.stdout)
	}
	if r := command(t, s, append(args, "--write")...).want(t, exitOK); !strings.Contains(r.stdout, "0 values in 0 documents changed") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("c")), want)

	// Another program changes a converted value: the proof says so, and undo leaves it.
	later := in(uuid.New(), uuidrep.Standard)
	if _, err := db.Collection("c").UpdateOne(t.Context(), bson.D{{Key: "_id", Value: 7}}, bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: later}}}}); err != nil {
		t.Fatal(err)
	}
	command(t, s, append(verify, "--undo", undo)...).want(t, exitOK)
	command(t, s, append(verify, "--undo", undo, "--strict")...).want(t, exitIncomplete)
	command(t, s, "undo", undo, "--batch", "10").want(t, exitIncomplete)
	for range 2 {
		if r := command(t, s, "undo", undo, "--write", "--batch", "10").want(t, exitIncomplete); !strings.Contains(r.stdout, "changed since") {
			t.Error(r.stdout)
		}
	}
	got := all(t, db.Collection("c"))
	if b := got[`{"$numberInt":"7"}`].Lookup("id"); b.String() != marshalValue(t, later).String() {
		t.Errorf("undo overwrote %v", b)
	}
	delete(got, `{"$numberInt":"7"}`)
	delete(before, `{"$numberInt":"7"}`)
	equal(t, got, before)
}

func marshalValue(t testing.TB, v any) bson.RawValue {
	t.Helper()
	b, err := bson.Marshal(bson.D{{Key: "v", Value: v}})
	if err != nil {
		t.Fatal(err)
	}
	return bson.Raw(b).Lookup("v")
}

// Each document is in one part; all parts together convert the collection.
func TestParts(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 60, uuidrep.PythonLegacy, uuidrep.Standard)
	for i := 1; i <= 3; i++ {
		command(t, s, append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "pythonLegacy", "--write", "--force",
			"--part", fmt.Sprintf("%d/3", i), "--state", filepath.Join(t.TempDir(), "s")}, gentle...)...).want(t, exitOK)
	}
	equal(t, all(t, db.Collection("c")), want)
}

// _ids of several types, UUIDs among them, into a new collection with the old one's indexes.
func TestInto(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	old := db.Collection("old")
	want := make(map[string]bson.Raw)
	var docs []any
	for i := range 60 {
		u, v := uuid.New(), uuid.New()
		doc := func(r uuidrep.Representation) bson.D {
			var id any = in(u, r)
			switch i % 4 {
			case 1:
				id = bson.D{{Key: "tenant", Value: in(u, r)}, {Key: "n", Value: int32(i)}}
			case 2:
				id = int32(i)
			case 3:
				id = fmt.Sprint("text ", i)
			}
			return bson.D{{Key: "_id", Value: id}, {Key: "ref", Value: in(v, r)}, {Key: "n", Value: int32(i)}}
		}
		docs = append(docs, doc(uuidrep.CSharpLegacy))
		raw, err := bson.Marshal(doc(uuidrep.Standard))
		if err != nil {
			t.Fatal(err)
		}
		want[bson.Raw(raw).Lookup("_id").String()] = raw
	}
	insert(t, old, docs)
	if _, err := old.Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: -1}}, Options: options.Index().SetUnique(true).SetName("by_n")}); err != nil {
		t.Fatal(err)
	}
	before := all(t, old)
	base := []string{"--db", s.Database(), "--collection", "old", "--from", "csharpLegacy"}
	args := append(append([]string{"convert"}, base...), gentle...)

	// In place, the values in _id are reported and left.
	if r := command(t, s, args...).want(t, exitIncomplete); !strings.Contains(r.stdout, "the value is in _id") {
		t.Error(r.stdout)
	}
	args = append(args, "--into", "new", "--state", filepath.Join(t.TempDir(), "state"))
	command(t, s, args...).want(t, exitOK)
	if got := all(t, db.Collection("new")); len(got) != 0 {
		t.Errorf("a dry run wrote %d documents", len(got))
	}
	if r := command(t, s, append(args, "--write")...).want(t, exitOK); !strings.Contains(r.stdout, "Verified: new has the 60 documents of old") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("new")), want)
	equal(t, all(t, old), before)
	specs, err := db.Collection("new").Indexes().ListSpecifications(t.Context())
	if err != nil || len(specs) != 2 || specs[1].Name != "by_n" || specs[1].Unique == nil || !*specs[1].Unique {
		t.Errorf("%+v, %v", specs, err)
	}
	proof := append(append([]string{"verify"}, base...), "--into", "new")
	command(t, s, proof...).want(t, exitOK)

	// The proof finds a document that differs, one that is missing and one too many.
	if _, err := db.Collection("new").UpdateOne(t.Context(), bson.D{{Key: "n", Value: 3}}, bson.D{{Key: "$set", Value: bson.D{{Key: "x", Value: 1}}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Collection("new").DeleteOne(t.Context(), bson.D{{Key: "n", Value: 4}}); err != nil {
		t.Fatal(err)
	}
	insert(t, db.Collection("new"), []any{bson.D{{Key: "_id", Value: "more"}, {Key: "n", Value: 1000}}, bson.D{{Key: "_id", Value: "more2"}, {Key: "n", Value: 1001}}})
	r := command(t, s, append(proof, "--output", "json")...).want(t, exitIncomplete)
	var v struct {
		Result struct{ DocumentsWrong, DocumentsMissing, DocumentsExtra int }
	}
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || v.Result.DocumentsWrong != 1 || v.Result.DocumentsMissing != 1 || v.Result.DocumentsExtra != 2 {
		t.Errorf("%v: %s", err, r.stdout)
	}
	// A collection with documents is nobody's target.
	command(t, s, append(append([]string{"convert"}, base...), "--into", "new", "--write")...).want(t, exitFailed)
}

// Two documents whose _ids become one: neither is lost, and the command says so.
func TestIntoConflict(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	u := uuid.New()
	// FerretDB takes two _ids of the same octets for one whatever the subtype, so the orders differ.
	insert(t, db.Collection("old"), []any{
		bson.D{{Key: "_id", Value: in(u, uuidrep.JavaLegacy)}, {Key: "n", Value: 1}},
		bson.D{{Key: "_id", Value: in(u, uuidrep.Standard)}, {Key: "n", Value: 2}},
	})
	before := all(t, db.Collection("old"))
	args := append([]string{"convert", "--db", s.Database(), "--collection", "old", "--from", "javaLegacy", "--into", "new", "--write"}, gentle...)
	if r := command(t, s, args...).want(t, exitIncomplete); !strings.Contains(r.stdout, "Not verified") {
		t.Error(r.stdout)
	}
	equal(t, all(t, db.Collection("old")), before)
}

// some is how many documents are converted for long enough to be killed meanwhile: n on FerretDB, or a third of it for a
// short run, and several times as many on a server that finds a document by an index.
func some(t testing.TB, db *mongo.Database, n int) int {
	t.Helper()
	if !ferret(t, db) {
		n *= 6
	}
	if testing.Short() {
		return n / 3
	}
	return n
}

// start runs the command in a process of its own.
func start(t *testing.T, s target, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "MONGODB_URI="+s.URI())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// untilDone runs the command again and again, and kills it at random moments, until it comes to its end. The moments
// come ever later: a conversion goes on where it was killed, but the proof at its end begins anew with every start, and
// how long that takes is the server's matter. After a hundred kills it is left alone.
func untilDone(t *testing.T, s target, args ...string) (kills int) {
	t.Helper()
	// How long a process takes to begin, on this machine at this moment.
	begin := time.Now()
	cmd, out := start(t, s, "show", uuid.NewString())
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	begun := time.Since(begin)
	for ; kills < 100; kills++ {
		cmd, out := start(t, s, args...)
		within := 300*time.Millisecond + time.Duration(kills)*20*time.Millisecond
		timer := time.AfterFunc(begun+rand.N(within), func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			return kills
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != -1 {
			t.Fatalf("%v: %s", err, out)
		}
	}
	cmd, out = start(t, s, args...)
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	defer timer.Stop()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("left alone after %d kills: %v: %s", kills, err, out)
	}
	return kills
}

// Killed at random moments and started again, the conversion leaves what one that nobody disturbed leaves: also between
// two orders of the same subtype, where nothing in the data says what is converted.
func TestKill(t *testing.T) {
	for _, tt := range []struct {
		name     string
		from, to uuidrep.Representation
		into     bool
	}{
		{"to standard", uuidrep.JavaLegacy, uuidrep.Standard, false},
		{"same subtype", uuidrep.JavaLegacy, uuidrep.CSharpLegacy, false},
		{"into a new collection", uuidrep.CSharpLegacy, uuidrep.Standard, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := mongotest.Start(t)
			db := connect(t, s)
			dir := t.TempDir()
			want := seed(t, db.Collection("c"), some(t, db, 150), tt.from, tt.to)
			args := append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", tt.from.String(), "--to", tt.to.String(),
				"--write", "--state", filepath.Join(dir, "state"), "--workers", "2", "--batch", "5"}, []string{"--examples", "0"}...)
			target := "c"
			if tt.into {
				target = "new"
				args = append(args, "--into", target)
			} else {
				args = append(args, "--undo", filepath.Join(dir, "undo"))
			}
			before := all(t, db.Collection("c"))
			kills := untilDone(t, s, args...)
			t.Logf("killed %d times", kills)
			equal(t, all(t, db.Collection(target)), want)
			verify := []string{"verify", "--db", s.Database(), "--collection", "c", "--from", tt.from.String(), "--to", tt.to.String()}
			if tt.into {
				command(t, s, append(verify, "--into", target)...).want(t, exitOK)
				return
			}
			command(t, s, append(verify, "--undo", filepath.Join(dir, "undo"))...).want(t, exitOK)
			command(t, s, "undo", filepath.Join(dir, "undo"), "--write", "--batch", "10").want(t, exitOK)
			equal(t, all(t, db.Collection("c")), before)
		})
	}
}

// The same with another program that writes to the collection all the time, in the old representation and to other
// fields: nothing that it wrote is lost.
func TestKillWithWriter(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	var server target = s
	if ferret(t, db) {
		// Its updates read a document and write it back whole without keeping others out: two at a time lose one,
		// whoever makes them. A server of MongoDB makes each update as one; here the proxy sees to it.
		var updates sync.Mutex
		server = startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" {
				updates.Lock()
				defer updates.Unlock()
			}
			return pass()
		})
	}
	client, err := mongo.Connect(options.Client().ApplyURI(server.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	coll := client.Database(s.Database()).Collection("c")
	n := some(t, db, 150)
	seed(t, coll, n, uuidrep.JavaLegacy, uuidrep.Standard)
	dir := t.TempDir()
	args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--workers", "2", "--batch", "5", "--undo", filepath.Join(dir, "undo"), "--state", filepath.Join(dir, "state")}

	want := make(map[int]uuid.UUID)
	counts := make(map[int]int32)
	for _, doc := range all(t, coll) {
		u, err := uuidOf(doc.Lookup("id"))
		if err != nil {
			t.Fatal(err)
		}
		want[int(doc.Lookup("_id").Int32())] = u
	}
	write := func(i int) {
		u := uuid.New()
		_, err := coll.UpdateOne(context.Background(), bson.D{{Key: "_id", Value: int32(i)}},
			bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: in(u, uuidrep.JavaLegacy)}}}, {Key: "$inc", Value: bson.D{{Key: "n", Value: int32(1)}}}})
		if err != nil {
			t.Error(err)
			return
		}
		want[i] = u
		counts[i]++
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			write(rand.IntN(n))
		}
	})
	kills := untilDone(t, server, args...)
	close(stop)
	writer.Wait()
	t.Logf("killed %d times, %d documents written to", kills, len(counts))
	// What was written in the old representation after the conversion had passed is converted by another run.
	command(t, s, append([]string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write"}, gentle...)...).want(t, exitOK)
	got := all(t, coll)
	if len(got) != n {
		t.Errorf("%d documents, want %d", len(got), n)
	}
	for _, doc := range got {
		i := int(doc.Lookup("_id").Int32())
		if subtype, data := doc.Lookup("id").Binary(); subtype != bson.TypeBinaryUUID || uuid.UUID(data) != want[i] {
			t.Errorf("%d: subtype %d, %x, want %v", i, subtype, data, want[i])
		}
		if got := doc.Lookup("n").Int32(); got != counts[i] {
			t.Errorf("%d: counted to %d, want %d", i, got, counts[i])
		}
	}
}

// uuidOf reads a UUID in the Java representation or the standard one.
func uuidOf(v bson.RawValue) (uuid.UUID, error) {
	subtype, data := v.Binary()
	if subtype == bson.TypeBinaryUUID {
		return uuid.UUID(data), nil
	}
	return uuidrep.AsUUIDWithRepresentation(bson.Binary{Subtype: subtype, Data: data}, uuidrep.JavaLegacy)
}

// host is the address of a server that has only one.
func host(t testing.TB, s target) string {
	t.Helper()
	cs, err := connstring.Parse(s.URI())
	if err != nil {
		t.Fatal(err)
	}
	return cs.Hosts[0]
}

// ferret reports whether the server is FerretDB.
func ferret(t testing.TB, db *mongo.Database) bool {
	t.Helper()
	info, err := db.RunCommand(t.Context(), bson.D{{Key: "buildInfo", Value: 1}}).Raw()
	if err != nil {
		t.Fatal(err)
	}
	_, err = info.LookupErr("ferretdbVersion")
	return err == nil
}

// An interrupt ends the command in good order, with the state saved: while documents are read, and when all are read and
// wait to be written.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		mongotest.Skip(t, "Windows has no interrupt for one process")
	}
	for _, n := range []int{10, 100} {
		for _, into := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d documents, into %v", n, into), func(t *testing.T) {
				s := mongotest.Start(t)
				db := connect(t, s)
				want := seed(t, db.Collection("c"), n, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
				dir := t.TempDir()
				target := "c"
				args := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy", "--write",
					"--state", filepath.Join(dir, "state"), "--batch", "5", "--workers", "1"}
				if into {
					target = "new"
					args = append(args, "--into", target, "--rate", "10")
				} else {
					args = append(args, "--undo", filepath.Join(dir, "undo"), "--rate", "10")
				}
				cmd, out := start(t, s, args...)
				for { // until some is written
					if b, err := os.ReadFile(filepath.Join(dir, "state")); err == nil && bytes.Contains(b, []byte("position")) {
						break
					}
					runtime.Gosched()
				}
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
				var exit *exec.ExitError
				if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted || !strings.Contains(out.String(), "the same command goes on from here") {
					t.Fatalf("%v: %s", err, out)
				}
				args[len(args)-1] = "0"
				command(t, s, args...).want(t, exitOK)
				equal(t, all(t, db.Collection(target)), want)
			})
		}
	}
}

// A server that goes away ends the command with one sentence; when it is back, the same command goes on.
func TestLostServer(t *testing.T) {
	dir := t.TempDir()
	first, err := embedded.Start(embedded.WithDir(dir))
	if err != nil {
		t.Fatal(err)
	}
	addr, uri := first.Addr(), first.URI()+"?serverSelectionTimeoutMS=1000&connectTimeoutMS=1000"
	client, err := mongo.Connect(options.Client().ApplyURI(uri))
	if err != nil {
		t.Fatal(err)
	}
	want := seed(t, client.Database("d").Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
	if err := client.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := t.TempDir()
	args := []string{"convert", "--db", "d", "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy", "--write", "--uri", uri,
		"--state", filepath.Join(files, "state"), "--undo", filepath.Join(files, "undo"), "--batch", "5", "--workers", "1", "--rate", "10"}
	done := make(chan result)
	go func() { done <- command(t, nil, args...) }()
	for {
		if b, err := os.ReadFile(filepath.Join(files, "state")); err == nil && bytes.Contains(b, []byte("position")) {
			break
		}
		runtime.Gosched()
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.code != exitUnreachable || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "the same command goes on from here") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}

	second, err := embedded.Start(embedded.WithDir(dir), embedded.WithAddr(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	args[len(args)-1] = "0"
	command(t, nil, args...).want(t, exitOK)
	if client, err = mongo.Connect(options.Client().ApplyURI(uri)); err != nil {
		t.Fatal(err)
	}
	equal(t, all(t, client.Database("d").Collection("c")), want)
	if err := client.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Whatever goes wrong is one sentence on stderr with its exit code, and nothing on stdout that looks like a result.
func TestFailures(t *testing.T) {
	t.Setenv("MONGODB_URI", "")
	const secret = "s3cr3t-p4ss"
	gone := "mongodb://user:" + secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=200&connectTimeoutMS=200"
	conv := []string{"convert", "--db", "d", "--collection", "c", "--from", "javaLegacy"}
	undo := filepath.Join(t.TempDir(), "undo")
	if err := os.WriteFile(undo, []byte(`{"bsonids":"undo log 1","id":"x","conversion":{"database":"d","collection":"c","from":"javaLegacy","to":"standard"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"scan"}, exitUsage, "MONGODB_URI"},
		{[]string{"scan", "--uri", "http://user:" + secret + "@h"}, exitUsage, "connection string"},
		{[]string{"scan", "--uri", "mongodb://user:" + secret + "@h:x:y"}, exitUsage, "connection string"},
		{[]string{"scan", "--uri", "mongodb://u:" + secret + "@h/?w=zero&journal=x"}, exitUsage, "connection string"},
		{[]string{"scan", "--uri", gone}, exitUnreachable, "cannot be reached"},
		{append(conv, "--uri", gone, "--write"), exitUnreachable, "cannot be reached"},
		{append(conv, "--uri", "mongodb://u:"+secret+"@h/?w=0", "--write"), exitUsage, "w=0"},
		{[]string{"undo", undo, "--uri", gone}, exitUnreachable, "cannot be reached"},
		{[]string{"undo", undo + ".none", "--uri", gone}, exitUsage, "no such file"},
		{append([]string{"verify"}, append(conv[1:], "--uri", gone)...), exitUnreachable, "cannot be reached"},
		{[]string{"scan", "--output", "xml", "--uri", gone}, exitUsage, "table, json, html"},
		{[]string{"scan", "--sample", "0", "--uri", gone}, exitUsage, "--sample"},
		{[]string{"scan", "--sample", "3", "--all", "--uri", gone}, exitUsage, "sample"},
		{[]string{"convert"}, exitUsage, "required"},
		{append(conv, "--to", "javaLegacy"), exitUsage, "both"},
		{append(conv, "--to", "generic"), exitUsage, "subtype 0"},
		{append(conv, "--from", "nonsense"), exitUsage, "nonsense"},
		{append(conv, "--from", "generic"), exitUsage, "--field"},
		{append(conv, "--to", "csharpLegacy", "--write"), exitUsage, "--state and --undo"},
		{append(conv, "--into", "c"), exitUsage, "--into"},
		// What a shell makes of "$NAME" where that isn't set is no absent flag.
		{append(conv, "--uri", gone, "--write", "--into", ""), exitUsage, "--into is empty"},
		{append(conv, "--uri", gone, "--write", "--field="), exitUsage, "--field is empty"},
		{append(conv, "--uri", gone, "--write", "--undo", ""), exitUsage, "--undo is empty"},
		{append(conv, "--uri", gone, "--write", "--part", ""), exitUsage, "--part is empty"},
		{[]string{"scan", "--uri", ""}, exitUsage, "--uri is empty"},
		{[]string{"scan", "--uri", gone, "--db", ""}, exitUsage, "--db is empty"},
		{[]string{"scan", "--uri", gone, "--collection", ""}, exitUsage, "--collection is empty"},
		// Other tools take the connection string without a flag.
		{[]string{"scan", gone}, exitUsage, "unknown command"},
		{[]string{gone}, exitUsage, "unknown command"},
		{[]string{"scan", "--sample", gone}, exitUsage, "--sample"},
		{append(conv, "--db", gone), exitUsage, "--db"},
		{[]string{"show", gone}, exitUsage, "not a UUID"},
		{[]string{"show", "mongodb+srv://user:" + secret + "-and-so-on-for-more-letters-than-a-line-has@h"}, exitUsage, "not a UUID"},
		{append(conv, "--into", "x", "--undo", "y"), exitUsage, "undo"},
		{append(conv, "--part", "9/8"), exitUsage, "9/8"},
		{append(conv, "--workers", "0"), exitUsage, "--workers"},
		{append(conv, "--db", "a.b"), exitUsage, "--db"},
		{append(conv, "--collection", "system.users"), exitUsage, "--collection"},
		{[]string{"verify", "--db", "d", "--collection", "c", "--from", "javaLegacy", "--to", "csharpLegacy"}, exitUsage, "--undo"},
		{[]string{"show"}, exitUsage, "arg"},
		{[]string{"show", "nonsense"}, exitUsage, "nonsense"},
		{[]string{"frobnicate"}, exitUsage, "frobnicate"},
		{[]string{"scan", "--frobnicate"}, exitUsage, "frobnicate"},
	} {
		r := command(t, nil, tt.args...)
		if r.code != tt.code || !strings.Contains(r.stderr, tt.want) || strings.Count(r.stderr, "\n") != 1 || r.stdout != "" {
			t.Errorf("%q: exit code %d, want %d with %q on one line\n%s%s", tt.args, r.code, tt.code, tt.want, r.stdout, r.stderr)
		}
		if strings.Contains(r.stderr+r.stdout, secret) {
			t.Errorf("%q shows the password: %s", tt.args, r.stderr)
		}
	}
}

// A user who lacks a privilege is told so in one sentence, whichever it is, and the data stays as it was.
func TestDenied(t *testing.T) {
	s, err := embedded.Start()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	client, err := mongo.Connect(options.Client().ApplyURI(s.URI()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	db := client.Database("d")
	seed(t, db.Collection("c"), 40, uuidrep.JavaLegacy, uuidrep.Standard)
	if _, err := db.Collection("c").Indexes().CreateOne(t.Context(), mongo.IndexModel{Keys: bson.D{{Key: "n", Value: 1}}}); err != nil {
		t.Fatal(err)
	}
	before := all(t, db.Collection("c"))

	var denied atomic.Pointer[string]
	p := startProxy(t, s.Addr(), func(r request, pass func() []byte) []byte {
		if r.name() != *denied.Load() {
			return pass()
		}
		return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: int32(13)}, {Key: "codeName", Value: "Unauthorized"},
			{Key: "errmsg", Value: "not authorized on d to execute command " + r.command.String()}})
	})

	want := func(what string, r result) {
		t.Helper()
		if r.code != exitDenied || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, "the user lacks a privilege: (Unauthorized) not authorized on d to execute command") ||
			strings.Contains(r.stderr, "{") {
			t.Errorf("%s: exit code %d\n%s%s", what, r.code, r.stdout, r.stderr)
		}
	}
	dir := t.TempDir()
	ns := []string{"--db", "d", "--collection", "c"}
	conv := append(append([]string{"convert"}, ns...), "--from", "javaLegacy")
	inPlace := append(append([]string{}, conv...), "--write")
	for i, tt := range []struct {
		args     []string
		commands []string
	}{
		{append([]string{"scan", "--sample", "5"}, ns...), []string{"listCollections", "count", "aggregate"}},
		{append([]string{"scan", "--all"}, ns...), []string{"listCollections", "count", "find"}},
		{[]string{"scan"}, []string{"listDatabases"}},
		{conv, []string{"listCollections", "count", "find"}},
		{inPlace, []string{"listCollections", "update", "count", "find"}},
		{append(inPlace, "--into", "new"), []string{"listCollections", "count", "find", "listIndexes", "create", "insert", "createIndexes"}},
		{append(append([]string{"verify"}, ns...), "--from", "javaLegacy"), []string{"listCollections", "count", "find"}},
	} {
		for _, name := range tt.commands {
			denied.Store(&name)
			args := append([]string{}, tt.args...)
			for _, flag := range []string{"--state", "--undo"} {
				if slices.Contains(args, "--write") && (flag == "--state" || !slices.Contains(args, "--into")) {
					args = append(args, flag, filepath.Join(dir, fmt.Sprint(i, name, flag)))
				}
			}
			want(fmt.Sprintf("%q without %s", tt.args, name), command(t, p, args...))
			equal(t, all(t, db.Collection("c")), before)
			// Indexes come after the documents; every other privilege is missed before.
			if copied := len(all(t, db.Collection("new"))); copied > 0 && name != "createIndexes" {
				t.Errorf("%q without %s: %d documents in the new collection", tt.args, name, copied)
			}
			if err := db.Collection("new").Drop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}

	undo := filepath.Join(dir, "undo")
	command(t, s, append(append(inPlace, "--undo", undo), gentle...)...).want(t, exitOK)
	before = all(t, db.Collection("c"))
	for _, name := range []string{"find", "update"} {
		denied.Store(&name)
		want("undo without "+name, command(t, p, "undo", undo, "--write"))
		equal(t, all(t, db.Collection("c")), before)
	}
}

// An error in the middle of a conversion shows no credentials either.
func TestStopped(t *testing.T) {
	a := &app{uri: "mongodb://user:p4ssw0rd@h"}
	err := a.stopped(errors.New("the server said p4ssw0rd"), convertOptions{write: true, state: "s"})
	if got := err.Error(); strings.Contains(got, "p4ssw0rd") || !strings.Contains(got, "the same command goes on from here") {
		t.Error(got)
	}
}

// A state or undo file of something else is never used, and never harmed.
func TestOtherFiles(t *testing.T) {
	s := mongotest.Start(t)
	seed(t, connect(t, s).Collection("c"), 10, uuidrep.JavaLegacy, uuidrep.Standard)
	path := filepath.Join(t.TempDir(), "precious")
	const state = `{"bsonids":"state 1","conversion":{"database":"x","collection":"c","from":"javaLegacy","to":"standard"},"done":false,"changedDocuments":0}`
	const undo = `{"bsonids":"undo log 1","id":"0011223344556677","conversion":{"database":"x","collection":"c","from":"javaLegacy","to":"standard"}}`
	for _, text := range []string{"text", "line\n", "line\nthat doesn't end", "\n", "{", state, state + "\n", undo + "\n", undo + "\n{\"_id\":", undo[:22] + "2\""} {
		for _, flag := range []string{"--state", "--undo"} {
			if flag == "--undo" && text == "{" {
				continue // what a log begins with
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", flag, path).want(t, exitUsage)
			if b, err := os.ReadFile(path); err != nil || string(b) != text {
				t.Errorf("%s: %q became %q, %v", flag, text, b, err)
			}
		}
	}
	// One file cannot be both.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := command(t, s, "convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy", "--write", "--state", path, "--undo", path).want(t, exitUsage); !strings.Contains(r.stderr, "the same file") {
		t.Error(r.stderr)
	}
	command(t, s, "convert", "--db", s.Database(), "--collection", "nowhere", "--from", "javaLegacy").want(t, exitUsage)
}

// A terminal obeys nothing that stands in a database, and what cannot be written is no success.
func TestOutput(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	// FerretDB refuses the control characters below U+0020.
	insert(t, coll, []any{bson.D{{Key: "a\u009b31m\x7f", Value: in(uuid.New(), uuidrep.JavaLegacy)}}})
	scan := []string{"scan", "--db", s.Database()}
	convert := []string{"convert", "--db", s.Database(), "--collection", "c", "--from", "javaLegacy"}
	for _, args := range [][]string{scan, append(scan, "-o", "html"), append(scan, "-o", "json"), convert, append(convert, "-o", "json")} {
		r := command(t, s, args...).want(t, exitOK)
		if i := strings.IndexFunc(r.stdout+r.stderr, func(c rune) bool { return unicode.IsControl(c) && c != '\n' && c != '\t' }); i >= 0 {
			t.Errorf("%q: %q", args, r.stdout[max(0, i-20):i+1])
		}
		want := "a\uFFFD31m\uFFFD"
		if args[len(args)-1] == "json" {
			want = `"a\u009b31m\u007f"` // which a program reads as it is
		}
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q doesn't show the field as %s: %s", args, want, r.stdout)
		}
		var errs bytes.Buffer
		if code := run(t.Context(), append(args, "--uri", s.URI()), fullDisk{}, &errs); code != exitFailed || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("%q on a full disk: exit code %d, %s", args, code, &errs)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestHelp(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://user:hidden@h")
	for _, cmd := range []string{"", "show", "scan", "convert", "verify", "undo"} {
		r := command(t, nil, strings.Fields(cmd+" --help")...).want(t, exitOK)
		if !strings.Contains(r.stdout, "Example") || strings.Contains(r.stdout, "hidden") {
			t.Errorf("%s: %s", cmd, r.stdout)
		}
	}
}

func TestShow(t *testing.T) {
	r := command(t, nil, "show", `BinData(3, "d2ZVRDMiEQD/7t3Mu6qZiA==")`).want(t, exitOK)
	if !strings.Contains(r.stdout, "00112233-4455-6677-8899-aabbccddeeff") || strings.Contains(r.stdout, "\x1b") {
		t.Error(r.stdout)
	}
	r = command(t, nil, "show", "699dfad90ca573f85c0eec1c", "-o", "json").want(t, exitOK)
	var e struct{ ObjectID struct{ Time time.Time } }
	if err := json.Unmarshal([]byte(r.stdout), &e); err != nil || !e.ObjectID.Time.Equal(time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)) {
		t.Errorf("%v: %s", err, r.stdout)
	}
}

// Views and the server's own collections are scanned where they are named, and the server is asked for no more than names,
// which it gives to a user who may read some collections only.
func TestScanWhat(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	for _, name := range []string{"c", "v", "w"} {
		insert(t, db.Collection(name), []any{bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}}})
	}
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() != "listCollections" {
			return pass()
		}
		var asked struct{ NameOnly, AuthorizedCollections bool }
		if err := bson.Unmarshal(r.command, &asked); err != nil || !asked.NameOnly || !asked.AuthorizedCollections {
			t.Errorf("%v: %v", err, r.command)
		}
		var listed []any
		for _, c := range [][2]string{{"c", "collection"}, {"v", "view"}, {"w", "timeseries"}, {"system.views", "collection"}} {
			listed = append(listed, bson.D{{Key: "name", Value: c[0]}, {Key: "type", Value: c[1]}})
		}
		return r.cursor("db.$cmd.listCollections", listed...)
	})
	scan := []string{"scan", "--db", s.Database(), "--output", "json"}
	for _, tt := range []struct {
		args, want []string
	}{
		{nil, []string{"c", "w"}},
		{[]string{"--collection", "v"}, []string{"v"}},
		{[]string{"--collection", "c,system.views"}, []string{"c", "system.views"}},
	} {
		r := command(t, p, append(scan, tt.args...)...).want(t, exitOK)
		var report struct{ Collections []struct{ Namespace string } }
		if err := json.Unmarshal([]byte(r.stdout), &report); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range report.Collections {
			got = append(got, strings.TrimPrefix(c.Namespace, s.Database()+"."))
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%v: %v, want %v", tt.args, got, tt.want)
		}
	}
	command(t, p, append(scan, "--collection", "none")...).want(t, exitUsage)
	if r := command(t, s, "scan", "--db", s.Database()+"_").want(t, exitUsage); !strings.Contains(r.stderr, "there is no database") {
		t.Error(r.stderr)
	}
}

// Where a server cannot sample, the first documents are read, and a warning says so. One that refuses to use its disk, as in
// read-only mode, or whose random cursor failed by chance, can; and one that was lost says nothing of sampling.
func TestScanSample(t *testing.T) {
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	for range 30 {
		insert(t, coll, []any{bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}}})
	}
	for _, tt := range []struct {
		name  string
		codes []int32 // of the answers to $sample, 0 for one that has documents
		disk  bool    // whether the answers are for those that ask for the disk only
		code  int
		want  string
	}{
		{"cannot sample", []int32{40324, 40324}, false, exitOK, `"mode": "first"`},
		{"takes too long", []int32{50, 50}, false, exitOK, `"mode": "first"`},
		{"no disk", []int32{20, 20}, true, exitOK, `"mode": "sample"`},
		{"by chance", []int32{28799, 0}, false, exitOK, `"mode": "sample"`},
		{"lost", []int32{11600, 11600, 11600, 11600}, false, exitUnreachable, ""},
		{"no privilege", []int32{13}, false, exitDenied, ""},
	} {
		asked := 0
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() != "aggregate" {
				return pass()
			}
			var code int32
			if asked < len(tt.codes) {
				code = tt.codes[asked]
			}
			asked++
			if disk, _ := r.command.Lookup("allowDiskUse").BooleanOK(); tt.disk && !disk {
				code = 0
			}
			if code == 0 {
				return r.cursor(s.Database()+".c", bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.Standard)}})
			}
			return r.reply(bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: "no"}})
		})
		r := command(t, p, "scan", "--db", s.Database(), "--sample", "3", "-o", "json")
		if r.code != tt.code || !strings.Contains(r.stdout, tt.want) || (tt.want == "") != (r.stdout == "") {
			t.Errorf("%s: exit code %d, want %d with %s\n%s%s", tt.name, r.code, tt.code, tt.want, r.stdout, r.stderr)
		}
	}
}

// With -scan-documents a million documents, say, are scanned, and the memory is reported.
func TestScanMemory(t *testing.T) {
	if *scanDocuments == 0 {
		mongotest.Skip(t, "the scan of many documents runs with -scan-documents 1000000")
	}
	s := mongotest.Start(t)
	coll := connect(t, s).Collection("c")
	for left := *scanDocuments; left > 0; {
		n := min(left, 5000)
		docs := make([]any, n)
		for i := range docs {
			docs[i] = bson.D{{Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "ref", Value: in(uuid.New(), uuidrep.Standard)}, {Key: "text", Value: uuid.NewString()}}
		}
		insert(t, coll, docs)
		left -= n
	}
	cmd, out := start(t, s, "scan", "--db", s.Database(), "--all", "-o", "json")
	begin := time.Now()
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(out.String(), fmt.Sprintf(`"scanned": %d`, *scanDocuments)) {
		t.Error(out)
	}
	t.Logf("%d documents in %v, at most %s of memory", *scanDocuments, time.Since(begin).Round(time.Millisecond), maxRSS(cmd.ProcessState))
}

// The same conversion by a plain loop of the driver, find and bulkWrite, and by convert, in turns: documents a second of
// each, and how many times the loop's convert does.
func BenchmarkConvert(b *testing.B) {
	n, batch := *convertDocuments, 1000
	if n == 0 {
		n, batch = 300, 20
	}
	s := mongotest.Start(b)
	coll := connect(b, s).Collection("c")
	compare(b, s, coll, n, batch, func() {
		if err := coll.Drop(b.Context()); err != nil {
			b.Fatal(err)
		}
		var docs []any
		for i := range n {
			docs = append(docs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
		}
		insert(b, coll, docs)
	})
}

// The same where the server costs next to nothing: what remains is the programs themselves.
func BenchmarkConvertClient(b *testing.B) {
	n, batch := *convertDocuments, 1000
	if n == 0 {
		n = 100_000
	}
	s := mongotest.Start(b)
	insert(b, connect(b, s).Collection("c"), []any{bson.D{{Key: "_id", Value: -1}}}) // so that there is a collection
	p := startProxy(b, host(b, s), weightless(b, n))
	client, err := mongo.Connect(options.Client().ApplyURI(p.URI()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	compare(b, p, client.Database(s.Database()).Collection("c"), n, batch, func() {})
}

// weightless answers for a collection of n documents that costs a server nothing: find and getMore give documents with
// a Java UUID each, and every update has found and changed its document.
func weightless(b *testing.B, n int) func(request, func() []byte) []byte {
	b.Helper()
	var some [1024]bson.Raw
	for i := range some {
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: int32(0)}, {Key: "id", Value: in(uuid.New(), uuidrep.JavaLegacy)}, {Key: "n", Value: i}})
		if err != nil {
			b.Fatal(err)
		}
		some[i] = doc
	}
	const idAt = 4 + 1 + len("_id\x00")
	var next, end int // of the one cursor
	batch := func(r request, name string, size int64) []byte {
		to := min(end, next+int(size))
		_, list := bsoncore.AppendArrayStart(nil)
		for i := next; i < to; i++ {
			list = bsoncore.AppendDocumentElement(list, strconv.Itoa(i-next), some[i%len(some)])
			bsoncore.AppendInt32(list[:len(list)-len(some[i%len(some)])+idAt], int32(i))
		}
		list, err := bsoncore.AppendArrayEnd(list, 0)
		if err != nil {
			b.Error(err)
		}
		next = to
		id := int64(0)
		if to < end {
			id = 1
		}
		return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: "x.c"},
			{Key: name, Value: bson.RawValue{Type: bson.TypeArray, Value: list}}}}})
	}
	return func(r request, pass func() []byte) []byte {
		size, _ := r.command.Lookup("batchSize").AsInt64OK()
		switch r.name() {
		case "count":
			return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: n}})
		case "find":
			next, end = 0, n
			if after, ok := findInt32(r.command.Lookup("filter"), "$gt"); ok {
				next = int(after) + 1
			} else if _, err := r.command.LookupErr("filter", "_id", "$type"); err == nil {
				next = n // no _ids of other types
			}
			if limit, ok := r.command.Lookup("limit").AsInt64OK(); ok {
				end = min(n, next+int(limit))
			}
			return batch(r, "firstBatch", size)
		case "getMore":
			return batch(r, "nextBatch", size)
		case "update":
			return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "n", Value: r.documents}, {Key: "nModified", Value: r.documents}})
		}
		return pass()
	}
}

// findInt32 looks for a number with the key at any depth.
func findInt32(v bson.RawValue, key string) (int32, bool) {
	elements, err := bson.Raw(v.Value).Elements()
	if err != nil || v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return 0, false
	}
	for _, e := range elements {
		if n, ok := e.Value().Int32OK(); ok && e.Key() == key {
			return n, true
		}
		if n, ok := findInt32(e.Value(), key); ok {
			return n, true
		}
	}
	return 0, false
}

// compare measures ways to convert the n documents of a collection, in turns, each after prepare.
func compare(b *testing.B, s target, coll *mongo.Collection, n, batch int, prepare func()) {
	b.Helper()
	ways := []struct {
		name string
		run  func()
	}{
		{"driver", func() { plainLoop(b, coll, batch) }},
		{"convert-1", nil}, {"convert-4", nil},
	}
	for i, workers := range []string{"1", "4"} {
		ways[i+1].run = func() {
			command(b, s, "convert", "--db", coll.Database().Name(), "--collection", coll.Name(), "--from", "javaLegacy", "--write", "--examples", "0",
				"--batch", fmt.Sprint(batch), "--workers", workers).want(b, exitOK)
		}
	}
	took := make([][]time.Duration, len(ways))
	for b.Loop() {
		for i, way := range ways {
			prepare()
			begin := time.Now()
			way.run()
			took[i] = append(took[i], time.Since(begin))
		}
	}
	for i, way := range ways {
		slices.Sort(took[i])
		median := took[i][len(took[i])/2].Seconds()
		b.ReportMetric(float64(n)/median, way.name+"-docs/s")
		if i > 0 {
			b.ReportMetric(took[0][len(took[0])/2].Seconds()/median, way.name+"-ratio")
		}
	}
}

// plainLoop is what one writes without a tool: no condition, no state, one field.
func plainLoop(b *testing.B, coll *mongo.Collection, batch int) {
	b.Helper()
	cur, err := coll.Find(b.Context(), bson.D{}, options.Find().SetBatchSize(int32(batch)))
	if err != nil {
		b.Fatal(err)
	}
	var models []mongo.WriteModel
	flush := func() {
		if len(models) > 0 {
			if _, err := coll.BulkWrite(b.Context(), models, options.BulkWrite().SetOrdered(false)); err != nil {
				b.Fatal(err)
			}
			models = nil
		}
	}
	for cur.Next(b.Context()) {
		var doc struct {
			ID   int32       `bson:"_id"`
			UUID bson.Binary `bson:"id"`
		}
		if err := cur.Decode(&doc); err != nil {
			b.Fatal(err)
		}
		u, err := uuidrep.AsUUIDWithRepresentation(doc.UUID, uuidrep.JavaLegacy)
		if err != nil {
			b.Fatal(err)
		}
		models = append(models, mongo.NewUpdateOneModel().SetFilter(bson.D{{Key: "_id", Value: doc.ID}}).
			SetUpdate(bson.D{{Key: "$set", Value: bson.D{{Key: "id", Value: uuidrep.NewBinary(u)}}}}))
		if len(models) == batch {
			flush()
		}
	}
	if err := cur.Err(); err != nil {
		b.Fatal(err)
	}
	flush()
}
