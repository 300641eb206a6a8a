package uuidgen

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// format is a version of which ids are made, with its ranges.
type format struct {
	halfOpen, closed func(from, to time.Time) (Range, error)
	compare          func(uuid.UUID, time.Time) (int, error)
	unit             time.Duration
	order            uuidrep.Representation
}

func formats() map[string]format {
	fs := map[string]format{
		"6": {HalfOpenV6, ClosedV6, CompareTime[uuid.UUID], 100, uuidrep.Standard},
		"7": {HalfOpenV7, ClosedV7, CompareTime[uuid.UUID], time.Millisecond, uuidrep.Standard},
	}
	for _, r := range legacy {
		fs["8 "+r.String()] = format{
			halfOpen: func(from, to time.Time) (Range, error) { return HalfOpenV8(from, to, r) },
			closed:   func(from, to time.Time) (Range, error) { return ClosedV8(from, to, r) },
			compare: func(u uuid.UUID, t time.Time) (int, error) {
				at, err := TimeV8(u, r)
				return compareUnits(at, t, time.Millisecond), err
			},
			unit:  time.Millisecond,
			order: r,
		}
	}
	return fs
}

// An id is in a range exactly if its instant, in the unit of the version, is in the span.
func TestRanges(t *testing.T) {
	rnd := rand.New(rand.NewPCG(13, 14))
	for name, f := range formats() {
		g := newTimed(t, name)
		base := time.Unix(1_700_000_000, 0)
		instant := func() time.Time { return base.Add(time.Duration(rnd.Int64N(20)) * f.unit / 4) }
		for range 20_000 {
			at, from, to := instant(), instant(), instant()
			u, err := g.NewUUIDAt(at)
			if err != nil {
				t.Fatal(err)
			}
			if from.After(to) {
				for _, span := range []func(from, to time.Time) (Range, error){f.halfOpen, f.closed} {
					if r, err := span(from, to); err == nil || r != (Range{}) {
						t.Fatalf("version %s: from %v to %v: %v, %v", name, from, to, r, err)
					}
				}
				from, to = to, from
			}
			unit, first, last := at.Truncate(f.unit), from.Truncate(f.unit), to.Truncate(f.unit)
			halfOpen, err1 := f.halfOpen(from, to)
			closed, err2 := f.closed(from, to)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			if got, want := halfOpen.Contains(u), !unit.Before(first) && unit.Before(last); got != want {
				t.Fatalf("version %s: %v in [%v, %v): %t", name, at, from, to, got)
			}
			if got, want := closed.Contains(u), !unit.Before(first) && !unit.After(last); got != want {
				t.Fatalf("version %s: %v in [%v, %v]: %t", name, at, from, to, got)
			}
			if got, err := f.compare(u, from); err != nil || got != unit.Compare(first) {
				t.Fatalf("version %s: compare %v with %v: %d, %v", name, at, from, got, err)
			}
		}
		out := time.Unix(-1<<60, 0)
		u := newUUID(t, g)
		for at, want := range map[time.Time]int{out: 1, time.Unix(1<<60, 0): -1, {}: 1} {
			if got, err := f.compare(u, at); err != nil || got != want {
				t.Errorf("version %s: compare with %v: %d, %v", name, at, got, err)
			}
		}
	}
}

func TestFilter(t *testing.T) {
	from, to := time.UnixMilli(0x017f22e279b0), time.UnixMilli(0x017f22e279b1)
	halfOpen, err := HalfOpenV7(from, to)
	if err != nil {
		t.Fatal(err)
	}
	closed, err := ClosedV7(from, to)
	if err != nil {
		t.Fatal(err)
	}
	binary := func(subtype byte, hex string) bson.Binary {
		return bson.Binary{Subtype: subtype, Data: fromHex(t, hex)}
	}
	for _, tt := range []struct {
		r       Range
		rep     uuidrep.Representation
		op      string
		low     bson.Binary
		high    bson.Binary
		orderly bool
	}{
		{halfOpen, uuidrep.Standard, "$lt",
			binary(4, "017f22e279b070008000000000000000"), binary(4, "017f22e279b170008000000000000000"), true},
		{closed, uuidrep.Standard, "$lte",
			binary(4, "017f22e279b070008000000000000000"), binary(4, "017f22e279b17fffbfffffffffffffff"), true},
		{closed, uuidrep.PythonLegacy, "$lte",
			binary(3, "017f22e279b070008000000000000000"), binary(3, "017f22e279b17fffbfffffffffffffff"), true},
	} {
		got, err := tt.r.Filter("_id", tt.rep)
		want := bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: tt.low}, {Key: tt.op, Value: tt.high}}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v, %v: %v, %v; want %v", tt.r, tt.rep, got, err, want)
		}
	}

	// The representations that keep the order of each format, and no others.
	for name, f := range formats() {
		r, err := f.halfOpen(from, to)
		if err != nil {
			t.Fatal(err)
		}
		for _, rep := range []uuidrep.Representation{
			uuidrep.Standard, uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy,
		} {
			keeps := rep == f.order || rep == uuidrep.PythonLegacy && f.order == uuidrep.Standard
			filter, err := r.Filter("_id", rep)
			if keeps && (filter == nil || err != nil) || !keeps && (filter != nil || !errors.Is(err, ErrOrder)) {
				t.Errorf("version %s in %v: %v, %v", name, rep, filter, err)
			}
		}
		if filter, err := r.Filter("_id", uuidrep.Unspecified); filter != nil || !errors.Is(err, uuidrep.ErrUnspecified) {
			t.Errorf("version %s: %v, %v", name, filter, err)
		}
		for _, field := range []string{"", "$or", "a\x00b"} {
			if filter, err := r.Filter(field, f.order); filter != nil || err == nil {
				t.Errorf("version %s, field %q: %v, %v", name, field, filter, err)
			}
		}
	}

	// The zero Range fits every representation but Unspecified.
	for _, rep := range []uuidrep.Representation{uuidrep.Standard, uuidrep.JavaLegacy} {
		if filter, err := (Range{}).Filter("_id", rep); err != nil || !reflect.DeepEqual(filter, nothing) || (Range{}).Contains(uuid.Nil) {
			t.Errorf("the zero Range: %v, %v", filter, err)
		}
	}
}

var nothing = bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: bson.A{}}}}}

// Instants are compared without bounds; what no id can have gives the empty range, or the format's ends.
func TestRangesWithoutBounds(t *testing.T) {
	ends := map[string][2]time.Time{
		"6": {time.Date(1582, 10, 15, 0, 0, 0, 0, time.UTC), time.Unix(103072857660, 684_697_599)},
		"7": {time.Unix(0, 0), time.UnixMilli(1<<48 - 1).Add(999_999)},
	}
	past, future := time.Unix(-1<<62, 0), time.Unix(1<<62, 0)
	for name, f := range formats() {
		first, last := ends["7"][0], ends["7"][1]
		if name == "6" {
			first, last = ends["6"][0], ends["6"][1]
		}
		g := newTimed(t, name)
		low, err1 := g.NewUUIDAt(first)
		high, err2 := g.NewUUIDAt(last)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for i, test := range []struct {
			from, to              time.Time
			lowOpen, highOpen     bool
			lowClosed, highClosed bool
		}{
			{past, future, true, true, true, true},
			{past, first, false, false, true, false},
			{past, first.Add(-1), false, false, false, false},
			{first.Add(-1), last, true, false, true, true},
			{last, last.Add(1), false, true, false, true},
			{last.Add(1), future, false, false, false, false},
			{future, future, false, false, false, false},
		} {
			for _, span := range []struct {
				make      func(from, to time.Time) (Range, error)
				low, high bool
			}{{f.halfOpen, test.lowOpen, test.highOpen}, {f.closed, test.lowClosed, test.highClosed}} {
				r, err := span.make(test.from, test.to)
				if err != nil || r.Contains(low) != span.low || r.Contains(high) != span.high {
					t.Errorf("version %s, span %d: %+v, %v: %t and %t", name, i, r, err, r.Contains(low), r.Contains(high))
				}
				filter, err := r.Filter("_id", f.order)
				if empty := !span.low && !span.high; err != nil || reflect.DeepEqual(filter, nothing) != empty {
					t.Errorf("version %s, span %d: %v, %v", name, i, filter, err)
				}
				other := uuidrep.Standard
				if f.order == other {
					other = uuidrep.JavaLegacy
				}
				if _, err := r.Filter("_id", other); !errors.Is(err, ErrOrder) {
					t.Errorf("version %s, span %d in %v: %v", name, i, other, err)
				}
			}
		}
		// time.Time{} is year 1.
		if r, err := f.halfOpen(time.Time{}, time.Unix(1e9, 0)); err != nil || r.Contains(low) == false {
			t.Errorf("version %s from year 1: %v, %v", name, r, err)
		}
		if r, err := f.halfOpen(time.Unix(1e9, 0), time.Time{}); err == nil {
			t.Errorf("version %s until year 1: %v", name, r)
		}
	}
}
