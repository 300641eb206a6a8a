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
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
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
	die    int    // the call at which the process is killed; 0 for never
	done   bool   // whether the server carries out the call nevertheless
	refuse string // a rename that the server refuses

	random *rand.Rand // of the writer; nil if there is none
	next   int
	truth  map[string]string // what the writer knows to be stored, by the _id of the old collection

	behind int // documents compared while the fence is set, before a rename
}

type coll struct {
	id       bson.Binary
	settings record.Settings
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
	w := &world{t: t, quirks: quirks, streams: streams, names: names, colls: make(map[string]*coll), clock: 100, truth: make(map[string]string)}
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
		old.settings = record.Settings{Level: "moderate", Action: "warn", Validator: []byte(name)}
		fresh.settings = record.Settings{Level: "off", Action: "error"}
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
	w.colls[name] = &coll{id: bson.Binary{Subtype: 4, Data: fmt.Appendf(nil, "%016d", w.clock)}, docs: make(map[string]string), settings: record.Settings{Level: "strict", Action: "error"}}
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

// merged reports whether the document was written between the two renames.
func (w *world) merged(name, id string) bool {
	for other, c := range w.colls {
		if _, ok := c.docs[id]; ok && strings.HasPrefix(other, name+"_between_") {
			return true
		}
	}
	return false
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
			out[name] = Info{&c.id, c.settings}
		}
	})
	return out, nil
}

func (w *world) Set(_ context.Context, name string, s record.Settings) error {
	w.call(func() { w.colls[name].settings = s })
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
			return
		}
		w.colls[to] = c
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

func (w *world) pair(x Way, away bool) (leading, other string) {
	leading, other = x.Name, x.Comes()
	if away {
		leading = x.Away()
	}
	return leading, other
}

// compare compares the documents with the ids of either collection, or all if there are none. The
// process can be killed between any two of them.
func (w *world) compare(x Way, away bool, ids []string) (done Changes, err error) {
	leading, other := w.pair(x, away)
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
			if c := w.colls[x.Name]; c != nil && !away && c.settings.Equal(Fence()) {
				w.behind++
			}
			v, ok := w.colls[leading].docs[id]
			if n, is := w.colls[leading].docs["+"+id]; is && x.Back {
				v, ok = n, true
			}
			want, key := newForm(v), "+"+id
			if x.Back {
				want, key = strings.TrimPrefix(v, "new "), id
			}
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
			if _, is := w.colls[other].docs[id]; is && !x.Back { // no conversion makes it
				done.Deleted++
				w.put(other, id, nil)
			}
		})
	}
	return done, nil
}

func (w *world) Compare(_ context.Context, x Way) (Changes, error) { return w.compare(x, false, nil) }

func (w *world) Some(_ context.Context, x Way, ids, others []bson.RawValue) (Changes, error) {
	names := []string{}
	for _, id := range slices.Concat(ids, others) {
		names = append(names, id.StringValue())
	}
	return w.compare(x, false, names)
}

// A position is the time of the last event before it.
func position(at uint32) bson.Raw {
	b, _ := bson.Marshal(bson.D{{Key: "t", Value: int64(at)}})
	return b
}

func timeOf(at bson.Raw) uint32 { return uint32(at.Lookup("t").AsInt64()) }

func (w *world) Position(context.Context) (at bson.Raw, why string, err error) {
	w.call(func() { at = position(w.clock) })
	if !w.streams {
		return nil, "there are no change streams", nil
	}
	return at, "", nil
}

func (w *world) Next(_ context.Context, c *record.Cutover) (b Batch, err error) {
	w.call(func() {
		from := timeOf(c.Stream.Token)
		if b = (Batch{IDs: make(map[string][]bson.RawValue), At: c.Stream.Token}); from < w.oldest {
			b.Lost = "the server has forgotten it"
			return
		}
		n := 0
		for _, e := range w.events {
			if e.at <= from || n == 20 {
				continue
			}
			n++
			b.Time, b.At = bson.Timestamp{T: e.at}, position(e.at)
			if e.to != "" {
				w.t.Error("a collection was renamed before the exchange began")
			}
			if e.id != "" && !strings.Contains(e.name, "_between_") {
				b.IDs[e.name] = append(b.IDs[e.name], idValue(e.id))
			}
		}
	})
	return b, nil
}

func (w *world) Drain(context.Context, Way) (Changes, error) { return Changes{}, nil }

func (w *world) CatchUp(_ context.Context, x Way) (Changes, error) {
	from := x.Since.T
	if x.After != nil {
		from = timeOf(x.After) + 1
	}
	if from == 0 || from < w.oldest {
		return w.compare(x, true, nil)
	}
	ids := []string{}
	for _, e := range w.events {
		if e.name != x.Name && e.name != x.Comes() || e.at < from {
			continue
		}
		if e.name == x.Name && e.to == x.Away() && e.at >= x.Left.T {
			return w.compare(x, true, ids)
		}
		if e.to == "" && !slices.Contains(ids, e.id) {
			ids = append(ids, e.id)
		}
	}
	w.t.Error("there is no event of the rename")
	return Changes{}, nil
}

func (w *world) Merge(_ context.Context, x Way, from string) (n, conflicts int64, err error) {
	for _, id := range slices.Sorted(maps.Keys(w.colls[from].docs)) {
		w.call(func() {
			n++
			v := w.colls[from].docs[id]
			if !x.Back {
				v, id = newForm(v), "+"+id
			}
			if _, ok := w.colls[x.Name].docs[id]; !ok {
				w.put(x.Name, id, &v)
			}
		})
	}
	return n, 0, nil
}

func (w *world) KeepsIDs(context.Context) (bool, error) { return !w.quirks, nil }

// run runs the command once, and reports whether it was killed.
func (w *world) run(names []string, back bool) (state string, err error, dead bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			dead = true
			if w.forgets {
				w.oldest = w.clock
			}
		}
	}()
	c := &Cutover{Cutover: &record.Cutover{}, DB: w, Notice: func(string) {}}
	if w.saved != nil {
		if err := bson.Unmarshal(w.saved, c.Cutover); err != nil {
			w.t.Fatal(err)
		}
	} else {
		var exchanges []record.Exchange
		for _, name := range names {
			old, fresh := w.colls[name], w.colls[name+" new"]
			exchanges = append(exchanges, record.Exchange{Name: name, New: name + " new", Kept: name + " old", OldID: &old.id, NewID: &fresh.id, OldHad: old.settings, NewHad: fresh.settings})
		}
		c.Cutover = &record.Cutover{ID: "test/cutover", State: record.Comparing, Untouched: true, Collections: exchanges}
	}
	if back || c.State == record.RollingBack {
		if c.Token != "" {
			err = c.RollBack(context.Background(), "on request")
		}
	} else {
		err = c.Run(context.Background())
	}
	return c.State, err, false
}

// check fails the test unless the cutover has ended in the state, and nothing was lost.
func (w *world) check(what string, names []string, state string) {
	w.t.Helper()
	w.die, w.random = 0, nil
	at := func(name string) string {
		c := w.colls[name]
		if c == nil {
			return "nothing"
		}
		return strings.Trim(fmt.Sprint(c.settings.Level, " ", c.settings.Action, " ", string(c.settings.Validator)), " ")
	}
	for _, name := range names {
		c := w.colls[name]
		if c == nil {
			w.t.Fatalf("%s: there is no %s", what, name)
		}
		n := 0
		for id, v := range w.truth {
			if !strings.HasPrefix(id, name+"/") {
				continue
			}
			n++
			got, ok := c.docs[id]
			if n, is := c.docs["+"+id]; is && !ok {
				got, ok = n, true
			}
			if strings.TrimPrefix(got, "new ") != v || !ok {
				w.t.Fatalf("%s: %s is %q, and was written as %q", what, id, got, v)
			}
			if v == "first" && (state == record.Switched) != (got == newForm(v)) {
				w.t.Fatalf("%s: %s is %q in the state %s", what, id, got, state)
			}
		}
		if n != len(c.docs) {
			w.t.Fatalf("%s: %s has %d documents, want %d: %v, %v", what, name, len(c.docs), n, c.docs, w.truth)
		}
		_, old := w.colls[name+" old"]
		_, fresh := w.colls[name+" new"]
		if (state == record.Switched) != old || (state == record.Switched) == fresh {
			w.t.Fatalf("%s: old %v, new %v in the state %s", what, old, fresh, state)
		}
		switch {
		case state == record.Switched && !c.settings.Equal(Fence()):
			w.t.Fatalf("%s: %s has no fence: %s", what, name, at(name))
		case state != record.Switched && (at(name) != "moderate warn "+name || at(name+" new") != "off error"):
			w.t.Fatalf("%s: %s and %s new have %s, %s", what, name, name, at(name), at(name+" new"))
		}
	}
	if state != record.Switched {
		return
	}
	var c record.Cutover
	if err := bson.Unmarshal(w.saved, &c); err != nil {
		w.t.Fatal(err)
	}
	if left, err := (&Cutover{Cutover: &c, DB: w}).Release(context.Background()); err != nil || len(left) > 0 || c.State != record.Released {
		w.t.Fatal(what, left, err, c.State)
	}
	for _, name := range names {
		if at(name) != "off error" {
			w.t.Fatalf("%s: %s was released and has %s", what, name, at(name))
		}
	}
}

// variants calls f for each kind of server, without and with a writer.
func variants(t *testing.T, names []string, f func(t *testing.T, fresh func() *world)) {
	for _, quirks := range []bool{false, true} {
		for _, streams := range []string{"kept", "forgotten", "none"} {
			if quirks && streams != "kept" && *seeds <= 2 {
				continue
			}
			for seed := range uint64(*seeds) {
				t.Run(fmt.Sprintf("quirks=%v streams=%v seed=%d", quirks, streams, seed), func(t *testing.T) {
					t.Parallel()
					f(t, func() *world {
						w := newWorld(t, quirks, streams != "none", names...)
						w.forgets = streams == "forgotten"
						if seed > 0 {
							w.random = rand.New(rand.NewPCG(seed, 0))
						}
						return w
					})
				})
			}
		}
	}
}

// seconds returns the calls at which a process that continues is killed again; 0 is none.
func seconds(first, calls int) []int {
	both := []int{0, 1 + first*13%calls}
	if *seeds > 2 {
		return both
	}
	return both[first%2 : first%2+1]
}

var group = []string{"a", "b", "c"}

// A cutover that is killed at any command, before or after the server carried it out, and a second
// time at another one, ends as one that is not killed: by the same command, or by a roll-back.
func TestKilled(t *testing.T) {
	names := []string{"a", "b"}
	variants(t, names, func(t *testing.T, fresh func() *world) {
		w := fresh()
		if state, err, _ := w.run(names, false); err != nil || state != record.Switched {
			t.Fatal(state, err)
		}
		calls := w.calls
		w.check("not killed", names, record.Switched)
		ends := make(map[string]int)
		for first := 1; first <= calls; first++ {
			for _, done := range []bool{false, true} {
				for _, back := range []bool{false, true} {
					for _, second := range seconds(first, calls) {
						w := fresh()
						what := fmt.Sprintf("killed at %d and %d, done=%v, back=%v", first, second, done, back)
						w.die, w.done = first, done
						state, err, dead := w.run(names, false)
						if !dead && state != record.Switched {
							t.Fatal(what, state, err)
						}
						w.calls, w.die = 0, second
						if dead {
							state, err, dead = w.run(names, back)
						}
						w.calls, w.die = 0, 0
						if dead {
							state, err, dead = w.run(names, back)
						}
						if back && w.saved == nil {
							continue // nothing was begun
						}
						switch {
						case dead || err != nil && !strings.Contains(err.Error(), "cannot be rolled back"):
							t.Fatal(what, state, err)
						case state != record.Switched && state != record.RolledBack, !back && state != record.Switched:
							t.Fatal(what, state)
						}
						ends[state]++
						w.check(what, names, state)
					}
				}
			}
		}
		if ends[record.RolledBack] == 0 {
			t.Error("no cutover was rolled back")
		}
	})
}

// If the second of three collections cannot be renamed away, or in, all are rolled back, also if the
// process is killed at any command.
func TestFails(t *testing.T) {
	for _, fails := range []string{"b to b old", "b new to b"} {
		variants(t, group, func(t *testing.T, fresh func() *world) {
			refusing := func() *world {
				w := fresh()
				w.refuse = fails
				return w
			}
			end := func(w *world, what string) {
				t.Helper()
				state, err, dead := w.run(group, false)
				for dead { // killed again
					w.calls, w.die = 0, 0
					state, err, dead = w.run(group, false)
				}
				if state != record.RolledBack {
					t.Fatal(what, state, err)
				}
				w.check(what, group, record.RolledBack)
			}
			w := refusing()
			end(w, "not killed")
			for at := 1; at <= w.calls; at++ {
				for _, done := range []bool{false, true} {
					if *seeds <= 2 && done != (at%2 == 0) {
						continue
					}
					w := refusing()
					w.die, w.done = at, done
					end(w, fmt.Sprintf("killed at %d, done=%v", at, done))
				}
			}
		})
	}
}
