package mixedrep

import (
	"bytes"
	"errors"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A pair is one value in two encodings: as the registry of the collection writes it, and as the
// registry of the other representation does. They differ in the UUIDs that the registry encodes,
// and in nothing else: that is how these are told from binary values of the caller.
type pair struct{ written, other bson.RawValue }

var errUnstable = errors.New("mixedrep: the value encodes differently each time")

// isUUID reports whether p is a UUID that the registry encodes.
func (p pair) isUUID() bool {
	if p.written.Type != bson.TypeBinary || p.other.Type != bson.TypeBinary {
		return false
	}
	subtype, data := p.written.Binary()
	otherSubtype, otherData := p.other.Binary()
	return subtype != otherSubtype && len(data) == 16 && len(otherData) == 16
}

// A member is an element of a document or an array.
type member struct {
	key string
	pair
}

// members returns the elements of a document or an array. The encodings of a Go map have their
// elements in different orders, so members are joined by key and, for a key that occurs more than
// once, by occurrence.
func (p pair) members() ([]member, error) {
	written, err := bson.Raw(p.written.Value).Elements()
	if err != nil {
		return nil, err
	}
	other, err := bson.Raw(p.other.Value).Elements()
	if err != nil {
		return nil, err
	}
	if p.written.Type != p.other.Type || len(written) != len(other) {
		return nil, errUnstable
	}
	ms := make([]member, len(written))
	var places map[string][]int // of the elements of other by key, from the first on that is in another order
	for i, e := range written {
		at := i
		if places == nil && other[i].Key() != e.Key() {
			places = map[string][]int{}
			for j, o := range other[i:] {
				places[o.Key()] = append(places[o.Key()], i+j)
			}
		}
		if places != nil {
			left := places[e.Key()]
			if len(left) == 0 {
				return nil, errUnstable
			}
			at, places[e.Key()] = left[0], left[1:]
		}
		ms[i] = member{e.Key(), pair{e.Value(), other[at].Value()}}
	}
	return ms, nil
}

// hasUUID reports whether p is or contains a UUID that the registry encodes.
func (p pair) hasUUID() (bool, error) {
	if p.written.Type == p.other.Type && bytes.Equal(p.written.Value, p.other.Value) {
		return false, nil
	}
	if p.isUUID() {
		return true, nil
	}
	switch p.written.Type {
	case bson.TypeEmbeddedDocument, bson.TypeArray:
	case bson.TypeCodeWithScope:
		written, scope, ok := p.written.CodeWithScopeOK()
		other, otherScope, otherOK := p.other.CodeWithScopeOK()
		if !ok || !otherOK || written != other {
			return false, errUnstable
		}
		return pair{document(scope), document(otherScope)}.hasUUID()
	default:
		return false, errUnstable
	}
	ms, err := p.members()
	if err != nil {
		return false, err
	}
	found := false
	for _, m := range ms {
		has, err := m.hasUUID()
		if err != nil {
			return false, err
		}
		found = found || has
	}
	return found, nil
}

// plain returns p as it is written if it contains no UUID, and otherwise an UncoveredError.
func (p pair) plain(path, reason string) (bson.RawValue, error) {
	has, err := p.hasUUID()
	if err == nil && has {
		if p.written.Type == bson.TypeCodeWithScope {
			reason = inScope
		}
		err = &UncoveredError{Path: path, Reason: reason}
	}
	return p.written, err
}

const (
	explicitly = "give the value an explicit representation, as a bson.Binary of package uuidrep"
	oneValue   = "it compares with one binary value; " + explicitly
	inScope    = "it is in the scope of code, which gets one binary value; " + explicitly
	byParts    = "it compares a whole value; match its fields one by one, or " + explicitly
)

// filter rewrites a filter.
func (p pair) filter(path string) (bson.D, error) {
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	rewritten := make(bson.D, 0, len(ms))
	var also bson.A // further conditions, to join by $and
	for _, m := range ms {
		at := join(path, m.key)
		var v any
		switch {
		case m.key == "$and" || m.key == "$or" || m.key == "$nor":
			v, err = m.each(at, func(p pair, at string) (any, error) {
				if p.written.Type != bson.TypeEmbeddedDocument {
					return p.plain(at, byParts)
				}
				return p.filter(at)
			})
		case strings.HasPrefix(m.key, "$"):
			v, err = m.plain(at, oneValue)
		default:
			var more []any
			v, more, err = m.condition(at)
			for _, c := range more {
				also = append(also, bson.D{{Key: m.key, Value: c}})
			}
		}
		if err != nil {
			return nil, err
		}
		if v != nil {
			rewritten = append(rewritten, bson.E{Key: m.key, Value: v})
		}
	}
	if also == nil {
		return rewritten, nil
	}
	if len(rewritten) > 0 {
		also = append(bson.A{rewritten}, also...)
	}
	return bson.D{{Key: "$and", Value: also}}, nil
}

// each rewrites the elements of an array. What is not an array is the server's to refuse.
func (p pair) each(path string, rewrite func(pair, string) (any, error)) (any, error) {
	if p.written.Type != bson.TypeArray {
		return p.plain(path, oneValue)
	}
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	elements := make(bson.A, len(ms))
	for i, m := range ms {
		if elements[i], err = rewrite(m.pair, join(path, m.key)); err != nil {
			return nil, err
		}
	}
	return elements, nil
}

// condition rewrites the value of a field in a filter. It returns further conditions on the same
// field; the first result is nil if these are all.
func (p pair) condition(path string) (v any, more []any, err error) {
	switch {
	case p.isUUID():
		return bson.D{{Key: "$in", Value: p.both()}}, nil, nil
	case p.isOperators():
		ops, more, err := p.operators(path)
		if len(ops) == 0 {
			return nil, more, err
		}
		return ops, more, nil
	default:
		v, err := p.plain(path, byParts)
		return v, nil, err
	}
}

// both returns the values of an $in.
func (p pair) both() bson.A { return bson.A{p.written, p.other} }

// isOperators reports whether the server takes p for operators, and not for a value: whether it is
// a document that begins with a dollar sign. A DBRef ($ref, $id, $db) is a value.
func (p pair) isOperators() bool {
	if p.written.Type != bson.TypeEmbeddedDocument {
		return false
	}
	ms, err := p.members()
	if err != nil || len(ms) == 0 {
		return false
	}
	for _, m := range ms {
		if !strings.HasPrefix(m.key, "$") || m.key == "$ref" || m.key == "$id" || m.key == "$db" {
			return false
		}
	}
	return true
}

// operators rewrites the operators of one field, as condition does.
func (p pair) operators(path string) (bson.D, []any, error) {
	ms, err := p.members() // isOperators found them
	var rewritten bson.D
	var more []any
	given := make(map[string]bool, len(ms)) // the operators in rewritten
	for _, m := range ms {
		at := join(path, m.key)
		op := m.key
		var v any
		switch m.key {
		case "$eq", "$ne":
			if !m.isUUID() {
				v, err = m.plain(at, byParts)
				break
			}
			op = map[string]string{"$eq": "$in", "$ne": "$nin"}[m.key]
			v = m.both()
		case "$in", "$nin":
			v, err = m.values(at)
		case "$all":
			var every []any
			v, every, err = m.all(at)
			more = append(more, every...)
		case "$not":
			v, err = m.not(at)
		case "$elemMatch":
			v, err = m.elemMatch(at)
		default:
			v, err = m.plain(at, oneValue)
		}
		if err != nil {
			return nil, nil, err
		}
		if v == nil {
			continue
		}
		if given[op] {
			more = append(more, bson.D{{Key: op, Value: v}})
			continue
		}
		given[op] = true
		rewritten = append(rewritten, bson.E{Key: op, Value: v})
	}
	return rewritten, more, nil
}

// values rewrites the array of an $in or a $nin.
func (p pair) values(path string) (any, error) {
	if p.written.Type != bson.TypeArray {
		return p.plain(path, oneValue)
	}
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	values := bson.A{}
	for _, m := range ms {
		if m.isUUID() {
			values = append(values, m.both()...)
			continue
		}
		v, err := m.plain(join(path, m.key), byParts)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// all rewrites the array of an $all: a condition for each UUID, and an $all of the other elements.
func (p pair) all(path string) (v any, every []any, err error) {
	if p.written.Type != bson.TypeArray {
		v, err := p.plain(path, oneValue)
		return v, nil, err
	}
	ms, err := p.members()
	if err != nil {
		return nil, nil, err
	}
	rest := bson.A{}
	for _, m := range ms {
		at := join(path, m.key)
		switch {
		case m.isUUID():
			every = append(every, bson.D{{Key: "$in", Value: m.both()}})
			continue
		case m.isOperators(): // {$elemMatch: …}
			ops, more, err := m.operators(at)
			if err == nil && len(more) > 0 {
				err = &UncoveredError{Path: at, Reason: byParts}
			}
			if err != nil {
				return nil, nil, err
			}
			rest = append(rest, ops)
		default:
			v, err := m.plain(at, byParts)
			if err != nil {
				return nil, nil, err
			}
			rest = append(rest, v)
		}
	}
	if len(rest) == 0 && len(every) > 0 {
		return nil, every, nil
	}
	return rest, every, nil
}

// not rewrites the operators of a $not. Several conditions cannot be negated as one.
func (p pair) not(path string) (any, error) {
	if !p.isOperators() {
		return p.plain(path, oneValue)
	}
	return p.alone(path)
}

// elemMatch rewrites the filter or the operators of an $elemMatch.
func (p pair) elemMatch(path string) (any, error) {
	switch {
	case p.written.Type != bson.TypeEmbeddedDocument:
		return p.plain(path, oneValue)
	case p.isOperators() && !p.isLogical():
		return p.alone(path)
	default:
		return p.filter(path)
	}
}

// isLogical reports whether p, which is operators, begins with one that holds filters.
func (p pair) isLogical() bool {
	ms, _ := p.members()
	return ms[0].key == "$and" || ms[0].key == "$or" || ms[0].key == "$nor"
}

// alone rewrites operators that must stay one document.
func (p pair) alone(path string) (any, error) {
	ops, more, err := p.operators(path)
	switch {
	case err != nil:
		return nil, err
	case len(more) == 0:
		return ops, nil
	case len(more) == 1 && len(ops) == 0:
		return more[0], nil
	default:
		return nil, &UncoveredError{Path: path, Reason: "it needs several conditions; write them with $and"}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
