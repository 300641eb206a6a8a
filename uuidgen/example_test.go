package uuidgen_test

import (
	"bytes"
	"fmt"
	"log"
	"time"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/google/uuid"
)

func Example() {
	ids, err := uuidgen.NewV7()
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
	ids, err := uuidgen.NewV7()
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

// With a clock and a random source of their own, tests know the ids beforehand.
func ExampleWithClock() {
	midday := func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	zeros := bytes.NewReader(make([]byte, 3*8))
	ids, err := uuidgen.NewV7(uuidgen.WithClock(midday), uuidgen.WithRandom(zeros))
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
	u := uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	fmt.Println(uuidgen.Time(u))
	_, err := uuidgen.Time(uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8"))
	fmt.Println(err)
	// Output:
	// 2022-02-22 19:22:22 +0000 UTC <nil>
	// uuidgen: no timestamp: 919108f7-52d1-4320-9bac-f847db4148a8 is of version 4
}

// The ids of one day, as a filter on _id: from its first millisecond up to the first of the next day, which is left out.
// A client whose registry encodes UUIDs takes the bounds as they are.
func ExampleMinV7At() {
	day := time.Date(2022, 2, 22, 0, 0, 0, 0, time.UTC)
	from, err := uuidgen.MinV7At(day)
	if err != nil {
		log.Fatal(err)
	}
	to, err := uuidgen.MinV7At(day.AddDate(0, 0, 1))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("{_id: {$gte: %v, $lt: %v}}\n", from, to)

	id := uuid.MustParse("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
	fmt.Println(bytes.Compare(from[:], id[:]) <= 0 && bytes.Compare(id[:], to[:]) < 0)
	// Output:
	// {_id: {$gte: 017f1eba-4c00-7000-8000-000000000000, $lt: 017f23e0-a800-7000-8000-000000000000}}
	// true
}
