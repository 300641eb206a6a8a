// Package memory is a server for tests that keeps collections in memory. It knows the commands, the operators of
// queries and the updates that packages of this command send, and no others: a test that sends another one fails. Like MongoDB,
// it refuses a command with a field that is there twice, or that the command does not have, and documents that a validator
// does not take.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/wiremessage"

	"github.com/bsonids/bsonids/internal/strict"
)

// Server is a server. It is safe for concurrent use.
type Server struct {
	// Client is connected to the server, and URI is its connection string.
	Client *mongo.Client
	URI    string
	// Before is called before each command of a client, and says what becomes of it. It may use Client. It
	// may be nil, and must not be changed while a command is carried out.
	Before func(name string, command bson.Raw) Fault
	// Router is the wire version of the router of a sharded cluster that the server says it is; 0 for none. The documents of
	// config.collections then say which collections are sharded.
	Router atomic.Int32
	// FerretDB is the version of FerretDB that the server says it is; empty for none.
	FerretDB string
	// NoUUIDs is set if the server gives no UUIDs of collections.
	NoUUIDs bool
	// AuthInfo is what the server says of the user of a connection, as connectionStatus with showPrivileges does. Nobody is
	// authenticated if it is empty.
	AuthInfo bson.D

	// Streams is set if the server is a replica set, with change streams and operation times. They have what commands change.
	Streams bool

	tb testing.TB
	mu sync.Mutex
	db map[string]*collection // by database and name
	// before has the documents of collections as they were before the transaction of a session.
	before map[string]map[string][]bson.Raw
	// events are those of change streams, of all databases, and streams those that are open, by the number of their cursor.
	events  []bson.Raw
	streams []*stream
}

// Fault is what goes wrong with a command. The zero value is nothing.
type Fault struct {
	Code  int32 // the server refuses the command with this code
	Write int32 // the server refuses each write of the command with this code, or as many as First
	First int   // all if 0
	Lost  bool  // the connection breaks before the answer; the command is carried out
}

// of returns the code with which the i-th write is refused.
func (f Fault) of(i int) int32 {
	if f.First > 0 && i >= f.First {
		return 0
	}
	return f.Write
}

type collection struct {
	uuid bson.Binary
	docs []bson.Raw // in the order of their insertion
	// kind is "collection" if it is empty. options and indexes are what a server says of it.
	kind    string
	options bson.D
	indexes []bson.Raw
}

// Start starts a server that ends with the test.
func Start(tb testing.TB) *Server {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	s := &Server{tb: tb, db: make(map[string]*collection), before: make(map[string]map[string][]bson.Raw)}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer func() { _ = conn.Close() }()
				for s.serve(conn) == nil {
				}
			})
		}
	})
	s.URI = "mongodb://" + l.Addr().String() + "/?directConnection=true"
	s.Client, err = mongo.Connect(options.Client().ApplyURI(s.URI))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = s.Client.Disconnect(context.Background())
		_ = l.Close()
		serving.Wait()
	})
	return s
}

// Documents returns the documents of a collection, in the order of their insertion.
func (s *Server) Documents(coll *mongo.Collection) []bson.Raw {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.at(coll.Database().Name() + "." + coll.Name()).docs)
}

// Put replaces the documents of a collection, which is another one then if its name was dropped.
func (s *Server) Put(coll *mongo.Collection, docs ...bson.Raw) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made(coll.Database().Name() + "." + coll.Name()).docs = slices.Clone(docs)
}

// Describe sets what the server says of a collection, or of a view, which it makes if there is none: the kind is "collection",
// "view" or "timeseries". The indexes are others than that on _id.
func (s *Server) Describe(coll *mongo.Collection, kind string, options bson.D, indexes ...bson.D) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.made(coll.Database().Name() + "." + coll.Name())
	c.kind, c.options, c.indexes = kind, options, nil
	for _, i := range indexes {
		c.indexes = append(c.indexes, marshal(i))
	}
}

// Drop drops a collection.
func (s *Server) Drop(coll *mongo.Collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.db, coll.Database().Name()+"."+coll.Name())
}

// Rename gives a collection another name.
func (s *Server) Rename(coll *mongo.Collection, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	db := coll.Database().Name() + "."
	s.db[db+to] = s.db[db+coll.Name()]
	delete(s.db, db+coll.Name())
}

// at returns a collection, or an empty one if there is none.
func (s *Server) at(ns string) *collection {
	if c, ok := s.db[ns]; ok {
		return c
	}
	return &collection{}
}

// made returns a collection, and makes it if there is none.
func (s *Server) made(ns string) *collection {
	c, ok := s.db[ns]
	if !ok {
		id := bson.NewObjectID()
		c = &collection{uuid: bson.Binary{Subtype: bson.TypeBinaryUUID, Data: append(id[:], 0, 0, 0, 0)}}
		s.db[ns] = c
	}
	return c
}

// The operation codes of the deprecated messages of a handshake.
const (
	opReply = wiremessage.OpCode(1)
	opQuery = wiremessage.OpCode(2004)
)

// serve answers one message.
func (s *Server) serve(conn io.ReadWriter) error {
	head := make([]byte, 16)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	_, id, _, opcode, _, _ := wiremessage.ReadHeader(head)
	n, _, _ := bsoncore.ReadLength(head)
	body := make([]byte, n-16)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	if opcode == opQuery { // the handshake
		_, err := conn.Write(reply(id, opReply, s.hello()))
		return err
	}
	if refused := strict.Message(append(head, body...)); refused != nil {
		_, err := conn.Write(refused)
		return err
	}
	command, err := parse(body)
	if err != nil {
		return err
	}
	name := first(command).Key()
	var fault Fault
	if s.Before != nil && name != "hello" {
		fault = s.Before(name, command)
	}
	var answer any = refused(fault.Code, "refused by the test")
	if fault.Code == 0 {
		answer = s.run(name, command, fault)
	}
	if fault.Lost {
		return io.ErrClosedPipe
	}
	_, err = conn.Write(reply(id, wiremessage.OpMsg, answer))
	return err
}

// run carries a command out.
func (s *Server) run(name string, command bson.Raw, fault Fault) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	db := command.Lookup("$db").StringValue()
	of, _ := command.Lookup(name).StringValueOK()
	ns := db + "." + of
	ok := bson.D{{Key: "ok", Value: 1.0}}
	switch name {
	case "hello", "isMaster":
		return s.hello()
	case "ping":
		if s.Streams {
			return append(bson.D{{Key: "operationTime", Value: s.time()}}, ok...)
		}
	case "endSessions", "killCursors":
	case "getMore":
		return s.more(command.Lookup(name).Int64())
	case "buildInfo":
		return append(bson.D{{Key: "ferretdbVersion", Value: s.FerretDB}}, ok...)
	case "connectionStatus":
		info := s.AuthInfo
		if info == nil {
			info = bson.D{{Key: "authenticatedUsers", Value: bson.A{}}, {Key: "authenticatedUserRoles", Value: bson.A{}}, {Key: "authenticatedUserPrivileges", Value: bson.A{}}}
		}
		return append(bson.D{{Key: "authInfo", Value: info}}, ok...)
	case "listCollections":
		var specs []bson.Raw
		for ns, c := range s.db {
			if of, ok := strings.CutPrefix(ns, db+"."); ok {
				spec := marshal(c.specification(of, !s.NoUUIDs))
				if s.matches(spec, command.Lookup("filter")) {
					specs = append(specs, spec)
				}
			}
		}
		return cursor(db+".$cmd.listCollections", specs)
	case "collMod": // of a validator or a view
		c, is := s.db[ns]
		if !is {
			return refused(26, "ns does not exist")
		}
		for _, key := range []string{"validator", "validationLevel", "validationAction", "viewOn", "pipeline"} {
			if v, err := command.LookupErr(key); err == nil {
				c.options = set(c.options, []string{key}, bson.RawValue{Type: v.Type, Value: slices.Clone(v.Value)}).(bson.D)
			}
		}
	case "renameCollection": // both names have the database
		to := command.Lookup("to").StringValue()
		switch {
		case s.db[of] == nil:
			return refused(26, "source namespace does not exist")
		case s.db[to] != nil:
			return refused(48, "target namespace exists")
		}
		s.db[to] = s.db[of]
		delete(s.db, of)
		s.note("rename", of, bson.E{Key: "to", Value: namespace(to)})
	case "count": // of all documents
		return append(bson.D{{Key: "n", Value: int32(len(s.at(ns).docs))}}, ok...)
	case "drop":
		if s.db[ns] != nil {
			s.note("drop", ns)
		}
		delete(s.db, ns)
	case "create":
		if _, there := s.db[ns]; there {
			return refused(48, "a collection '"+ns+"' already exists")
		}
		c := s.made(ns)
		for _, e := range elements(command)[1:] {
			switch key := e.Key(); key {
			case "lsid", "writeConcern", "$db", "$clusterTime", "$readPreference", "maxTimeMS", "txnNumber":
			default:
				c.options = append(c.options, bson.E{Key: key, Value: bson.RawValue{Type: e.Value().Type, Value: slices.Clone(e.Value().Value)}})
			}
		}
	case "createIndexes": // which it does not enforce
		c := s.made(ns)
		for _, i := range values(command.Lookup("indexes")) {
			name := i.Document().Lookup("name")
			if !slices.ContainsFunc(c.indexes, func(have bson.Raw) bool { return have.Lookup("name").Equal(name) }) {
				c.indexes = append(c.indexes, slices.Clone(i.Document()))
			}
		}
	case "listIndexes":
		c, there := s.db[ns]
		if !there {
			return refused(26, "ns does not exist: "+ns)
		}
		id := marshal(bson.D{{Key: "v", Value: int32(2)}, {Key: "key", Value: bson.D{{Key: "_id", Value: int32(1)}}}, {Key: "name", Value: "_id_"}})
		return cursor(ns, append([]bson.Raw{id}, c.indexes...))
	case "collStats":
		return append(bson.D{{Key: "ns", Value: ns}, {Key: "sharded", Value: s.shardKey(ns) != nil}}, ok...)
	case "commitTransaction":
		delete(s.before, session(command))
	case "abortTransaction":
		s.rollBack(command)
	case "find":
		return cursor(ns, s.find(s.at(ns), command))
	case "aggregate": // a change stream, a sample, or a count of documents
		stages := values(command.Lookup("pipeline"))
		if _, err := stages[0].Document().LookupErr("$changeStream"); err == nil {
			return s.open(db, stages)
		}
		if size, ok := stages[0].Document().Lookup("$sample", "size").AsInt64OK(); ok {
			docs := s.at(ns).docs
			return cursor(ns, docs[:min(int(size), len(docs))])
		}
		n := int32(0)
		for _, doc := range s.at(ns).docs {
			if s.matches(doc, bson.Raw(stages[0].Value).Lookup("$match")) {
				n++
			}
		}
		if len(stages) != 2 || n == 0 {
			return cursor(ns, nil)
		}
		return cursor(ns, []bson.Raw{marshal(bson.D{{Key: "_id", Value: int32(1)}, {Key: "n", Value: n}})})
	case "insert":
		n, failed := 0, bson.A(nil)
		for i, doc := range values(command.Lookup("documents")) {
			code := fault.of(i)
			if s.has(ns, bson.Raw(doc.Value).Lookup("_id")) {
				code = 11000
			}
			if code == 0 && s.invalid(ns, doc.Document(), command) {
				code = 121
			}
			if code != 0 {
				failed = append(failed, writeError(i, code))
				continue
			}
			c := s.made(ns)
			c.docs = append(c.docs, slices.Clone(bson.Raw(doc.Value)))
			s.changed("insert", ns, doc.Document())
			n++
		}
		return append(written(n, failed), ok...)
	case "update":
		n, failed := 0, bson.A(nil)
		s.begin(command)
		updates := values(command.Lookup("updates"))
		for i, u := range updates {
			if code := fault.of(i); code != 0 {
				failed = append(failed, writeError(i, code))
				continue
			}
			if code, why := s.refusedByShard(ns, bson.Raw(u.Value), s.before[session(command)] != nil, len(updates)); code != 0 {
				failed = append(failed, bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: code}, {Key: "errmsg", Value: why}})
				continue
			}
			matched, valid := s.update(ns, bson.Raw(u.Value), command)
			if n += matched; !valid {
				failed = append(failed, writeError(i, 121))
			}
		}
		if failed != nil {
			s.rollBack(command)
		}
		return append(written(n, failed), ok...)
	case "delete": // of what an _id selects
		n := 0
		for _, d := range values(command.Lookup("deletes")) {
			c := s.at(ns)
			left := slices.DeleteFunc(slices.Clone(c.docs), func(doc bson.Raw) bool {
				is := s.matches(doc, d.Document().Lookup("q"))
				if is {
					s.changed("delete", ns, doc)
				}
				return is
			})
			n += len(c.docs) - len(left)
			c.docs = left
		}
		return append(written(n, nil), ok...)
	default:
		s.tb.Errorf("the server does not know the command %s", command)
		return refused(59, "no such command")
	}
	return ok
}

// refused is the answer of a server that does not carry a command out.
func refused(code int32, text string) bson.D {
	return bson.D{{Key: "ok", Value: 0.0}, {Key: "code", Value: code}, {Key: "errmsg", Value: text}}
}

// specification returns what listCollections says of a collection, with its UUID or without.
func (c *collection) specification(name string, uuid bool) bson.D {
	options := c.options
	if options == nil {
		options = bson.D{}
	}
	if c.kind == "view" {
		return bson.D{{Key: "name", Value: name}, {Key: "type", Value: c.kind}, {Key: "options", Value: options}, {Key: "info", Value: bson.D{{Key: "readOnly", Value: true}}}}
	}
	info := bson.D{{Key: "readOnly", Value: false}}
	if uuid {
		info = append(info, bson.E{Key: "uuid", Value: c.uuid})
	}
	return bson.D{{Key: "name", Value: name}, {Key: "type", Value: cmp.Or(c.kind, "collection")}, {Key: "options", Value: options}, {Key: "info", Value: info}}
}

// cursor returns an answer with all documents, which need not be valid.
func cursor(ns string, docs []bson.Raw) bson.Raw {
	batch := bsoncore.NewArrayBuilder()
	for _, doc := range docs {
		batch.AppendDocument(bsoncore.Document(doc))
	}
	return bson.Raw(bsoncore.NewDocumentBuilder().AppendDocument("cursor",
		bsoncore.NewDocumentBuilder().AppendInt64("id", 0).AppendString("ns", ns).AppendArray("firstBatch", batch.Build()).Build()).AppendDouble("ok", 1).Build())
}

func written(n int, failed bson.A) bson.D {
	r := bson.D{{Key: "n", Value: int32(n)}, {Key: "nModified", Value: int32(n)}}
	if failed != nil {
		r = append(r, bson.E{Key: "writeErrors", Value: failed})
	}
	return r
}

func writeError(i int, code int32) bson.D {
	return bson.D{{Key: "index", Value: int32(i)}, {Key: "code", Value: code}, {Key: "errmsg", Value: "refused by the test"}}
}

func (s *Server) has(ns string, id bson.RawValue) bool {
	return slices.ContainsFunc(s.at(ns).docs, func(doc bson.Raw) bool { return doc.Lookup("_id").Equal(id) })
}

// invalid reports whether the validator of a collection refuses a document that a command writes: at the level strict, with the
// action error, and unless the command passes it by.
func (s *Server) invalid(ns string, doc, command bson.Raw) bool {
	if bypass, _ := command.Lookup("bypassDocumentValidation").BooleanOK(); bypass {
		return false
	}
	c := s.at(ns)
	if len(c.options) == 0 {
		return false
	}
	options := marshal(c.options)
	level, _ := options.Lookup("validationLevel").StringValueOK()
	action, _ := options.Lookup("validationAction").StringValueOK()
	return level != "off" && level != "moderate" && action != "warn" && !s.matches(doc, options.Lookup("validator"))
}

// update carries one update of a command out, and returns how many documents it matched, and whether they are valid.
func (s *Server) update(ns string, u, command bson.Raw) (n int, valid bool) {
	c := s.at(ns)
	multi, _ := u.Lookup("multi").BooleanOK()
	for i, doc := range c.docs {
		if s.matches(doc, u.Lookup("q")) && (n == 0 || multi) {
			to := s.updated(doc, u.Lookup("u").Document())
			if s.invalid(ns, to, command) {
				return n, false
			}
			c.docs[i] = to
			s.changed("update", ns, doc)
			n++
		}
	}
	if upsert, _ := u.Lookup("upsert").BooleanOK(); upsert && n == 0 {
		c = s.made(ns)
		c.docs = append(c.docs, slices.Clone(u.Lookup("u").Document()))
		s.changed("insert", ns, u.Lookup("u").Document())
		n++
	}
	return n, true
}

// updated returns a document after an update with $set and $currentDate, or after a replacement.
func (s *Server) updated(doc, update bson.Raw) bson.Raw {
	if !strings.HasPrefix(first(update).Key(), "$") {
		return slices.Clone(update)
	}
	var d bson.D
	if err := bson.Unmarshal(doc, &d); err != nil {
		panic(err)
	}
	for _, op := range elements(update) {
		for _, e := range elements(op.Value().Document()) {
			switch op.Key() {
			case "$set":
				d = set(d, strings.Split(e.Key(), "."), e.Value()).(bson.D)
			case "$currentDate":
				d = set(d, strings.Split(e.Key(), "."), bson.NewDateTimeFromTime(time.Now())).(bson.D)
			default:
				s.tb.Errorf("the server does not know the update %s", update)
			}
		}
	}
	return marshal(d)
}

// set sets a value in a document or an array.
func set(in any, path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	switch in := in.(type) {
	case bson.D:
		for i := range in {
			if in[i].Key == path[0] {
				in[i].Value = set(in[i].Value, path[1:], value)
				return in
			}
		}
		return append(in, bson.E{Key: path[0], Value: set(bson.D{}, path[1:], value)})
	case bson.A:
		var i int
		if _, err := fmt.Sscan(path[0], &i); err == nil && i < len(in) {
			in[i] = set(in[i], path[1:], value)
		}
		return in
	}
	return in
}
