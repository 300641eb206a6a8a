package servertest

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/integration/embedded"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// If the server becomes unreachable, the command ends with one sentence. When the server is back,
// the same command continues.
func TestLostServer(t *testing.T) {
	data := t.TempDir()
	first, err := embedded.Start(embedded.WithFront(), embedded.WithDir(data))
	if err != nil {
		t.Fatal(err)
	}
	addr, uri := first.Addr(), first.URI()+"?serverSelectionTimeoutMS=1000&connectTimeoutMS=1000"
	client := dial(t, uri)
	want := seed(t, client.Database("d").Collection("c"), 40, uuidrep.JavaLegacy)
	_ = client.Disconnect(t.Context())
	dir := filepath.Join(t.TempDir(), "d.d")
	command(t, nil, "plan", dir, "--db", "d", "--uri", uri).want(t, failure.ExitOK)
	setRate(t, dir, "10")
	args := []string{"apply", dir, "--write", "--uri", uri, "--batch", "5", "--workers", "1", "--retry-for", "0s"}
	done := make(chan result)
	go func() { done <- command(t, nil, args...) }()
	for !(&scene{dir: dir}).begun() {
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

	second, err := embedded.Start(embedded.WithFront(), embedded.WithDir(data), embedded.WithAddr(addr))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	setRate(t, dir, "0")
	command(t, nil, args...).want(t, failure.ExitOK)
	client = dial(t, uri)
	equal(t, all(t, client.Database("d").Collection("c")), want)
	_ = client.Disconnect(t.Context())
}

// losses are what another program does to a collection while it is converted, and what the error says.
var losses = map[string]struct {
	do   func(t testing.TB, c *mongo.Collection)
	text string
}{
	"dropped": {func(t testing.TB, c *mongo.Collection) { drop(t, c) }, "dropped or renamed"},
	"renamed": {func(t testing.TB, c *mongo.Collection) { rename(t, c.Database(), c.Name(), c.Name()+"_away") }, "renamed"},
	"replaced": {func(t testing.TB, c *mongo.Collection) {
		drop(t, c)
		insert(t, c, []any{bson.D{{Key: "_id", Value: 1}}})
	}, "another collection now"},
}

// A collection that disappears while it is converted in place or copied is an error, and the conversion is not done. What was copied
// stays.
func TestCollectionLost(t *testing.T) {
	for name, loss := range losses {
		for _, tt := range []struct {
			way, lost string
			batch     int64
		}{{"in place", "c", 1}, {"in place", "c", 6}, {"copy", "c", 6}, {"copy", "c_standard", 6}} {
			t.Run(fmt.Sprint(name, "/", tt), func(t *testing.T) {
				c := newScene(t, 60, uuidrep.JavaLegacy, ways[tt.way]...)
				var batches atomic.Int64
				var gate sync.RWMutex // nothing passes while the collection is lost: it could meet the half of it
				p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
					gate.RLock()
					answer := pass()
					gate.RUnlock()
					if writesTo(c.result.Name())(r) && r.documents == 10 && batches.Add(1) == tt.batch {
						gate.Lock()
						defer gate.Unlock()
						loss.do(t, c.db.Collection(tt.lost))
					}
					return answer
				})
				c.through(p).run(failure.ExitFailed, "apply --write --batch 10 --workers 2").says(t, c.db.Name()+"."+tt.lost+" ", loss.text)
				if n := len(all(t, c.result)); tt.way == "copy" && tt.lost == "c" && n != 60 {
					t.Errorf("%d of 60 copies are left", n)
				}
				if r := command(t, c.s, c.args("apply --write --batch 10 --workers 2")...); tt.way == "in place" && r.code == failure.ExitOK {
					t.Errorf("the same command ends without an error:\n%s", r.stdout)
				}
			})
		}
	}
}

// A router reports a shard that it cannot reach or that is no longer the primary, and a server reports a temporary failure, for each
// document. No document is skipped because of that. The run ends, and the same command continues. The error codes are those of
// src/mongo/base/error_codes.yml of MongoDB.
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
		{189, "PrimarySteppedDown", failure.ExitUnreachable},
		{202, "NetworkInterfaceExceededTimeLimit", failure.ExitUnreachable},
		{13388, "StaleConfig", failure.ExitUnreachable},
		{9001, "SocketException", failure.ExitUnreachable},
		{10058, "LegacyNotPrimary", failure.ExitUnreachable},
		{11601, "Interrupted", failure.ExitFailed},
		{50, "MaxTimeMSExpired", failure.ExitUnreachable}, // of a server that does not enforce limits; see TestExpiredBatch
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
			c := newScene(t, 12, uuidrep.JavaLegacy)
			p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
				if limit, _ := r.command.Lookup("maxTimeMS").AsInt64OK(); r.name() == "update" && limit == 1 {
					return r.fail(168, "refused") // InvalidPipelineOperator: it is asked whether it enforces limits
				}
				if !writesTo("c")(r) {
					return pass()
				}
				return r.refuse(tt.code, "it was "+tt.name)
			})
			c.through(p).run(tt.exit, "apply --write").says(t, "to continue: ", tt.name)
			c.ok("apply --write")
			c.converted()
		})
	}
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
		c := newScene(t, 20, uuidrep.JavaLegacy)
		got := ""
		p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
			if r.name() == "update" && r.on() == "c" {
				got = r.command.Lookup("writeConcern").String()
			}
			return pass()
		})
		command(t, uriTarget(p.URI()+uri), "apply", c.dir, "--write")
		if got != want {
			t.Errorf("%s: %s, want %s", uri, got, want)
		}
	}
}

type uriTarget string

func (u uriTarget) URI() string { return string(u) }

// The server gets no update whose document is not in the undo log yet, whatever the number of
// workers, and although the log is written ahead.
func TestLogAhead(t *testing.T) {
	for _, workers := range []string{"1", "4"} {
		t.Run(workers, func(t *testing.T) {
			n := some(t, mongotest.Start(t), 120)
			c := newScene(t, n, uuidrep.JavaLegacy)
			var mu sync.Mutex
			updated := make(map[int32]bool)
			p := startProxy(t, host(t, c.s), func(r request, pass func() []byte) []byte {
				if !writesTo("c")(r) {
					return pass()
				}
				mu.Lock()
				defer mu.Unlock()
				log := logText(t, c.log())
				for _, u := range r.sequence {
					id := u.Lookup("q", "_id", "$eq").Int32()
					updated[id] = true
					if !strings.Contains(log, fmt.Sprintf("{\"_id\":{\"$numberInt\":\"%d\"}", id)) {
						t.Errorf("document %d is updated, and not in the undo log", id)
					}
				}
				return pass()
			})
			c.through(p).ok("apply --write --batch 3 --workers " + workers)
			c.converted()
			if len(updated) != n {
				t.Errorf("%d documents were updated, want %d", len(updated), n)
			}
		})
	}
}
