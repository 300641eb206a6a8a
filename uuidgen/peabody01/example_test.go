package peabody01_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/bsonids/bsonids/uuidgen/peabody01"
	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

func ExampleNewV7Generator() {
	now := time.Date(2022, 2, 22, 19, 22, 22, 123456789, time.UTC)
	g, err := peabody01.NewV7Generator(peabody01.Microsecond,
		peabody01.WithMachineID(42, 10),
		uuidgen.WithClock(func() time.Time { return now })) // time.Now by default
	if err != nil {
		panic(err)
	}
	for range 3 {
		u, err := g.NewUUID()
		if err != nil {
			panic(err)
		}
		f, err := peabody01.DecodeV7(u, peabody01.Microsecond, peabody01.RoundUp)
		if err != nil {
			panic(err)
		}
		fmt.Println(f.Time().Format(time.RFC3339Nano), f.Sequence, f.MachineID(10))
	}
	// Output:
	// 2022-02-22T19:22:22.123456Z 0 42
	// 2022-02-22T19:22:22.123456Z 1 42
	// 2022-02-22T19:22:22.123456Z 2 42
}

// Programs of that time rounded the fraction down, or wrote a plain count: say so when reading their UUIDs.
func ExampleDecodeV7() {
	for _, old := range []struct {
		uuid     string
		encoding peabody01.Encoding
	}{
		{"0621537e-e1f8-7000-8000-000000000001", peabody01.RoundUp},
		{"0621537e-e1f7-7000-8000-000000000001", peabody01.Floor},
		{"0621537e-e07b-7000-8000-000000000001", peabody01.RawCount},
	} {
		f, err := peabody01.DecodeV7(uuid.MustParse(old.uuid), peabody01.Millisecond, old.encoding)
		if err != nil {
			panic(err)
		}
		fmt.Println(f.Time().Format(time.RFC3339Nano), f.Encoding)
	}
	// Output:
	// 2022-02-22T19:22:22.123Z RoundUp
	// 2022-02-22T19:22:22.123Z Floor
	// 2022-02-22T19:22:22.123Z RawCount
}

// A UUID that is not of the format that the caller names.
func ExampleDecodeV6_fieldError() {
	_, err := peabody01.DecodeV6(uuid.MustParse("919108f7-52d1-4320-9bac-f847db4148a8"))
	var field *uuidgen.FieldError
	if errors.As(err, &field) {
		fmt.Println(field.Field, field.Value)
	}
	fmt.Println(err)
	// Output:
	// ver 4
	// peabody01: version 6: field ver is 0x4: want the version
}

func ExampleNewV8Generator() {
	clock := peabody01.Clock{Bits: 48, Tick: time.Millisecond, Epoch: time.Unix(0, 0)} // Now would take over
	now := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	g, err := peabody01.NewV8Generator(clock, uuidgen.WithClock(func() time.Time { return now }))
	if err != nil {
		panic(err)
	}
	u, err := g.NewUUID()
	if err != nil {
		panic(err)
	}
	f, err := peabody01.DecodeV8(u, clock.Bits, 0)
	if err != nil {
		panic(err)
	}
	at, err := clock.Time(f.Timestamp)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%#x %v %d\n", f.Timestamp, at, f.Sequence)
	// Output: 0x17f22e279b0 2022-02-22 19:22:22 +0000 UTC 0
}

// The ids of one day, as a query wants them: {_id: {$gte: Min, $lt: Max}}.
func ExampleHalfOpenV7() {
	day := time.Date(2022, 2, 22, 0, 0, 0, 0, time.UTC)
	r, err := peabody01.HalfOpenV7(day, day.AddDate(0, 0, 1), peabody01.Millisecond, peabody01.RoundUp)
	if err != nil {
		panic(err)
	}
	fmt.Println(r.Min)
	fmt.Println(r.Max)
	// Output:
	// 06214278-0000-7000-8000-000000000000
	// 06215790-0000-7000-8000-000000000000
}
