package documents

import (
	"math"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// sortOrder has the BSON types in the order in which MongoDB sorts them. The types of one group are
// compared by value.
var sortOrder = [][]bson.Type{
	{bson.TypeMinKey}, {bson.TypeUndefined, bson.TypeNull}, {bson.TypeDouble, bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128},
	{bson.TypeString, bson.TypeSymbol}, {bson.TypeEmbeddedDocument}, {bson.TypeArray}, {bson.TypeBinary}, {bson.TypeObjectID},
	{bson.TypeBoolean}, {bson.TypeDateTime}, {bson.TypeTimestamp}, {bson.TypeRegex}, {bson.TypeDBPointer}, {bson.TypeJavaScript},
	{bson.TypeCodeWithScope}, {bson.TypeMaxKey},
}

// typeNames has the names of the types for $type. unusual has those that some servers do not know.
// Arrays are omitted: an array cannot be an _id, and a query for arrays makes a server scan the
// whole index for each page.
var (
	typeNames = map[bson.Type]string{
		bson.TypeDouble: "double", bson.TypeString: "string", bson.TypeEmbeddedDocument: "object",
		bson.TypeBinary: "binData", bson.TypeObjectID: "objectId", bson.TypeBoolean: "bool", bson.TypeDateTime: "date",
		bson.TypeNull: "null", bson.TypeRegex: "regex", bson.TypeInt32: "int", bson.TypeTimestamp: "timestamp", bson.TypeInt64: "long",
	}
	unusual = map[bson.Type]string{
		bson.TypeUndefined: "undefined", bson.TypeDBPointer: "dbPointer", bson.TypeJavaScript: "javascript", bson.TypeSymbol: "symbol",
		bson.TypeCodeWithScope: "javascriptWithScope", bson.TypeDecimal128: "decimal", bson.TypeMinKey: "minKey", bson.TypeMaxKey: "maxKey",
	}
)

// behind returns a filter for the _ids that have the type of id and are greater, or for all if id
// is zero: a comparison matches only values of the same type.
func behind(id bson.RawValue) bson.D {
	switch {
	case id.Type == 0:
		return bson.D{}
	case isNaN(id): // NaN sorts before all numbers, and $gt matches nothing
		return bson.D{{Key: "_id", Value: bson.D{{Key: "$gte", Value: math.Inf(-1)}}}}
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}}
}

// ofLaterTypes returns a filter for the _ids whose types sort after the type of id. It returns nil
// if there are none or id is zero.
func ofLaterTypes(id bson.RawValue, plain bool) bson.D {
	if id.Type == 0 {
		return nil
	}
	var later bson.A
	group := slices.IndexFunc(sortOrder, func(g []bson.Type) bool { return slices.Contains(g, id.Type) })
	for _, g := range sortOrder[group+1:] {
		for _, t := range g {
			if name, ok := typeNames[t]; ok {
				later = append(later, name)
			} else if name, ok := unusual[t]; ok && !plain {
				later = append(later, name)
			}
		}
	}
	if len(later) == 0 {
		return nil
	}
	return bson.D{{Key: "_id", Value: bson.D{{Key: "$type", Value: later}}}}
}

func isNaN(v bson.RawValue) bool {
	if d, ok := v.DoubleOK(); ok {
		return math.IsNaN(d)
	}
	d, ok := v.Decimal128OK()
	return ok && d.IsNaN()
}
