package decide

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidrep"
)

// Values of 16 bytes that are two floating-point numbers, such as coordinates, are no UUIDs in any order:
// for some numbers, the variant or the digit of the version is the same in all values, and the other one
// is random. Neither alone shows UUIDs.
func TestTwoNumbers(t *testing.T) {
	places := map[string][2][2]float64{ // latitudes and longitudes, from and to
		"the world": {{-90, 90}, {-180, 180}}, "Europe": {{36, 70}, {-10, 40}}, "Germany": {{47, 55}, {6, 15}}, "England": {{50, 55}, {-2, 0}},
		"Brazil": {{-34, 5}, {-74, -34}}, "the USA": {{25, 49}, {-125, -67}}, "Ghana": {{4, 11}, {-3, 1}}, "shares": {{0, 1}, {0, 1}}, "differences": {{-1, 1}, {-1, 1}},
		"prices": {{1, 1000}, {1, 1000}}, "around 2": {{-4, 4}, {-4, 4}},
	}
	for name, at := range places {
		for _, end := range []binary.ByteOrder{binary.BigEndian, binary.LittleEndian} {
			for _, swapped := range []bool{false, true} {
				for _, from := range []uuidrep.Representation{uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy} {
					for _, n := range []int{10, 30, 100, 1000} {
						pair := func(r *rand.Rand) (u uuid.UUID) {
							for i, of := range at {
								if swapped {
									i = 1 - i
								}
								end.PutUint64(u[8*i:], math.Float64bits(of[0]+(of[1]-of[0])*r.Float64()))
							}
							return u
						}
						d, _ := decided(t, uint64(n), from, nil, group{n, pair, uuidrep.PythonLegacy})
						if f := d.Fields[0]; f.Basis != None {
							t.Errorf("%s, %v, swapped %v: %d of %d pairs are UUIDs of versions %v in %v order", name, end, swapped, f.Fits, n, f.Versions, from)
						}
					}
				}
			}
		}
	}
}
