package objectidgen

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestTimestamp is the first item of the specification's test plan, under the document's own words.
func TestTimestamp(t *testing.T) {
	for _, test := range []struct {
		seconds uint32
		name    string
		want    time.Time
	}{
		{0x00000000, "Jan 1st, 1970 00:00:00 UTC", time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC)},
		{0x7FFFFFFF, "Jan 19th, 2038 03:14:07 UTC", time.Date(2038, 1, 19, 3, 14, 7, 0, time.UTC)},
		{0x80000000, "Jan 19th, 2038 03:14:08 UTC", time.Date(2038, 1, 19, 3, 14, 8, 0, time.UTC)},
		{0xFFFFFFFF, "Feb 7th, 2106 06:28:15 UTC", time.Date(2106, 2, 7, 6, 28, 15, 0, time.UTC)},
	} {
		t.Run(test.name, func(t *testing.T) {
			id, err := fromParts(test.seconds, [5]byte{1, 2, 3, 4, 5}, 6)
			if err != nil {
				t.Fatal(err)
			}
			if got := id.Timestamp(); !got.Equal(test.want) {
				t.Errorf("Parts.ObjectID: Timestamp() = %v, want %v", got, test.want)
			}
			g := newGenerator(t, WithClock(func() time.Time { return test.want.Add(999 * time.Millisecond) }))
			id = g.NewObjectID()
			if got := id.Timestamp(); !got.Equal(test.want) {
				t.Errorf("NewObjectID: Timestamp() = %v, want %v", got, test.want)
			}
			if got := Decode(id).Seconds; got != test.seconds {
				t.Errorf("NewObjectID: seconds %#x, want %#x", got, test.seconds)
			}
			for _, bound := range []func(time.Time) (bson.ObjectID, error){MinAt, MaxAt} {
				if id, err = bound(test.want); err != nil || Decode(id).Seconds != test.seconds {
					t.Errorf("bound: %v, %v, want second %#x", id, err, test.seconds)
				}
			}
		})
	}
}

func TestInspectKnownID(t *testing.T) {
	id, err := bson.ObjectIDFromHex("699dfad90ca573f85c0eec1c")
	if err != nil {
		t.Fatal(err)
	}
	want := Parts{
		Seconds: uint32(time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC).Unix()),
		Process: [5]byte{0x0c, 0xa5, 0x73, 0xf8, 0x5c},
		Counter: 0x0eec1c,
	}
	if got := Decode(id); got != want {
		t.Errorf("Inspect = %+v, want %+v", got, want)
	}
	if got, err := fromParts(want.Seconds, want.Process, want.Counter); err != nil || got != id {
		t.Errorf("Parts.ObjectID = %v, %v, want %v", got, err, id)
	}
}

func TestPartsCounterRange(t *testing.T) {
	for _, counter := range []uint32{0, 1, 0xFFFFFF} {
		if _, err := fromParts(0, [5]byte{}, counter); err != nil {
			t.Errorf("counter %#x: %v", counter, err)
		}
	}
	for _, counter := range []uint32{0x1000000, 0x1000001, math.MaxUint32} {
		if id, err := fromParts(1, [5]byte{1}, counter); !errors.Is(err, ErrCounterRange) || id != bson.NilObjectID {
			t.Errorf("counter %#x: %v, %v", counter, id, err)
		}
	}
}

func TestFromBytes(t *testing.T) {
	b := []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	id, err := FromBytes(b)
	if err != nil || !bytes.Equal(id[:], b) {
		t.Errorf("FromBytes = %v, %v", id, err)
	}
	b[0] = 99
	if id[0] != 0 {
		t.Error("FromBytes keeps the slice")
	}
	for _, n := range []int{0, 1, 11, 13, 16, 24, 1 << 16} {
		id, err := FromBytes(bytes.Repeat([]byte{0x61}, n))
		if !errors.Is(err, ErrLength) || id != bson.NilObjectID || !strings.HasPrefix(err.Error(), "objectidgen: ") {
			t.Errorf("%d bytes: %v, %v", n, id, err)
		}
	}
	if _, err := FromBytes(nil); !errors.Is(err, ErrLength) {
		t.Errorf("nil: %v", err)
	}
}

func TestBounds(t *testing.T) {
	at := time.Date(2026, 2, 24, 20, 24, 9, 123456789, time.FixedZone("", 3600))
	lower, err := MinAt(at)
	if err != nil || lower.Hex() != "699dfad90000000000000000" {
		t.Errorf("MinAt = %v, %v", lower, err)
	}
	upper, err := MaxAt(at)
	if err != nil || upper.Hex() != "699dfad9ffffffffffffffff" {
		t.Errorf("MaxAt = %v, %v", upper, err)
	}
	g := newGenerator(t, WithClock(func() time.Time { return at }))
	for range 1000 {
		if id := g.NewObjectID(); Compare(lower, id) > 0 || Compare(id, upper) > 0 {
			t.Fatalf("%v is not between %v and %v", id, lower, upper)
		}
	}
	if id, _ := MinAt(time.Unix(0, 0)); id != Min() {
		t.Errorf("MinAt(1970) = %v", id)
	}
	if id, _ := MaxAt(time.Date(2106, 2, 7, 6, 28, 15, 999999999, time.UTC)); id != Max() {
		t.Errorf("MaxAt(2106) = %v", id)
	}
}

func TestBoundsOutOfRange(t *testing.T) {
	for _, at := range []time.Time{
		{},
		time.Date(1969, 12, 31, 23, 59, 59, 999999999, time.UTC),
		time.Date(2106, 2, 7, 6, 28, 16, 0, time.UTC),
		time.Unix(math.MaxUint32+1+1700000000, 0), // would wrap to 2023
		time.Unix(math.MinInt64, 0),
		time.Unix(math.MaxInt64, 0),
	} {
		for _, bound := range []func(time.Time) (bson.ObjectID, error){MinAt, MaxAt} {
			if id, err := bound(at); !errors.Is(err, ErrTimeRange) || id != bson.NilObjectID {
				t.Errorf("%v: %v, %v", at, id, err)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	id := func(seconds uint32, process byte, counter uint32) bson.ObjectID {
		id, err := fromParts(seconds, [5]byte{process, 0xFF, 0, 0xFF, 0}, counter)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	// In the order of memcmp.
	sorted := []bson.ObjectID{
		Min(),
		id(0, 0, 1),
		id(1, 0, 0xFFFFFF),
		id(1, 1, 0),
		id(1, 0x80, 0),
		id(2, 0, 0),
		id(2, 0, 0x7F),
		id(2, 0, 0x80),
		id(2, 0, 0x7FFFFF),
		id(2, 0, 0x800000),
		id(0x7FFFFFFF, 9, 9),
		id(0x80000000, 1, 1),
		Max(),
	}
	for i, a := range sorted {
		for j, b := range sorted {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := Compare(a, b); got != want || got != strings.Compare(a.Hex(), b.Hex()) {
				t.Errorf("Compare(%v, %v) = %d, want %d", a, b, got, want)
			}
		}
	}
	shuffled := slices.Clone(sorted)
	slices.Reverse(shuffled)
	slices.SortFunc(shuffled, Compare)
	if !slices.Equal(shuffled, sorted) {
		t.Errorf("sorted: %v", shuffled)
	}
	if Min() != bson.NilObjectID || Max().Hex() != strings.Repeat("f", 24) {
		t.Errorf("Min() %v, Max() %v", Min(), Max())
	}
}

// The specification: drivers must not have an accessor for the random value or the counter on an ObjectID class.
func TestNoAccessors(t *testing.T) {
	for _, typ := range []reflect.Type{reflect.TypeFor[bson.ObjectID](), reflect.TypeOf(NewObjectID())} {
		if typ != reflect.TypeFor[bson.ObjectID]() {
			t.Errorf("%v is another ObjectID type", typ)
		}
		for i := range typ.NumMethod() {
			name := strings.ToLower(typ.Method(i).Name)
			for _, banned := range []string{"counter", "process", "random", "machine"} {
				if strings.Contains(name, banned) {
					t.Errorf("%v has the method %s", typ, typ.Method(i).Name)
				}
			}
		}
	}
}

func FuzzFromBytes(f *testing.F) {
	f.Add([]byte("\x69\x9d\xfa\xd9\x0c\xa5\x73\xf8\x5c\x0e\xec\x1c"))
	f.Add([]byte{})
	f.Add(make([]byte, 11))
	f.Add(make([]byte, 13))
	f.Add(bytes.Repeat([]byte{0xFF}, 12))
	f.Fuzz(func(t *testing.T, b []byte) {
		id, err := FromBytes(b)
		if (err == nil) != (len(b) == 12) {
			t.Fatalf("%d bytes: %v", len(b), err)
		}
		if err != nil {
			if !errors.Is(err, ErrLength) {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(id[:], b) {
			t.Fatalf("%x became %v", b, id)
		}
		parts := Decode(id)
		if got := int64(parts.Seconds); got != id.Timestamp().Unix() {
			t.Fatalf("%d seconds, the driver has %v", got, id.Timestamp())
		}
		again, err := fromParts(parts.Seconds, parts.Process, parts.Counter)
		if err != nil || again != id {
			t.Fatalf("%v became %v, %v", id, again, err)
		}
		lower, err := MinAt(id.Timestamp())
		if err != nil || Compare(lower, id) > 0 {
			t.Fatalf("MinAt = %v, %v for %v", lower, err, id)
		}
		upper, err := MaxAt(id.Timestamp())
		if err != nil || Compare(upper, id) < 0 {
			t.Fatalf("MaxAt = %v, %v for %v", upper, err, id)
		}
	})
}

func FuzzParts(f *testing.F) {
	f.Add(uint32(0), []byte("\x00\x00\x00\x00\x00"), uint32(0))
	f.Add(uint32(math.MaxUint32), []byte("\xff\xff\xff\xff\xff"), uint32(0xFFFFFF))
	f.Add(uint32(1), []byte("\x01\x02\x03\x04\x05"), uint32(0x1000000))
	f.Fuzz(func(t *testing.T, seconds uint32, process []byte, counter uint32) {
		if len(process) != 5 {
			return
		}
		id, err := fromParts(seconds, [5]byte(process), counter)
		if (err == nil) != (counter < 1<<24) {
			t.Fatalf("counter %d: %v", counter, err)
		}
		if want := (Parts{seconds, [5]byte(process), counter}); err == nil && Decode(id) != want {
			t.Fatalf("%v: %+v, want %+v", id, Decode(id), want)
		}
	})
}

func fromParts(seconds uint32, process [5]byte, counter uint32) (bson.ObjectID, error) {
	return Parts{seconds, process, counter}.ObjectID()
}
