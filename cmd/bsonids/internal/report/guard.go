package report

import (
	"fmt"
	"io"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Guard is the guard of a collection, or what it would be.
type Guard struct {
	Collection string          `json:"collection"`
	Wanted     string          `json:"wanted"` // the level that the plan has
	Before     record.Settings `json:"before"`
	Now        record.Settings `json:"now"`
	Stays      string          `json:"staysModerate,omitempty"` // why the level is not the one that the plan has
	Shell      string          `json:"mongosh"`                 // the command for mongosh
}

// guards writes the guards of a plan.
func guards(w io.Writer, all []Guard, write bool) {
	for _, g := range all {
		name := terminal.Cell(g.Collection)
		switch {
		case !write:
			fmt.Fprintf(w, "\nThe guard of %s: %s. The validator, in extended JSON:\n%s\nIn mongosh:\n%s\n", name, g.Wanted, g.Now.Text(), g.Shell)
		case g.Stays != "":
			fmt.Fprintf(w, "\nThe guard of %s stays at level moderate: %s.\n", name, g.Stays)
		case g.Wanted == guard.Strict:
			fmt.Fprintf(w, "\nThe guard of %s is at level strict, and the second pass found no old value.\n", name)
		default:
			fmt.Fprintf(w, "\nThe guard of %s is at level %s.\n", name, g.Now.Level)
		}
	}
}

// GuardRemoved is what a command did to remove a guard, or would do.
type GuardRemoved struct {
	Collection string `json:"collection"` // with its database
	Written    bool   `json:"written"`
	// Restored reports whether the collection has the settings that it had before the guard. If not,
	// another program has replaced the validator, and it was left as it is.
	Restored bool            `json:"restored"`
	Before   record.Settings `json:"before"` // the settings before the guard
	Now      record.Settings `json:"now"`    // the settings that the collection has
}

// Text writes what a command did to remove a guard, or would do.
func (r GuardRemoved) Text(w io.Writer) {
	switch now, before := guard.Describe(r.Now), guard.Describe(r.Before); {
	case !r.Written:
		fmt.Fprintf(w, "%s: dry run, nothing was changed\n\nit has: %s\nbefore the guard, it had: %s\n\nAdd --write to restore these.\n", r.Collection, now, before)
	case r.Restored:
		fmt.Fprintf(w, "%s: the guard is removed. The collection has the settings that it had before: %s\n", r.Collection, now)
	default:
		fmt.Fprintf(w, "%s: another program has replaced the validator, and it was left as it is: %s\n", r.Collection, now)
		fmt.Fprintf(w, "The guard is deleted from the record. Before the guard, the collection had: %s\n", before)
	}
}
