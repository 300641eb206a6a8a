package kinds

import (
	"bytes"
	"slices"

	"github.com/bsonids/bsonids/uuidrep"
)

// Orders has a representation for each byte order of stored values. The first is network order.
var Orders = [...]uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// Symmetric reports whether v is the same UUID in every order, such as the nil UUID and the max UUID.
func Symmetric(v *[16]byte) bool {
	for i := range 4 {
		if v[i] != v[7-i] || v[8+i] != v[15-i] {
			return false
		}
	}
	return v[0] == v[3] && v[1] == v[2] && v[4] == v[5] && v[6] == v[7]
}

// turns are the permutations of the bytes of a value that lead from one reading of it to another one:
// those of C# and Java order, in every combination.
var turns = func() [][16]uint8 {
	all := [][16]uint8{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}
	for i := 0; i < len(all); i++ {
		for _, o := range Orders {
			if next := o.Permute(all[i]); !slices.Contains(all, next) {
				all = append(all, next)
			}
		}
	}
	return all
}()

// Canonical returns a value that is the same for a UUID in every byte order. It may also be the same for
// two UUIDs, of which one is the other with its bytes permuted by several orders in turn.
func Canonical(v [16]byte) [16]byte {
	least := v
	for _, turn := range turns {
		var u [16]byte
		for i, from := range turn {
			u[i] = v[from]
		}
		if bytes.Compare(u[:], least[:]) < 0 {
			least = u
		}
	}
	return least
}
