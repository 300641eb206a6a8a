package mixedrep

import (
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

var (
	// ErrNoRepresentation reports a call without a representation.
	ErrNoRepresentation = errors.New("mixedrep: no representation given")

	// ErrTwoByteOrders reports two representations of binary subtype 3.
	ErrTwoByteOrders = errors.New("mixedrep: two byte orders for binary subtype 3: " +
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
			b, _ := uuidrep.NewBinaryWithRepresentation(u, r) // distinct returned the errors of r
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
		return nil, fmt.Errorf("mixedrep: %q is not the name of a field", field)
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
	bySubtype := map[byte]uuidrep.Representation{}
	kept := make([]uuidrep.Representation, 0, len(reps))
	for _, r := range reps {
		subtype, err := r.Subtype()
		if err != nil {
			return nil, fmt.Errorf("mixedrep: %w", err)
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
