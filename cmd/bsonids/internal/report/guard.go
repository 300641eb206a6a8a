package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/guard"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Guard is what a command did to guard a collection, or would do.
type Guard struct {
	Database, Collection string
	From                 kinds.Kind
	Fields               []guard.Field
	Write                bool // false for a dry run
	Before, Now          guard.Settings
	Passes               []guard.Found
	// Strict is true if level strict was asked for, and Stays is why it was not set.
	Strict bool
	Stays  string
	Shell  string // the command for mongosh
	Remove string // the command that removes the guard
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

type guardPass struct {
	Read      int64      `json:"documentsRead"`
	Documents int64      `json:"documentsWithOldValues"`
	Old       int64      `json:"oldValues"`
	Fields    rule.Tally `json:"oldValuesByField"`
	Elsewhere rule.Tally `json:"oldValuesNotGuarded"`
}

// GuardJSON writes what a command did to guard a collection as JSON.
func GuardJSON(w io.Writer, g Guard) error {
	fields, passes := []string{}, []guardPass{}
	for _, f := range g.Fields {
		fields = append(fields, f.String())
	}
	for _, p := range g.Passes {
		passes = append(passes, guardPass{p.Read, p.Documents, p.Old, p.Fields, notGuarded(p)})
	}
	return JSON(w, struct {
		Collection string        `json:"collection"`
		Removed    bool          `json:"removed"`
		Written    bool          `json:"written"`
		From       string        `json:"from"`
		Subtype    byte          `json:"subtype"`
		Fields     []string      `json:"fields"`
		Before     guardSettings `json:"before"`
		Now        guardSettings `json:"now"`
		Passes     []guardPass   `json:"passes"`
		Stays      string        `json:"staysModerate,omitempty"`
		Shell      string        `json:"mongosh"`
	}{g.Database + "." + g.Collection, false, g.Write, g.From.Name, g.From.Subtype, fields, settingsOf(g.Before), settingsOf(g.Now), passes, g.Stays, g.Shell})
}

// WriteGuard writes what a command did to guard a collection.
func WriteGuard(w io.Writer, g Guard) {
	_, how := written(g.Write, "", "")
	fmt.Fprintf(w, "%s.%s: guard against %s%s\n\n", g.Database, g.Collection, g.From, how)
	for i, p := range g.Passes {
		if i > 0 {
			fmt.Fprintln(w, "\nThe second pass, at level strict:")
		}
		t := newTable(w, "field", g.From.Values())
		named := make(map[string]bool)
		for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
			t.AppendRow([]any{name, p.Fields[name]})
			named[strings.ReplaceAll(name, "[]", "")] = true
		}
		for _, f := range g.Fields {
			if !named[f.String()] {
				t.AppendRow([]any{f.String(), 0})
			}
		}
		t.Render()
		fmt.Fprintf(w, "\n%d old values in %d documents, of %d documents read\n", p.Old, p.Documents, p.Read)
		if p.Corrupt > 0 {
			fmt.Fprintf(w, "%d documents are not valid BSON\n", p.Corrupt)
		}
		rest := notGuarded(p)
		for _, name := range slices.Sorted(maps.Keys(rest)) {
			fmt.Fprintf(w, "not guarded: %s, with %d %s\n", name, rest[name], g.From.Values())
		}
	}
	if !g.Write {
		fmt.Fprintf(w, "\nThe validator, in extended JSON:\n%s\n\nIn mongosh:\n%s\n", g.Now.Text(), g.Shell)
	}
	fmt.Fprintln(w)
	switch {
	case g.Stays != "" && g.Write:
		fmt.Fprintf(w, "The guard stays at level moderate: %s.\n", g.Stays)
	case g.Stays != "":
		fmt.Fprintf(w, "The guard would stay at level moderate: %s.\n", g.Stays)
	case !g.Write && g.Strict:
		fmt.Fprintln(w, "No old value was found. Add --write to set the guard at level strict.")
	case !g.Write:
		fmt.Fprintln(w, "Add --write to set the validator.")
	case g.Strict:
		fmt.Fprintln(w, "The guard is set at level strict, and the second pass found no old value.")
	default:
		fmt.Fprintf(w, "The guard is set at level %s.\n", g.Now.Level)
	}
	if g.Write {
		fmt.Fprintf(w, "To remove it: %s\n", g.Remove)
	}
}

// GuardRemovedJSON writes as JSON what a command did to remove a guard.
func GuardRemovedJSON(w io.Writer, namespace string, write bool, r guard.Removed) error {
	return JSON(w, struct {
		Collection string        `json:"collection"`
		Removed    bool          `json:"removed"`
		Written    bool          `json:"written"`
		Restored   bool          `json:"restored"`
		Before     guardSettings `json:"before"`
		Now        guardSettings `json:"now"`
	}{namespace, true, write, r.Restored, settingsOf(r.Before), settingsOf(r.Now)})
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

// notGuarded counts the old values that the validator does not test.
func notGuarded(f guard.Found) rule.Tally {
	all := maps.Clone(f.Elsewhere)
	maps.Copy(all, f.Untested)
	return all
}
