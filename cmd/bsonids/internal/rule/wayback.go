package rule

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
	value Value
}

// WayBack returns the changes that restore in doc the old values of the changes that were made. lost has the
// changes whose values doc has in neither their old nor their new form. If a value is not at its path, WayBack looks for its bytes elsewhere in the field, because
// another program may have moved it within its array. It uses these places if there are as many as
// missing values. A null, which the document of a Go struct without a UUID became, is restored at its own path only: another
// one may be of another program. The error wraps walk.ErrCorrupt.
func WayBack(doc bson.Raw, made []Change) (back, lost []Change, err error) {
	var missed []Change
	values := HeldBy(doc, len(made))
	for _, ch := range made {
		switch {
		case values.HasNew(ch):
			back = append(back, ch.back(ch.Path))
		case values.HasOld(ch):
		case ch.New == Null: // which nothing tells from another one
			lost = append(lost, ch)
		default:
			missed = append(missed, ch)
		}
	}
	if len(missed) == 0 {
		return back, lost, nil
	}
	held := make(map[string]bool) // the paths of the values that were found
	for _, ch := range made {
		held[ch.Path] = true
	}
	for _, ch := range slices.Concat(missed, lost) {
		delete(held, ch.Path)
	}
	places := make(map[standing][]string)
	err = everything(doc, func(path *walk.Path, l walk.Leaf) {
		f, ok := foundIn(l)
		if !ok || path.Addressable() != nil || path.Repeated(doc) || held[path.Dotted()] {
			return
		}
		s := standing{withoutPositions(path.Dotted()), f}
		places[s] = append(places[s], path.Dotted())
	})
	if err != nil {
		return nil, nil, err
	}
	becoming, unsure := byNew(made), make(map[standing]bool)
	for s, changes := range byNew(missed) {
		was := make(map[Value]int)
		for _, ch := range changes {
			was[ch.Old]++
		}
		restored := true
		for f, n := range was {
			restored = restored && len(places[standing{s.field, f}]) == n
		}
		switch {
		case len(places[s]) == len(changes):
			for i, path := range places[s] {
				back = append(back, changes[i].back(path))
			}
		case len(places[s]) == 0 && restored:
		default:
			// If the old values of the field differ, one that is at its path may have been another.
			all := becoming[s]
			if !slices.ContainsFunc(all, func(ch Change) bool { return ch.Old != all[0].Old }) {
				lost = append(lost, changes...)
				continue
			}
			lost, unsure[s] = append(lost, all...), true
		}
	}
	back = slices.DeleteFunc(back, func(b Change) bool { return unsure[standing{withoutPositions(b.Path), b.Old}] })
	return back, lost, nil
}

// byNew returns the changes by their fields and new values.
func byNew(changes []Change) map[standing][]Change {
	by := make(map[standing][]Change)
	for _, ch := range changes {
		s := standing{withoutPositions(ch.Path), ch.New}
		by[s] = append(by[s], ch)
	}
	return by
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
