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
		"6": {HalfOpenV6, ClosedV6, CompareTime, 100, uuidrep.Standard},
		"7": {HalfOpenV7, ClosedV7, CompareTime, time.Millisecond, uuidrep.Standard},
	}
	for _, r := range legacy {
		fs["8 "+r.String()] = format{
			halfOpen: func(from, to time.Time) (Range, error) { return HalfOpenV8(from, to, r) },
			closed:   func(from, to time.Time) (Range, error) { return ClosedV8(from, to, r) },
			compare:  func(u uuid.UUID, t time.Time) (int, error) { return CompareV8Time(u, t, r) },
			unit:     time.Millisecond,
			order:    r,
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
		in, out := time.Unix(1e9, 0), time.Unix(-1<<60, 0)
		for _, span := range []func(from, to time.Time) (Range, error){f.halfOpen, f.closed} {
			for _, ends := range [][2]time.Time{{out, in}, {in, time.Unix(1<<60, 0)}} {
				if r, err := span(ends[0], ends[1]); !errors.Is(err, ErrTimeRange) || r != (Range{}) {
					t.Errorf("version %s, %v: %v, %v", name, ends, r, err)
				}
			}
		}
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
		for _, field := range []string{"", "$or"} {
			if filter, err := r.Filter(field, f.order); filter != nil || err == nil {
				t.Errorf("version %s, field %q: %v, %v", name, field, filter, err)
			}
		}
	}

	var zero Range
	if filter, err := zero.Filter("_id", uuidrep.Standard); filter != nil || err == nil || zero.Contains(uuid.Nil) {
		t.Errorf("the zero Range: %v, %v", filter, err)
	}
}
