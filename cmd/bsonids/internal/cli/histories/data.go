package histories

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// document is a document as services have written it, with the values in it that may be converted.
type document struct {
	doc    bson.D
	values []*value
}

// value is one value of a document.
type value struct {
	path, field string // the field is the path without positions in arrays
	old         bson.RawValue
	fresh       map[string]bson.RawValue // what becomes of it, by the kind from which it is converted; empty if nothing does
	converted   bool                     // at the last check
	by          map[string]bool          // the migrations that may have converted it since
}

// lookup returns the value of a document at a path.
func lookup(doc bson.Raw, path string) bson.RawValue { return doc.Lookup(strings.Split(path, ".")...) }

// set sets the value at a path that is there.
func set(in any, path []string, v any) any {
	if len(path) == 0 {
		return v
	}
	switch in := in.(type) {
	case bson.D:
		for i := range in {
			if in[i].Key == path[0] {
				in[i].Value = set(in[i].Value, path[1:], v)
			}
		}
	case bson.A:
		i := 0
		if _, err := fmt.Sscan(path[0], &i); err == nil && i < len(in) {
			in[i] = set(in[i], path[1:], v)
		}
	}
	return in
}

// id returns a random UUID of version 4.
func (h *history) id() uuid.UUID {
	u := uuid.UUID(kindstest.Octets(h.r))
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return u
}

// of returns how a service stores a UUID in a field, and what is right after a conversion.
func (h *history) of(field string, u uuid.UUID, switched bool) (old any, fresh map[string]any) {
	standard := kindstest.Stored(u, "standard")
	switch field {
	case "text": // only an undo log knows how it was spelled
		spelled := []string{"{" + strings.ToUpper(u.String()) + "}", "urn:uuid:" + u.String(), u.String(), strings.ToUpper(u.String())}[h.r.IntN(4)]
		return spelled, map[string]any{"text": standard}
	case "spelled":
		return bson.Binary{Subtype: 3, Data: []byte(u.String())}, map[string]any{"binaryText": standard}
	case "user": // a Go struct
		if !switched && h.r.IntN(4) == 0 { // nothing tells a null of a service from one of a conversion
			return bson.D{{Key: "uuid", Value: kindstest.Stored(uuid.Nil, "generic")}, {Key: "valid", Value: false}}, map[string]any{"goStruct": bson.Null{}}
		}
		return bson.D{{Key: "uuid", Value: kindstest.Stored(u, "generic")}, {Key: "valid", Value: true}}, map[string]any{"goStruct": standard}
	case "hash": // which shows no order
		u = uuid.UUID(kindstest.Octets(h.r))
		all := make(map[string]any)
		octets := kindstest.Stored(u, "javaLegacy")
		for _, kind := range []string{"javaLegacy", "csharpLegacy"} {
			all[kind] = kindstest.Stored(read(octets.Data, kind), "standard")
		}
		return octets, all
	case "wrong": // malformed
		return bson.Binary{Subtype: 3, Data: u[:15]}, nil
	}
	return kindstest.Stored(u, "javaLegacy"), map[string]any{"javaLegacy": standard}
}

// read returns the UUID whose octets are stored in a representation.
func read(octets []byte, kind string) (u [16]byte) {
	for i, b := range kindstest.Value(kind).Data {
		u[b/0x11] = octets[i]
	}
	return u
}

// raw returns a value as it is in a document.
func (h *history) raw(v any) bson.RawValue {
	t, b, err := bson.MarshalValue(v)
	h.try(err)
	return bson.RawValue{Type: t, Value: b}
}

// value returns a value, and what the model knows about it. A service that was switched already writes what a conversion would
// make of it.
func (h *history) value(path string, u uuid.UUID, switched bool) (any, *value) {
	v := &value{path: path, field: strings.TrimRight(path, ".0123456789"), fresh: make(map[string]bson.RawValue)}
	old, fresh := h.of(v.field, u, switched)
	if switched && len(fresh) == 1 {
		for _, old = range fresh {
		}
		fresh = nil
	}
	for kind, is := range fresh {
		v.fresh[kind] = h.raw(is)
	}
	v.old = h.raw(old)
	return old, v
}

// fields has the paths of the values of each collection.
var fields = map[string][]string{
	"orders":    {"customer", "text", "list.0", "list.2", "user", "spelled", "hash", "wrong"},
	"customers": {"key", "list.0"},
}

// document makes a new document. customer is a UUID that two collections have.
func (h *history) document(name string, id int32, customer uuid.UUID, switched bool) *document {
	d := &document{doc: bson.D{{Key: "_id", Value: id}, {Key: "part", Value: id % 2}, {Key: "list", Value: bson.A{nil, "x", nil}}}}
	for _, path := range fields[name] {
		u := h.id()
		if path == "customer" || path == "key" {
			u = customer
		}
		is, v := h.value(path, u, switched)
		if d.values = append(d.values, v); strings.Contains(path, ".") {
			set(d.doc, strings.Split(path, "."), is)
		} else {
			d.doc = append(d.doc, bson.E{Key: path, Value: is})
		}
	}
	return d
}

// seed makes the collections.
func (h *history) seed() {
	for range 20 {
		customer := h.id()
		for name := range fields {
			h.insert(name, h.nextID, customer, false)
		}
		h.nextID++
	}
}

func (h *history) insert(name string, id int32, customer uuid.UUID, switched bool) {
	d := h.document(name, id, customer, switched)
	if h.truth[name] == nil {
		h.truth[name] = make(map[int32]*document)
	}
	h.truth[name][id] = d
	_, err := h.DB.Collection(name).InsertOne(context.Background(), d.doc)
	h.try(err)
}

// docs returns the documents of a collection, in the order of their ids.
func (h *history) docs(coll *mongo.Collection) (docs []bson.Raw) {
	h.Helper()
	cur, err := coll.Find(context.Background(), bson.D{}, options.Find().SetSort(bson.D{{Key: "_id", Value: 1}}))
	h.try(err)
	h.try(cur.All(context.Background(), &docs))
	return docs
}

// all returns all documents and the record as text.
func (h *history) all() string {
	var b strings.Builder
	for _, name := range append(slices.Sorted(maps.Keys(fields)), h.records().Name()) {
		for _, doc := range h.docs(h.DB.Collection(name)) {
			fmt.Fprintf(&b, "%x\n", []byte(doc))
		}
	}
	return b.String()
}

// claim is what a command says of the values that the plan of a directory converts.
type claim struct {
	dir     string
	decided decisions
	but     map[string]bool // the values that it has listed; nil if it claims to have left none
	rest    bool            // the plan may not be about all of them
}

// check fails the test unless each document is as services have written it, with values that are converted or not. A claim
// demands that those are converted that it is about.
func (h *history) check(c *claim) {
	h.Helper()
	for name, truth := range h.truth {
		docs := h.docs(h.DB.Collection(name))
		if len(docs) != len(truth) {
			h.fail("%s has %d documents, want %d", name, len(docs), len(truth))
		}
		for _, doc := range docs {
			id := doc.Lookup("_id").Int32()
			d := truth[id]
			if d == nil {
				h.fail("%s has a document that nobody has written: %v", name, doc)
				return
			}
			var was bson.D
			h.try(bson.Unmarshal(doc, &was))
			for _, v := range d.values {
				is := lookup(doc, v.path)
				if !v.may(is) {
					h.fail("%s of %s %d is %v, which was %v", v.path, name, id, is, v.old)
				}
				switch converted := !is.Equal(v.old); {
				case !converted:
					v.by = nil
				case !v.converted:
					v.by = maps.Clone(h.ran)
				}
				v.converted = !is.Equal(v.old)
				if c != nil {
					h.claimed(c, name, id, v, is)
				}
				set(was, strings.Split(v.path, "."), v.old)
			}
			if want := kindstest.Marshal(h, d.doc); !bytes.Equal(kindstest.Marshal(h, was), want) {
				h.fail("%s %d is %v, and services have written %v", name, id, doc, want)
			}
		}
	}
}

// undone fails the test if a value is converted that nothing but the migration can have converted.
func (h *history) undone(migration string) {
	h.Helper()
	h.check(nil)
	for name, truth := range h.truth {
		for id, d := range truth {
			for _, v := range d.values {
				if v.converted && len(v.by) == 1 && v.by[migration] {
					h.fail("undo calls it done, and %s of %s %d is not restored", v.path, name, id)
				}
			}
		}
	}
}

// may reports whether the value may be so.
func (v *value) may(is bson.RawValue) bool {
	if is.Equal(v.old) {
		return true
	}
	for _, fresh := range v.fresh {
		if is.Equal(fresh) {
			return true
		}
	}
	return false
}

// claimed checks a claim about one value.
func (h *history) claimed(c *claim, name string, id int32, v *value, is bson.RawValue) {
	h.Helper()
	kind, ok := c.decided.of(name, id, v)
	switch {
	case !ok || len(v.fresh) == 0:
	case is.Equal(v.old):
		if !c.but[fmt.Sprint(name, " ", id, " ", v.path)] {
			h.fail("%s is called done, and %s of %s %d is not converted from %s", c.dir, v.path, name, id, kind)
		}
	case !h.loose && !is.Equal(v.fresh[kind]):
		h.fail("%s of %s %d is %v, want %v, from %s", v.path, name, id, is, v.fresh[kind], kind)
	}
}

// restoreData gives some documents the values that services have written, in place or in a new collection.
func (h *history) restoreData() {
	ctx := context.Background()
	for name, truth := range h.truth {
		coll := h.DB.Collection(name)
		anew := h.r.IntN(6) == 0
		n := 0
		var docs []any
		for _, doc := range h.docs(coll) {
			id := doc.Lookup("_id").Int32()
			if h.r.IntN(2) == 0 {
				n++
				if doc = kindstest.Marshal(h, truth[id].doc); !anew {
					_, err := coll.ReplaceOne(ctx, bson.D{{Key: "_id", Value: id}}, doc)
					h.try(err)
				}
			}
			docs = append(docs, doc)
		}
		h.tell("%d documents of %s are restored; in a new collection: %t", n, name, anew)
		if anew && len(docs) > 0 {
			h.Settle() // a late update finds no collection
			h.try(coll.Drop(ctx))
			_, err := coll.InsertMany(ctx, docs)
			h.try(err)
		}
	}
}

// damageRecord drops the record, or makes it what it was before.
func (h *history) damageRecord() {
	ctx := context.Background()
	h.Settle() // what neither files nor record know
	now := h.docs(h.records())
	h.loose = true
	h.try(h.records().Drop(ctx))
	if len(h.record) == 0 || h.r.IntN(2) == 0 {
		h.tell("the record is dropped")
	} else {
		h.tell("the record is as it was")
		_, err := h.records().InsertMany(ctx, h.record)
		h.try(err)
	}
	h.record = now
}

// serve makes a service write: it inserts, deletes, changes a value, or moves values in an array.
func (h *history) serve() {
	ctx := context.Background()
	name := []string{"orders", "customers"}[h.r.IntN(2)]
	coll, truth := h.DB.Collection(name), h.truth[name]
	ids := slices.Sorted(maps.Keys(truth))
	id := ids[h.r.IntN(len(ids))]
	d, by := truth[id], bson.D{{Key: "_id", Value: id}}
	switched := h.r.IntN(2) == 0
	put := func(path string, v any) {
		_, err := coll.UpdateOne(ctx, by, bson.D{{Key: "$set", Value: bson.D{{Key: path, Value: v}}}})
		h.try(err)
	}
	switch h.r.IntN(4) {
	case 0:
		h.tell("a service inserts %s %d; switched: %t", name, h.nextID, switched)
		h.insert(name, h.nextID, h.id(), switched)
		h.nextID++
	case 1:
		if len(ids) < 15 {
			return
		}
		h.tell("a service deletes %s %d", name, id)
		_, err := coll.DeleteOne(ctx, by)
		h.try(err)
		delete(truth, id)
	case 2:
		i := h.r.IntN(len(d.values))
		path := d.values[i].path
		h.tell("a service changes %s of %s %d; switched: %t", path, name, id, switched)
		var is any
		is, d.values[i] = h.value(path, h.id(), switched)
		set(d.doc, strings.Split(path, "."), is)
		put(path, is)
	default:
		h.tell("a service turns the list of %s %d", name, id)
		i := slices.IndexFunc(h.docs(coll), func(doc bson.Raw) bool { return doc.Lookup("_id").Int32() == id })
		var is struct{ List bson.A }
		h.try(bson.Unmarshal(h.docs(coll)[i], &is))
		slices.Reverse(is.List)
		put("list", is.List)
		j := slices.IndexFunc(d.doc, func(e bson.E) bool { return e.Key == "list" })
		slices.Reverse(d.doc[j].Value.(bson.A))
		for _, v := range d.values {
			if at, ok := map[string]string{"list.0": "list.2", "list.2": "list.0"}[v.path]; ok {
				v.path = at
			}
		}
	}
}
