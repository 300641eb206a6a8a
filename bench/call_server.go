package bench

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"
)

// ServeCalls starts a server on loopback that answers [Calls] from memory, and returns its connection string. It compares
// the first and the last document of every batch that it receives with the driver's own encoding, and answers with an
// error if they differ. It does not stop before the process.
func ServeCalls() (string, error) {
	s := &callServer{kinds: map[string]*servedKind{}}
	for i, k := range callKinds() {
		served := &servedKind{indexes: map[string]int{}, one: map[string]bson.Raw{}}
		for i, doc := range k.raw {
			served.ids = append(served.ids, doc.Lookup("_id"))
			served.indexes[strings.Join(canonical(doc, "_id"), "\n")] = i
			served.one[string(doc.Lookup("_id").Value)] = batch(0, "firstBatch", k.raw[i:i+1], 0, 1)
		}
		find, aggregate := int64(2*i+1), int64(2*i+2)
		served.find = batch(find, "firstBatch", k.raw, 0, foundFirst)
		served.aggregate = batch(aggregate, "firstBatch", k.joined, 0, foundFirst)
		s.more = append(s.more, batch(0, "nextBatch", k.raw, foundFirst, found), batch(0, "nextBatch", k.joined, foundFirst, foundJoined))
		s.kinds[k.name] = served
	}
	return listen(s.reply)
}

type callServer struct {
	kinds map[string]*servedKind // by the collection
	more  []bson.Raw             // the replies to getMore of the cursors 1, 2, …
}

// A servedKind has the replies for the documents of one kind.
type servedKind struct {
	find, aggregate bson.Raw
	one             map[string]bson.Raw // by the value of the _id
	ids             []bson.RawValue
	indexes         map[string]int // of the documents, by what is in them but for the _id
}

// batch returns a reply that has the documents from first to end, again and again those of docs.
func batch(cursor int64, name string, docs []bson.Raw, first, end int) bson.Raw {
	var all bson.A
	for i := first; i < end; i++ {
		all = append(all, docs[i%len(docs)])
	}
	return encoded(bson.D{
		{Key: "cursor", Value: bson.D{{Key: name, Value: all}, {Key: "id", Value: cursor}, {Key: "ns", Value: callDatabase + ".c"}}},
		{Key: "ok", Value: 1},
	})
}

func (s *callServer) reply(name bson.RawElement, command bson.Raw, docs []bsoncore.Document) (bson.Raw, error) {
	if name.Key() == "getMore" {
		id, ok := name.Value().Int64OK()
		if !ok || id < 1 || int(id) > len(s.more) {
			return nil, fmt.Errorf("getMore of cursor %d", id)
		}
		return s.more[id-1], nil
	}
	collection, _ := name.Value().StringValueOK()
	k := s.kinds[collection]
	if k == nil {
		return nil, fmt.Errorf("%s of collection %q", name.Key(), collection)
	}
	switch name.Key() {
	case "find":
		id, err := command.LookupErr("filter", "_id")
		if err != nil {
			return k.find, nil
		}
		if reply := k.one[string(id.Value)]; reply != nil {
			return reply, nil
		}
		return nil, fmt.Errorf("find of the _id %v", id)
	case "aggregate":
		if _, err := command.LookupErr("pipeline", "0", "$lookup"); err != nil {
			return nil, err
		}
		return k.aggregate, nil
	case "insert", "update":
		if len(docs) == 0 {
			return nil, fmt.Errorf("%s without documents", name.Key())
		}
		check := k.checkInserted
		if name.Key() == "update" {
			check = k.checkUpdate
		}
		for _, doc := range []bsoncore.Document{docs[0], docs[len(docs)-1]} {
			if err := check(bson.Raw(doc), command.Lookup("$db").StringValue() == autoidDatabase); err != nil {
				return nil, err
			}
		}
		return encoded(bson.D{{Key: "n", Value: len(docs)}, {Key: "nModified", Value: len(docs)}, {Key: "ok", Value: 1}}), nil
	}
	return nil, fmt.Errorf("the command %s", name.Key())
}

// checkInserted returns an error if doc is not one of the documents of k, or its _id not that of the document. With
// generated, the _id is a UUID of version 7 and the first element.
func (k *servedKind) checkInserted(doc bson.Raw, generated bool) error {
	i, ok := k.indexes[strings.Join(canonical(doc, "_id"), "\n")]
	id := doc.Lookup("_id")
	if !ok || id.Type != k.ids[i].Type {
		return fmt.Errorf("the document %v", doc)
	}
	if generated {
		first, err := doc.IndexErr(0)
		subtype, data, _ := id.BinaryOK()
		u, _ := uuid.FromBytes(data)
		if err != nil || first.Key() != "_id" || subtype != bson.TypeBinaryUUID || u.Version() != 7 {
			return fmt.Errorf("the _id of the document %v", doc)
		}
		return nil
	}
	if !bytes.Equal(id.Value, k.ids[i].Value) {
		return fmt.Errorf("the _id of the document %v", doc)
	}
	return nil
}

// checkUpdate returns an error if update does not set one of the documents of k, in that document.
func (k *servedKind) checkUpdate(update bson.Raw, _ bool) error {
	set, err := update.LookupErr("u", "$set", "doc")
	if err != nil {
		return err
	}
	doc, ok := set.DocumentOK()
	if !ok || !update.Lookup("q", "_id").Equal(doc.Lookup("_id")) {
		return fmt.Errorf("the update %v", update)
	}
	return k.checkInserted(doc, false)
}
