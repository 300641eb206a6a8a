package privilege

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// grant is a privilege as connectionStatus has it.
func grant(resource bson.D, actions ...string) bson.D {
	return bson.D{{Key: "resource", Value: resource}, {Key: "actions", Value: actions}}
}

func on(db, coll string) bson.D {
	return bson.D{{Key: "db", Value: db}, {Key: "collection", Value: coll}}
}

// granted returns what a server says of a user with the privileges.
func granted(t *testing.T, privileges ...bson.D) *Granted {
	t.Helper()
	s := memory.Start(t)
	s.AuthInfo = bson.D{{Key: "authenticatedUsers", Value: bson.A{bson.D{{Key: "user", Value: "u"}, {Key: "db", Value: "admin"}}}},
		{Key: "authenticatedUserRoles", Value: bson.A{bson.D{{Key: "role", Value: "r"}, {Key: "db", Value: "admin"}}}}, {Key: "authenticatedUserPrivileges", Value: privileges}}
	g, err := Of(t.Context(), s.Client)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The manual says which resources a document names: docs/reference/resource-document, and of each of the roles what it has.
func TestResource(t *testing.T) {
	db, users, system, other := resource{"shop", ""}, resource{"shop", "users"}, resource{"shop", "system.js"}, resource{"other", "users"}
	local, config := resource{"local", "oplog.rs"}, resource{"config", "collections"}
	for _, tt := range []struct {
		resource bson.D
		want     []resource
	}{
		{on("shop", "users"), []resource{users}},
		{on("shop", ""), []resource{db, users}},
		{on("shop", "system.js"), []resource{system}},
		{on("", "users"), []resource{users, other}},
		{on("", ""), []resource{db, users, other}},
		{on("config", ""), []resource{config}},
		{on("Shop", "users"), nil},
		{bson.D{{Key: "anyResource", Value: true}}, []resource{db, users, system, other, local, config}},
		{bson.D{{Key: "cluster", Value: true}}, nil},
		{bson.D{{Key: "db", Value: "shop"}, {Key: "system_buckets", Value: "users"}}, nil},
		{bson.D{{Key: "db", Value: ""}, {Key: "system_buckets", Value: ""}}, nil},
	} {
		g := granted(t, grant(tt.resource, "find"))
		for _, r := range []resource{db, users, system, other, local, config} {
			if got, want := g.has(r, "find"), slices.Contains(tt.want, r); got != want {
				t.Errorf("%s: %s: got %t, want %t", tt.resource, r, got, want)
			}
			if g.has(r, "update") {
				t.Errorf("%s: %s: update", tt.resource, r)
			}
		}
	}
	if g := granted(t, grant(bson.D{{Key: "anyResource", Value: true}}, "anyAction")); !g.has(db, "changeStream") {
		t.Error("anyAction")
	}
}

// readWrite and dbAdmin are the actions of these roles of a database, as the manual lists them for MongoDB 4.4. Other
// privileges of them, on collections of the system, are left out.
var (
	readWrite = strings.Fields("changeStream collStats convertToCapped createCollection createIndex dbHash dbStats dropCollection dropIndex find insert killCursors listCollections listIndexes planCacheRead remove renameCollectionSameDB update")
	dbAdmin   = strings.Fields("bypassDocumentValidation collMod collStats compact convertToCapped createCollection createIndex dbStats dropCollection dropDatabase dropIndex enableProfiler listCollections listIndexes planCacheIndexFilter planCacheRead planCacheWrite reIndex renameCollectionSameDB storageDetails validate")
	readOnly  = strings.Fields("changeStream collStats dbHash dbStats find killCursors listCollections listIndexes planCacheRead")
)

var work = Work{Database: "shop", InPlace: []string{"items"}, Copies: []Copy{{"orders", "orders_standard", "orders_before_cutover"}}}

// verbs are those that write, and verify.
var verbs = []Verb{Apply, Verify, Cutover, PutBack, Release, Undo}

func TestLacks(t *testing.T) {
	exact := func(lists ...[]string) (out []bson.D) { // a role for these collections alone
		for _, l := range lists {
			out = append(out, grant(on(l[0], l[1]), l[2:]...))
		}
		return out
	}
	record := []string{"shop", "bsonids.migrations", "find", "insert", "update"}
	for _, tt := range []struct {
		name       string
		privileges []bson.D
		want       map[Verb]string
	}{
		{"both roles", []bson.D{grant(on("shop", ""), readWrite...), grant(on("shop", ""), dbAdmin...)}, nil},
		{"both roles of all databases", []bson.D{grant(on("", ""), readWrite...), grant(on("", ""), dbAdmin...)}, nil},
		{"root", []bson.D{grant(bson.D{{Key: "anyResource", Value: true}}, "listCollections", "validate"), grant(on("", ""), slices.Concat(readWrite, dbAdmin)...)}, nil},
		{"readWrite", []bson.D{grant(on("shop", ""), readWrite...)}, map[Verb]string{
			Cutover: "collMod and bypassDocumentValidation on shop.orders, shop.orders_standard and shop.orders_before_cutover",
			PutBack: "collMod and bypassDocumentValidation on shop.orders; collMod on shop.orders_standard and shop.orders_before_cutover",
			Release: "collMod on shop.orders"}},
		{"read", []bson.D{grant(on("shop", ""), readOnly...)}, map[Verb]string{
			Apply: "update on shop.items; insert, update, remove and createIndex on shop.orders_standard; insert and update on shop.bsonids.migrations",
			Cutover: "renameCollectionSameDB on the database shop; collMod, insert, update and bypassDocumentValidation on shop.orders; " +
				"collMod, insert, update, remove and bypassDocumentValidation on shop.orders_standard; collMod, insert, remove and bypassDocumentValidation on shop.orders_before_cutover; " +
				"createCollection or insert and dropCollection on shop.bsonids.probe.* (on the database); insert and update on shop.bsonids.migrations",
			PutBack: "", Release: "", Undo: "update on shop.items; insert and update on shop.bsonids.migrations"}},
		{"other database", []bson.D{grant(on("other", ""), readWrite...)}, map[Verb]string{Apply: "listCollections on the database shop; find and update on shop.items; find and listIndexes on shop.orders; " +
			"find, insert, update, remove and createIndex on shop.orders_standard; find, insert and update on shop.bsonids.migrations",
			Cutover: "", PutBack: "", Release: "", Undo: "", Verify: "listCollections on the database shop; find on shop.items, shop.orders, shop.orders_standard and shop.bsonids.migrations"}},
		// What is allowed on each collection is not allowed on the database.
		{"the collections alone", exact(record, []string{"shop", "items", "find", "update"}, append([]string{"shop", "orders"}, slices.Concat(readWrite, dbAdmin)...),
			append([]string{"shop", "orders_standard"}, slices.Concat(readWrite, dbAdmin)...), append([]string{"shop", "orders_before_cutover"}, slices.Concat(readWrite, dbAdmin)...)),
			map[Verb]string{Apply: "listCollections on the database shop", Verify: "listCollections on the database shop", Release: "listCollections on the database shop", Undo: "listCollections on the database shop",
				Cutover: "listCollections, changeStream, find and renameCollectionSameDB on the database shop; createCollection or insert and dropCollection on shop.bsonids.probe.* (on the database)", PutBack: ""}},
		// MongoDB renames without renameCollectionSameDB, too.
		{"drop and insert", []bson.D{grant(on("shop", ""), slices.DeleteFunc(slices.Concat(readWrite, dbAdmin), func(a string) bool { return a == "renameCollectionSameDB" })...)}, nil},
		{"in place", exact(record, []string{"shop", "", "listCollections", "find"}, []string{"shop", "items", "update"}), map[Verb]string{Apply: "listIndexes on shop.orders; insert, update, remove and createIndex on shop.orders_standard",
			Cutover: "", PutBack: "", Release: "collMod on shop.orders"}},
	} {
		g := granted(t, tt.privileges...)
		for _, v := range verbs {
			want, some := tt.want[v]
			if got := g.Lacks(v, work); want != "" && got != want || (got != "") != some {
				t.Errorf("%s: %s: got %q, want %q", tt.name, v, got, want)
			}
		}
	}
	// What is not exchanged needs no cutover, and what is not there needs nothing.
	none := granted(t, grant(on("other", ""), "find"))
	if got := none.Lacks(Cutover, Work{Database: "shop", InPlace: []string{"a"}, Copies: []Copy{{Old: "log", New: "log2"}}}); got != "" {
		t.Errorf("got %q", got)
	}
	if got := none.Lacks(Apply, Work{Database: "shop"}); got != "" {
		t.Errorf("got %q", got)
	}
	many := Work{Database: "shop"}
	for i := range 30 {
		many.InPlace = append(many.InPlace, fmt.Sprint("c", i))
	}
	if got := none.Lacks(Apply, many); !strings.Contains(got, "shop.c9 and others") || strings.Contains(got, "shop.c10") {
		t.Errorf("got %q", got)
	}
}

// Where it is not known what the user may do, nothing is judged.
func TestNotKnown(t *testing.T) {
	user := bson.A{bson.D{{Key: "user", Value: "u"}, {Key: "db", Value: "admin"}}}
	for name, tt := range map[string]struct {
		info  bson.D
		fault memory.Fault
	}{
		"nobody":        {},
		"no privileges": {info: bson.D{{Key: "authenticatedUsers", Value: user}, {Key: "authenticatedUserRoles", Value: bson.A{}}}},
		"none":          {info: bson.D{{Key: "authenticatedUsers", Value: user}, {Key: "authenticatedUserPrivileges", Value: bson.A{}}}},
		"another shape": {info: bson.D{{Key: "authenticatedUsers", Value: user}, {Key: "authenticatedUserPrivileges", Value: bson.A{1}}}},
		"no command":    {fault: memory.Fault{Code: 59}},
		"refused":       {fault: memory.Fault{Code: 13}},
		"no answer":     {fault: memory.Fault{Lost: true}},
	} {
		s := memory.Start(t)
		s.AuthInfo = tt.info
		s.Before = func(command string, _ bson.Raw) memory.Fault {
			if command == "connectionStatus" {
				return tt.fault
			}
			return memory.Fault{}
		}
		if g, err := Of(t.Context(), s.Client); g != nil || err != nil || g.Lacks(Apply, work) != "" {
			t.Errorf("%s: got %v, %v", name, g, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Of(ctx, memory.Start(t).Client); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// A server without access control also says who is authenticated, and refuses nothing.
func TestEnforced(t *testing.T) {
	for _, tt := range []struct {
		name       string
		privileges []bson.D
		command    string // that is sent
		fault      memory.Fault
		want       bool
	}{
		{"refused", []bson.D{grant(on("shop", ""), readWrite...)}, "collMod", memory.Fault{Code: 13}, true},
		{"no such collection", []bson.D{grant(on("shop", ""), readWrite...)}, "collMod", memory.Fault{Code: 26}, false},
		{"dbAdmin", []bson.D{grant(on("shop", ""), dbAdmin...)}, "find", memory.Fault{}, false},
		{"dbAdmin, refused", []bson.D{grant(on("shop", ""), dbAdmin...)}, "find", memory.Fault{Code: 13}, true},
		{"dbAdmin and read", []bson.D{grant(on("shop", ""), slices.Concat(dbAdmin, readOnly)...)}, "delete", memory.Fault{Code: 13}, true},
		{"another error", []bson.D{grant(on("shop", ""), readWrite...)}, "collMod", memory.Fault{Code: 11600}, true},
		{"all", []bson.D{grant(on("", ""), slices.Concat(readWrite, dbAdmin)...)}, "", memory.Fault{}, true},
		{"the collections alone", []bson.D{grant(on("shop", "users"), slices.Concat(readWrite, dbAdmin)...)}, "collMod", memory.Fault{Code: 26}, false},
	} {
		g, s, sent := granted(t, tt.privileges...), memory.Start(t), ""
		s.Before = func(command string, c bson.Raw) memory.Fault {
			if command == "endSessions" {
				return memory.Fault{}
			}
			if sent += command; c.Lookup(command).StringValue() != "bsonids.absent" {
				t.Errorf("%s: sent %s", tt.name, c)
			}
			return tt.fault
		}
		if got, err := g.Enforced(t.Context(), s.Client.Database("shop")); got != tt.want || err != nil || sent != tt.command {
			t.Errorf("%s: got %t, %v, and sent %q", tt.name, got, err, sent)
		}
	}
}
