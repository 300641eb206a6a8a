package kinds

import "github.com/bsonids/bsonids/uuidrep"

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

// SameUUID reports whether the values, each read in one of the orders, are the same UUID.
func SameUUID(a, b [16]byte) bool {
	for _, o := range Orders {
		u := o.Permute(a)
		for _, p := range Orders {
			if u == p.Permute(b) {
				return true
			}
		}
	}
	return false
}
