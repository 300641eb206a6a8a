package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// collectionUUID returns the same UUID for the same name, and nil for none.
func collectionUUID(name string) *bson.Binary {
	if name == "" {
		return nil
	}
	return &bson.Binary{Subtype: bson.TypeBinaryUUID, Data: fmt.Appendf(nil, "%016s", name)}
}

// What was converted in a collection is known under each of its names, and in its copies, in place or not. What another
// collection of the name had is not.
func TestHistory(t *testing.T) {
	inPlace := func(conversion, name, uuid string) *Run {
		return run(1, conversion, func(r *Run) { r.Collection, r.UUID = name, collectionUUID(uuid) })
	}
	into := func(conversion, name, uuid, copy, copyUUID string) *Run {
		r := inPlace(conversion, name, uuid)
		r.Into, r.IntoUUID = copy, collectionUUID(copyUUID)
		return r
	}
	cutover := func(state, name, old, fresh, maker string) *Cutover {
		return &Cutover{Saved: Saved{State: state}, Collections: []Exchange{{Name: name, Maker: maker, OldID: collectionUUID(old), NewID: collectionUUID(fresh)}}}
	}
	copied := []*Run{inPlace("a", "c", "1"), into("b", "c", "1", "n", "2")}
	putAway := cutover(Released, "c", "1", "2", "b")
	putAway.Collections[0].Kept, putAway.Collections[0].KeptID = "c_old", collectionUUID("9")
	for name, tt := range map[string]struct {
		runs     []*Run
		cutovers []*Cutover
		of, uuid string
		want     string
	}{
		"in place":                        {[]*Run{inPlace("a", "c", "1")}, nil, "c", "1", "a"},
		"without UUIDs":                   {[]*Run{inPlace("a", "c", "")}, nil, "c", "1", "a"},
		"of a server without UUIDs":       {[]*Run{inPlace("a", "c", "1")}, nil, "c", "", "a"},
		"another collection of the name":  {[]*Run{inPlace("a", "c", "1")}, nil, "c", "2", ""},
		"renamed":                         {[]*Run{inPlace("a", "c", "1"), inPlace("b", "d", "1")}, nil, "e", "1", "a b"},
		"the source of a copy":            {copied, nil, "c", "1", "a"},
		"a copy":                          {copied, nil, "n", "2", "a b"},
		"a copy that a person has moved":  {copied, nil, "c", "2", "a b"},
		"another one of the copy's name":  {copied, nil, "n", "3", ""},
		"a copy whose UUID is not known":  {[]*Run{into("b", "c", "1", "n", "")}, nil, "n", "2", "b"},
		"a copy of a copy":                {append(copied, into("c", "n", "2", "m", "3")), nil, "m", "3", "a b c"},
		"put in place":                    {copied, []*Cutover{cutover(Released, "c", "9", "3", "b")}, "c", "3", "a b"},
		"put in place twice":              {append(copied, into("c", "c", "2", "n", "4")), []*Cutover{cutover(Released, "c", "1", "2", "b"), cutover(Released, "c", "2", "4", "c")}, "c", "4", "a b c"},
		"put in place, and made again":    {copied, []*Cutover{cutover(Released, "c", "1", "3", "b")}, "c", "5", ""},
		"put back":                        {copied, []*Cutover{cutover(RolledBack, "c", "1", "2", "b")}, "c", "1", "a"},
		"put back, with another UUID":     {copied, []*Cutover{cutover(RolledBack, "c", "3", "2", "b")}, "c", "3", "a"},
		"a copy that was put back":        {copied, []*Cutover{cutover(RolledBack, "c", "1", "3", "b")}, "n", "3", "a b"},
		"put away, with another UUID":     {copied, []*Cutover{putAway}, "c_old", "9", "a"},
		"put away, and renamed by a user": {copied, []*Cutover{cutover(Released, "c", "1", "2", "b")}, "x", "1", "a"},
	} {
		var got []string
		for _, r := range Behind(tt.of, collectionUUID(tt.uuid), tt.runs, tt.cutovers) {
			got = append(got, r.Conversion)
		}
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
