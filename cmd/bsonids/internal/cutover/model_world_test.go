package cutover

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/bsonx/bsoncore"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/mirror"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// world is a model of a server with one database, of the programs that use it, and of a process that
// can be killed. The value of a document is text; the conversion puts "new " before it, and "+" before
// its _id.
type world struct {
	t       testing.TB
	quirks  bool // the server drops the validator and changes the UUID of a renamed collection
	streams bool // the server has change streams
	forgets bool // while no process runs, the server forgets the events
	names   []string

	colls  map[string]*coll
	clock  uint32
	events []event
	oldest uint32 // the time of the first event that the server still has
	saved  []byte // the document of the cutover

	calls  int
	die    int                   // the call at which the process is killed; 0 for never
	done   bool                  // whether the server carries out the call nevertheless
	refuse string                // a rename that the server refuses
	after  func(from, to string) // called after a rename; it may be nil
	fenced func(name string)     // called after the fence of a collection is set; it may be nil

	random *rand.Rand // of the writer; nil if there is none
	next   int
	truth  map[string]string // what the writer knows to be stored, by the _id of the old collection

	asides map[string]string // what a way back left in the new collection, by the _id of the old one
	saw    int64             // how many of these the record has
	behind int               // documents compared while the fence is set, before a rename

	indexed map[string]bool // what the process can look for; it forgets this when it is killed
	late    bool            // it may make an index behind the fence
}

type coll struct {
	id       bson.Binary
	settings server.Settings
	docs     map[string]string
}

type event struct {
	at       uint32
	name, id string
	to       string // of a rename
}

type killed struct{}

var seeds = flag.Int("cutover-seeds", 2, "number of writers in the tests of cutovers that are killed")

func newWorld(t testing.TB, quirks, streams bool, names ...string) *world {
	w := &world{t: t, quirks: quirks, streams: streams, names: names, colls: make(map[string]*coll), clock: 100, truth: make(map[string]string), asides: make(map[string]string)}
	for _, name := range names {
		old, fresh := w.create(name), w.create(name+" new")
		for i := range 2 {
			id := fmt.Sprintf("%s/%d", name, i)
			old.docs[id], w.truth[id] = "first", "first"
			if i > 0 { // the copy lacks a document, has another, and one that was deleted
				fresh.docs["+"+id] = newForm("first")
			}
		}
		fresh.docs["+"+name+"/1"], fresh.docs["+"+name+"/deleted"] = "new other", "new first"
		old.settings = server.Settings{Level: "moderate", Action: "warn", Validator: []byte(name)}
		fresh.settings = server.Settings{Level: "off", Action: "error"}
	}
	return w
}

func newForm(v string) string { return "new " + strings.TrimPrefix(v, "new ") }

func base(id string) string { return strings.TrimPrefix(id, "+") }

func idValue(id string) bson.RawValue {
	return bson.RawValue{Type: bson.TypeString, Value: bsoncore.AppendString(nil, id)}
}

func (w *world) create(name string) *coll {
	w.clock++
	w.colls[name] = &coll{id: bson.Binary{Subtype: 4, Data: fmt.Appendf(nil, "%016d", w.clock)}, docs: make(map[string]string), settings: server.Settings{Level: "strict", Action: "error"}}
	return w.colls[name]
}

func (w *world) put(name, id string, value *string) {
	w.clock++
	c := w.colls[name]
	if value == nil {
		delete(c.docs, id)
	} else {
		c.docs[id] = *value
	}
	w.events = append(w.events, event{at: w.clock, name: name, id: id})
}

// call is one command of the process. The writer writes before and after it.
func (w *world) call(effect func()) {
	w.write()
	w.calls++
	w.clock++
	if w.calls == w.die {
		if w.done && effect != nil {
			effect()
		}
		panic(killed{})
	}
	if effect != nil {
		effect()
	}
	w.write()
}

// write makes the writer try one operation: an insert, an update or a delete, or one of the first two
// in spite of the validator.
func (w *world) write() {
	if w.random == nil || w.random.IntN(4) > 0 {
		return
	}
	name := w.names[w.random.IntN(len(w.names))]
	w.foreign(name)
	c := w.colls[name]
	refused := c != nil && c.settings.Equal(Fence())
	kind := w.random.IntN(5)
	w.next++
	value := fmt.Sprintf("write %d", w.next)
	switch kind {
	case 0, 3: // inserts
		if refused && kind == 0 {
			return
		}
		if c == nil {
			w.create(name)
		}
		id := fmt.Sprintf("%s/w%d", name, w.next)
		w.put(name, id, &value)
		w.truth[id] = value
		return
	}
	if c == nil || len(c.docs) == 0 || kind == 1 && refused {
		return
	}
	ids := slices.Sorted(maps.Keys(c.docs))
	id := ids[w.random.IntN(len(ids))]
	if kind == 2 {
		if w.merged(name, base(id)) {
			return // a merge that is killed inserts it again
		}
		w.put(name, id, nil)
		delete(w.truth, base(id))
		return
	}
	w.put(name, id, &value)
	w.truth[base(id)] = value
}

// foreign makes a program write to the copy of a collection, or delete there, which is not in place. It
// may also insert a document that no conversion makes.
func (w *world) foreign(name string) {
	c := w.colls[name+" new"]
	if c == nil || w.colls[name] == nil || w.colls[name+" old"] != nil || w.random.IntN(4) > 0 {
		return
	}
	value := fmt.Sprintf("foreign %d", w.next)
	ids := slices.Sorted(maps.Keys(c.docs))
	switch kind := w.random.IntN(4); {
	case kind == 0:
		w.put(name+" new", fmt.Sprintf("%s/foreign%d", name, w.next), &value)
	case kind == 1:
		w.put(name+" new", fmt.Sprintf("+%s/foreign%d", name, w.next), &value)
	case len(ids) == 0:
	case kind == 2:
		w.put(name+" new", ids[w.random.IntN(len(ids))], &value)
	default:
		w.put(name+" new", ids[w.random.IntN(len(ids))], nil)
	}
}

func (w *world) Save(_ context.Context, c *record.Cutover) error {
	w.call(func() {
		c.Token = fmt.Sprint(w.clock)
		b, err := bson.Marshal(c)
		if err != nil {
			w.t.Fatal(err)
		}
		w.saved = b
		w.clock++
		w.events = append(w.events, event{at: w.clock, name: record.Name})
	})
	return nil
}

func (w *world) Look(context.Context) (map[string]Info, error) {
	out := make(map[string]Info)
	w.call(func() {
		for name, c := range w.colls {
			out[name] = Info{ID: &c.id, Settings: c.settings}
		}
	})
	return out, nil
}

func (w *world) Set(_ context.Context, name string, s server.Settings) error {
	w.call(func() {
		if w.colls[name].settings = s; w.fenced != nil && s.Equal(Fence()) {
			w.fenced(name)
		}
	})
	return nil
}

func (w *world) Rename(_ context.Context, from, to string) (err error) {
	w.call(func() {
		switch {
		case w.colls[from] == nil:
			err = ErrMissing
			return
		case w.colls[to] != nil:
			err = ErrExists
			return
		case from+" to "+to == w.refuse:
			err = failure.Usagef("refused")
			return
		}
		c := w.colls[from]
		delete(w.colls, from)
		w.clock++
		w.events = append(w.events, event{at: w.clock, name: from, to: to})
		if w.quirks {
			fresh := w.create(to)
			fresh.docs = c.docs
		} else {
			w.colls[to] = c
		}
		if w.after != nil {
			w.after(from, to)
		}
	})
	return err
}

func (w *world) Stamp(context.Context) (stamp bson.Timestamp, now time.Time, err error) {
	w.call(func() { stamp, now = bson.Timestamp{T: w.clock}, time.Unix(int64(w.clock), 0) })
	if !w.streams {
		stamp = bson.Timestamp{}
	}
	return stamp, now, nil
}

// compare compares the documents with the ids of either collection, or all if there are none. The
// process can be killed between any two of them.
func (w *world) compare(x Way, ids []string) (done mirror.Result, err error) {
	leading, other := x.Leads(), x.Comes()
	if w.colls[other] == nil { // as a server does with the first insert
		w.create(other)
	}
	bases := make(map[string]bool)
	if ids == nil {
		for _, c := range []*coll{w.colls[leading], w.colls[other]} {
			for id := range c.docs {
				bases[base(id)] = true
			}
		}
	}
	for _, id := range ids {
		bases[base(id)] = true
	}
	for _, id := range slices.Sorted(maps.Keys(bases)) {
		w.call(func() {
			done.Documents++
			if c := w.colls[x.Name]; c != nil && !x.Renamed && c.settings.Equal(Fence()) {
				w.behind++
			}
			if x.Back {
				w.compareBack(x, id, &done)
				return
			}
			v, ok := w.colls[leading].docs[id]
			want, key := newForm(v), "+"+id
			was, is := w.colls[other].docs[key]
			switch {
			case ok && !is:
				done.Inserted++
				w.put(other, key, &want)
			case ok && was != want:
				done.Replaced++
				w.put(other, key, &want)
			case !ok && is:
				done.Deleted++
				w.put(other, key, nil)
			}
			if _, is := w.colls[other].docs[id]; is { // no conversion makes it
				done.Deleted++
				w.put(other, id, nil)
			}
		})
	}
	return done, nil
}

// compareBack compares the document of an old collection with the one of the new collection that was in place.
func (w *world) compareBack(x Way, id string, done *mirror.Result) {
	old, fresh := w.colls[x.Comes()].docs, w.colls[x.Leads()].docs
	v, ok := old[id]
	n, is := fresh["+"+id]
	var stuck []string
	if is && (!ok || n != newForm(v)) {
		stuck = append(stuck, "+"+id)
	}
	if _, is := fresh[id]; is { // no conversion makes it
		stuck = append(stuck, id)
	}
	for _, key := range stuck {
		w.asides[id] = strings.TrimPrefix(fresh[key], "new ")
		done.Stuck, done.Stays = append(done.Stuck, mirror.Finding{ID: idValue(key)}), done.Stays+1
	}
	if ok && !is {
		done.Deleted++
		if !x.Dry {
			w.put(x.Comes(), id, nil)
		}
	}
}

func (w *world) Compare(_ context.Context, x Way) (mirror.Result, error) {
	w.indexed[x.Name] = true
	return w.compare(x, nil)
}

func (w *world) Index(_ context.Context, x Way) error {
	if w.indexed[x.Name] {
		return nil
	}
	w.indexed[x.Name] = true
	if c := w.colls[x.Name]; !w.late && (c == nil || c.settings.Equal(Fence())) {
		w.t.Error("an index is made behind the fence")
	}
	w.call(nil)
	return nil
}

func (w *world) Some(_ context.Context, x Way, ids, others []bson.RawValue) (mirror.Result, error) {
	if err := w.Index(context.Background(), x); err != nil {
		return mirror.Result{}, err
	}
	names := []string{}
	for _, id := range slices.Concat(ids, others) {
		names = append(names, id.StringValue())
	}
	return w.compare(x, names)
}

func (w *world) Merge(_ context.Context, x Way, from, to string) (n, conflicts int64, err error) {
	for _, id := range slices.Sorted(maps.Keys(w.colls[from].docs)) {
		w.call(func() {
			n++
			v := w.colls[from].docs[id]
			if to == x.Name && !x.Back {
				v, id = newForm(v), "+"+id
			}
			if _, ok := w.colls[to].docs[id]; !ok {
				w.put(to, id, &v)
			}
		})
	}
	return n, 0, nil
}

func (w *world) KeepsIDs(context.Context) (bool, error) { return !w.quirks, nil }
