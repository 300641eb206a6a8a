package plan

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Names of files in the directory of a migration.
const (
	PlanFile = "plan.yaml"     // that a person edits
	NewFile  = "plan.new.yaml" // the plan, brought up to date while the directory was in use
	// EvidenceFile has all evidence of a plan of a dump, SkipFile the values that its conversion left, and ConvertedFile says
	// what was converted last.
	EvidenceFile  = "evidence.json"
	SkipFile      = "skipped.jsonl"
	ConvertedFile = "converted.json"
	// DuplicatesFile has the pairs of documents of which one would get a unique value of the other one.
	DuplicatesFile = "duplicates.jsonl"
)

// SteeringOf returns the files by which a person steers the work in the directory of a migration.
func SteeringOf(dir string) patience.Steering {
	return patience.Steering{Pause: filepath.Join(dir, "pause"), Rate: filepath.Join(dir, "rate")}
}

// SkipList returns the path of the list of the values that a step leaves, in the directory of the migration, or its name if
// dir is empty.
func (s Step) SkipList(dir string) string { return filepath.Join(dir, Stem(s.Task)+".skipped.jsonl") }

// plainStem matches a name that is a part of a file name on every system.
var plainStem = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)

var notPlain = regexp.MustCompile(`[^a-z0-9_-]`)

// short returns a short hash.
func short(s string) string { return sumOf([]byte(s))[:12] }

// Stem returns the beginning of the name of a file about a step. It is different for each step of a plan, even if the file
// system does not distinguish upper and lower case.
func Stem(t kinds.Task) string {
	name := t.Collection
	if !plainStem.MatchString(name) { // no plain name has a plus sign
		name = fmt.Sprintf("%.40s+%s", notPlain.ReplaceAllString(strings.ToLower(name), "_"), short(name))
	}
	if t.Filter != "" {
		name += "." + short(t.Filter)
	}
	return name
}

// Conversion returns the name that the conversion of a task has in the record: the same for the same documents and the same
// place.
func (p *Plan) Conversion(t kinds.Task) string {
	of := p.Migration + "/" + Stem(t)
	if t.Into != "" {
		of += "/" + short(t.Into)
	}
	return of
}
