package servertest

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/privilege"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidrep"
)

// asked is an action on a collection, or on a database as a resource.
type asked struct{ db, collection, action string }

// asks returns what MongoDB asks of a user who sends the command, as its manual says of each command, and for a rename
// src/mongo/db/commands/rename_collection_common.cpp.
func (r request) asks() (all []asked) {
	db, on := r.command.Lookup("$db").StringValue(), r.on()
	of := func(actions ...string) {
		for _, a := range actions {
			all = append(all, asked{db, on, a})
		}
	}
	bypass, _ := r.command.Lookup("bypassDocumentValidation").BooleanOK()
	switch name := r.name(); strings.ToLower(name) {
	case "hello", "ismaster", "ping", "buildinfo", "endsessions", "connectionstatus", "killcursors", "getmore", "saslstart", "saslcontinue":
		return nil
	case "find", "count":
		of("find")
	case "aggregate":
		if of("find"); on == "" {
			of("changeStream")
		}
	case "listcollections":
		if only, _ := r.command.Lookup("authorizedCollections").BooleanOK(); !only {
			on = ""
			of("listCollections")
		}
	case "listindexes", "collmod", "insert", "update":
		of(map[string]string{"listindexes": "listIndexes", "collmod": "collMod"}[strings.ToLower(name)] + map[string]string{"insert": "insert", "update": "update"}[name])
		for _, u := range r.sequence {
			if upsert, _ := u.Lookup("upsert").BooleanOK(); upsert && name == "update" {
				of("insert")
				break
			}
		}
		if bypass {
			of("bypassDocumentValidation")
		}
	case "delete":
		of("remove")
	case "create":
		of("createCollection|insert")
	case "createindexes":
		of("createIndex")
	case "drop":
		of("dropCollection")
	case "renamecollection":
		var source, target string
		db, source, _ = strings.Cut(on, ".")
		_, target, _ = strings.Cut(r.command.Lookup("to").StringValue(), ".")
		on = ""
		of("renameCollectionSameDB")
		on = source
		of("find")
		on = target
		of("find")
	default:
		of("(unknown) " + name)
	}
	return all
}

// authorizer is a server that refuses what a user may not do, as MongoDB does.
type authorizer struct {
	*proxy
	mu    sync.Mutex
	needs []privilege.Need
}

func authorize(t *testing.T, addr string) *authorizer {
	a := &authorizer{}
	a.proxy = startProxy(t, addr, func(r request, pass func() []byte) []byte {
		if refusal := a.answer(r); refusal != nil {
			return refusal
		}
		return pass()
	})
	return a
}

// answer returns the answer to a command that is not passed on to the server, or nil.
func (a *authorizer) answer(r request) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.name() == "connectionStatus" {
		var privileges bson.A
		for _, n := range a.needs {
			var actions []string
			for _, action := range n.Actions {
				action, _, _ = strings.Cut(action, "|")
				actions = append(actions, action)
			}
			privileges = append(privileges, bson.D{{Key: "resource", Value: bson.D{{Key: "db", Value: n.Database}, {Key: "collection", Value: granted(n.Collection)}}}, {Key: "actions", Value: actions}})
		}
		return r.ok(bson.E{Key: "authInfo", Value: bson.D{{Key: "authenticatedUsers", Value: bson.A{bson.D{{Key: "user", Value: "u"}}}}, {Key: "authenticatedUserPrivileges", Value: privileges}}})
	}
	for _, want := range r.asks() {
		if !a.may(want) {
			return r.fail(13, "not authorized on "+want.db+" to execute command { "+r.name()+": \""+r.on()+"\" }")
		}
	}
	return nil
}

// granted returns the collection of a privilege for what a verb needs. Names that are random are granted by the database.
func granted(collection string) string {
	if strings.HasPrefix(collection, "bsonids.probe.") {
		return ""
	}
	return collection
}

func (a *authorizer) may(want asked) bool {
	for _, n := range a.needs {
		if on := granted(n.Collection); n.Database != want.db || on != want.collection && on != "" {
			continue
		}
		for _, has := range n.Actions {
			if slices.Contains(strings.Split(want.action, "|"), has) || has == want.action {
				return true
			}
		}
	}
	return false
}

// run runs a command as a user who may do what the verb needs, and nothing else.
func (a *authorizer) run(t *testing.T, w privilege.Work, v privilege.Verb, code int, args ...string) result {
	t.Helper()
	a.mu.Lock()
	a.needs = w.Needs(v)
	a.mu.Unlock()
	r := command(t, a, args...)
	if r.code != code {
		t.Errorf("%s: exit code %d, want %d\n%s%s", v, r.code, code, r.stdout, r.stderr)
	}
	return r
}

// A user who may do what the table of package privilege says can carry a migration out, and is told before anything is
// changed if some of it is missing.
func TestPrivileges(t *testing.T) {
	s, db := started(t)
	a, w, dir := copiedWith(t, s, db)
	a.run(t, w, privilege.Undo, failure.ExitOK, "undo", dir, "--write")
}

// The same holds for a cutover.
func TestCutoverPrivileges(t *testing.T) {
	s, db := started(t, mongotest.CollMod)
	a, w, dir := copiedWith(t, s, db)
	lacks := "lacks privileges for bsonids cutover --write: changeStream, find and renameCollectionSameDB on the database " + db.Name()
	a.run(t, w, privilege.Apply, failure.ExitDenied, "cutover", dir).says(t, lacks, "bsonids release --write")
	a.run(t, w, privilege.Apply, failure.ExitDenied, "cutover", dir, "--write").says(t, lacks, "changed nothing")
	a.run(t, w, privilege.Cutover, failure.ExitOK, "cutover", dir, "--write")
	a.run(t, w, privilege.PutBack, failure.ExitOK, "cutover", dir, "--roll-back", "--write")
	a.run(t, w, privilege.Cutover, failure.ExitOK, "cutover", dir, "--write")
	a.run(t, w, privilege.Release, failure.ExitOK, "release", dir, "--write")
}

// copiedWith carries a migration out with the privileges for it, except for the cutover.
func copiedWith(t *testing.T, s *mongotest.Server, db *mongo.Database) (a *authorizer, w privilege.Work, dir string) {
	t.Helper()
	for _, name := range []string{"items", "orders"} {
		seed(t, db.Collection(name), 40, uuidrep.JavaLegacy)
	}
	a, dir = authorize(t, host(t, s)), filepath.Join(t.TempDir(), "d.d")
	name := db.Name()
	w = privilege.Work{Database: name, InPlace: []string{"items"}, Copies: []privilege.Copy{{Old: "orders", New: "orders2", Kept: "orders_before_cutover"}}}
	read := privilege.Work{Database: name, InPlace: []string{"items", "orders"}}
	a.run(t, read, privilege.Plan, failure.ExitOK, "plan", dir, "--db", name).says(t, "lacks privileges for bsonids apply --write: update on "+name+".items")
	changePlan(t, dir, convertFields("javaLegacy"), copiedInto("orders", "orders2"), accepted)
	lacks := "lacks privileges for bsonids apply --write: update on " + name + ".items; listIndexes on " + name + ".orders; find, insert, update, remove and createIndex on " + name + ".orders2"
	if r := a.run(t, read, privilege.DryRun, failure.ExitDenied, "apply", dir).says(t, lacks, "bsonids cutover --write", "bsonids undo --write"); !strings.Contains(r.stdout, "orders2") {
		t.Errorf("the rehearsal printed nothing: %s", r.stdout)
	}
	before := all(t, db.Collection("items"))
	a.run(t, read, privilege.DryRun, failure.ExitDenied, "apply", dir, "--write").says(t, lacks, "changed nothing")
	if names, err := db.ListCollectionNames(t.Context(), bson.D{}); err != nil || len(names) != 2 {
		t.Errorf("there are %q, %v", names, err)
	}
	whole(t, db, map[string]map[string]bson.Raw{"items": before})
	a.run(t, w, privilege.Apply, failure.ExitOK, "apply", dir, "--write")
	a.run(t, w, privilege.Verify, failure.ExitOK, "verify", dir)
	a.run(t, w, privilege.Status, failure.ExitOK, "status", dir)
	return a, w, dir
}
