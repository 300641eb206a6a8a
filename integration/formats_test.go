package integration

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/clientopt"
	"github.com/bsonids/bsonids/integration/mongotest"
	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidgen/i3core"
	"github.com/bsonids/bsonids/uuidgen/peabody01"
	"github.com/bsonids/bsonids/uuidrep"
)

// formatClock is the clock of a format. Every fourth reading is 1.234567891 s after the one before,
// so that some UUIDs share a timestamp and all low bytes of the timestamp have changed in 50 steps.
type formatClock struct{ looks int }

var formatEpoch = time.Date(2022, 2, 22, 19, 22, 22, 123456789, time.UTC)

func (c *formatClock) at(look int) time.Time {
	return formatEpoch.Add(time.Duration(look/4) * 1234567891)
}

func (c *formatClock) now() time.Time {
	c.looks++
	return c.at(c.looks - 1)
}

// orderedFormat is a format whose UUIDs sort by time, as a source of ids.
type orderedFormat struct {
	name   string
	source func(now func() time.Time) (autoid.Source, error)
	bounds func(from, to time.Time) (low, high any, err error)
	keep   []uuidrep.Representation // clients that keep the order
	lose   []uuidrep.Representation // clients that do not
}

func orderedFormats() []orderedFormat {
	network := []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy}
	swapped := []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy}
	pair := func(closed func(from, to time.Time) (uuidgen.Range, error)) func(from, to time.Time) (any, any, error) {
		return func(from, to time.Time) (any, any, error) {
			r, err := closed(from, to)
			return r.Min, r.Max, err
		}
	}
	formats := []orderedFormat{{
		name: "peabody01 v6",
		source: func(now func() time.Time) (autoid.Source, error) {
			return peabody01.NewV6Generator(uuidgen.WithClock(now))
		},
		// The four UUIDs of one reading count up: the last one is three ticks of 100 ns after the
		// first.
		bounds: func(from, to time.Time) (any, any, error) {
			return pair(uuidgen.ClosedV6)(from, to.Add(300*time.Nanosecond))
		},
		keep: network, lose: swapped,
	}}
	for _, p := range []peabody01.Precision{peabody01.Millisecond, peabody01.Microsecond, peabody01.Nanosecond} {
		encodings := []peabody01.Encoding{peabody01.RoundUp}
		if p == peabody01.Millisecond { // the precision at which they differ most
			encodings = append(encodings, peabody01.Floor, peabody01.RawCount)
		}
		for _, e := range encodings {
			formats = append(formats, orderedFormat{
				name: fmt.Sprintf("peabody01 v7 %v %v", p, e),
				source: func(now func() time.Time) (autoid.Source, error) {
					return peabody01.NewV7Generator(p, peabody01.WithEncoding(e), peabody01.WithMachineID(3, 8), uuidgen.WithClock(now))
				},
				bounds: pair(func(from, to time.Time) (uuidgen.Range, error) { return peabody01.ClosedV7(from, to, p, e) }),
				keep:   network, lose: swapped,
			})
		}
	}
	unix := time.Unix(0, 0)
	for _, c := range []peabody01.Clock{
		{Bits: 32, Tick: time.Second, Epoch: unix}, {Bits: 44, SequenceBits: 20, Tick: time.Millisecond, Epoch: unix},
		{Bits: 48, Tick: time.Millisecond, Epoch: unix},
		{Bits: 60, Tick: 100, Epoch: time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC)}, {Bits: 64, Tick: 1, Epoch: unix},
	} {
		formats = append(formats, orderedFormat{
			name: fmt.Sprintf("peabody01 v8 %d bits", c.Bits),
			source: func(now func() time.Time) (autoid.Source, error) {
				return peabody01.NewV8Generator(c, uuidgen.WithClock(now))
			},
			bounds: pair(func(from, to time.Time) (uuidgen.Range, error) { return peabody01.ClosedV8(from, to, c) }),
			keep:   network, lose: swapped,
		})
	}
	for _, r := range swapped {
		// The type of the ids determines their representation. The same holds for the bounds.
		typed := func(u uuid.UUID) any {
			if r == uuidrep.CSharpLegacy {
				return uuidrep.CSharpLegacyUUID{UUID: u}
			}
			return uuidrep.JavaLegacyUUID{UUID: u}
		}
		formats = append(formats, orderedFormat{
			name: "uuidgen v8 " + r.String(),
			source: func(now func() time.Time) (autoid.Source, error) {
				return uuidgen.NewV8Generator(r, uuidgen.WithClock(now))
			},
			bounds: func(from, to time.Time) (any, any, error) {
				ids, err := uuidgen.ClosedV8(from, to, r)
				return typed(ids.Min), typed(ids.Max), err
			},
			keep: append([]uuidrep.Representation{uuidrep.Unspecified}, append(network, swapped...)...),
		})
	}
	return append(formats, orderedFormat{
		// The type of the ids determines csharpLegacy, so no client loses the order.
		name: "i3core sequential",
		source: func(now func() time.Time) (autoid.Source, error) {
			return i3core.NewSequentialGenerator(i3core.WithVersion(0xD), uuidgen.WithClock(now))
		},
		bounds: func(from, to time.Time) (any, any, error) {
			low, high, err := pair(i3core.ClosedSequential)(from, to)
			if err != nil {
				return nil, nil, err
			}
			return uuidrep.CSharpLegacyUUID{UUID: low.(uuid.UUID)}, uuidrep.CSharpLegacyUUID{UUID: high.(uuid.UUID)}, nil
		},
		keep: append([]uuidrep.Representation{uuidrep.Unspecified}, append(network, swapped...)...),
	}, orderedFormat{
		// The registry determines the representation. Only csharpLegacy keeps the order.
		name: "i3core sequential as uuid.UUID",
		source: func(now func() time.Time) (autoid.Source, error) {
			g, err := i3core.NewSequentialGenerator(i3core.WithVersion(0xD), uuidgen.WithClock(now))
			if err != nil {
				return nil, err
			}
			return autoid.SourceFunc(func() (any, error) {
				u, err := g.NewUUID()
				return u, err
			}), nil
		},
		bounds: pair(i3core.ClosedSequential),
		keep:   []uuidrep.Representation{uuidrep.CSharpLegacy},
		lose:   append([]uuidrep.Representation{uuidrep.JavaLegacy}, network...),
	})
}

// formatCollection returns a collection of a client with representation r.
func formatCollection(t *testing.T, srv *mongotest.Server, r uuidrep.Representation, name string) *mongo.Collection {
	t.Helper()
	client, err := clientopt.Connect(srv.With("uuidRepresentation=" + r.String()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Disconnect(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return client.Database(srv.Database()).Collection(name)
}

// formatNumbers returns the numbers of the documents that filter finds, sorted by _id in the given
// direction.
func formatNumbers(t *testing.T, coll *mongo.Collection, filter any, direction int) []int {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cursor, err := coll.Find(ctx, filter, options.Find().SetSort(bson.D{{Key: "_id", Value: direction}}))
	if err != nil {
		t.Fatal(err)
	}
	var docs []struct{ N int }
	if err := cursor.All(ctx, &docs); err != nil {
		t.Fatal(err)
	}
	ns := make([]int, len(docs))
	for i, d := range docs {
		ns[i] = d.N
	}
	return ns
}

// TestFormatsAsID tests that documents sort by _id in the order of their creation, and that a range
// of time finds exactly the documents made in it, through every client that keeps the order. It
// also tests that the other representations destroy the order.
func TestFormatsAsID(t *testing.T) {
	const documents = 200
	srv := mongotest.Start(t)
	for i, f := range orderedFormats() {
		t.Run(f.name, func(t *testing.T) {
			for _, r := range append(slices.Clone(f.keep), f.lose...) {
				t.Run(r.String(), func(t *testing.T) {
					var clock formatClock
					src, err := f.source(clock.now)
					if err != nil {
						t.Fatal(err)
					}
					coll := autoid.Wrap(formatCollection(t, srv, r, fmt.Sprintf("f%d_%v", i, r)), src)
					ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
					defer cancel()
					var want []int
					var docs []any
					for n := range documents {
						want = append(want, n)
						docs = append(docs, bson.D{{Key: "n", Value: n}})
					}
					for _, doc := range docs[:10] {
						if _, err := coll.InsertOne(ctx, doc); err != nil {
							t.Fatal(err)
						}
					}
					if _, err := coll.InsertMany(ctx, docs[10:]); err != nil {
						t.Fatal(err)
					}
					if clock.looks != documents {
						t.Fatalf("%d looks at the clock for %d documents", clock.looks, documents)
					}

					up := formatNumbers(t, coll.Collection, bson.D{}, 1)
					down := formatNumbers(t, coll.Collection, bson.D{}, -1)
					slices.Reverse(down)
					if !slices.Equal(up, down) || len(up) != documents {
						t.Fatalf("%d documents upwards, %d downwards, not each other's reverse", len(up), len(down))
					}
					if slices.Contains(f.lose, r) {
						if slices.Equal(up, want) {
							t.Error("the order is kept; the documentation says it is destroyed")
						}
						return
					}
					if !slices.Equal(up, want) {
						t.Fatalf("sorted by _id: %v", up)
					}
					for _, span := range [][2]int{{0, 49}, {10, 10}, {13, 37}, {49, 49}} {
						low, high, err := f.bounds(clock.at(4*span[0]), clock.at(4*span[1]))
						if err != nil {
							t.Fatal(err)
						}
						filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: low}, {Key: "$lte", Value: high}}}}
						got := formatNumbers(t, coll.Collection, filter, 1)
						if want := want[4*span[0] : 4*span[1]+4]; !slices.Equal(got, want) {
							t.Errorf("made in steps %v: %v, want %d to %d", span, got, want[0], want[len(want)-1])
						}
					}
					// There is nothing before and after.
					for _, d := range []time.Duration{-time.Hour, time.Hour} {
						low, high, err := f.bounds(formatEpoch.Add(d), formatEpoch.Add(d+time.Minute))
						if err != nil {
							t.Fatal(err)
						}
						filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: low}, {Key: "$lte", Value: high}}}}
						if got := formatNumbers(t, coll.Collection, filter, 1); len(got) != 0 {
							t.Errorf("made %v from the first: %v", d, got)
						}
					}
				})
			}
		})
	}
}

// TestI3CoreMemoryStored tests that a database stores an i3core id as the memory of the class, and
// that every client reads it back as the same id.
func TestI3CoreMemoryStored(t *testing.T) {
	srv := mongotest.Start(t)
	for name, make := range map[string]func() (*uuidgen.Generator, error){
		"random":     func() (*uuidgen.Generator, error) { return i3core.NewRandomGenerator(i3core.WithCustom(0x2A)) },
		"sequential": func() (*uuidgen.Generator, error) { return i3core.NewSequentialGenerator(i3core.WithVersion(0xD)) },
		"notifier":   func() (*uuidgen.Generator, error) { return i3core.NewNotifierGenerator([6]byte{2, 0, 0, 0, 0, 1}, 7) },
	} {
		for _, r := range []uuidrep.Representation{uuidrep.Unspecified, uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy} {
			t.Run(name+"/"+r.String(), func(t *testing.T) {
				g, err := make()
				if err != nil {
					t.Fatal(err)
				}
				var made uuid.UUID
				src := autoid.SourceFunc(func() (any, error) {
					id, err := g.NewID()
					if typed, ok := id.(uuidrep.CSharpLegacyUUID); ok {
						made = typed.UUID
					}
					return id, err
				})
				coll := autoid.Wrap(formatCollection(t, srv, r, name+r.String()), src)
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				if _, err := coll.InsertOne(ctx, bson.D{{Key: "n", Value: 1}}); err != nil {
					t.Fatal(err)
				}
				raw, err := coll.FindOne(ctx, bson.D{}).Raw()
				if err != nil {
					t.Fatal(err)
				}
				subtype, octets := raw.Lookup("_id").Binary()
				if m := uuidrep.CSharpLegacy.Permute(made); made == uuid.Nil || subtype != 3 || !bytes.Equal(octets, m[:]) {
					t.Errorf("%v is stored as subtype %d, %x", made, subtype, octets)
				}
				var doc struct {
					ID uuidrep.CSharpLegacyUUID `bson:"_id"`
				}
				filter := bson.D{{Key: "_id", Value: uuidrep.CSharpLegacyUUID{UUID: made}}}
				if err := coll.FindOne(ctx, filter).Decode(&doc); err != nil || doc.ID.UUID != made {
					t.Errorf("read back as %v, %v, want %v", doc.ID, err, made)
				}
			})
		}
	}
}
