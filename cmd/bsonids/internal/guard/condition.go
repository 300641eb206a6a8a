package guard

import (
	"bytes"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// size is the number of bytes of the binary values that a validator is for.
const size = 16

// spellings matches text that is a UUID in one of the spellings of [kinds.ParseText], and no other. Its
// last part says that no character follows: a dollar sign would also match before a newline.
const spellings = `^((` + urn + `)?` + hyphens + `|\{` + hyphens + `\}|` + digit + `{32})(?![\s\S])`

const (
	digit   = `[0-9a-fA-F]`
	hyphens = digit + `{8}(-` + digit + `{4}){3}-` + digit + `{12}`
	urn     = `[uU][rR][nN]:[uU][uU][iI][dD]:`
)

// is returns the condition for a single value that is refused.
func is(r record.Refused) bson.D {
	if r.IsText() {
		// A regular expression that is a value matches itself. In extended JSON, $regex would be taken for
		// such a value.
		return bson.D{{Key: "$in", Value: bson.A{bson.Regex{Pattern: spellings}}}, {Key: "$type", Value: "string"}}
	}
	return in(r.Subtype)
}

// in returns the range that holds the binary values of 16 bytes of the subtype and no others.
// MongoDB compares binary values by length, then by subtype, then byte by byte, and compares a value
// only with values of its type:
// https://www.mongodb.com/docs/manual/reference/bson-type-comparison-order/
func in(subtype byte) bson.D {
	return bson.D{
		{Key: "$gte", Value: bson.Binary{Subtype: subtype, Data: make([]byte, size)}},
		{Key: "$lte", Value: bson.Binary{Subtype: subtype, Data: bytes.Repeat([]byte{0xff}, size)}},
	}
}

// holds returns the condition that is true if a document has one of the values in the field.
//
// A path of several names does not suffice for it: at an array, the two bounds of a range may be met
// by two different elements. Every array is therefore entered by $elemMatch, which asks for one
// element that meets both, and every other condition says that there is no array on its path.
func holds(r record.Refused) bson.D { return hold("", strings.Split(r.Path, "."), is(r)) }

// hold returns the condition for the names, of which the last has a value that meets is. before is the path
// from the document that the condition is about to the first name, and leads through documents alone.
func hold(before string, names []string, is bson.D) bson.D {
	path := names[0]
	if before != "" {
		path = before + "." + path
	}
	noArray := bson.E{Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}
	if len(names) == 1 {
		return bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: path, Value: append(slices.Clip(is), noArray)}},
			bson.D{{Key: path, Value: bson.D{{Key: "$elemMatch", Value: is}}}},
		}}}
	}
	return bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: path, Value: bson.D{noArray}}}, hold(path, names[1:], is)}}},
		bson.D{{Key: path, Value: bson.D{{Key: "$elemMatch", Value: hold("", names[1:], is)}}}},
	}}}
}

// Clause returns the validator that refuses documents with one of the values: binary values of 16 bytes
// of a subtype, or text that is a UUID in one of the usual spellings.
func Clause(values []record.Refused) bson.Raw {
	var held bson.A
	for _, r := range values {
		held = append(held, holds(r))
	}
	return document(bson.D{{Key: "$nor", Value: held}})
}

// document encodes a document of this package, which cannot fail.
func document(d bson.D) bson.Raw {
	b, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return b
}
