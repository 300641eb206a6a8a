package servertest

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// If the server becomes unreachable, the command ends with one sentence. When the server is back,
// the same command continues.
func TestLostServer(t *testing.T) {
	data := t.TempDir()
	first, err := embedded.Start(embedded.WithDir(data))
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
	dir := filepath.Join(t.TempDir(), "d.d")
	command(t, nil, "plan", dir, "--db", "d", "--to", "csharpLegacy", "--uri", uri).want(t, failure.ExitOK)
	setRate(t, dir, "10")
	args := []string{"apply", dir, "--write", "--uri", uri, "--batch", "5", "--workers", "1", "--retry-for", "0s"}
	done := make(chan result)
	go func() { done <- command(t, nil, args...) }()
	for {
		if b, err := os.ReadFile(filepath.Join(dir, "c.javaLegacy.state")); err == nil && bytes.Contains(b, []byte("position")) {
			break
		}
		select {
		case r := <-done:
			t.Fatalf("%+v", r)
		default:
			runtime.Gosched()
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.code != failure.ExitUnreachable || strings.Count(r.problems(), "\n") != 4 || !strings.Contains(r.stderr, "to continue: bsonids apply ") {
		t.Errorf("exit code %d: %s", r.code, r.stderr)
	}

	second, err := embedded.Start(embedded.WithDir(data), embedded.WithAddr(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	setRate(t, dir, "0")
	command(t, nil, args...).want(t, failure.ExitOK)
	if client, err = mongo.Connect(options.Client().ApplyURI(uri)); err != nil {
		t.Fatal(err)
	}
	equal(t, all(t, client.Database("d").Collection("c")), want)
	if err := client.Disconnect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// In these tests a server answers as mongod or mongos does and FerretDB does not. The error codes
// are those of src/mongo/base/error_codes.yml of MongoDB.

// A router reports a shard that it cannot reach, and a server reports a temporary failure, for each
// document. No document is skipped because of that: with the same subtype before and after, it
// could not be converted later. The run ends, and the same command continues.
func TestNoMatterOfADocument(t *testing.T) {
	for _, tt := range []struct {
		code int32
		name string
		exit int
	}{
		{6, "HostUnreachable", failure.ExitUnreachable},
		{89, "NetworkTimeout", failure.ExitUnreachable},
		{133, "FailedToSatisfyReadPreference", failure.ExitUnreachable},
		{82, "NoProgressMade", failure.ExitUnreachable},
		{202, "NetworkInterfaceExceededTimeLimit", failure.ExitUnreachable},
		{13388, "StaleConfig", failure.ExitUnreachable},
		{9001, "SocketException", failure.ExitUnreachable},
		{10058, "LegacyNotPrimary", failure.ExitUnreachable},
		{11601, "Interrupted", failure.ExitFailed},
		{50, "MaxTimeMSExpired", failure.ExitUnreachable}, // the driver calls it a timeout
		{262, "ExceededTimeLimit", failure.ExitUnreachable},
		{24, "LockTimeout", failure.ExitFailed},
		{112, "WriteConflict", failure.ExitFailed},
		{365, "TemporarilyUnavailable", failure.ExitFailed},
		{371, "UserWritesBlocked", failure.ExitFailed},
		{462, "IngressRequestRateLimitExceeded", failure.ExitFailed},
		{14031, "OutOfDiskSpace", failure.ExitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := mongotest.Start(t)
			db := connect(t, s)
			want := seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.CSharpLegacy)
			p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
				if r.name() != "update" || r.documents < 5 {
					return pass()
				}
				return r.refuse(tt.code, "it was "+tt.name)
			})
			args := []string{"apply", prepared(t, s, "csharpLegacy"), "--write"}
			if r := command(t, p, args...).want(t, tt.exit); !strings.Contains(r.stderr, "to continue: ") || !strings.Contains(r.stderr, tt.name) {
				t.Error(r.stderr)
			}
			command(t, s, args...).want(t, failure.ExitOK)
			equal(t, all(t, db.Collection("c")), want)
		})
	}
}

// A router reports a shard that is no longer the primary for each document. No document is skipped
// because of that: the run ends, and the same command continues.
func TestLostBehindRouter(t *testing.T) {
	s := mongotest.Start(t)
	db := connect(t, s)
	want := seed(t, db.Collection("c"), 5, uuidrep.JavaLegacy, uuidrep.Standard)
	p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
		if r.name() != "update" || r.documents < 5 {
			return pass()
		}
		return r.refuse(189, "primary stepped down")
	})
	args := []string{"apply", prepared(t, s, "standard"), "--write"}
	command(t, p, args...).want(t, failure.ExitUnreachable)
	command(t, s, args...).want(t, failure.ExitOK)
	equal(t, all(t, db.Collection("c")), want)
}

// Writes wait for a majority unless the connection string has another w, whatever other parts of a
// write concern it has.
func TestWriteConcern(t *testing.T) {
	for uri, want := range map[string]string{
		"":                  `{"w": "majority"}`,
		"&journal=true":     `{"w": "majority","j": true}`,
		"&journal=false":    `{"w": "majority","j": false}`,
		"&wtimeoutMS=5000":  `{"w": "majority"}`,
		"&w=1&journal=true": `{"w": {"$numberInt":"1"},"j": true}`,
		"&w=twoDataCentres": `{"w": "twoDataCentres"}`,
	} {
		s := mongotest.Start(t)
		seed(t, connect(t, s).Collection("c"), 20, uuidrep.JavaLegacy, uuidrep.Standard)
		dir := prepared(t, s, "standard")
		got := ""
		p := startProxy(t, host(t, s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" && r.command.Lookup("update").StringValue() == "c" {
				got = r.command.Lookup("writeConcern").String()
			}
			return pass()
		})
		command(t, uriTarget(p.URI()+uri), "apply", dir, "--write")
		if got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

type uriTarget string

func (u uriTarget) URI() string { return string(u) }
