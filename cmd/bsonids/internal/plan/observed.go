package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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
	Decisions   map[string]map[string]decide.Decision `json:"decisions"` // of the collections, as of survey.Collection
}

// Seal writes the evidence of the survey to the directory, and returns its SHA-256 in hexadecimal
// digits, by which the plan names it.
func (s *State) Seal(sv *survey.Survey) (sum string, err error) {
	e := Sealed{observed(sv), make(map[string]map[string]decide.Decision)}
	for _, c := range sv.Collections {
		e.Decisions[c.Name] = c.Decisions
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

// Decision returns the decision about the fields of a step. all is set if these are all fields that have values
// stored as those that the step converts.
func (e *Sealed) Decision(s Step) (d decide.Decision, all bool, err error) {
	k, err := kinds.Parse(s.From)
	if err != nil || k.BySubtype() {
		return decide.Decision{Subtype: k.Subtype, From: s.From, BySubtype: true, Fields: []decide.Field{}}, false, err
	}
	decisions, ok := e.Decisions[s.Collection]
	if !ok {
		return d, false, errors.New("the plan has no evidence for it")
	}
	of := decisions[s.From]
	d = s.Decision(of)
	return d, k.IsBinary() && len(d.Fields) == len(of.Fields), nil
}
