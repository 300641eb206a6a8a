package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Names of files in the directory of a migration.
const (
	PlanFile   = "plan.yaml" // that a person edits
	LedgerFile = "ledger"    // with the plan as it is applied
)

// Files are the files of a step.
type Files struct {
	State, SkipList string
	UndoLog         string // empty for a conversion into a new collection, which has none
}

// Files returns the paths of the step's files in the directory of the migration, or their names if dir is
// empty.
func (s Step) Files(dir string) Files {
	stem := filepath.Join(dir, s.stem())
	f := Files{State: stem + ".state", SkipList: stem + ".skipped.jsonl"}
	if s.Into == "" {
		f.UndoLog = stem + ".undo"
	}
	return f
}

// names returns the files that there are.
func (f Files) names() []string {
	if f.UndoLog == "" {
		return []string{f.State, f.SkipList}
	}
	return []string{f.State, f.SkipList, f.UndoLog}
}

// plainStem matches a name that is a part of a file name on every system.
var plainStem = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,79}$`)

// stem returns the beginning of the names of the step's files. It is different for each step of a
// plan, even if the file system does not distinguish upper and lower case.
func (s Step) stem() string {
	name := s.Collection
	if !plainStem.MatchString(name) {
		sum := sha256.Sum256([]byte(name))
		name = strings.Map(func(r rune) rune {
			switch {
			case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '-':
				return r
			case r >= 'A' && r <= 'Z':
				return r - 'A' + 'a'
			}
			return '_'
		}, name)
		if len(name) > 40 {
			name = name[:40]
		}
		name += "+" + hex.EncodeToString(sum[:6]) // no plain name has a plus sign
	}
	if s.To == kinds.OfText {
		return name + "." + s.From + ".text"
	}
	return name + "." + s.From
}
