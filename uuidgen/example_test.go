package uuidgen_test

import (
	"bytes"
	"fmt"
	"log"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
)

func Example() {
	ids, err := uuidgen.NewV7Generator()
	if err != nil {
		log.Fatal(err)
	}
	first, err := ids.NewUUID()
	if err != nil {
		log.Fatal(err)
	}
	second, err := ids.NewUUID()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first.Version(), second.Version())
	fmt.Println(bytes.Compare(first[:], second[:]))
	// Output:
	// VERSION_7 VERSION_7
	// -1
}

// A batch is drawn at once.
func ExampleGenerator_Fill() {
	ids, err := uuidgen.NewV7Generator()
	if err != nil {
		log.Fatal(err)
	}
	batch := make([]uuid.UUID, 1000)
	if err := ids.Fill(batch); err != nil {
		log.Fatal(err)
	}
	fmt.Println(bytes.Compare(batch[0][:], batch[999][:]))
	// Output: -1
}

// With a clock and a random source of its own, a test knows the ids in advance.
func ExampleWithClock() {
	midday := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	zeros := bytes.NewReader(make([]byte, 3*8))
	ids, err := uuidgen.NewV7Generator(uuidgen.WithClock(midday), uuidgen.WithRandom(zeros))
	if err != nil {
		log.Fatal(err)
	}
	for range 4 {
		fmt.Println(ids.NewUUID())
	}
	// Output:
	// 019ca945-0a00-7000-8000-000000000000 <nil>
	// 019ca945-0a00-7001-8000-000000000000 <nil>
	// 019ca945-0a00-7002-8000-000000000000 <nil>
	// 00000000-0000-0000-0000-000000000000 uuidgen: random source: EOF
}

func ExampleTime() {
	u := uuid.MustParse("1ec9414c-232a-6b00-b3c8-9f6bdeced846")
	fmt.Println(uuidgen.Time(u))
	_, err := uuidgen.Time(uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8"))
	fmt.Println(err)
	// Output:
	// 2022-02-22 19:22:22 +0000 UTC <nil>
	// uuidgen: no timestamp: 919108f7-52d1-4320-9bac-f847db4148a8 is a UUID of version 4
}

// The documents made on one day, as a filter on _id.
func ExampleRange_Filter() {
	day := time.Date(2022, 2, 22, 0, 0, 0, 0, time.UTC)
	made, err := uuidgen.HalfOpenV7(day, day.AddDate(0, 0, 1))
	if err != nil {
		log.Fatal(err)
	}
	filter, err := made.Filter("_id", uuidrep.Standard)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(filter), filter[0].Key)
	fmt.Println(made.Contains(uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")))

	_, err = made.Filter("_id", uuidrep.JavaLegacy)
	fmt.Println(err)
	// Output:
	// 1 _id
	// true
	// uuidgen: the representation does not keep the order of time: field "_id" in javaLegacy, but the ids are in order in standard
}

// A collection of .NET programs that stays on csharpLegacy gets ids in the order of time.
func ExampleNewV8Generator() {
	midday := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	ids, err := uuidgen.NewV8Generator(uuidrep.CSharpLegacy, uuidgen.WithClock(midday))
	if err != nil {
		log.Fatal(err)
	}
	id, err := ids.NewUUID()
	if err != nil {
		log.Fatal(err)
	}
	b, err := uuidrep.NewBinaryWithRepresentation(id, uuidrep.CSharpLegacy)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("subtype %d, %x…\n", b.Subtype, b.Data[:8])
	fmt.Println(uuidgen.TimeV8(id, uuidrep.CSharpLegacy))
	// Output:
	// subtype 3, 019ca9450a000080…
	// 2026-03-01 12:00:00 +0000 UTC <nil>
}

// The same message gets the same _id, so that an upsert can be repeated.
func ExampleNewV5() {
	messages := uuid.MustParse("0b9d0b9e-5c0e-4f5c-9d0e-3c1a8f0c7a52") // a namespace of the application
	first, err := uuidgen.NewV5(messages, "partition 3, offset 1041")
	if err != nil {
		log.Fatal(err)
	}
	again, err := uuidgen.NewV5(messages, "partition 3, offset 1041")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(first == again, first.Version())
	// Output: true VERSION_5
}

// Documents from an older system get ids of the time at which they were made.
func ExampleGenerator_NewUUIDAt() {
	ids := uuidgen.DefaultV7()
	id, err := ids.NewUUIDAt(time.Date(2012, 6, 1, 8, 30, 0, 0, time.UTC))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(uuidgen.Time(id))
	// Output: 2012-06-01 08:30:00 +0000 UTC <nil>
}

// A program that relies on the order of its ids checks that no new order has begun.
func ExampleGenerator_Orders() {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ids, err := uuidgen.NewV7Generator(uuidgen.WithClock(func() time.Time { return now }))
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		id, err := ids.NewUUID()
		if err != nil {
			log.Fatal(err)
		}
		at, err := uuidgen.Time(id)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(at, ids.Orders())
		now = now.Add(-time.Hour) // the clock is set back
	}
	// Output:
	// 2026-03-01 12:00:00 +0000 UTC 1
	// 2026-03-01 11:00:00 +0000 UTC 2
}

func ExampleV1ToV6() {
	v6, err := uuidgen.V1ToV6(uuid.MustParse("c232ab00-9414-11ec-b3c8-9f6bdeced846"))
	if err != nil {
		panic(err)
	}
	at, err := uuidgen.Time(v6)
	if err != nil {
		panic(err)
	}
	fmt.Println(v6, at)
	// Output: 1ec9414c-232a-6b00-b3c8-9f6bdeced846 2022-02-22 19:22:22 +0000 UTC
}
