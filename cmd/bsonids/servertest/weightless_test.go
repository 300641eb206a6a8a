//go:build linux

package servertest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server/memory"
)

// weightless is a server that answers for four collections at almost no cost, from what it knows of their documents:
// which of "numbered" are converted, and which of "source" are in "copy". The documents have a UUID each, which is made
// from their number. That number is the _id in "numbered", and in "mixed", of which half is converted and which has a
// unique index; in the others, the UUID is. The server that it is a proxy of has the record, and says what collections
// there are.
type weightless struct {
	tb    testing.TB
	n     int
	delay time.Duration // of each answer

	mu        sync.Mutex
	holds     map[string]*holding // the collections
	converted []bool              // of "numbered"
	copied    []bool              // of "source"
	cursors   map[int64]*reading
	opened    int64
}

// holding is what a collection has.
type holding struct {
	order  []int32 // the numbers of the documents by _id; nil if that is their number
	lacks  func(i int) bool
	append func(b []byte, i int) []byte
	id     func(i int) []byte // octets of the _id; of no other collection than those with an order
}

// reading is a cursor.
type reading struct {
	of      *holding
	only    []int32 // the numbers of the documents; if nil, those from next to end in the order of the collection
	next    int
	end     int
	returns int // at most
}

// serveWeightless serves n documents until the input ends. It prints the connection string.
func serveWeightless(tb testing.TB, n int, delay time.Duration) {
	w := &weightless{tb: tb, n: n, delay: delay, cursors: make(map[int64]*reading)}
	w.reset()
	numbers := make([]int32, n)
	for i := range numbers {
		numbers[i] = int32(i)
	}
	inOrder := func(id func(i int) []byte) *holding {
		h := &holding{order: slices.Clone(numbers), id: id}
		slices.SortFunc(h.order, func(a, b int32) int { return bytes.Compare(id(int(a)), id(int(b))) })
		return h
	}
	source := inOrder(func(i int) []byte { u := swapped(numbered(i)); return u[:] })
	copied := inOrder(func(i int) []byte { u := numbered(i); return u[:] })
	source.lacks = func(int) bool { return false }
	copied.lacks = func(i int) bool { return !w.copied[i] }
	source.append = func(b []byte, i int) []byte { return appendDocument(b, i, true, false) }
	copied.append = func(b []byte, i int) []byte { return appendDocument(b, i, true, true) }
	w.holds = map[string]*holding{"source": source, "copy": copied, "numbered": {lacks: source.lacks,
		append: func(b []byte, i int) []byte { return appendDocument(b, i, false, w.converted[i]) }}, "mixed": {lacks: source.lacks,
		append: func(b []byte, i int) []byte { return appendDocument(b, i, false, i%2 == 0) }}}

	s := memory.Start(tb)
	db := s.Client.Database("speed")
	s.Describe(db.Collection("source"), "collection", bson.D{})
	s.Describe(db.Collection("numbered"), "collection", bson.D{})
	s.Describe(db.Collection("mixed"), "collection", bson.D{}, bson.D{{Key: "v", Value: 2}, {Key: "key", Value: bson.D{{Key: "id", Value: 1}}},
		{Key: "name", Value: "id_1"}, {Key: "unique", Value: true}})
	p := startProxy(tb, host(tb, memoryTarget{s}), w.answer)
	fmt.Println(p.URI())
	_, _ = io.Copy(io.Discard, os.Stdin)
}

type memoryTarget struct{ *memory.Server }

func (m memoryTarget) URI() string { return m.Server.URI }

// reset forgets what was written.
func (w *weightless) reset() { w.converted, w.copied = make([]bool, w.n), make([]bool, w.n) }

// scatter times gather is 1 modulo 2³².
const (
	scatter uint32 = 0x9E3779B1
	gather  uint32 = 0x0E8B2F51
)

// numbered returns the UUID of a document, and numberOf the number of one. The order of UUIDs is not that of the numbers.
func numbered(i int) (u uuid.UUID) {
	random := rand.NewPCG(uint64(i), 1)
	binary.LittleEndian.PutUint64(u[:], random.Uint64())
	binary.LittleEndian.PutUint64(u[8:], random.Uint64())
	binary.BigEndian.PutUint32(u[:], uint32(i)*scatter)
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80 // version 4
	return u
}

func numberOf(u []byte) int { return int(binary.BigEndian.Uint32(u) * gather) }

// swapped returns the octets of a UUID in the order of javaLegacy, or those in that order as they were.
func swapped(u [16]byte) [16]byte {
	slices.Reverse(u[:8])
	slices.Reverse(u[8:])
	return u
}

// appendDocument appends a document, in javaLegacy or converted.
func appendDocument(b []byte, i int, byUUID, converted bool) []byte {
	subtype, u := bson.TypeBinaryUUID, [16]byte(numbered(i))
	if !converted {
		subtype, u = bson.TypeBinaryUUIDOld, swapped(u)
	}
	start, b := bsoncore.AppendDocumentStart(b)
	if byUUID {
		b = bsoncore.AppendBinaryElement(b, "_id", subtype, u[:])
	} else {
		b = bsoncore.AppendInt32Element(b, "_id", int32(i))
	}
	b = bsoncore.AppendBinaryElement(b, "id", subtype, u[:])
	b = bsoncore.AppendInt32Element(b, "n", int32(i))
	b, _ = bsoncore.AppendDocumentEnd(b, start)
	return b
}

// number returns that of the document with the _id, and how many of the collection are before it.
func (w *weightless) number(h *holding, id bson.RawValue) (i, before int) {
	if h.order == nil {
		i = int(id.Int32())
		return i, i
	}
	subtype, data := id.Binary()
	if subtype == bson.TypeBinaryUUIDOld {
		u := swapped([16]byte(data))
		data = u[:]
	}
	i = numberOf(data)
	before, _ = slices.BinarySearchFunc(h.order, int32(i), func(a, b int32) int { return bytes.Compare(h.id(int(a)), h.id(int(b))) })
	return i, before
}

// within returns what has the key in a filter, at any depth.
func within(v bson.RawValue, key string) (bson.RawValue, bool) {
	if v.Type != bson.TypeEmbeddedDocument && v.Type != bson.TypeArray {
		return v, false
	}
	elements, _ := bson.Raw(v.Value).Elements()
	for _, e := range elements {
		if e.Key() == key {
			return e.Value(), true
		}
		if found, ok := within(e.Value(), key); ok {
			return found, true
		}
	}
	return v, false
}

// find opens a cursor.
func (w *weightless) find(h *holding, command bson.Raw) *reading {
	c := &reading{of: h, end: w.n, returns: w.n}
	filter := command.Lookup("filter")
	if _, ok := within(filter, "$type"); ok { // of the types behind that of an _id
		c.end = 0
	} else if in, ok := within(filter, "$in"); ok {
		c.only = []int32{}
		ids, _ := in.Array().Values()
		for _, id := range ids {
			if i, _ := w.number(h, id); !h.lacks(i) {
				c.only = append(c.only, int32(i))
			}
		}
		c.end = len(c.only)
	} else if after, ok := within(filter, "$gt"); ok {
		_, before := w.number(h, after)
		c.next = before + 1
	}
	if limit, ok := command.Lookup("limit").AsInt64OK(); ok && limit != 0 {
		c.returns = int(max(limit, -limit)) // negative for one batch
	}
	return c
}

// batch answers with the next documents of a cursor.
func (w *weightless) batch(r request, id int64, c *reading, name string, size int) []byte {
	_, list := bsoncore.AppendArrayStart(make([]byte, 0, (min(size, c.end-c.next)+1)*80))
	for n := 0; n < size && c.next < c.end && c.returns > 0; c.next++ {
		i := c.next
		if c.only != nil {
			i = int(c.only[i])
		} else if c.of.order != nil {
			i = int(c.of.order[i])
		}
		if c.of.lacks(i) {
			continue
		}
		list = append(strconv.AppendInt(append(list, byte(bson.TypeEmbeddedDocument)), int64(n), 10), 0)
		list = c.of.append(list, i)
		n, c.returns = n+1, c.returns-1
	}
	list, err := bsoncore.AppendArrayEnd(list, 0)
	if err != nil {
		w.tb.Error(err)
	}
	if c.next == c.end || c.returns == 0 {
		delete(w.cursors, id)
		id = 0
	}
	return r.reply(bson.D{{Key: "ok", Value: 1.0}, {Key: "cursor", Value: bson.D{{Key: "id", Value: id}, {Key: "ns", Value: "speed." + r.on()},
		{Key: name, Value: bson.RawValue{Type: bson.TypeArray, Value: list}}}}})
}

func (w *weightless) count(h *holding) (n int32) {
	for i := range w.n {
		if !h.lacks(i) {
			n++
		}
	}
	return n
}

// answer answers a command about one of the collections, and passes on others.
func (w *weightless) answer(r request, pass func() []byte) []byte {
	if w.delay > 0 && !r.greets() {
		time.Sleep(w.delay)
	}
	name := r.on()
	if r.name() == "getMore" {
		name, _ = r.command.Lookup("collection").StringValueOK()
	}
	h := w.holds[name]
	if r.name() == "buildInfo" { // apply limits updates on FerretDB, which the server in memory says that it is
		return r.ok(bson.E{Key: "version", Value: "8.0.0"})
	}
	if h == nil {
		return pass()
	}
	size := 101 // the default of servers
	if n, ok := r.command.Lookup("batchSize").AsInt64OK(); ok {
		size = int(n)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.name() {
	case "drop": // of a benchmark
		w.reset()
	case "count":
		return r.ok(bson.E{Key: "n", Value: w.count(h)})
	case "aggregate": // of a count
		return r.cursor("speed."+name, bson.D{{Key: "_id", Value: 1}, {Key: "n", Value: w.count(h)}})
	case "find":
		if id, ok := r.command.Lookup("filter", "_id").StringValueOK(); ok && id != "" {
			return pass() // whether the collection is a record of conversions
		}
		w.opened++
		w.cursors[w.opened] = w.find(h, r.command)
		return w.batch(r, w.opened, w.cursors[w.opened], "firstBatch", size)
	case "getMore":
		id := r.command.Lookup("getMore").Int64()
		return w.batch(r, id, w.cursors[id], "nextBatch", size)
	case "update":
		for _, u := range r.sequence {
			if id, ok := bson.Raw(u).Lookup("q", "_id").Int32OK(); ok {
				subtype, _ := bson.Raw(u).Lookup("u", "$set", "id").Binary()
				w.converted[id] = subtype == bson.TypeBinaryUUID
			} else if id, ok := within(bson.Raw(u).Lookup("q", "_id"), "$eq"); ok && id.Type == bson.TypeInt32 {
				subtype, _ := bson.Raw(u).Lookup("u", "$set", "id").Binary()
				w.converted[id.Int32()] = subtype == bson.TypeBinaryUUID
			}
		}
		return r.ok(bson.E{Key: "n", Value: int32(r.documents)}, bson.E{Key: "nModified", Value: int32(r.documents)})
	case "insert":
		for _, doc := range r.sequence {
			i, _ := w.number(h, bson.Raw(doc).Lookup("_id"))
			w.copied[i] = true
		}
		return r.ok(bson.E{Key: "n", Value: int32(r.documents)})
	default:
		return pass()
	}
	return r.ok()
}
