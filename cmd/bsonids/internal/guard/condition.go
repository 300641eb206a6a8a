package guard

import (
	"bytes"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// size is the number of bytes of the values that a validator is for.
const size = 16

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

// holds returns the condition that is true if a document has a value of the subtype in the field.
//
// A path of several names does not suffice for it: at an array, the two bounds of a range may be met
// by two different elements. Every array is therefore entered by $elemMatch, which asks for one
// element that meets both, and every other condition says that there is no array on its path.
func (f Field) holds(subtype byte) bson.D { return hold("", f.names, subtype) }

// hold returns the condition for the names. before is the path from the document that the condition
// is about to the first name, and leads through documents alone.
func hold(before string, names []string, subtype byte) bson.D {
	path := names[0]
	if before != "" {
		path = before + "." + path
	}
	noArray := bson.E{Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}
	if len(names) == 1 {
		return bson.D{{Key: "$or", Value: bson.A{
			bson.D{{Key: path, Value: append(in(subtype), noArray)}},
			bson.D{{Key: path, Value: bson.D{{Key: "$elemMatch", Value: in(subtype)}}}},
		}}}
	}
	return bson.D{{Key: "$or", Value: bson.A{
		bson.D{{Key: "$and", Value: bson.A{bson.D{{Key: path, Value: bson.D{noArray}}}, hold(path, names[1:], subtype)}}},
		bson.D{{Key: path, Value: bson.D{{Key: "$elemMatch", Value: hold("", names[1:], subtype)}}}},
	}}}
}

// Clause returns the validator that refuses documents with a value of the subtype in one of the
// fields.
func Clause(fields []Field, subtype byte) bson.D {
	var held bson.A
	for _, f := range fields {
		held = append(held, f.holds(subtype))
	}
	return bson.D{{Key: "$nor", Value: held}}
}
