package objectidgen

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Both kinds of Range, by each id whose second is in question.
func TestRange(t *testing.T) {
	day := time.Date(2026, 2, 24, 0, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name     string
		from, to time.Time
		halfOpen []int64 // the seconds of day that are in it, of -1 to 4
		closed   []int64
	}{
		{"two seconds", day, day.Add(2 * time.Second), []int64{0, 1}, []int64{0, 1, 2}},
		{"one instant", day, day, nil, []int64{0}},
		{"within a second", day.Add(1), day.Add(999 * time.Millisecond), nil, []int64{0}},
		{"fractions count for their second", day.Add(1500 * time.Millisecond), day.Add(3100 * time.Millisecond), []int64{1, 2}, []int64{1, 2, 3}},
		{"other time zones", day.In(time.FixedZone("", 3600)), day.Add(time.Second).In(time.FixedZone("", -3600)), []int64{0}, []int64{0, 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, kind := range []struct {
				make   func(from, to time.Time) (Range, error)
				want   []int64
				closed bool
			}{{HalfOpen, test.halfOpen, false}, {Closed, test.closed, true}} {
				r, err := kind.make(test.from, test.to)
				if err != nil {
					t.Fatal(err)
				}
				for second := int64(-1); second <= 4; second++ {
					for _, low := range []byte{0x00, 0x01, 0x7F, 0xFF} {
						id, err := fromParts(uint32(day.Unix()+second), [5]byte{low, low, low, low, low}, uint32(low)*0x010101)
						if err != nil {
							t.Fatal(err)
						}
						if got, want := r.Contains(id), slices.Contains(kind.want, second); got != want {
							t.Errorf("%+v contains %v: %t, want %t", r, id, got, want)
						}
						// What the bounds say, CompareTime says.
						in := CompareTime(id, test.from) >= 0 && (CompareTime(id, test.to) < 0 || kind.closed && CompareTime(id, test.to) == 0)
						if in != r.Contains(id) {
							t.Errorf("%+v contains %v: %t, CompareTime says %t", r, id, !in, in)
						}
					}
				}
			}
		})
	}
}

func TestRangeErrors(t *testing.T) {
	for name, make := range map[string]func(from, to time.Time) (Range, error){"HalfOpen": HalfOpen, "Closed": Closed} {
		now := time.Unix(1000, 0)
		if r, err := make(now, now.Add(-1)); err == nil || r != (Range{}) || !strings.HasPrefix(err.Error(), "objectidgen: ") {
			t.Errorf("%s: backwards: %v, %v", name, r, err)
		}
		if _, err := make(time.Unix(0, 0), time.Unix(math.MaxUint32, 0)); err != nil {
			t.Errorf("%s: all times: %v", name, err)
		}
	}
}

func TestEmptyRange(t *testing.T) {
	far := time.Unix(math.MaxUint32+1, 0)
	empty := []Range{{}}
	for _, make := range []func() (Range, error){
		func() (Range, error) { return HalfOpen(far, far.AddDate(1, 0, 0)) },
		func() (Range, error) { return Closed(far, far) },
		func() (Range, error) { return HalfOpen(time.Time{}, time.Unix(-1, 0)) },
		func() (Range, error) { return Closed(time.Time{}, time.Unix(-1, 999999999)) },
		func() (Range, error) { return HalfOpen(time.Time{}, time.Unix(0, 0)) },
		func() (Range, error) { return HalfOpen(time.Unix(1000, 1), time.Unix(1000, 2)) },
	} {
		r, err := make()
		if err != nil {
			t.Fatal(err)
		}
		empty = append(empty, r)
	}
	for i, r := range empty {
		for _, id := range []bson.ObjectID{{}, {11: 1}, Max(), {0, 0, 3, 0xE8}} {
			if r.Contains(id) {
				t.Errorf("range %d contains %v", i, id)
			}
		}
		filter, err := r.Filter("a")
		if got, _ := bson.MarshalExtJSON(filter, true, false); err != nil || string(got) != `{"a":{"$in":[]}}` {
			t.Errorf("range %d: %s, %v", i, got, err)
		}
	}
}

// An instant that no ObjectID can hold is before or after all of them.
func TestRangeWithoutBounds(t *testing.T) {
	for _, test := range []struct {
		from, to time.Time
		min, max string
	}{
		{time.Time{}, time.Unix(math.MaxInt64/2, 0), "000000000000000000000000", "ffffffffffffffffffffffff"},
		{time.Unix(-1<<62, 0), time.Unix(0, 5), "000000000000000000000000", ""},
		{time.Unix(math.MaxUint32, 0), time.Unix(math.MaxUint32+1, 0), "ffffffff0000000000000000", "ffffffffffffffffffffffff"},
	} {
		for name, make := range map[string]func(from, to time.Time) (Range, error){"HalfOpen": HalfOpen, "Closed": Closed} {
			max := test.max
			if max == "" && name == "Closed" {
				max = "00000000ffffffffffffffff"
			}
			r, err := make(test.from, test.to)
			if err != nil || max == "" && r != (Range{}) || max != "" && (r.Min.Hex() != test.min || r.Max.Hex() != max || r.HalfOpen) {
				t.Errorf("%s(%v, %v) = %+v, %v", name, test.from, test.to, r, err)
			}
		}
	}
}

func TestRangeFilter(t *testing.T) {
	from, to := time.Unix(0x10, 0), time.Unix(0x20, 0)
	halfOpen, err := HalfOpen(from, to)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := Closed(from, to)
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range map[string]Range{
		`{"a._id":{"$gte":{"$oid":"000000100000000000000000"},"$lt":{"$oid":"000000200000000000000000"}}}`:  halfOpen,
		`{"a._id":{"$gte":{"$oid":"000000100000000000000000"},"$lte":{"$oid":"00000020ffffffffffffffff"}}}`: closed,
	} {
		filter, err := r.Filter("a._id")
		if err != nil {
			t.Fatal(err)
		}
		got, err := bson.MarshalExtJSON(filter, true, false)
		if err != nil || string(got) != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
	for _, field := range []string{"", "$where", "a\x00b", "\x00"} {
		if filter, err := closed.Filter(field); err == nil || filter != nil || !strings.HasPrefix(err.Error(), "objectidgen: ") {
			t.Errorf("field %q: %v, %v", field, filter, err)
		}
	}
}

func TestCompareTime(t *testing.T) {
	id, err := bson.ObjectIDFromHex("699dfad90ca573f85c0eec1c")
	if err != nil {
		t.Fatal(err)
	}
	created := time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)
	for _, test := range []struct {
		id   bson.ObjectID
		at   time.Time
		want int
	}{
		{id, created, 0}, {id, created.Add(time.Second - 1), 0}, {id, created.Add(time.Second), -1}, {id, created.Add(-1), 1},
		{Min(), time.Unix(0, 0), 0}, {Min(), time.Unix(-1, 0), 1}, {Min(), time.Time{}, 1},
		{Max(), time.Unix(math.MaxUint32, 0), 0}, {Max(), time.Unix(math.MaxUint32+1, 0), -1}, {Max(), time.Unix(math.MaxInt64, 0), -1},
	} {
		if got := CompareTime(test.id, test.at); got != test.want {
			t.Errorf("CompareTime(%v, %v) = %d, want %d", test.id, test.at, got, test.want)
		}
	}
}

// Adjacent half-open Ranges share no id and leave none out.
func FuzzRange(f *testing.F) {
	f.Add(int64(0), int64(1), int64(2), []byte("\x00\x00\x00\x01        "))
	f.Add(int64(1e9), int64(1e9+5), int64(3e9), []byte("\x00\x00\x00\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"))
	f.Fuzz(func(t *testing.T, a, b, c int64, bytes []byte) {
		times := []time.Time{time.Unix(0, a), time.Unix(0, b), time.Unix(0, c)}
		slices.SortFunc(times, time.Time.Compare)
		id, err := FromBytes(bytes)
		if err != nil {
			return
		}
		in := func(make func(from, to time.Time) (Range, error), from, to time.Time) int {
			r, err := make(from, to)
			if err != nil {
				t.Fatal(err)
			}
			if r.Contains(id) {
				return 1
			}
			return 0
		}
		if in(HalfOpen, times[0], times[1])+in(HalfOpen, times[1], times[2]) != in(HalfOpen, times[0], times[2]) {
			t.Errorf("%v in %v", id, times)
		}
		if in(HalfOpen, times[0], times[2]) > in(Closed, times[0], times[2]) {
			t.Errorf("%v in %v", id, times)
		}
	})
}
