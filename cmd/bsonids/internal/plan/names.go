package plan

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
)

// Names of files in the directory of a migration.
const (
	PlanFile   = "plan.yaml"     // that a person edits
	NewFile    = "plan.new.yaml" // the plan, brought up to date while the directory was in use
	LedgerFile = "ledger"        // with the plan as it is applied
	// EvidenceFile has all evidence of a plan of a dump, SkipFile the values that its conversion left.
	EvidenceFile = "evidence.json"
	SkipFile     = "skipped.jsonl"
	// DuplicatesFile has the pairs of documents of which one would get a unique value of the other one.
	DuplicatesFile = "duplicates.jsonl"
)

// SteeringOf returns the files by which a person steers the work in the directory of a migration.
func SteeringOf(dir string) patience.Steering {
	return patience.Steering{Pause: filepath.Join(dir, "pause"), Rate: filepath.Join(dir, "rate")}
}

// Files are the files of a step. The ledger has what is known of them.
type Files struct {
	SkipList string
	UndoLog  string // empty for a conversion into a new collection, which has none
}

// Files returns the paths of the step's files in the directory of the migration, or their names if dir is
// empty.
func (s Step) Files(dir string) Files {
	stem := filepath.Join(dir, s.Name())
	f := Files{SkipList: stem + skipEnd}
	if s.Into == "" {
		f.UndoLog = stem + undoEnd
	}
	return f
}

// The ends of the names of files.
const (
	skipEnd = ".skipped.jsonl"
	undoEnd = ".undo"
)

// plainStem matches a name that is a part of a file name on every system.
var plainStem = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)

var notPlain = regexp.MustCompile(`[^a-z0-9_-]`)

// short returns a short hash.
func short(s string) string { return sumOf([]byte(s))[:12] }

// Name returns the name of a step in the ledger, and the beginning of the names of its files. It is different for
// each step of a plan, even if the file system does not distinguish upper and lower case.
func (s Step) Name() string {
	name := s.Collection
	if !plainStem.MatchString(name) { // no plain name has a plus sign
		name = fmt.Sprintf("%.40s+%s", notPlain.ReplaceAllString(strings.ToLower(name), "_"), short(name))
	}
	if s.Filter != "" {
		name += "." + short(s.Filter)
	}
	if s.Pass > 0 {
		name += "." + strconv.Itoa(s.Pass+1)
	}
	return name
}
