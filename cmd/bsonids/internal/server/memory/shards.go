package memory

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// shardKey returns the paths of the shard key of a collection, or nil if it is not sharded.
func (s *Server) shardKey(ns string) (paths []string) {
	if s.Router.Load() == 0 {
		return nil
	}
	for _, doc := range s.at("config.collections").docs {
		dropped, _ := doc.Lookup("dropped").BooleanOK()
		if id, _ := doc.Lookup("_id").StringValueOK(); id != ns || dropped {
			continue
		}
		for _, e := range elements(doc.Lookup("key").Document()) {
			paths = append(paths, e.Key())
		}
	}
	return paths
}

// refusedByShard returns the code and the message with which MongoDB refuses an update that changes values of a shard key:
// src/mongo/db/exec/update_stage.cpp and src/mongo/s/commands/cluster_write_cmd.cpp. Every document whose key changes
// would move to another shard.
func (s *Server) refusedByShard(ns string, u bson.Raw, transaction bool, batch int) (code int32, why string) {
	paths := s.shardKey(ns)
	if paths == nil {
		return 0, ""
	}
	i := slices.IndexFunc(s.at(ns).docs, func(doc bson.Raw) bool { return s.matches(doc, u.Lookup("q")) })
	if i < 0 {
		return 0, ""
	}
	before := s.at(ns).docs[i]
	after := s.updated(before, u.Lookup("u").Document())
	changed := slices.IndexFunc(paths, func(p string) bool {
		return !before.Lookup(strings.Split(p, ".")...).Equal(after.Lookup(strings.Split(p, ".")...))
	})
	switch {
	case changed < 0:
		return 0, ""
	case !equals(u.Lookup("q").Document(), paths):
		return 31025, "Shard key update is not allowed without specifying the full shard key in the query"
	case !transaction:
		return 20, "Must run update to shard key field in a multi-statement transaction or with retryWrites: true."
	case batch > 1:
		return 72, "Document shard key value updates that cause the doc to move shards must be sent with write batch of size 1"
	}
	return 0, ""
}

// equals reports whether a query has an equality for each of the paths, and no condition on a field in them.
func equals(q bson.Raw, paths []string) bool {
	found := 0
	for _, e := range elements(q) {
		for _, p := range paths {
			eq := e.Value()
			if ops, ok := eq.DocumentOK(); ok && len(elements(ops)) > 0 && strings.HasPrefix(first(ops).Key(), "$") {
				eq = ops.Lookup("$eq")
			}
			switch {
			case e.Key() == p && eq.Type != 0:
				found++
			case strings.HasPrefix(e.Key(), p+"."):
				return false
			}
		}
	}
	return found == len(paths)
}

// session returns what tells the session of a command.
func session(command bson.Raw) string { return string(command.Lookup("lsid").Value) }

// begin begins a transaction if the command does.
func (s *Server) begin(command bson.Raw) {
	if start, _ := command.Lookup("startTransaction").BooleanOK(); !start {
		return
	}
	before := make(map[string][]bson.Raw)
	for ns, c := range s.db {
		before[ns] = slices.Clone(c.docs)
	}
	s.before[session(command)] = before
}

// rollBack ends the transaction of the session of the command, if it has one. Nothing else may write meanwhile.
func (s *Server) rollBack(command bson.Raw) {
	for ns, docs := range s.before[session(command)] {
		s.made(ns).docs = docs
	}
	delete(s.before, session(command))
}
