package objectidgen_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/objectidgen"
	"go.mongodb.org/mongo-driver/v2/bson"
)

func ExampleNewObjectID() {
	id := objectidgen.NewObjectID()
	fmt.Println(len(id.Hex()), time.Since(id.Timestamp()) < time.Minute)
	// Output: 24 true
}

func ExampleNewGenerator() {
	// A generator for tests: the time, the process value and the first counter are given.
	noon := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	g, err := objectidgen.NewGenerator(
		objectidgen.WithClock(func() time.Time { return noon }),
		objectidgen.WithStart([5]byte{0xAA, 0xBB, 0xCC, 0xDD, 0xEE}, 0xFFFFFF),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.NewObjectID().Hex())
	fmt.Println(g.NewObjectID().Hex())
	// Output:
	// 699d92c0aabbccddeeffffff
	// 699d92c0aabbccddee000000
}

func ExampleWithRandom() {
	_, err := objectidgen.NewGenerator(objectidgen.WithRandom(strings.NewReader("short")))
	fmt.Println(err)
	// Output: objectidgen: reading 8 random bytes: unexpected EOF
}

func ExampleGenerator_Fill() {
	ids := make([]bson.ObjectID, 100_000)
	objectidgen.Default().Fill(ids)

	different := map[bson.ObjectID]bool{}
	for _, id := range ids {
		different[id] = true
	}
	fmt.Println(len(different))
	// Output: 100000
}

// A program that relies on the order of its ids checks that no new order has begun.
func ExampleGenerator_Orders() {
	now := time.Date(2026, 2, 24, 12, 0, 0, 0, time.UTC)
	g, err := objectidgen.NewGenerator(objectidgen.WithClock(func() time.Time { return now }))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(g.NewObjectID().Timestamp(), g.Orders())
		now = now.Add(-time.Hour) // the clock is set back
	}
	// Output:
	// 2026-02-24 12:00:00 +0000 UTC 1
	// 2026-02-24 11:00:00 +0000 UTC 2
}

func ExampleGenerator_Renew() {
	g := objectidgen.Default()
	before := objectidgen.Decode(g.NewObjectID())
	// In the hook that the platform calls in each copy of a restored snapshot:
	if err := g.Renew(); err != nil {
		fmt.Println(err)
		return
	}
	after := objectidgen.Decode(g.NewObjectID())
	fmt.Println(before.Process == after.Process)
	// Output: false
}

// The documents of one day.
func ExampleHalfOpen() {
	day := time.Date(2026, 2, 24, 0, 0, 0, 0, time.UTC)
	r, err := objectidgen.HalfOpen(day, day.AddDate(0, 0, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	filter, err := r.Filter("_id")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(filter)
	// Output: {"_id":{"$gte":{"$oid":"699cea000000000000000000"},"$lt":{"$oid":"699e3b800000000000000000"}}}
}

func ExampleClosed() {
	second := time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)
	r, err := objectidgen.Closed(second, second)
	if err != nil {
		fmt.Println(err)
		return
	}
	id, err := bson.ObjectIDFromHex("699dfad90ca573f85c0eec1c")
	fmt.Println(r.Contains(id), r.Contains(objectidgen.NewObjectID()), err)
	// Output: true false <nil>
}

func ExampleCompareTime() {
	id, err := bson.ObjectIDFromHex("699dfad90ca573f85c0eec1c")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(objectidgen.CompareTime(id, time.Date(2026, 2, 24, 0, 0, 0, 0, time.UTC)))
	// Output: 1
}

// A backfill: the documents get ids of the time when they were created, in an order that is kept.
func ExampleGenerator_NewObjectIDAt() {
	g := objectidgen.Default()
	created := time.Date(2019, 5, 1, 12, 0, 0, 0, time.UTC)
	a, err := g.NewObjectIDAt(created)
	if err != nil {
		fmt.Println(err)
		return
	}
	b, err := g.NewObjectIDAt(created)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Timestamp(), objectidgen.Compare(a, b))
	// Output: 2019-05-01 12:00:00 +0000 UTC -1
}

func ExampleGenerator_ObjectIDs() {
	var docs []any
	for id := range objectidgen.Default().ObjectIDs(3) {
		docs = append(docs, bson.D{{Key: "_id", Value: id}})
	}
	fmt.Println(len(docs))
	// Output: 3
}

// The documents of one day, with the bounds put into the filter by hand.
func ExampleMinAt() {
	day := time.Date(2026, 2, 24, 0, 0, 0, 0, time.UTC)
	from, err := objectidgen.MinAt(day)
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := objectidgen.MinAt(day.AddDate(0, 0, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	filter := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: from}, {Key: "$lt", Value: to}}}}
	fmt.Println(filter)
	// Output: {"_id":{"$gte":{"$oid":"699cea000000000000000000"},"$lt":{"$oid":"699e3b800000000000000000"}}}
}

// The bounds of one second.
func ExampleMaxAt() {
	second := time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)
	from, err := objectidgen.MinAt(second)
	if err != nil {
		fmt.Println(err)
		return
	}
	to, err := objectidgen.MaxAt(second)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(from.Hex())
	fmt.Println(to.Hex())
	_, err = objectidgen.MaxAt(time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC))
	fmt.Println(errors.Is(err, objectidgen.ErrTimeRange))
	// Output:
	// 699dfad90000000000000000
	// 699dfad9ffffffffffffffff
	// true
}

func ExampleDecode() {
	id, err := bson.ObjectIDFromHex("699dfad90ca573f85c0eec1c")
	if err != nil {
		fmt.Println(err)
		return
	}
	parts := objectidgen.Decode(id)
	fmt.Printf("%v process %x counter %d\n", id.Timestamp(), parts.Process, parts.Counter)
	// Output: 2026-02-24 19:24:09 +0000 UTC process 0ca573f85c counter 977948
}

func ExampleParts_ObjectID() {
	at := time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)
	id, err := objectidgen.Parts{Seconds: uint32(at.Unix()), Process: [5]byte{0x0c, 0xa5, 0x73, 0xf8, 0x5c}, Counter: 977948}.ObjectID()
	fmt.Println(id.Hex(), err)
	_, err = objectidgen.Parts{Counter: 1 << 24}.ObjectID()
	fmt.Println(err)
	// Output:
	// 699dfad90ca573f85c0eec1c <nil>
	// objectidgen: counter 16777216: the counter of an ObjectID is at most 16777215 (24 bits)
}

func ExampleFromBytes() {
	_, err := objectidgen.FromBytes([]byte("thirteen octets"[:13]))
	fmt.Println(err)
	// Output: objectidgen: an ObjectID has 12 bytes, not 13
}

func ExampleCompare() {
	ids := []bson.ObjectID{objectidgen.Max(), {3}, objectidgen.Min(), {1}}
	slices.SortFunc(ids, objectidgen.Compare)
	fmt.Println(ids[0] == objectidgen.Min(), ids[1][0], ids[2][0], ids[3] == objectidgen.Max())
	// Output: true 1 3 true
}

// A test that must know the _id of what it inserts.
func ExampleNewSequence() {
	src := objectidgen.NewSequence(bson.ObjectID{11: 1}, bson.ObjectID{11: 2})
	for {
		id, err := src.NewID()
		if errors.Is(err, objectidgen.ErrExhausted) {
			fmt.Println(err)
			return
		}
		fmt.Println(id.(bson.ObjectID).Hex())
	}
	// Output:
	// 000000000000000000000001
	// 000000000000000000000002
	// objectidgen: no more ids in the sequence
}
