package uuidaudit

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/bsonids/bsonids/uuidrep"
)

type (
	m = bson.M
	a = bson.A
)

func octets(subtype byte, length int) bson.Binary {
	return bson.Binary{Subtype: subtype, Data: make([]byte, length)}
}

var generic, legacy, standard = octets(0, 16), octets(3, 16), octets(4, 16)

// d makes a document of keys and values, in this order.
func d(pairs ...any) bson.D {
	doc := bson.D{}
	for i := 0; i < len(pairs); i += 2 {
		doc = append(doc, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
	}
	return doc
}

func raw(t testing.TB, doc any) bson.Raw {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// watch returns a monitor and where its findings go, each as one line.
func watch(t testing.TB, r uuidrep.Representation, opts ...Option) (*event.CommandMonitor, func() []string) {
	t.Helper()
	var mu sync.Mutex
	var lines []string
	audit, err := New(r, func(f Finding) {
		mu.Lock()
		defer mu.Unlock()
		form := strconv.Itoa(int(f.Subtype))
		if f.Text {
			form = "text"
		}
		lines = append(lines, fmt.Sprintf("%s.%s %s %s %s %s x%d", f.Database, f.Collection, f.Command, f.Part, f.Path, form, f.Count))
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return audit.Monitor(nil), func() []string {
		mu.Lock()
		defer mu.Unlock()
		found := lines
		lines = nil
		slices.Sort(found)
		return found
	}
}

var lastRequest int64

// run plays a command and, if it is not nil, its reply.
func run(t testing.TB, mon *event.CommandMonitor, database string, command bson.D, reply any) {
	t.Helper()
	lastRequest++
	name := command[0].Key
	mon.Started(context.Background(), &event.CommandStartedEvent{
		Command: raw(t, command), DatabaseName: database, CommandName: name, RequestID: lastRequest,
	})
	if reply != nil {
		mon.Succeeded(context.Background(), &event.CommandSucceededEvent{
			CommandFinishedEvent: event.CommandFinishedEvent{CommandName: name, DatabaseName: database, RequestID: lastRequest},
			Reply:                raw(t, reply),
		})
	}
}

func TestCommands(t *testing.T) {
	lsid := d("id", standard)
	for name, c := range map[string]struct {
		command bson.D
		reply   any
		want    []string
	}{
		"insert": {
			command: d("insert", "c", "documents", a{d("_id", generic, "l", a{d("u", legacy), d("u", legacy)}), d("u", standard)}, "lsid", d("id", legacy)),
			want:    []string{"db.c insert document *._id 0 x1", "db.c insert document *.l.*.u 3 x2"},
		},
		"insert of GridFS chunks": {
			command: d("insert", "fs.chunks", "documents", a{d("_id", standard, "files_id", generic, "n", 0, "data", generic)}),
			want:    []string{"db.fs.chunks insert document *.files_id 0 x1"},
		},
		"find of GridFS chunks": {
			command: d("find", "fs.chunks", "filter", d("files_id", standard)),
			reply:   d("cursor", d("firstBatch", a{d("files_id", legacy, "data", generic, "x", d("data", generic))}, "id", int64(0), "ns", "db.fs.chunks"), "ok", 1),
			want:    []string{"db.fs.chunks find reply files_id 3 x1", "db.fs.chunks find reply x.data 0 x1"},
		},
		"change stream of GridFS chunks": {
			command: d("aggregate", "fs.chunks", "pipeline", a{d("$changeStream", d())}, "cursor", d()),
			reply:   d("cursor", d("firstBatch", a{d("_id", d("_data", "x"), "operationType", "insert", "fullDocument", d("files_id", generic, "data", generic))})),
			want:    []string{"db.fs.chunks aggregate reply fullDocument.files_id 0 x1"},
		},
		"field data of another collection": {
			command: d("insert", "chunks", "documents", a{d("data", generic)}),
			want:    []string{"db.chunks insert document *.data 0 x1"},
		},
		"update": {
			command: d("update", "c", "updates", a{d("q", d("u", generic), "u", d("$set", d("v", legacy)), "arrayFilters", a{d("x", generic)}), d("q", d("u", generic), "u", a{d("$set", d("w", generic))})}, "lsid", lsid),
			want: []string{"db.c update array filter *.x 0 x1", "db.c update filter u 0 x2", "db.c update update $set.v 3 x1",
				"db.c update update *.$set.w 0 x1"},
		},
		"delete": {
			command: d("delete", "c", "deletes", a{d("q", d("$or", a{d("u", d("$in", a{generic, standard}))}), "limit", 1)}),
			want:    []string{"db.c delete filter $or.*.u.$in.* 0 x1"},
		},
		"find": {
			command: d("find", "c", "filter", d("u", legacy), "sort", d("u", 1), "lsid", lsid),
			reply:   d("cursor", d("firstBatch", a{d("u", generic), d("u", generic), d("v", standard)}, "id", int64(0), "ns", "db.c"), "ok", 1),
			want:    []string{"db.c find filter u 3 x1", "db.c find reply u 0 x2"},
		},
		"getMore": {
			command: d("getMore", int64(7), "collection", "c"),
			reply:   d("cursor", d("nextBatch", a{d("u", generic)}), "ok", 1),
			want:    []string{"db.c getMore reply u 0 x1"},
		},
		"getMore of listCollections": {
			command: d("getMore", int64(7), "collection", "$cmd.listCollections"),
			reply:   d("cursor", d("nextBatch", a{d("info", d("uuid", legacy))})),
		},
		"findAndModify": {
			command: d("findAndModify", "c", "query", d("u", generic), "update", d("$set", d("v", generic)), "arrayFilters", a{d("x", generic)}),
			reply:   d("value", d("w", generic), "lastErrorObject", d("upserted", generic)),
			want: []string{"db.c findAndModify array filter *.x 0 x1", "db.c findAndModify filter u 0 x1",
				"db.c findAndModify reply w 0 x1", "db.c findAndModify update $set.v 0 x1"},
		},
		"aggregate": {
			command: d("aggregate", "c", "pipeline", a{d("$match", d("u", generic)), d("$lookup", d("pipeline", a{d("$match", d("v", legacy))}))}, "cursor", d()),
			reply:   d("cursor", d("firstBatch", a{d("_id", legacy)})),
			want: []string{"db.c aggregate pipeline *.$lookup.pipeline.*.$match.v 3 x1", "db.c aggregate pipeline *.$match.u 0 x1",
				"db.c aggregate reply _id 3 x1"},
		},
		"aggregate of a database": {
			command: d("aggregate", 1, "pipeline", a{d("$documents", a{d("u", generic)})}),
			want:    []string{"db. aggregate pipeline *.$documents.*.u 0 x1"},
		},
		"count": {command: d("count", "c", "query", d("u", generic)), want: []string{"db.c count filter u 0 x1"}},
		"distinct": {
			command: d("distinct", "c", "key", "u", "query", d("u", generic)), reply: d("values", a{generic, standard, generic, d("x", legacy)}, "ok", 1),
			want: []string{"db.c distinct filter u 0 x1", "db.c distinct reply u 0 x2", "db.c distinct reply u.x 3 x1"},
		},
		"distinct of a path": {
			command: d("distinct", "c", "key", "items.0.product"), reply: d("values", a{legacy}),
			want: []string{"db.c distinct reply items.*.product 3 x1"},
		},
		"distinct of a key that is data": {
			command: d("distinct", "c", "key", "by.alice@example.com"), reply: d("values", a{legacy}),
			want: []string{"db.c distinct reply * 3 x1"},
		},
		"distinct of GridFS chunks": {command: d("distinct", "fs.chunks", "key", "data"), reply: d("values", a{generic})},
		"explained distinct":        {command: d("explain", d("distinct", "c", "key", "u")), reply: d("values", a{generic})},
		"mapReduce": {
			command: d("mapReduce", "c", "map", bson.CodeWithScope{Code: "emit()", Scope: d("a", legacy)}, "reduce", bson.JavaScript("x"),
				"query", d("u", generic), "scope", d("v", legacy), "out", d("inline", 1)),
			reply: d("results", a{d("_id", generic, "value", d("n", legacy))}, "ok", 1),
			want: []string{"db.c mapReduce filter $scope.a 3 x1", "db.c mapReduce filter u 0 x1", "db.c mapReduce filter v 3 x1",
				"db.c mapReduce reply _id 0 x1", "db.c mapReduce reply value.n 3 x1"},
		},
		"mapreduce": {command: d("mapreduce", "c", "query", d("u", generic)), want: []string{"db.c mapReduce filter u 0 x1"}},
		"createIndexes": {
			command: d("createIndexes", "c", "indexes", a{d("key", d("a", 1), "name", "a_1", "partialFilterExpression", d("order.customer", legacy)), d("key", d("b", 1))}),
			want:    []string{"db.c createIndexes filter order.customer 3 x1"},
		},
		"a validator": {
			command: d("create", "c", "validator", d("$jsonSchema", d("properties", d("u", d("enum", a{legacy}))))),
			want:    []string{"db.c create filter $jsonSchema.properties.u.enum.* 3 x1"},
		},
		"a view": {
			command: d("create", "v", "viewOn", "c", "pipeline", a{d("$match", d("u", legacy))}),
			want:    []string{"db.v create pipeline *.$match.u 3 x1"},
		},
		"collMod": {
			command: d("collMod", "v", "viewOn", "c", "pipeline", a{d("$match", d("u", legacy))}, "validator", d("u", generic)),
			want:    []string{"db.v collMod filter u 0 x1", "db.v collMod pipeline *.$match.u 3 x1"},
		},
		"the scope of code": {
			command: d("find", "c", "filter", d("$where", bson.CodeWithScope{Code: "this.u == u", Scope: d("u", legacy, "l", a{generic})})),
			reply:   d("cursor", d("firstBatch", a{d("f", bson.CodeWithScope{Code: "x", Scope: d("f", bson.CodeWithScope{Scope: d("u", legacy)})})})),
			want: []string{"db.c find filter $where.$scope.l.* 0 x1", "db.c find filter $where.$scope.u 3 x1",
				"db.c find reply f.$scope.f.$scope.u 3 x1"},
		},
		"bulkWrite": {
			command: d("bulkWrite", 1, "ops", a{d("insert", 1, "document", d("u", generic)), d("update", 0, "filter", d("u", generic), "updateMods", d("$set", d("v", generic))), d("delete", 0, "filter", d("u", generic))},
				"nsInfo", a{d("ns", "db.c", "collectionUUID", generic), d("ns", "other.d.e")}, "lsid", lsid),
			reply: d("cursor", d("firstBatch", a{d("upserted", d("_id", generic))})),
			want: []string{"db.c bulkWrite filter u 0 x2", "db.c bulkWrite update $set.v 0 x1",
				"other.d.e bulkWrite document u 0 x1"},
		},
		"explain": {
			command: d("explain", d("find", "c", "filter", d("u", generic)), "verbosity", "queryPlanner"),
			reply:   d("queryPlanner", d("parsedQuery", d("u", generic))),
			want:    []string{"db.c find filter u 0 x1"},
		},
		"listCollections": {
			command: d("listCollections", 1, "filter", d("info.uuid", legacy)),
			reply:   d("cursor", d("firstBatch", a{d("name", "c", "info", d("uuid", legacy))})),
		},
		"create":       {command: d("create", "c", "encryptedFields", d("fields", a{d("keyId", legacy)}))},
		"killSessions": {command: d("killSessions", a{d("id", legacy)})},
		"the server's documents": {
			command: d("aggregate", 1, "pipeline", a{d("$listCatalog", d())}),
			reply:   d("cursor", d("firstBatch", a{d("md", d("options", d("uuid", legacy)))})),
		},
		"change stream": {
			command: d("aggregate", "c", "pipeline", a{d("$changeStream", d())}),
			reply: d("cursor", d("firstBatch", a{d("_id", d("_data", "82"), "operationType", "insert", "lsid", d("id", legacy), "collectionUUID", legacy,
				"documentKey", d("_id", generic), "fullDocument", d("_id", generic, "u", legacy))})),
			want: []string{"db.c aggregate reply documentKey._id 0 x1", "db.c aggregate reply fullDocument._id 0 x1",
				"db.c aggregate reply fullDocument.u 3 x1"},
		},
		"change stream, later": {
			command: d("getMore", int64(7), "collection", "c"),
			reply:   d("cursor", d("nextBatch", a{d("_id", d("_data", "82"), "operationType", "insert", "lsid", d("id", legacy), "fullDocument", d("u", generic))})),
			want:    []string{"db.c getMore reply fullDocument.u 0 x1"},
		},
		"change stream of a database, later": {
			command: d("getMore", int64(7), "collection", "$cmd.aggregate"),
			reply:   d("cursor", d("nextBatch", a{d("_id", d("_data", "82"), "operationType", "insert", "collectionUUID", legacy, "fullDocument", d("u", generic))})),
			want:    []string{"db. getMore reply fullDocument.u 0 x1"},
		},
		"documents of the server, later": {
			command: d("getMore", int64(7), "collection", "$cmd.aggregate"),
			reply:   d("cursor", d("nextBatch", a{d("info", d("uuid", legacy))})),
		},
		"a projection": {
			command: d("find", "c", "projection", d("l", d("$elemMatch", d("u", generic)))),
			want:    []string{"db.c find filter l.$elemMatch.u 0 x1"},
		},
		"findandmodify": {
			command: d("findandmodify", "c", "query", d("u", generic)),
			reply:   d("value", d("w", generic)),
			want:    []string{"db.c findAndModify filter u 0 x1", "db.c findAndModify reply w 0 x1"},
		},
		"dotted paths": {
			command: d("update", "c", "updates", a{d("q", d("order.items.0.product", generic, "by.alice@example.com", generic),
				"u", d("$set", d("order.items.$[i].product", generic, "order.lines.$.x", generic)), "arrayFilters", a{d("i.product", generic)})}),
			want: []string{"db.c update array filter *.i.product 0 x1", "db.c update filter * 0 x1", "db.c update filter order.items.*.product 0 x1",
				"db.c update update $set.order.items.*.product 0 x1", "db.c update update $set.order.lines.*.x 0 x1"},
		},
		"dotted paths of a pipeline": {
			command: d("aggregate", "c", "pipeline", a{d("$match", d("order.customer", generic))}),
			want:    []string{"db.c aggregate pipeline *.$match.order.customer 0 x1"},
		},
		"names of hosts in documents": {
			command: d("insert", "c", "documents", a{d("by", d("www.example.com", generic))}),
			want:    []string{"db.c insert document *.by.* 0 x1"},
		},
		"keys that are data": {
			command: d("insert", "c", "documents", a{m{"by": m{"00112233-4455-6677-8899-aabbccddeeff": generic}}, m{"by": m{"alice@example.com": generic, "60c72b2f9b1e8a3f5c7d9e10": generic, "deadbeefcafe": generic, "é": generic, "": generic}}}),
			want:    []string{"db.c insert document *.by.* 0 x6"},
		},
		"other lengths and subtypes": {
			command: d("insert", "c", "documents", a{d("a", octets(0, 15), "b", octets(0, 17), "c", octets(3, 4), "d", octets(5, 16), "e", octets(6, 16), "f", octets(128, 16), "g", octets(2, 16))}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			mon, findings := watch(t, uuidrep.Standard)
			run(t, mon, "db", c.command, c.reply)
			if got := findings(); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestRepresentations(t *testing.T) {
	insert := d("insert", "c", "documents", a{d("g", generic, "l", legacy, "s", standard)})
	const g, l, s = "db.c insert document *.g 0 x1", "db.c insert document *.l 3 x1", "db.c insert document *.s 4 x1"
	for _, c := range []struct {
		rep  uuidrep.Representation
		opts []Option
		want []string
	}{
		{uuidrep.Unspecified, nil, []string{g}},
		{uuidrep.Standard, nil, []string{g, l}},
		{uuidrep.JavaLegacy, nil, []string{g, s}},
		{uuidrep.JavaLegacy, []Option{WithAlso(uuidrep.Standard)}, []string{g}},
		{uuidrep.Standard, []Option{WithSampleRate(0)}, nil},
		{uuidrep.Standard, []Option{WithSampleRate(1)}, []string{g, l}},
		{uuidrep.Standard, []Option{WithIgnore("db")}, nil},
		{uuidrep.Standard, []Option{WithIgnore("db.c")}, nil},
		{uuidrep.Standard, []Option{WithIgnore("db.d", "c")}, []string{g, l}},
	} {
		mon, findings := watch(t, c.rep, c.opts...)
		run(t, mon, "db", insert, nil)
		if got := findings(); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.rep, got, c.want)
		}
		for _, database := range []string{"admin", "config", "local"} {
			run(t, mon, database, insert, nil)
		}
		if got := findings(); got != nil {
			t.Errorf("in the server's databases: %v", got)
		}
	}
}

func TestSampling(t *testing.T) {
	mon, findings := watch(t, uuidrep.Standard, WithSampleRate(0.25))
	for range 4000 {
		run(t, mon, "db", d("find", "c", "filter", d("u", generic)), d("cursor", d("firstBatch", a{d("u", generic)})))
	}
	got := findings()
	// 1000 commands are expected, and a standard deviation of 27: 750 to 1250 fails once in 10^19.
	if n := len(got) / 2; n < 750 || n > 1250 {
		t.Errorf("%d of 4000 commands were looked at, at a rate of 0.25", n)
	}
	replies := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, "reply") })
	if len(replies)*2 != len(got) {
		t.Errorf("%d replies to %d commands were looked at", len(replies), len(got)-len(replies))
	}
}

func TestMistakes(t *testing.T) {
	report := func(Finding) {}
	for name, f := range map[string]func() (*Audit, error){
		"nil report":       func() (*Audit, error) { return New(uuidrep.Standard, nil) },
		"nil Option":       func() (*Audit, error) { return New(uuidrep.Standard, report, nil) },
		"unknown":          func() (*Audit, error) { return New(uuidrep.Representation(9), report) },
		"also unspecified": func() (*Audit, error) { return New(uuidrep.Standard, report, WithAlso(uuidrep.Unspecified)) },
		"rate":             func() (*Audit, error) { return New(uuidrep.Standard, report, WithSampleRate(1.5)) },
		"negative rate":    func() (*Audit, error) { return New(uuidrep.Standard, report, WithSampleRate(-1)) },
		"namespace":        func() (*Audit, error) { return New(uuidrep.Standard, report, WithIgnore("")) },
	} {
		if audit, err := f(); err == nil || audit != nil {
			t.Errorf("%s: got %v, %v, want an error", name, audit, err)
		}
	}
}

// The user's monitor gets every event, whatever functions it has.
func TestNext(t *testing.T) {
	var got []string
	audit, err := New(uuidrep.Standard, func(Finding) { got = append(got, "finding") })
	if err != nil {
		t.Fatal(err)
	}
	started := event.CommandStartedEvent{Command: raw(t, d("insert", "c", "documents", a{d("u", generic)})), DatabaseName: "db", CommandName: "insert"}
	for _, next := range []*event.CommandMonitor{
		nil,
		{},
		{
			Started:   func(context.Context, *event.CommandStartedEvent) { got = append(got, "started") },
			Succeeded: func(context.Context, *event.CommandSucceededEvent) { got = append(got, "succeeded") },
			Failed:    func(context.Context, *event.CommandFailedEvent) { got = append(got, "failed") },
		},
	} {
		mon := audit.Monitor(next)
		mon.Started(t.Context(), &started)
		mon.Succeeded(t.Context(), &event.CommandSucceededEvent{})
		mon.Failed(t.Context(), &event.CommandFailedEvent{})
	}
	if want := []string{"finding", "finding", "finding", "started", "succeeded", "failed"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// What counts is how many commands await their replies, and not how many were started since. If there are too many, the
// replies to the oldest are given up, and counted.
func TestInFlight(t *testing.T) {
	found := 0
	audit, err := New(uuidrep.Standard, func(Finding) { found++ })
	if err != nil {
		t.Fatal(err)
	}
	mon := audit.Monitor(nil)
	find := raw(t, d("find", "c", "filter", d()))
	reply := raw(t, d("cursor", d("firstBatch", a{d("u", generic)})))
	start := func(id int64) {
		mon.Started(t.Context(), &event.CommandStartedEvent{Command: find, DatabaseName: "db", CommandName: "find", RequestID: id})
	}
	finish := func(id int64) {
		info := event.CommandFinishedEvent{CommandName: "find", DatabaseName: "db", RequestID: id}
		if id%5 == 0 {
			mon.Failed(t.Context(), &event.CommandFailedEvent{CommandFinishedEvent: info})
			return
		}
		mon.Succeeded(t.Context(), &event.CommandSucceededEvent{CommandFinishedEvent: info, Reply: reply})
	}
	start(1)
	for id := range int64(3 * maxRequests) {
		start(id + 2)
		finish(id + 2)
	}
	found = 0
	finish(1)
	if found != 1 || audit.Missed() != 0 {
		t.Errorf("the reply to a slow command: %d findings and %d missed, want 1 and 0", found, audit.Missed())
	}

	for id := range int64(maxRequests + 10) {
		start(id)
	}
	if n := len(audit.requests); n != maxRequests || audit.order.Len() != n {
		t.Errorf("%d commands are remembered, in a list of %d, want %d", n, audit.order.Len(), maxRequests)
	}
	if n := audit.Missed(); n != 10 {
		t.Errorf("%d are missed, want 10", n)
	}
	for id := range int64(maxRequests + 10) {
		finish(id)
	}
	if len(audit.requests) != 0 || audit.order.Len() != 0 {
		t.Errorf("%d commands are remembered after their replies, in a list of %d", len(audit.requests), audit.order.Len())
	}
}

func TestText(t *testing.T) {
	const id = "00112233-4455-6677-8899-AABBCCDDEEFF"
	commands := []bson.D{
		d("find", "c", "filter", d("u", id, "v", d("$in", a{id, "x", id})), "sort", d("u", 1)),
		d("aggregate", "c", "pipeline", a{d("$match", d("u", id))}),
		d("update", "c", "updates", a{d("q", d("u", id), "u", d("$set", d("v", id)), "arrayFilters", a{d("i", id)})}),
		d("insert", "c", "documents", a{d("u", id)}),
		d("find", "c", "filter", d("md5", "00112233445566778899aabbccddeeff", "braces", "{00112233-4455-6677-8899-aabbccddee}",
			"urn", "urn:uuid:"+id, "x", id[:35]+"g", "symbol", bson.Symbol(id), "code", bson.JavaScript(id))),
	}
	mon, findings := watch(t, uuidrep.Standard, WithText())
	silent, none := watch(t, uuidrep.Standard)
	for _, c := range commands {
		run(t, mon, "db", c, d("cursor", d("firstBatch", a{d("u", id)})))
		run(t, silent, "db", c, nil)
	}
	want := []string{"db.c aggregate pipeline *.$match.u text x1", "db.c find filter u text x1", "db.c find filter v.$in.* text x2",
		"db.c update array filter *.i text x1", "db.c update filter u text x1"}
	if got := findings(); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := none(); got != nil {
		t.Errorf("without WithText: %v", got)
	}
	f := Finding{Database: "db", Collection: "c", Command: "find", Part: inFilter, Path: "u", Text: true, Count: 1}
	if got := f.String(); got != "db.c: find: filter: u: 1 UUID as text" {
		t.Error(got)
	}
	var out bytes.Buffer
	Log(slog.New(slog.NewTextHandler(&out, nil)))(f)
	if line := out.String(); !strings.Contains(line, "text=true") || strings.Contains(line, "subtype") {
		t.Error(line)
	}
}

// A reply with very many values costs no memory for each.
func TestHugeReply(t *testing.T) {
	docs := make(a, 20_000)
	for i := range docs {
		docs[i] = d("u", generic, "l", a{legacy, legacy})
	}
	reply := raw(t, d("cursor", d("firstBatch", docs)))
	found := 0
	audit, err := New(uuidrep.Standard, func(f Finding) { found += f.Count })
	if err != nil {
		t.Fatal(err)
	}
	mon := audit.Monitor(nil)
	find := raw(t, d("find", "c", "filter", d()))
	allocs := testing.AllocsPerRun(1, func() {
		found = 0
		mon.Started(t.Context(), &event.CommandStartedEvent{Command: find, DatabaseName: "db", CommandName: "find", RequestID: 1})
		mon.Succeeded(t.Context(), &event.CommandSucceededEvent{CommandFinishedEvent: event.CommandFinishedEvent{RequestID: 1}, Reply: reply})
	})
	if found != 3*len(docs) || allocs > 1000 {
		t.Errorf("%d values were found, with %v allocations for %d documents", found, allocs, len(docs))
	}
}

func TestConcurrentUse(t *testing.T) {
	mon, findings := watch(t, uuidrep.Standard)
	find := raw(t, d("find", "c", "filter", d("u", generic)))
	reply := raw(t, d("cursor", d("firstBatch", a{d("u", generic)})))
	var wg sync.WaitGroup
	for g := range int64(8) {
		wg.Go(func() {
			for i := range int64(100) {
				id := g*1000 + i
				mon.Started(t.Context(), &event.CommandStartedEvent{Command: find, DatabaseName: "db", CommandName: "find", RequestID: id})
				mon.Succeeded(t.Context(), &event.CommandSucceededEvent{
					CommandFinishedEvent: event.CommandFinishedEvent{CommandName: "find", DatabaseName: "db", RequestID: id}, Reply: reply,
				})
			}
		})
	}
	wg.Wait()
	if n := len(findings()); n != 1600 {
		t.Errorf("%d findings, want 1600", n)
	}
}

func TestLog(t *testing.T) {
	var out bytes.Buffer
	log := Log(slog.New(slog.NewTextHandler(&out, nil)))
	f := Finding{Database: "db", Collection: "c", Command: "insert", Part: inDocument, Path: "u", Count: 2}
	log(f)
	f.Count = 3
	log(f)
	if lines := strings.Count(out.String(), "\n"); lines != 1 {
		t.Errorf("one finding twice gave %d lines:\n%s", lines, &out)
	}
	for _, attr := range []string{"level=WARN", "database=db", "collection=c", "command=insert", "part=document", "path=u", "subtype=0", "count=2"} {
		if !strings.Contains(out.String(), attr) {
			t.Errorf("the line lacks %s: %s", attr, &out)
		}
	}
	f.Path = "v"
	log(f)
	if lines := strings.Count(out.String(), "\n"); lines != 2 {
		t.Errorf("two findings gave %d lines", lines)
	}
}

type recorder struct{ failures []string }

func (r *recorder) Helper() {}
func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func TestFail(t *testing.T) {
	var r recorder
	Fail(&r)(Finding{Database: "db", Collection: "c", Command: "insert", Part: inDocument, Path: "u", Count: 1})
	if len(r.failures) != 1 || !strings.Contains(r.failures[0], "db.c: insert: document: u") {
		t.Errorf("got %q", r.failures)
	}
	_ = Fail(t)
}

// everything has a value of each BSON type.
var everything = d(
	"double", 1.5, "string", "x", "document", d("a", 1), "array", a{1, "x"}, "binary", generic, "old binary", octets(2, 3),
	"undefined", bson.Undefined{}, "id", bson.NewObjectID(), "bool", true, "time", time.Unix(1, 0), "null", nil,
	"regex", bson.Regex{Pattern: "a", Options: "i"}, "pointer", bson.DBPointer{DB: "x"}, "code", bson.JavaScript("x"),
	"symbol", bson.Symbol("x"), "scope", bson.CodeWithScope{Code: "x", Scope: d("a", generic)}, "int32", int32(1),
	"timestamp", bson.Timestamp{T: 1}, "int64", int64(1), "decimal", bson.NewDecimal128(1, 2),
	"min", bson.MinKey{}, "max", bson.MaxKey{}, "uuid", uuid.New(),
)

func FuzzElements(f *testing.F) {
	f.Add([]byte(raw(f, everything)))
	f.Add([]byte(raw(f, d())))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Add([]byte{0x0c, 0, 0, 0, 4, 'a', 0, 0xff, 0xff, 0xff, 0xff, 0})
	f.Fuzz(func(t *testing.T, doc []byte) {
		type pair struct {
			key   string
			value bson.RawValue
		}
		var got []pair
		for key, v := range elements(doc) {
			got = append(got, pair{string(key), v})
		}
		c := collector{foreign: &[256]bool{0: true}}
		c.members(doc, false, 0)
		if bson.Raw(doc).Validate() != nil || len(doc) < 4 || int(uint32(doc[0])|uint32(doc[1])<<8|uint32(doc[2])<<16|uint32(doc[3])<<24) != len(doc) {
			return // the driver may stop elsewhere
		}
		want, err := bson.Raw(doc).Elements()
		if err != nil || len(got) != len(want) {
			t.Fatalf("got %d elements, want %d, %v", len(got), len(want), err)
		}
		for i, e := range want {
			if v := e.Value(); got[i].key != e.Key() || got[i].value.Type != v.Type || !bytes.Equal(got[i].value.Value, v.Value) {
				t.Fatalf("got %v, want %v", got[i], e)
			}
		}
	})
}

// Damaged events do not panic, and are not reported as anything.
func TestTruncatedEvents(t *testing.T) {
	mon, _ := watch(t, uuidrep.Standard)
	doc := raw(t, d("bulkWrite", 1, "ops", a{d("insert", 5, "document", d("u", generic)), "x", d()}, "nsInfo", a{1, d("ns", 7)}))
	for n := range len(doc) {
		mon.Started(t.Context(), &event.CommandStartedEvent{Command: doc[:n], CommandName: "bulkWrite"})
		mon.Succeeded(t.Context(), &event.CommandSucceededEvent{Reply: doc[:n]})
	}
	for _, command := range []bson.D{d("insert", 1), d("find", a{}), d("aggregate", "c", "pipeline", 1), d("update", "c", "updates", d()), d("explain", 1), d("bulkWrite", 1, "ops", 1)} {
		run(t, mon, "db", command, d("cursor", 1))
	}
}
