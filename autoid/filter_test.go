package autoid

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// TestFilterClaims tests what MongoDB takes from a filter. The first filters, and what becomes of them, are those of its own
// tests of upserts; the others follow from its source.
func TestFilterClaims(t *testing.T) {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	a := func(values ...any) bson.A { return append(bson.A{}, values...) }
	id := func(operator string, value any) bson.D { return d("_id", d(operator, value)) }
	re := bson.Regex{Pattern: "abc"}
	one := d("_id", 1)
	u, v := uuid.UUID{1}, uuid.UUID{2}
	for _, c := range []struct {
		filter bson.D
		want   claim
	}{
		{one, givenID},
		{id("$eq", 1), givenID},
		{id("$all", a(1)), givenID},
		{id("$in", a(1)), givenID},
		{d("$and", a(one)), givenID},
		{d("$and", a(id("$eq", 1))), givenID},
		{d("$or", a(one)), givenID},
		{d("$or", a(id("$eq", 1))), givenID},
		{id("$gt", 1), noID},
		{id("$ne", 1), noID},
		{id("$in", a(1, 2)), noID},
		{id("$elemMatch", d("$eq", 1)), noID},
		{id("$exists", true), noID},
		{id("$not", d("$eq", 1)), noID},
		{d("$nor", a(one)), noID},
		{d("$nor", a(id("$eq", 1))), noID},
		{d("$nor", a(id("$eq", 1), one)), noID},
		{d("$or", a(one, one)), maybeID}, // since version 7.3
		{d("_id", a(1, 2)), givenID},     // this and the next ones are errors
		{id("$eq", a(1, 2)), givenID},
		{id("$all", a(1, 2)), givenID},
		{d("$and", a(one, d("_id", 2))), givenID},
		{d("$and", a(id("$eq", 1), d("_id", 2))), givenID},
		{bson.D{{Key: "_id", Value: 1}, {Key: "_id.x", Value: 1}}, givenID},
		{bson.D{{Key: "_id", Value: d("x", 1)}, {Key: "_id.x", Value: 1}}, givenID},
		{bson.D{{Key: "_id.x", Value: 1}, {Key: "_id.y", Value: 1}}, givenID}, // in an update
		{d("_id", re), noID},

		{bson.D{}, noID},
		{d("name", "Ada"), noID},
		{d("_idx", 1), noID},
		{d("customer._id", 1), noID},
		{d("$comment", "_id"), noID},
		{bson.D{{Key: "$comment", Value: "x"}, {Key: "_id", Value: 1}}, givenID},
		{d("$nor", a(bson.D{{Key: "$comment", Value: "x"}, {Key: "_id", Value: d("$ne", 1)}})), maybeID},
		{d("$expr", d("$eq", a("$_id", u))), noID}, // MongoDB refuses it in an upsert
		{d("$jsonSchema", d("properties", d("_id", d("enum", a(1))))), noID},
		{d("$where", "this._id == 1"), noID},
		{d("$or", a(one, d("$where", "this._id == 1"))), noID},
		{d("_id", nil), givenID},
		{d("_id", bson.D{}), givenID},
		{d("_id", d("a", d("$gt", 1))), givenID},
		{d("_id", bson.D{{Key: "$ref", Value: "c"}, {Key: "$id", Value: 1}}), givenID},
		{d("_id", bson.D{{Key: "$id", Value: 1}, {Key: "$ref", Value: "c"}}), givenID},
		{d("_id", d("$ref", "c")), noID}, // no operator, which MongoDB refuses
		{d("_id", d("$id", 1)), noID},
		{id("$eq", re), givenID}, // which MongoDB refuses
		{id("$regex", "abc"), noID},
		{id("$in", a(re)), noID},
		{id("$in", a(1, re)), noID},
		{id("$in", a(re, 1)), noID},
		{id("$all", a(re)), noID},
		{id("$all", a(re, 1)), givenID},
		{id("$all", a(d("$elemMatch", d("$eq", 1)))), noID},
		{id("$in", a()), noID},
		{id("$all", a()), noID},
		{id("$in", 1), noID}, // not an array
		{id("$all", 1), noID},
		{id("$in", a(u, u)), givenID},
		{id("$in", a(u, v)), noID},
		{id("$in", a(u, u, v)), noID},
		{id("$in", a(u, "x", "x")), noID},
		{id("$in", a("a", "A")), maybeID}, // one with a collation
		{id("$in", a("A", bson.Symbol("A"))), maybeID},
		{id("$in", a("a", "A", u)), noID},
		{id("$in", a(d("a", 1), d("a", 1.0))), maybeID},
		{id("$in", a(int32(1), int64(1))), maybeID}, // equal
		{id("$in", a(0.0, int64(1))), maybeID},
		{id("$in", a(int64(1), bson.NewDecimal128(0, 1))), maybeID},
		{id("$in", a(int64(1), int64(2))), noID},
		{id("$in", a(true, false)), noID},
		{id("$in", a(bson.ObjectID{1}, bson.ObjectID{2})), noID},
		{id("$in", a(bson.DateTime(1), bson.DateTime(2))), noID},
		{id("$in", a(bson.Timestamp{T: 1}, bson.Timestamp{T: 2})), noID},
		{bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 0}, {Key: "$eq", Value: 1}}}}, givenID},
		{bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: 0}, {Key: "$lt", Value: 1}}}}, noID},
		{d("_id.x", d("$gt", 1)), noID},
		{d("_id.x", d("$in", a(1))), givenID},
		{d("_id.x.y", d("$eq", 1)), givenID},
		{d("$or", a(d("$and", a(d("_id.a", 1))))), givenID},
		{d("$or", a(one, d("name", "Ada"))), noID},
		{d("$or", a(one, d("_id", 2))), maybeID},
		{d("$or", a(one, id("$in", a(2)))), maybeID},
		{d("$or", a(one, id("$gt", 2))), noID},
		{d("$or", a(append(bson.D{{Key: "n", Value: 1}}, one...), append(bson.D{{Key: "n", Value: 2}}, one...))), maybeID},
		{append(d("$or", a(d("n", 1), id("$ne", 2))), one...), givenID},
		{d("$and", a(d("$or", a(one, one)), d("n", 1))), maybeID},
		{d("$and", a(d("$or", a(one, one)), one)), givenID},
		{d("$nor", a(id("$ne", 1))), maybeID},
		{d("$nor", a(id("$ne", 1), d("n", 1))), maybeID},
		{d("$nor", a(append(d("n", 1), id("$ne", 1)...))), noID},
		{d("$nor", a(id("$nin", a(1)))), maybeID},
		{d("$nor", a(id("$in", a(1)))), noID},
		{d("$nor", a(d("$nor", a(one)))), maybeID},
		{d("$nor", a(d("$nor", a(one, d("n", 1))))), noID},
		{d("$nor", a(d("$nor", a(one, one)))), maybeID},
		{d("$nor", a(d("$or", a(id("$ne", 1), d("n", 1))))), maybeID},
		{d("$nor", a(d("$and", a(id("$ne", 1), d("n", 1))))), noID},
		{d("$nor", a(d("$nor", a(d("$nor", a(one)))))), noID},
		{id("$not", d("$ne", 1)), maybeID},
		{id("$not", bson.D{{Key: "$ne", Value: 1}, {Key: "$gt", Value: 0}}), noID},
		{id("$not", d("$nin", a(1))), maybeID},
		{id("$not", d("$not", d("$eq", 1))), maybeID},
		{id("$not", re), noID},
		{id("$nin", a(1)), noID},

		// A filter that never matches has no equality for some versions.
		{append(d("tags", d("$in", a())), one...), maybeID},
		{append(d("tags", d("$all", a())), one...), maybeID},
		{append(d("tags", d("$nin", a())), one...), givenID},
		{append(d("tags", d("$all", 1)), one...), givenID}, // which MongoDB refuses
		{append(d("tags", d("$not", d("$all", a(re)))), one...), givenID},
		{d("$or", a(d("tags", d("$in", a())), d("$alwaysFalse", 1))), noID},
		{append(d("$nor", a(d("$nor", a(d("$alwaysFalse", 1))))), one...), maybeID},
		{append(d("$nor", a(d("$nor", a(d("tags", d("$elemMatch", d("$in", a()))))))), one...), maybeID},
		{append(d("tags", d("$not", d("$nin", a()))), one...), maybeID},
		{append(d("tags", d("$elemMatch", d("$in", a()))), one...), maybeID},
		{append(d("tags", d("$elemMatch", d("n", d("$in", a())))), one...), maybeID},
		{append(d("tags", d("$elemMatch", d("_id", 2))), one...), givenID},
		{append(d("tags", d("$not", d("$elemMatch", d("$in", a())))), one...), givenID},
		{append(d("$alwaysFalse", 1), one...), maybeID},
		{append(d("$alwaysTrue", 1), one...), givenID},
		{append(d("$nor", a(d("$alwaysTrue", 1))), one...), maybeID},
		{append(d("$nor", a(bson.D{})), one...), maybeID},
		{append(d("$nor", a(d("n", 1))), one...), givenID},
		{append(d("$or", a(d("tags", d("$in", a())), d("$alwaysFalse", 1))), one...), maybeID},
		{append(d("$or", a(d("tags", d("$in", a())), d("n", 1))), one...), givenID},
		{d("$or", a(one, d("tags", d("$in", a())))), maybeID},
		{append(d("tags", d("$in", a())), id("$ne", 1)...), noID},
	} {
		if got, _, err := readFilter(marshal(t, c.filter)); got != c.want || err != nil {
			t.Errorf("%v: got %d, %v, want %d", c.filter, got, err, c.want)
		}
	}
}

// A formula is a random filter: what it is made of, and what it is for MongoDB.
type formula struct {
	op   string // and, or, nor, eq, ne, in, nin, nothing or other
	kids []*formula
	ids  []int // of eq, ne, in and nin
	n    int   // of other
}

func randomFormula(r *rand.Rand, depth int, others *int) *formula {
	f := &formula{op: []string{"and", "or", "nor", "eq", "ne", "in", "nin", "nothing", "other"}[r.IntN(9)]}
	if depth == 0 && len(f.op) <= 3 && f.op != "eq" && f.op != "nin" {
		f.op = "eq"
	}
	switch f.op {
	case "and", "or", "nor":
		for range 1 + r.IntN(3) {
			f.kids = append(f.kids, randomFormula(r, depth-1, others))
		}
	case "eq", "ne":
		f.ids = []int{r.IntN(3)}
	case "in", "nin":
		for range 1 + r.IntN(3) {
			f.ids = append(f.ids, r.IntN(3))
		}
	case "other":
		*others++
		f.n = *others
	}
	return f
}

func (f *formula) filter() bson.D {
	d := func(key string, value any) bson.D { return bson.D{{Key: key, Value: value}} }
	switch f.op {
	case "and", "or", "nor":
		kids := bson.A{}
		for _, k := range f.kids {
			kids = append(kids, k.filter())
		}
		return d("$"+f.op, kids)
	case "eq", "ne":
		return d("_id", d("$"+f.op, f.ids[0]))
	case "in", "nin":
		return d("_id", d("$"+f.op, f.ids))
	case "nothing":
		return d("n", d("$in", bson.A{}))
	default:
		return d(fmt.Sprint("n", f.n), 1)
	}
}

// distinct returns the distinct ids as bits.
func (f *formula) distinct() (bits, n int) {
	for _, id := range f.ids {
		if bits>>id&1 == 0 {
			bits, n = bits|1<<id, n+1
		}
	}
	return bits, n
}

// matches evaluates f as a formula of Boolean variables: the equality with each id, $in of each set of ids, and each other
// condition.
func (f *formula) matches(equal, in, others int) bool {
	some, all := false, true
	for _, k := range f.kids {
		m := k.matches(equal, in, others)
		some, all = some || m, all && m
	}
	bits, n := f.distinct()
	value := in>>bits&1 == 1
	if n == 1 {
		value = equal&bits != 0
	}
	switch f.op {
	case "and":
		return all
	case "or":
		return some
	case "nor":
		return !some
	case "eq", "in":
		return value
	case "ne", "nin":
		return !value
	case "nothing":
		return false
	default:
		return others>>f.n&1 == 1
	}
}

// polarities returns which conditions on the _id f has, as the names of the variables of matches, without and with a negation.
func (f *formula) polarities(nots int, found map[string]int) {
	if f.op == "nor" || f.op == "ne" || f.op == "nin" {
		nots++
	}
	if bits, n := f.distinct(); n > 0 {
		found[fmt.Sprint(bits)] |= 1 << (nots % 2)
	}
	for _, k := range f.kids {
		k.polarities(nots, found)
	}
}

// taken returns the ids that version 4.4 takes from f, and whether it knows that f never matches.
func (f *formula) taken() (ids int, never bool) {
	bits, n := f.distinct()
	switch {
	case f.op == "nothing":
		return 0, true
	case (f.op == "eq" || f.op == "in") && n == 1:
		return bits, false
	case f.op == "and":
		for _, k := range f.kids {
			i, no := k.taken()
			ids, never = ids|i, never || no
		}
		if never {
			return 0, true
		}
		return ids, false
	case f.op == "or":
		left := 0
		for _, k := range f.kids {
			if i, no := k.taken(); !no {
				left++
				ids = i
			}
		}
		if left > 1 {
			ids = 0
		}
		return ids, left == 0
	}
	return 0, false
}

// TestRandomFilters compares what is said of random filters with two bounds of what a server can take: the simplification of
// version 4.4, and the equalities that follow from the filter as a Boolean formula, which no simplification can exceed. If a
// condition is there both without and with a negation, these can cancel out, which is not looked for: such a filter is taken to
// give no _id, and a server that takes one refuses the other in $setOnInsert.
func TestRandomFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	seen := map[claim]int{}
	for range 30_000 {
		others := -1
		f := randomFormula(r, 3, &others)
		if others > 5 {
			continue
		}
		taken, never := f.taken()
		follow, satisfiable := 7, false
		sets := []int{3, 5, 6, 7}
		for equal := range 8 {
			for chosen := range 1 << len(sets) {
				in := 0
				for i, set := range sets {
					in |= chosen >> i & 1 << set
				}
				for n := range 1 << (others + 1) {
					if f.matches(equal, in, n) {
						satisfiable = true
						follow &= equal
					}
				}
			}
		}
		if !satisfiable && !never {
			continue // a contradiction, of which it depends on the version whether it is seen
		}
		if !satisfiable {
			follow = 0
		}
		polarities, cancels := map[string]int{}, false
		f.polarities(0, polarities)
		for _, both := range polarities {
			cancels = cancels || both == 3
		}
		filter := f.filter()
		got, _, err := readFilter(marshal(t, filter))
		if err != nil {
			t.Fatal(err)
		}
		seen[got]++
		switch {
		case got == givenID && (taken == 0 || follow == 0):
			t.Errorf("%v gives no _id: %b, %b", filter, taken, follow)
		case got == noID && (taken != 0 || follow != 0 && !cancels):
			t.Errorf("%v gives an _id: %b, %b", filter, taken, follow)
		}
	}
	for _, c := range []claim{noID, maybeID, givenID} {
		if seen[c] < 500 {
			t.Errorf("seen %v", seen)
		}
	}
}
