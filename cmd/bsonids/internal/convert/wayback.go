package convert

import (
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// standing is a 16-byte value in a document. The field is its path without array positions.
type standing struct {
	field   string
	subtype byte
	octets  [16]byte
}

// wayBack returns the changes that restore the values of the entry in doc. lost is true if doc has
// a value of the entry in neither its old nor its new form. If a value is not at its path, wayBack
// looks for its bytes elsewhere in the field, because another program may have moved it within its
// array. It uses these places if there are as many as missing values.
func (e Entry) wayBack(doc bson.Raw) (p Plan, lost bool, err error) {
	p.ID = e.ID
	var missed []Change
	values := valuesOf(doc, len(e.Changes))
	for _, ch := range e.Changes {
		subtype, octets, ok := values.at(ch.Path)
		switch {
		case ok && subtype == e.to && octets == ch.New:
			p.Changes = append(p.Changes, Change{Path: ch.Path, Old: ch.New, New: ch.Old})
		case ok && subtype == e.from && octets == ch.Old:
		default:
			missed = append(missed, ch)
		}
	}
	if len(missed) == 0 {
		return p, false, nil
	}
	held := make(map[string]bool) // the paths of the values that were found
	for _, ch := range e.Changes {
		held[ch.Path] = true
	}
	for _, ch := range missed {
		delete(held, ch.Path)
	}
	places := make(map[standing][]string)
	err = walk.Document(doc, func(path *walk.Path, l walk.Leaf) error {
		subtype, data, _, ok := l.Binary()
		if !ok || len(data) != 16 || path.Addressable() != nil || path.Repeated(doc) || held[path.Dotted()] {
			return nil
		}
		s := standing{withoutPositions(path.Dotted()), subtype, [16]byte(data)}
		places[s] = append(places[s], path.Dotted())
		return nil
	})
	if err != nil {
		return p, false, err
	}
	want := make(map[standing][]Change)
	for _, ch := range missed {
		s := standing{withoutPositions(ch.Path), e.to, ch.New}
		want[s] = append(want[s], ch)
	}
	for s, changes := range want {
		was := standing{s.field, e.from, changes[0].Old}
		switch {
		case len(places[s]) == len(changes):
			for i, path := range places[s] {
				p.Changes = append(p.Changes, Change{Path: path, Old: changes[i].New, New: changes[i].Old})
			}
		case len(places[s]) == 0 && len(places[was]) == len(changes): // already restored
		default:
			return p, true, nil
		}
	}
	return p, false, nil
}

// withoutPositions returns the path with every number replaced by []. A number is an array
// position, or a field name that looks like one.
func withoutPositions(path string) string {
	names := strings.Split(path, ".")
	for i, n := range names {
		if _, err := strconv.ParseUint(n, 10, 31); err == nil {
			names[i] = "[]"
		}
	}
	return strings.Join(names, ".")
}

// holds reports whether doc has every value of the entry at its path, with the subtype and the
// bytes that want returns.
func holds(doc bson.Raw, e Entry, subtype byte, want func(Change) [16]byte) bool {
	values := valuesOf(doc, len(e.Changes))
	for _, ch := range e.Changes {
		if !values.is(ch.Path, subtype, want(ch)) {
			return false
		}
	}
	return true
}
