package autoid

import (
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A server inserts for an upsert what the filter says by equality. It does not look at the filter as it was sent, but
// simplifies it first, and then takes the equalities of the outermost conjunction. All versions from 4.4 on simplify a
// conjunction or disjunction of one clause to the clause, $in of one value to an equality, and what holds a part that can
// never match to a filter that never matches, which has no equality. Version 7.3 makes one equality of a disjunction of
// the same equalities, and 8.0 simplifies Boolean formulas: it removes double negations and takes out of a disjunction
// what all its clauses have.

// A claim says whether a filter gives the _id of the document that an upsert inserts.
type claim uint8

const (
	noID    claim = iota // no server takes an _id, or a part of one, from the filter
	maybeID              // some servers do
	givenID              // every server does, or refuses the filter
)

// A clause is the claim of a part of a filter.
type clause struct {
	id    claim
	never bool // no document matches
}

// isIDPath reports whether path is _id or begins with it.
func isIDPath(path string) bool { return path == "_id" || strings.HasPrefix(path, "_id.") }

// readFilter returns what filter says of the _id, and the form of a zero _id that it asks for.
func readFilter(filter bson.Raw) (id claim, zero idForm, err error) {
	var r filterReader
	whole := r.document(filter, 0)
	if whole.id == givenID && whole.never {
		whole.id = maybeID
	}
	return whole.id, r.zero, r.err
}

// filterReader goes through a filter. Its methods are given the number of negations around a part, and return what the
// part says with these.
type filterReader struct {
	zero idForm // of an equality on the _id that no negation is around
	err  error
}

// negated reports whether a part with nots negations around it must not match.
func negated(nots int) bool { return nots%2 == 1 }

// document reads a filter, or a clause of $and, $or or $nor.
func (r *filterReader) document(filter bson.Raw, nots int) clause {
	elements, err := filter.Elements()
	if err != nil {
		r.err = fmt.Errorf("autoid: the filter is malformed: %w", err)
	}
	var clauses []clause
	for _, e := range elements {
		switch key, value := e.Key(), e.Value(); key {
		case "$and":
			clauses = append(clauses, conjunction(r.documents(value, nots), nots))
		case "$or":
			clauses = append(clauses, disjunction(r.documents(value, nots), nots))
		case "$nor":
			clauses = append(clauses, disjunction(r.documents(value, nots+1), nots+1))
		case "$comment":
		default:
			clauses = append(clauses, r.condition(key, value, nots))
		}
	}
	return conjunction(clauses, nots)
}

func (r *filterReader) documents(list bson.RawValue, nots int) []clause {
	var clauses []clause
	for _, doc := range documentsOf(list) {
		clauses = append(clauses, r.document(doc, nots))
	}
	return clauses
}

// condition reads the condition on the field at path. Operators of documents, such as $expr, are no path.
func (r *filterReader) condition(path string, value bson.RawValue, nots int) clause {
	operators := elementsOf(value)
	switch {
	case strings.HasPrefix(path, "$"):
		return clause{never: path == "$alwaysFalse" && !negated(nots) || path == "$alwaysTrue" && negated(nots)}
	case value.Type == bson.TypeRegex:
		return clause{}
	case !isOperators(value, operators):
		return r.equality(path, value, nots)
	}
	var clauses []clause
	for _, op := range operators {
		switch value := op.Value(); op.Key() {
		case "$eq":
			clauses = append(clauses, r.equality(path, value, nots))
		case "$ne":
			clauses = append(clauses, r.equality(path, value, nots+1))
		case "$in":
			clauses = append(clauses, r.in(path, value, nots))
		case "$nin":
			clauses = append(clauses, r.in(path, value, nots+1))
		case "$all":
			clauses = append(clauses, r.all(path, value, nots))
		case "$not":
			clauses = append(clauses, r.condition(path, value, nots+1))
		case "$elemMatch":
			clauses = append(clauses, clause{never: !negated(nots) && r.matchesNoElement(value)})
		default:
			clauses = append(clauses, clause{})
		}
	}
	return conjunction(clauses, nots)
}

// isOperators reports whether a condition has operators. Otherwise it is a value.
func isOperators(value bson.RawValue, elements []bson.RawElement) bool {
	if value.Type != bson.TypeEmbeddedDocument || len(elements) == 0 || !strings.HasPrefix(elements[0].Key(), "$") {
		return false
	}
	doc := bson.Raw(value.Value)
	_, noRef := doc.LookupErr("$ref")
	_, noID := doc.LookupErr("$id")
	return noRef != nil || noID != nil // both make it a DBRef
}

func (r *filterReader) equality(path string, value bson.RawValue, nots int) clause {
	if !isIDPath(path) || negated(nots) {
		return clause{}
	}
	if nots != 0 {
		return clause{id: maybeID}
	}
	if form := formOfRaw(value); path == "_id" && form.isZero() {
		r.zero = form
	}
	return clause{id: givenID}
}

// in reads $in.
func (r *filterReader) in(path string, list bson.RawValue, nots int) clause {
	values := valuesOf(list)
	if list.Type != bson.TypeArray || len(values) == 0 {
		return clause{never: list.Type == bson.TypeArray && !negated(nots)}
	}
	id := r.equality(path, values[0], nots)
	for _, v := range values {
		if v.Type == bson.TypeRegex {
			return clause{}
		}
	}
	for _, v := range values[1:] {
		_ = r.equality(path, v, nots) // it can be zero
		switch {
		case id.id == noID || v.Equal(values[0]):
		case differ(v, values[0]):
			id.id = noID
		default:
			id.id = maybeID
		}
	}
	return id
}

// all reads $all, which is a conjunction of equalities.
func (r *filterReader) all(path string, list bson.RawValue, nots int) clause {
	values := valuesOf(list)
	if len(values) == 0 {
		return clause{never: list.Type == bson.TypeArray && !negated(nots)}
	}
	var clauses []clause
	for _, v := range values {
		if v.Type == bson.TypeRegex || isOperators(v, elementsOf(v)) {
			clauses = append(clauses, clause{})
		} else {
			clauses = append(clauses, r.equality(path, v, nots))
		}
	}
	return conjunction(clauses, nots)
}

// matchesNoElement reports whether the condition or the filter of $elemMatch can never match.
func (r *filterReader) matchesNoElement(value bson.RawValue) bool {
	element := new(filterReader) // its _id is not that of the document
	if isOperators(value, elementsOf(value)) {
		return element.condition("element", value, 0).never
	}
	doc, ok := value.DocumentOK()
	return ok && element.document(doc, 0).never
}

// conjunction joins clauses of which all must match, or, if they are negated, one.
func conjunction(clauses []clause, nots int) clause {
	if negated(nots) {
		return oneOf(clauses)
	}
	return allOf(clauses)
}

// disjunction joins clauses of which one must match, or, if they are negated, all.
func disjunction(clauses []clause, nots int) clause {
	if negated(nots) {
		return allOf(clauses)
	}
	return oneOf(clauses)
}

func allOf(clauses []clause) clause {
	var whole clause
	for _, c := range clauses {
		whole.id = max(whole.id, c.id)
		whole.never = whole.never || c.never
	}
	return whole
}

func oneOf(clauses []clause) clause {
	if len(clauses) == 1 {
		return clauses[0]
	}
	whole := clause{never: true}
	some, none := false, false
	for _, c := range clauses {
		whole.never = whole.never && c.never
		some = some || c.id != noID
		none = none || c.id == noID && !c.never
	}
	if some && !none {
		whole.id = maybeID
	}
	return whole
}

// differ reports whether two values are unequal for every server and with any collation, which can make strings equal.
func differ(a, b bson.RawValue) bool {
	if comparedAs(a.Type) != comparedAs(b.Type) {
		return true
	}
	switch a.Type {
	case bson.TypeBinary, bson.TypeObjectID, bson.TypeBoolean, bson.TypeDateTime, bson.TypeTimestamp, bson.TypeInt32, bson.TypeInt64:
		return a.Type == b.Type && !a.Equal(b)
	default:
		return false
	}
}

// comparedAs returns one type for the types whose values can be equal to each other.
func comparedAs(t bson.Type) bson.Type {
	switch t {
	case bson.TypeInt32, bson.TypeInt64, bson.TypeDecimal128:
		return bson.TypeDouble
	case bson.TypeSymbol:
		return bson.TypeString
	default:
		return t
	}
}
