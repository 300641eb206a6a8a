package decide

import (
	"flag"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var collections = flag.Int("collections", 400, "how many small collections TestMistakenOrders decides about")

// A conversion is requested for the wrong order, or a few values are in another order than the
// rest. A value that is converted although it is in another order fits the order of the conversion
// by variant and version, in a field without proof of another order. There are as many such values
// as chance predicts: of random UUIDs of version 4, one in 64, or one in 16 between csharpLegacy
// and pythonLegacy, which share bytes 8 to 15 (RFC 9562, sections 4.1 and 4.2).
func TestMistakenOrders(t *testing.T) {
	orders := []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy}
	r := rand.New(rand.NewPCG(19, uint64(*collections)))
	stored := func(o uuidrep.Representation) bson.Binary {
		var u uuid.UUID
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
		b, err := uuidrep.NewBinaryWithRepresentation(u, o)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	var wrong, values int
	var expected, variance float64
	for range *collections {
		from, other := orders[r.IntN(3)], orders[r.IntN(3)]
		right, strays := 40+r.IntN(60), 1+r.IntN(3) // too few strays to prove their order
		switch r.IntN(3) {
		case 0:
			right = 0 // a wrong --from
			strays = 1 + r.IntN(80)
		case 1:
			strays = 30 + r.IntN(50) // a minority that proves its order
		}
		p := newPass(t)
		var mistaken []bson.Binary
		for i := range right + strays {
			o := from
			if i >= right {
				o = other
			}
			b := stored(o)
			if i >= right && other != from {
				mistaken = append(mistaken, b)
			}
			p.add("id", [16]byte(b.Data))
		}
		d := p.decide(from)
		j := d.Judge(from)
		values += len(mistaken)
		n := 0
		for _, b := range mistaken {
			v := [16]byte(b.Data)
			if j.Value([]byte("id"), v) != "" {
				continue
			}
			n++
			if version(&v, orderOf(from)) != 4 || right == 0 || strays > 3 {
				t.Errorf("%x in %v is converted as %v: %d right values, %d strays", v, other, from, right, strays)
			}
		}
		if right > 0 && strays <= 3 {
			chance := 1.0 / 16
			if from == uuidrep.JavaLegacy || other == uuidrep.JavaLegacy {
				chance = 1.0 / 64
			}
			expected += float64(len(mistaken)) * chance
			variance += float64(len(mistaken)) * chance * (1 - chance)
		}
		wrong += n
	}
	const z = 3.2905 // for a two-sided interval of 99.9 %
	margin := z*math.Sqrt(variance) + 1
	t.Logf("%d collections, %d values in another order: %d converted unreported; expected %.1f, 99.9 %% interval %.1f to %.1f",
		*collections, values, wrong, expected, max(0, expected-margin), expected+margin)
	if math.Abs(float64(wrong)-expected) > margin {
		t.Error("the number is outside the interval")
	}
}
