// Package privilege says which privileges the user of a server needs for each verb, and which of them the user lacks.
package privilege

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Verb is a command of this program.
type Verb string

// The verbs.
const (
	Scan    Verb = "scan"
	Plan    Verb = "plan"
	DryRun  Verb = "apply"
	Apply   Verb = "apply --write"
	Verify  Verb = "verify"
	Status  Verb = "status"
	Undo    Verb = "undo --write"
	Cutover Verb = "cutover --write"
	PutBack Verb = "undo --write of a cutover"
	Release Verb = "release --write"
)

// place is what an action is allowed on.
type place string

// The places, as the documentation names them.
const (
	// MongoDB asks for these actions on the database as a resource: that they are allowed on each of its collections
	// does not count.
	database place = "the database"
	read     place = "each collection that is read"
	inPlace  place = "a collection that is converted in place"
	old      place = "a collection that is copied"
	fresh    place = "its copy"
	kept     place = "the name under which it is kept"
	// The names of these collections are random, so that only what is granted on the database applies.
	probe   place = "`bsonids.probe.*`"
	records place = "`" + record.Name + "`"
)

// row says which actions a verb needs on a place.
type row struct {
	verb    Verb
	on      place
	actions []string // two that are divided by | are alternatives
	instead []row    // what also does
}

// renames is what MongoDB takes for the privilege to rename collections, too.
var renames = []row{
	{on: old, actions: []string{"find", "dropCollection", "insert", "createIndex"}},
	{on: fresh, actions: []string{"find", "dropCollection", "insert", "createIndex"}},
	{on: kept, actions: []string{"find", "dropCollection", "insert", "createIndex"}},
	{on: probe, actions: []string{"find", "dropCollection", "insert", "createIndex"}},
}

// table has what each verb needs, by the commands that it sends and the actions that MongoDB asks for these. Who may find
// in a collection must be able to in the one of its new name, too, for a rename.
var table = slices.Concat([]row{
	{Scan, read, []string{"find"}, nil},
	{Plan, database, []string{"listCollections"}, nil},
	{Plan, read, []string{"find"}, nil},
	{DryRun, database, []string{"listCollections"}, nil},
	{DryRun, read, []string{"find"}, nil},
	{Apply, database, []string{"listCollections"}, nil},
	{Apply, inPlace, []string{"find", "update"}, nil},
	{Apply, old, []string{"find", "listIndexes"}, nil},
	{Apply, fresh, []string{"find", "insert", "update", "remove", "createIndex"}, nil},
	{Apply, records, []string{"find", "insert", "update"}, nil},
	{Verify, database, []string{"listCollections"}, nil},
	{Verify, read, []string{"find"}, nil},
	{Verify, records, []string{"find"}, nil},
	{Status, records, []string{"find"}, nil},
	{Undo, database, []string{"listCollections"}, nil},
	{Undo, inPlace, []string{"find", "update"}, nil},
	{Undo, records, []string{"find", "insert", "update"}, nil},
}, exchange(Cutover, []string{"insert", "update", "listIndexes", "bypassDocumentValidation"}, []string{"insert", "update", "remove", "listIndexes", "bypassDocumentValidation"}, []string{"insert", "remove", "bypassDocumentValidation"}),
	// The new collection is in place, and documents of the old one are deleted.
	exchange(PutBack, []string{"insert", "bypassDocumentValidation"}, nil, []string{"remove"}), []row{
		{Release, database, []string{"listCollections"}, nil},
		{Release, old, []string{"find", "collMod"}, nil},
		{Release, records, []string{"find", "insert", "update"}, nil},
	})

// exchange returns what a verb needs that exchanges collections: on each of the three names, in addition to what it needs on all.
func exchange(v Verb, onOld, onFresh, onKept []string) []row {
	all := func(more []string) []string { return append([]string{"find", "collMod"}, more...) }
	return []row{
		{v, database, []string{"listCollections", "changeStream", "find"}, nil},
		{v, database, []string{"renameCollectionSameDB"}, renames},
		{v, old, all(onOld), nil},
		{v, fresh, all(onFresh), nil},
		{v, kept, all(onKept), nil},
		{v, probe, []string{"createCollection|insert", "dropCollection"}, nil},
		{v, records, []string{"find", "insert", "update"}, nil},
	}
}

// Needs describes what a verb needs, for a person who grants it.
func Needs(v Verb) string {
	var parts []string
	var of []place
	by := make(map[place][]string)
	for _, r := range table {
		if r.verb == v {
			if by[r.on] == nil {
				of = append(of, r.on)
			}
			by[r.on] = append(by[r.on], r.actions...)
		}
	}
	for i := 0; i < len(of); i++ {
		on := []string{string(of[i])}
		for j := i + 1; j < len(of); j++ {
			if slices.Equal(by[of[j]], by[of[i]]) {
				on = append(on, string(of[j]))
				of = slices.Delete(of, j, j+1)
				j--
			}
		}
		parts = append(parts, each(by[of[i]])+" on "+and(on))
	}
	return strings.ReplaceAll(strings.Join(parts, "; "), "`", "")
}

// each lists actions in a sentence.
func each(actions []string) string {
	var words []string
	for _, a := range actions {
		words = append(words, strings.ReplaceAll(a, "|", " or "))
	}
	return and(words)
}

func and(words []string) string {
	if n := len(words) - 1; n > 0 {
		return strings.Join(words[:n], ", ") + " and " + words[n]
	}
	return strings.Join(words, "")
}

// Work is the collections of a database that a verb is about.
type Work struct {
	Database string
	InPlace  []string
	Copies   []Copy
}

// Copy is the names of a collection that is copied. Kept is empty if it is not exchanged.
type Copy struct{ Old, New, Kept string }

// names returns the collections of the work in a place, as resources.
func (w Work) names(on place) (names []string) {
	switch on {
	case database:
		return []string{""}
	case inPlace:
		return w.InPlace
	case probe:
		return []string{"bsonids.probe.x"}
	case records:
		return []string{record.Name}
	case read:
		names = slices.Clone(w.InPlace)
	}
	for _, c := range w.Copies {
		switch on {
		case old:
			names = append(names, c.Old)
		case fresh:
			names = append(names, c.New)
		case kept:
			names = append(names, c.Kept)
		case read:
			names = append(names, c.Old, c.New)
		}
	}
	return names
}

// of returns the part of the work that a verb is about.
func (w Work) of(v Verb) Work {
	if v == Cutover || v == PutBack || v == Release {
		w.InPlace = nil
		w.Copies = slices.DeleteFunc(slices.Clone(w.Copies), func(c Copy) bool { return c.Kept == "" })
	}
	return w
}

// Need is actions on a collection, or on the database as a resource if it has no name.
type Need struct {
	Database, Collection string
	Actions              []string
}

// Needs returns what a verb needs.
func (w Work) Needs(v Verb) (needs []Need) {
	w = w.of(v)
	for _, r := range table {
		for _, name := range w.names(r.on) {
			if r.verb == v {
				needs = append(needs, Need{w.Database, name, r.actions})
			}
		}
	}
	return needs
}

// empty reports whether there is nothing to do.
func (w Work) empty() bool { return len(w.InPlace)+len(w.Copies) == 0 }

// resource is a database, if it has no collection, or a collection.
type resource struct{ database, collection string }

func (r resource) String() string {
	switch {
	case r.collection == "":
		return "the database " + r.database
	case strings.HasPrefix(r.collection, "bsonids.probe."):
		return fmt.Sprintf("%s.bsonids.probe.* (on the database)", r.database)
	}
	return r.database + "." + r.collection
}
