package uuidgen

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var legacy = []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// The instant of the vectors of RFC 9562 with 0xcc3/4096 ms is 0x017f22e279b0cc3 steps after 1970.
// In the stored bytes the version and the variant stand where the order of the representation puts
// bytes 6 and 8; the timestamp fills the first 60 of the other bits.
func TestV8Layout(t *testing.T) {
	clock := testClock{time.Date(2022, 2, 22, 19, 22, 22, 797_608, time.UTC)}
	for r, want := range map[uuidrep.Representation]struct {
		random repeat
		stored string
		id     string
	}{
		uuidrep.CSharpLegacy: {0, "017f22e279b0cc838000000000000000", "e2227f01-b079-83cc-8000-000000000000"},
		uuidrep.JavaLegacy:   {0xff, "0187f22e279b0cc3ffffffffffffffbf", "c30c9b27-2ef2-8701-bfff-ffffffffffff"},
	} {
		g, err := NewV8Generator(r, WithClock(clock.now), WithRandom(want.random))
		if err != nil {
			t.Fatal(err)
		}
		u := newUUID(t, g)
		if u.String() != want.id {
			t.Errorf("%v: %v, want %s", r, u, want.id)
		}
		b, err := uuidrep.NewBinaryWithRepresentation(u, r)
		if err != nil || !bytes.Equal(b.Data, fromHex(t, want.stored)) {
			t.Errorf("%v: stored %x, want %s", r, b.Data, want.stored)
		}
		if at, err := TimeV8(u, r); err != nil || !at.Equal(clock.t) {
			t.Errorf("%v: %v, %v", r, at, err)
		}
	}
}

// The stored bytes ascend, whatever the clock does, and hold the clock's time.
func TestV8Order(t *testing.T) {
	for _, r := range legacy {
		rnd := rand.New(rand.NewPCG(11, 12))
		clock := testClock{time.Unix(0, 0)}
		g, err := NewV8Generator(r, WithClock(clock.now))
		if err != nil {
			t.Fatal(err)
		}
		var last []byte
		for i := range 20_000 {
			clock.t = time.Unix(int64(i)*13_000_000+rnd.Int64N(13_000_000), rnd.Int64N(1e9))
			ids := make([]uuid.UUID, 1+i%3)
			if err := g.Fill(ids); err != nil {
				t.Fatal(err)
			}
			for n, u := range ids {
				b, err := uuidrep.NewBinaryWithRepresentation(u, r)
				if err != nil || u.Version() != 8 || u.Variant() != uuid.RFC4122 {
					t.Fatal(u, err)
				}
				if bytes.Compare(last, b.Data) >= 0 {
					t.Fatalf("%v: %x after %x", r, b.Data, last)
				}
				last = b.Data
				at, err := TimeV8(u, r)
				if d := clock.t.Sub(at); err != nil || d > 244 || d < -245*time.Duration(n) {
					t.Fatalf("%v: %v is of %v, %v; want %v", r, u, at, err, clock.t)
				}
			}
		}
	}
}

// NewID is stored in the representation by any registry.
func TestV8NewID(t *testing.T) {
	for _, r := range legacy {
		g, err := NewV8Generator(r)
		if err != nil {
			t.Fatal(err)
		}
		id, err := g.NewID()
		if err != nil {
			t.Fatal(err)
		}
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
		if err != nil {
			t.Fatal(err)
		}
		var b bson.Binary
		b.Subtype, b.Data = bson.Raw(doc).Lookup("_id").Binary()
		u, err := uuidrep.AsWithRepresentation[uuid.UUID](b, r)
		if err != nil || u.Version() != 8 {
			t.Errorf("%v: %v, %v", r, u, err)
		}
		if at, err := TimeV8(u, r); err != nil || time.Since(at).Abs() > time.Minute {
			t.Errorf("%v: %v, %v", r, at, err)
		}
	}
}

// Nothing that reads version 7 reads version 8, and the other way round.
func TestV8Refused(t *testing.T) {
	now := time.Now()
	for _, r := range legacy {
		g, err := NewV8Generator(r)
		if err != nil {
			t.Fatal(err)
		}
		u := newUUID(t, g)
		if at, err := Time(u); !errors.Is(err, ErrNoTime) {
			t.Errorf("Time: %v, %v", at, err)
		}
		if c, err := CompareTime(u, now); !errors.Is(err, ErrNoTime) {
			t.Errorf("CompareTime: %v, %v", c, err)
		}
		seven := newUUID(t, newGen(t, 7))
		if at, err := TimeV8(seven, r); !errors.Is(err, ErrNoTime) {
			t.Errorf("TimeV8: %v, %v", at, err)
		}
		u[8] |= 0xc0
		if at, err := TimeV8(u, r); !errors.Is(err, ErrNoTime) {
			t.Errorf("TimeV8 of another variant: %v, %v", at, err)
		}
	}
	for _, r := range []uuidrep.Representation{uuidrep.Unspecified, uuidrep.Standard, uuidrep.PythonLegacy, 9} {
		if g, err := NewV8Generator(r); g != nil || err == nil {
			t.Errorf("%v: %v, %v", r, g, err)
		}
		_, e1 := TimeV8(uuid.Max, r)
		_, e5 := HalfOpenV8(now, now, r)
		_, e6 := ClosedV8(now, now, r)
		for i, err := range []error{e1, e5, e6} {
			if err == nil {
				t.Errorf("%v: no error %d", r, i+1)
			}
		}
	}
}
