package report

import (
	"encoding/json"
	"fmt"
	"io"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Guard is the guard of a collection, or what it would be.
type Guard struct {
	Collection  string
	Wanted      string // the level that the plan has
	Before, Now guard.Settings
	Stays       string // why the level is not the one that the plan has
	Shell       string // the command for mongosh
}

type guardSettings struct {
	Validator any    `json:"validator"`
	Level     string `json:"validationLevel"`
	Action    string `json:"validationAction"`
}

func settingsOf(s guard.Settings) guardSettings {
	j := guardSettings{Level: s.Level, Action: s.Action}
	if len(s.Validator) > 0 {
		j.Validator = extended(bson.Raw(s.Validator))
	}
	return j
}

// MarshalJSON writes the guard as the documents of apply have it.
func (g Guard) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Collection string        `json:"collection"`
		Wanted     string        `json:"wanted"`
		Before     guardSettings `json:"before"`
		Now        guardSettings `json:"now"`
		Stays      string        `json:"staysModerate,omitempty"`
		Shell      string        `json:"mongosh"`
	}{g.Collection, g.Wanted, settingsOf(g.Before), settingsOf(g.Now), g.Stays, g.Shell})
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

// GuardRemovedJSON writes as JSON what a command did to remove a guard.
func GuardRemovedJSON(w io.Writer, namespace string, write bool, r guard.Removed) error {
	return JSON(w, struct {
		Collection string        `json:"collection"`
		Written    bool          `json:"written"`
		Restored   bool          `json:"restored"`
		Before     guardSettings `json:"before"`
		Now        guardSettings `json:"now"`
	}{namespace, write, r.Restored, settingsOf(r.Before), settingsOf(r.Now)})
}

// WriteGuardRemoved writes what a command did to remove a guard, or would do.
func WriteGuardRemoved(w io.Writer, namespace string, write bool, r guard.Removed) {
	switch {
	case !write:
		fmt.Fprintf(w, "%s: dry run, nothing was changed\n\nit has: %s\nbefore the guard, it had: %s\n\nAdd --write to restore these.\n", namespace, guard.Describe(r.Now), guard.Describe(r.Before))
	case r.Restored:
		fmt.Fprintf(w, "%s: the guard is removed. The collection has the settings that it had before: %s\n", namespace, guard.Describe(r.Now))
	default:
		fmt.Fprintf(w, "%s: another program has replaced the validator, and it was left as it is: %s\n", namespace, guard.Describe(r.Now))
		fmt.Fprintf(w, "The guard is deleted from the record. Before the guard, the collection had: %s\n", guard.Describe(r.Before))
	}
}
