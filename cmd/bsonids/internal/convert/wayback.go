package convert

import (
	"slices"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// standing is a value in a document. The field is its path without array positions.
type standing struct {
	field string
	found
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
		switch {
		case values.hasNew(ch, e.to):
			p.Changes = append(p.Changes, ch.back(ch.Path))
		case values.hasOld(ch, e.from):
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
	err = everything(doc, func(path *walk.Path, l walk.Leaf) error {
		f, ok := foundIn(l)
		if !ok || path.Addressable() != nil || path.Repeated(doc) || held[path.Dotted()] {
			return nil
		}
		s := standing{withoutPositions(path.Dotted()), f}
		places[s] = append(places[s], path.Dotted())
		return nil
	})
	if err != nil {
		return p, false, err
	}
	want := make(map[standing][]Change)
	for _, ch := range missed {
		s := standing{withoutPositions(ch.Path), foundOf(e.to, ch.New, ch.NewValue)}
		want[s] = append(want[s], ch)
	}
	for s, changes := range want {
		was := make(map[found]int)
		for _, ch := range changes {
			was[foundOf(e.from, ch.Old, ch.OldValue)]++
		}
		restored := true
		for f, n := range was {
			restored = restored && len(places[standing{s.field, f}]) == n
		}
		switch {
		case len(places[s]) == len(changes):
			for i, path := range places[s] {
				p.Changes = append(p.Changes, changes[i].back(path))
			}
		case len(places[s]) == 0 && restored:
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

// foundOf returns value, or if that is empty, a binary value.
func foundOf(subtype byte, octets [16]byte, value Value) found {
	if value != "" {
		return found{value: value}
	}
	return found{subtype: subtype, octets: octets}
}

// holdsOld reports whether doc has every old value of the entry at its path.
func holdsOld(doc bson.Raw, e Entry) bool {
	values := valuesOf(doc, len(e.Changes))
	return !slices.ContainsFunc(e.Changes, func(ch Change) bool { return !values.hasOld(ch, e.from) })
}

// holdsNew reports whether doc has every new value of the entry at its path.
func holdsNew(doc bson.Raw, e Entry) bool {
	values := valuesOf(doc, len(e.Changes))
	return !slices.ContainsFunc(e.Changes, func(ch Change) bool { return !values.hasNew(ch, e.to) })
}
