package rule

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// anyValue returns a value of a random type, nested to at most depth levels.
func anyValue(r *rand.Rand, depth int) any {
	if depth > 0 && r.IntN(3) == 0 {
		if r.IntN(2) == 0 {
			return anyFields(r, depth-1)
		}
		list := bson.A{}
		for range r.IntN(4) {
			list = append(list, anyValue(r, depth-1))
		}
		return list
	}
	switch r.IntN(16) {
	case 0:
		return math.NaN()
	case 1:
		return bson.NewDecimal128(r.Uint64(), r.Uint64())
	case 2:
		return bson.Regex{Pattern: "a.b", Options: "i"}
	case 3:
		return "a.0.b"
	case 4:
		return nil
	case 5:
		return bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "u", Value: bson.Binary{Subtype: 3, Data: make([]byte, 16)}}}}
	case 6:
		return r.Int32()
	}
	b := make([]byte, 16)
	if r.IntN(4) == 0 {
		b = make([]byte, r.IntN(40))
	}
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return bson.Binary{Subtype: []byte{3, 3, 3, 4, 0, 2, 5, 128}[r.IntN(8)], Data: b}
}

// anyDocument returns a document with unusual field names and values.
func anyDocument(r *rand.Rand) bson.D {
	fields := append(bson.D{{Key: "_id", Value: anyFields(r, 1)}}, anyFields(r, 3)...)
	for i, e := range fields {
		if e.Key == "$id" || e.Key == "$ref" { // these names are used only in nested documents
			fields[i].Key = "$x"
		}
	}
	return fields
}

// anyFields returns fields with unusual names.
func anyFields(r *rand.Rand, depth int) bson.D {
	names := []string{"a", "b", "c", "d", "e", "f", "0", "1", "00", "a.b", "", "$a", "$id", "$ref", "$", "ü", "a$"}
	d := bson.D{}
	for range r.IntN(6) {
		d = append(d, bson.E{Key: names[r.IntN(len(names))], Value: anyValue(r, depth)})
	}
	return d
}

// permuted maps byte positions from javaLegacy to standard, as the specification gives the bytes.
var permuted = [16]int{7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8}

// fromJava returns the converted value of one from javaLegacy.
func fromJava(v any) (any, bool) {
	b, ok := v.(bson.Binary)
	if !ok || b.Subtype != 3 || len(b.Data) != 16 {
		return nil, false
	}
	out := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	for i, from := range permuted {
		out.Data[i] = b.Data[from]
	}
	return out, true
}

// set sets the value at path in v, as $set does. It returns an error if path does not lead to a
// value.
func set(v any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	var err error
	switch v := v.(type) {
	case bson.D:
		for i, e := range v {
			if e.Key == path[0] {
				v[i].Value, err = set(e.Value, path[1:], value)
				return v, err
			}
		}
	case bson.A:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) {
			v[i], err = set(v[i], path[1:], value)
			return v, err
		}
	}
	return nil, fmt.Errorf("%s leads nowhere", strings.Join(path, "."))
}
