// Package uuidquery makes filters that find one UUID in several representations.
//
// A collection that changes from one representation to another holds both for a while, and a
// filter with a single binary value finds half of its documents. The filters of this package name
// every representation in one $in, so that a service can be deployed before, during and after a
// conversion of its data:
//
//	filter, err := uuidquery.Match("_id", id, uuidrep.JavaLegacy, uuidrep.Standard)
//
// The filters hold [bson.Binary] values. They are independent of a registry and of a client.
//
// Each binary subtype can have one representation only: Standard, and one of the legacy
// representations. Two of CSharpLegacy, JavaLegacy and PythonLegacy would match the octets of two
// different UUIDs, and no registry can read both.
//
// # What the filters do not cover
//
// An upsert takes the equality conditions of its filter as fields of the new document, and an $in
// is not an equality: the new document lacks the field, and for _id gets an ObjectID. Look the
// document up first, then insert it, or update it with a filter of one representation. The same
// UUID in two representations is two values for $addToSet, $group, $lookup, $setUnion, a unique
// index and a shard key. A comparison such as $gt covers one subtype only.
package uuidquery

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var (
	// ErrNoRepresentation reports a call without a representation.
	ErrNoRepresentation = errors.New("uuidquery: no representation given")

	// ErrTwoByteOrders reports two representations of binary subtype 3.
	ErrTwoByteOrders = errors.New("uuidquery: two byte orders for binary subtype 3: " +
		"the same octets would match two different UUIDs")
)

// Values returns the binary values of the UUIDs us in each of the representations reps: the
// elements of an $in, an $nin or an $elemMatch that the caller writes. The values of one UUID
// stand together, in the order of reps. A representation that is given twice counts once. The
// result is not nil, so that it encodes as an array if us is empty.
//
// Errors are [ErrNoRepresentation], [ErrTwoByteOrders], and [uuidrep.ErrUnspecified] if reps
// contains Unspecified.
func Values[U ~[16]byte](us []U, reps ...uuidrep.Representation) ([]bson.Binary, error) {
	reps, err := distinct(reps)
	if err != nil {
		return nil, err
	}
	values := make([]bson.Binary, 0, len(us)*len(reps))
	for _, u := range us {
		for _, r := range reps {
			b, err := uuidrep.NewBinaryWithRepresentation(u, r)
			if err != nil {
				return nil, fmt.Errorf("uuidquery: %w", err)
			}
			values = append(values, b)
		}
	}
	return values, nil
}

// Match returns a filter for the documents in which field holds u in any of the representations
// reps, or is an array with such an element: {field: {$in: […]}}. field is a path as in every
// filter, "_id" or "order.customer". Errors are those of [Values], and one for a field that is
// empty or begins with a dollar sign.
func Match[U ~[16]byte](field string, u U, reps ...uuidrep.Representation) (bson.D, error) {
	return condition(field, "$in", []U{u}, reps)
}

// MatchAny returns a filter for the documents in which field holds one of the UUIDs us, or is an
// array with such an element. If us is empty, no document matches. Errors are those of [Match].
func MatchAny[U ~[16]byte](field string, us []U, reps ...uuidrep.Representation) (bson.D, error) {
	return condition(field, "$in", us, reps)
}

// MatchNone returns a filter for the documents in which field holds none of the UUIDs us, and is
// not an array with one of them: {field: {$nin: […]}}. As with every $nin and $ne, documents
// without the field match. If us is empty, every document matches. Errors are those of [Match].
func MatchNone[U ~[16]byte](field string, us []U, reps ...uuidrep.Representation) (bson.D, error) {
	return condition(field, "$nin", us, reps)
}

// MatchAll returns a filter for the documents in which field is an array that holds every one of
// the UUIDs us, each in any of the representations reps. Use it instead of $all. If us is
// empty, no document matches, as with $all. Errors are those of [Match].
func MatchAll[U ~[16]byte](field string, us []U, reps ...uuidrep.Representation) (bson.D, error) {
	if len(us) == 0 {
		return MatchAny(field, us, reps...)
	}
	each := make(bson.A, len(us))
	for i, u := range us {
		filter, err := Match(field, u, reps...)
		if err != nil {
			return nil, err
		}
		each[i] = filter
	}
	return bson.D{{Key: "$and", Value: each}}, nil
}

func condition[U ~[16]byte](
	field, operator string, us []U, reps []uuidrep.Representation,
) (bson.D, error) {
	if field == "" || field[0] == '$' {
		return nil, fmt.Errorf("uuidquery: %q is not the name of a field", field)
	}
	values, err := Values(us, reps...)
	if err != nil {
		return nil, err
	}
	return bson.D{{Key: field, Value: bson.D{{Key: operator, Value: values}}}}, nil
}

// distinct returns reps without repetitions. Each subtype may have one representation only.
func distinct(reps []uuidrep.Representation) ([]uuidrep.Representation, error) {
	if len(reps) == 0 {
		return nil, ErrNoRepresentation
	}
	var bySubtype [bson.TypeBinaryUUID + 1]uuidrep.Representation
	kept := make([]uuidrep.Representation, 0, len(reps))
	for _, r := range reps {
		subtype, err := r.Subtype()
		if err != nil {
			return nil, fmt.Errorf("uuidquery: %w", err)
		}
		switch other := bySubtype[subtype]; {
		case slices.Contains(kept, r):
		case other != uuidrep.Unspecified:
			return nil, fmt.Errorf("%w (%v and %v)", ErrTwoByteOrders, other, r)
		default:
			bySubtype[subtype] = r
			kept = append(kept, r)
		}
	}
	return kept, nil
}
