package integration

import (
	"context"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	gofrs "github.com/gofrs/uuid/v5"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

// uuidGenerator is a generator with a given clock, and the functions that return the bounds of an
// instant.
type uuidGenerator struct {
	name     string
	make     func(...uuidgen.Option) (*uuidgen.Generator, error)
	min, max func(time.Time) (uuid.UUID, error)
}

var timedUUIDs = []uuidGenerator{
	{"v6", uuidgen.NewV6Generator, first(uuidgen.ClosedV6), last(uuidgen.ClosedV6)},
	{"v7", uuidgen.NewV7Generator, first(uuidgen.ClosedV7), last(uuidgen.ClosedV7)},
}

func first(closed func(from, to time.Time) (uuidgen.Range, error)) func(time.Time) (uuid.UUID, error) {
	return func(t time.Time) (uuid.UUID, error) { r, err := closed(t, t); return r.Min, err }
}

func last(closed func(from, to time.Time) (uuidgen.Range, error)) func(time.Time) (uuid.UUID, error) {
	return func(t time.Time) (uuid.UUID, error) { r, err := closed(t, t); return r.Max, err }
}

// dayClock advances by 2 h 46 min 40.1 s after every ten documents, starting at noon. Of 200
// documents, each of the middle days has 48.
type dayClock struct {
	mu    sync.Mutex
	looks int
}

var dayClockStart = time.Date(2026, 2, 26, 12, 0, 0, 0, time.UTC)

func (c *dayClock) at(look int) time.Time {
	return dayClockStart.Add(time.Duration(look/10) * 10_000_100 * time.Millisecond)
}

func (c *dayClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return c.at(c.looks - 1)
}

// TestUUIDsAsID tests that documents sort by _id in the order in which they were made, in the
// representations that keep the order of the bytes. It also tests that the other representations do
// not keep the order.
func TestUUIDsAsID(t *testing.T) {
	const documents = 200
	srv := mongotest.Start(t)
	for _, g := range timedUUIDs {
		for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy, uuidrep.JavaLegacy, uuidrep.CSharpLegacy} {
			t.Run(g.name+"/"+r.String(), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				var clock dayClock
				ids, err := g.make(uuidgen.WithClock(clock.now))
				if err != nil {
					t.Fatal(err)
				}
				coll := autoid.Wrap(formatCollection(t, srv, r, g.name+r.String()), ids)
				var want []int
				var docs []any
				for n := range documents {
					want = append(want, n)
					docs = append(docs, bson.D{{Key: "n", Value: n}})
				}
				for _, doc := range docs[:15] {
					if _, err := coll.InsertOne(ctx, doc); err != nil {
						t.Fatal(err)
					}
				}
				if _, err := coll.InsertMany(ctx, docs[15:]); err != nil {
					t.Fatal(err)
				}
				if clock.looks != documents {
					t.Fatalf("%d looks at the clock for %d documents", clock.looks, documents)
				}

				got := formatNumbers(t, coll.Collection, bson.D{}, 1)
				if r == uuidrep.JavaLegacy || r == uuidrep.CSharpLegacy {
					slices.Sort(want)
					if slices.Equal(got, want) {
						t.Error("the order is kept; the documentation says it is destroyed")
					}
					slices.Sort(got)
					if !slices.Equal(got, want) {
						t.Errorf("documents %v", got)
					}
					return
				}
				if !slices.Equal(got, want) {
					t.Fatalf("sorted by _id: %v", got)
				}

				// The documents made on that day, as a half-open range of lower bounds, and as a
				// closed range up to the last instant before the next day. The expected documents
				// come from the clock, not from the ids.
				first := time.Date(2026, 2, 25, 0, 0, 0, 0, time.UTC)
				for day := range 6 {
					from, to := first.AddDate(0, 0, day), first.AddDate(0, 0, day+1)
					var want []int
					for n := range documents {
						if at := clock.at(n); !at.Before(from) && at.Before(to) {
							want = append(want, n)
						}
					}
					low, err := g.min(from)
					if err != nil {
						t.Fatal(err)
					}
					next, err := g.min(to)
					if err != nil {
						t.Fatal(err)
					}
					high, err := g.max(to.Add(-1))
					if err != nil {
						t.Fatal(err)
					}
					for name, upper := range map[string]bson.E{
						"half-open": {Key: "$lt", Value: next}, "closed": {Key: "$lte", Value: high},
					} {
						filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: low}, upper}}}
						if got := formatNumbers(t, coll.Collection, filter, 1); !slices.Equal(got, want) {
							t.Errorf("made from %v, %s: %v, want %v", from, name, got, want)
						}
					}
				}

				// One instant: the ten documents made at it.
				low, err := g.min(clock.at(50))
				if err != nil {
					t.Fatal(err)
				}
				// The ten ids of one reading count up. In version 6 they are 100 ns apart.
				high, err := g.max(clock.at(50).Add(900 * time.Nanosecond))
				if err != nil {
					t.Fatal(err)
				}
				filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: low}, {Key: "$lte", Value: high}}}}
				if got := formatNumbers(t, coll.Collection, filter, 1); !slices.Equal(got, want[50:60]) {
					t.Errorf("made at %v: %v", clock.at(50), got)
				}
			})
		}
	}
}

// TestUUIDsAsIDConcurrently uses the system clock and several goroutines with one generator. A
// document that was inserted before another was started sorts before it, and a query for the ids
// since an instant finds exactly the documents made since then.
func TestUUIDsAsIDConcurrently(t *testing.T) {
	srv := mongotest.Start(t)
	for _, g := range timedUUIDs {
		t.Run(g.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			ids, err := g.make()
			if err != nil {
				t.Fatal(err)
			}
			coll := autoid.Wrap(formatCollection(t, srv, uuidrep.Standard, g.name), ids)
			insert := func(phase int) {
				var wg sync.WaitGroup
				for range 4 {
					wg.Go(func() {
						for range 25 {
							if _, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: phase}}); err != nil {
								t.Error(err)
							}
						}
					})
				}
				wg.Wait()
			}
			insert(0)
			// Wait for a later millisecond, because the bounds of version 7 have a precision of one
			// millisecond.
			between := time.Now().Add(time.Millisecond)
			for time.Now().Truncate(time.Millisecond).Before(between.Truncate(time.Millisecond)) {
			}
			insert(1)

			got := formatNumbers(t, coll.Collection, bson.D{}, 1)
			if want := append(make([]int, 100), slices.Repeat([]int{1}, 100)...); !slices.Equal(got, want) {
				t.Errorf("sorted by _id, the phases are %v", got)
			}
			low, err := g.min(between.Truncate(time.Millisecond))
			if err != nil {
				t.Fatal(err)
			}
			since := formatNumbers(t, coll.Collection, bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: low}}}}, 1)
			before := formatNumbers(t, coll.Collection, bson.D{{Key: "_id", Value: bson.D{{Key: "$lt", Value: low}}}}, 1)
			if len(since) != 100 || slices.Contains(since, 0) || len(before) != 100 || slices.Contains(before, 1) {
				t.Errorf("since %v: %v, before: %v", between, since, before)
			}
		})
	}
}

// TestUUIDsStored tests that an id of every version is reported, stored and found as the generator
// made it.
func TestUUIDsStored(t *testing.T) {
	srv := mongotest.Start(t)
	for version, newGenerator := range map[uuid.Version]func(...uuidgen.Option) (*uuidgen.Generator, error){
		4: uuidgen.NewV4Generator, 6: uuidgen.NewV6Generator, 7: uuidgen.NewV7Generator,
	} {
		for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy, uuidrep.JavaLegacy, uuidrep.CSharpLegacy} {
			t.Run(version.String()+"/"+r.String(), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				ids, err := newGenerator()
				if err != nil {
					t.Fatal(err)
				}
				var made []uuid.UUID
				src := autoid.SourceFunc(func() (any, error) {
					u, err := ids.NewUUID()
					made = append(made, u)
					return u, err
				})
				coll := autoid.Wrap(formatCollection(t, srv, r, version.String()+r.String()), src)
				res, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: 1}})
				if err != nil {
					t.Fatal(err)
				}
				if len(made) != 1 || res.InsertedID != made[0] || made[0].Version() != version {
					t.Fatalf("InsertedID %v of %v", res.InsertedID, made)
				}
				raw, err := coll.FindOne(ctx, bson.D{{Key: "_id", Value: made[0]}}).Raw()
				if err != nil {
					t.Fatal(err)
				}
				var b bson.Binary
				b.Subtype, b.Data = raw.Lookup("_id").Binary()
				if got, err := uuidrep.AsWithRepresentation[uuid.UUID](b, r); err != nil || got != made[0] {
					t.Errorf("stored %v, %v; want %v", got, err, made[0])
				}
			})
		}
	}
}

// TestUUIDSourceFails tests that an error of the source is the error of the insert, and that no
// document is stored.
func TestUUIDSourceFails(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ids, err := uuidgen.NewV7Generator(uuidgen.WithClock(func() time.Time { return time.Unix(-1, 0) }))
	if err != nil {
		t.Fatal(err)
	}
	coll := autoid.Wrap(formatCollection(t, mongotest.Start(t), uuidrep.Standard, "c"), ids)
	if _, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: 1}}); !errors.Is(err, uuidgen.ErrTimeRange) {
		t.Errorf("error %v, want %v", err, uuidgen.ErrTimeRange)
	}
	if n, err := coll.CountDocuments(ctx, bson.D{}); n != 0 || err != nil {
		t.Errorf("%d documents, %v", n, err)
	}
}

// TestUUIDTimesOfAnother tests that another implementation reads the times of our ids, and that
// Time reads its times.
func TestUUIDTimesOfAnother(t *testing.T) {
	rnd := mathrand.New(mathrand.NewPCG(1, 2))
	for range 5000 {
		at := time.Unix(rnd.Int64N(9e9), rnd.Int64N(1e9)).UTC()
		clock := uuidgen.WithClock(func() time.Time { return at })

		v6, err := uuidgen.NewV6Generator(clock)
		if err != nil {
			t.Fatal(err)
		}
		u, err := v6.NewUUID()
		if err != nil {
			t.Fatal(err)
		}
		stamp, err := gofrs.TimestampFromV6(gofrs.UUID(u))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := stamp.Time(); err != nil || !got.Equal(at.Truncate(100)) {
			t.Fatalf("gofrs reads %v, %v from %v of %v", got, err, u, at)
		}
		v7, err := uuidgen.NewV7Generator(clock)
		if err != nil {
			t.Fatal(err)
		}
		if u, err = v7.NewUUID(); err != nil {
			t.Fatal(err)
		}
		if stamp, err = gofrs.TimestampFromV7(gofrs.UUID(u)); err != nil {
			t.Fatal(err)
		}
		if got, err := stamp.Time(); err != nil || !got.Equal(at.Truncate(time.Millisecond)) {
			t.Fatalf("gofrs reads %v, %v from %v of %v", got, err, u, at)
		}

		for name, tt := range map[string]struct {
			make func(time.Time) (gofrs.UUID, error)
			unit time.Duration
		}{
			"v1": {gofrs.NewV1AtTime, 100}, "v6": {gofrs.NewV6AtTime, 100}, "v7": {gofrs.NewV7AtTime, time.Millisecond},
		} {
			u, err := tt.make(at)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := uuidgen.Time(uuid.UUID(u)); err != nil || !got.Truncate(tt.unit).Equal(at.Truncate(tt.unit)) {
				t.Fatalf("%s: %v, %v from %v of %v", name, got, err, u, at)
			}
		}
	}
}

// TestUUIDFilters tests that the filter of a range finds the documents of a span of time in every
// representation that keeps the order.
func TestUUIDFilters(t *testing.T) {
	srv := mongotest.Start(t)
	for name, f := range map[string]struct {
		make   func(now func() time.Time) (*uuidgen.Generator, error)
		ranges func(from, to time.Time) (uuidgen.Range, error)
		keep   []uuidrep.Representation
	}{
		"v6": {func(now func() time.Time) (*uuidgen.Generator, error) {
			return uuidgen.NewV6Generator(uuidgen.WithClock(now))
		}, uuidgen.HalfOpenV6, []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy}},
		"v7": {func(now func() time.Time) (*uuidgen.Generator, error) {
			return uuidgen.NewV7Generator(uuidgen.WithClock(now))
		}, uuidgen.HalfOpenV7, []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy}},
		"v8 csharpLegacy": {func(now func() time.Time) (*uuidgen.Generator, error) {
			return uuidgen.NewV8Generator(uuidrep.CSharpLegacy, uuidgen.WithClock(now))
		}, func(from, to time.Time) (uuidgen.Range, error) {
			return uuidgen.HalfOpenV8(from, to, uuidrep.CSharpLegacy)
		}, []uuidrep.Representation{uuidrep.CSharpLegacy}},
		"v8 javaLegacy": {func(now func() time.Time) (*uuidgen.Generator, error) {
			return uuidgen.NewV8Generator(uuidrep.JavaLegacy, uuidgen.WithClock(now))
		}, func(from, to time.Time) (uuidgen.Range, error) {
			return uuidgen.HalfOpenV8(from, to, uuidrep.JavaLegacy)
		}, []uuidrep.Representation{uuidrep.JavaLegacy}},
	} {
		for _, r := range f.keep {
			t.Run(name+"/"+r.String(), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				var clock dayClock
				ids, err := f.make(clock.now)
				if err != nil {
					t.Fatal(err)
				}
				coll := formatCollection(t, srv, r, "filters"+name+r.String())
				var docs []any
				for n := range 100 {
					id, err := ids.NewUUID()
					if err != nil {
						t.Fatal(err)
					}
					docs = append(docs, bson.D{{Key: "n", Value: n}, {Key: "made", Value: id}})
				}
				if _, err := coll.InsertMany(ctx, docs); err != nil {
					t.Fatal(err)
				}
				made, err := f.ranges(clock.at(20), clock.at(70))
				if err != nil {
					t.Fatal(err)
				}
				filter, err := made.Filter("made", r)
				if err != nil {
					t.Fatal(err)
				}
				got := formatNumbers(t, coll, filter, 1)
				slices.Sort(got)
				var want []int
				for n := 20; n < 70; n++ {
					want = append(want, n)
				}
				if !slices.Equal(got, want) {
					t.Errorf("%v: %v, want 20 to 69", filter, got)
				}
			})
		}
	}
}
