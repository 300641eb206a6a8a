package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// observed returns what a survey says about the collections, without what a person decides.
func observed(s *survey.Survey) (out []Collection) {
	for _, c := range s.Collections {
		out = append(out, observedIn(c))
	}
	return out
}

// Sealed is all evidence of a plan of a dump, also that which is too large for a file that a person edits:
// the values that are known by equality. A pipe is read only once, so that apply finds its decisions there.
type Sealed struct {
	Collections []Collection                          `json:"collections"`
	Decisions   map[string]map[string]decide.Decision `json:"decisions"` // of the collections, as of scan.Collection
}

// Seal writes the evidence of the survey to the directory, and returns its SHA-256 in hexadecimal
// digits, by which the plan names it.
func (s *State) Seal(sv *survey.Survey) (sum string, err error) {
	e := Sealed{observed(sv), make(map[string]map[string]decide.Decision)}
	for _, c := range sv.Collections {
		e.Decisions[c.Name] = c.Scan.Decisions
	}
	b, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	return sumOf(b), files.Replace(filepath.Join(s.dir, EvidenceFile), b)
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// ReadSealed reads the evidence of a plan of a dump from the directory dir.
func ReadSealed(dir string, p *Plan) (*Sealed, error) {
	path := filepath.Join(dir, EvidenceFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%w: put the file back, or make a new plan", err)
	}
	e := &Sealed{}
	if sumOf(b) != p.Dump.Evidence {
		return nil, fmt.Errorf("%s is not the file that the plan names: put the file back, or make a new plan", path)
	}
	if err := json.Unmarshal(b, e); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// Compare is [Compare] with the evidence: an edit may name what the dump does not have.
func (e *Sealed) Compare(p *Plan) (problems, warnings []string) { return p.compare(e.Collections, nil) }

// DecisionsOf returns the decisions about the pairs of a step. all has those of which the fields are all that have
// binary values stored as those that the pair converts.
func (e *Sealed) DecisionsOf(s Step) (decisions []decide.Decision, all []bool, err error) {
	of, ok := e.Decisions[s.Collection]
	if !ok {
		return nil, nil, errors.New("the plan has no evidence for it")
	}
	decisions = s.Decisions(of, time.Time{})
	for i, p := range s.Pairs {
		k, err := kinds.Parse(p.From)
		all = append(all, err == nil && k.IsBinary() && !decisions[i].BySubtype && len(decisions[i].Fields) == len(of[p.From].Fields))
	}
	return decisions, all, nil
}
