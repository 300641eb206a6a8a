package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// stream is the change stream of a database that a client has open.
type stream struct {
	db     string
	at     int             // the number of events of the server that it is behind
	stages []bson.RawValue // behind $changeStream: $match and $project
}

// note adds an event to those of the server, if it has change streams. more are fields of the event behind its namespace.
func (s *Server) note(kind, ns string, more ...bson.E) {
	if !s.Streams {
		return
	}
	n := len(s.events) + 1
	s.events = append(s.events, marshal(append(bson.D{{Key: "_id", Value: token(n)}, {Key: "operationType", Value: kind}, {Key: "clusterTime", Value: bson.Timestamp{T: 1, I: uint32(n)}},
		{Key: "ns", Value: namespace(ns)}}, more...)))
}

// changed is note for a change of a document.
func (s *Server) changed(kind, ns string, doc bson.Raw) {
	s.note(kind, ns, bson.E{Key: "documentKey", Value: bson.D{{Key: "_id", Value: doc.Lookup("_id")}}})
}

// token returns the token of a position in a change stream, behind n events.
func token(n int) bson.D { return bson.D{{Key: "_data", Value: fmt.Sprintf("%08d", n)}} }

func namespace(ns string) bson.D {
	db, coll, _ := strings.Cut(ns, ".")
	return bson.D{{Key: "db", Value: db}, {Key: "coll", Value: coll}}
}

// open opens a change stream, behind the token that it is given, or else at the present. The code of a server that is no replica set
// is that of src/mongo/db/pipeline/document_source_change_stream.cpp.
func (s *Server) open(db string, stages []bson.RawValue) any {
	if !s.Streams {
		return refused(40573, "The $changeStream stage is only supported on replica sets")
	}
	of := &stream{db: db, at: len(s.events), stages: slices.Clone(stages[1:])}
	if data, ok := stages[0].Document().Lookup("$changeStream", "startAfter", "_data").StringValueOK(); ok {
		var err error
		if of.at, err = strconv.Atoi(data); err != nil || of.at > len(s.events) {
			return refused(50811, "invalid resume token "+data)
		}
	}
	for i, st := range of.stages {
		of.stages[i] = bson.RawValue{Type: st.Type, Value: slices.Clone(st.Value)}
	}
	s.streams = append(s.streams, of)
	return s.next(of, int64(len(s.streams)), "firstBatch")
}

// more returns what has happened since a cursor was asked last. A server waits for that until the limit of the command; this one
// answers at once.
func (s *Server) more(id int64) any {
	if id < 1 || int(id) > len(s.streams) || s.streams[id-1] == nil {
		return refused(43, "cursor id not found")
	}
	return s.next(s.streams[id-1], id, "nextBatch")
}

func (s *Server) next(of *stream, id int64, name string) any {
	batch := bson.A{}
	for _, e := range s.events[of.at:] {
		if db, _ := e.Lookup("ns", "db").StringValueOK(); db != of.db {
			continue
		}
		selected := true
		for _, st := range of.stages {
			if filter, err := st.Document().LookupErr("$match"); err == nil {
				selected = selected && s.matches(e, filter)
			} else {
				e = projected(e, st.Document().Lookup("$project"))
			}
		}
		if selected {
			batch = append(batch, e)
		}
	}
	of.at = len(s.events)
	return bson.D{{Key: "cursor", Value: bson.D{{Key: name, Value: batch}, {Key: "postBatchResumeToken", Value: token(of.at)}, {Key: "id", Value: id}, {Key: "ns", Value: of.db + ".$cmd.aggregate"}}},
		{Key: "operationTime", Value: s.time()}, {Key: "ok", Value: 1.0}}
}

// time is the operation time of the server.
func (s *Server) time() bson.Timestamp { return bson.Timestamp{T: 1, I: uint32(len(s.events))} }
