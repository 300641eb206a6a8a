package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
)

// Observed is what a survey says about a collection: its fields, without what a person decides.
type Observed struct {
	Name      string                     `json:"name"`
	Filter    string                     `json:"-"` // as of Collection
	UUID      string                     `json:"-"`
	Kept      bool                       `json:"-"` // by a cutover
	Fields    []Field                    `json:"fields"`
	Decisions map[string]decide.Decision `json:"decisions"` // as of survey.Collection
}

// Entry returns the key of the entry of a plan about the documents.
func (o Observed) Entry() Entry { return Entry{o.Name, o.Filter} }

func observed(s *survey.Survey) []Observed {
	out := make([]Observed, 0, len(s.Collections))
	for _, c := range s.Collections {
		out = append(out, Observed{c.Name, c.Filter, c.UUID, c.Kept != "", Fields(c), c.Decisions})
	}
	return out
}

// Sealed is all evidence of a plan of a dump, also that which is too large for a file that a person edits:
// the values that are known by equality. A pipe is read only once, so that apply finds its decisions there.
type Sealed struct {
	Collections []Observed `json:"collections"`
}

// Seal writes the evidence of the survey to the directory, and returns its SHA-256 in hexadecimal
// digits, by which the plan names it.
func (s *State) Seal(sv *survey.Survey) (sum string, err error) {
	b, err := json.Marshal(Sealed{observed(sv)})
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

// errNotRead is the error for a collection without evidence.
var errNotRead = errors.New("the plan has no evidence for it")

// Decision returns the decision about the fields of a step. all is set if these are all fields that have values
// stored as those that the step converts.
func (e *Sealed) Decision(s Step) (d decide.Decision, all bool, err error) {
	k, err := kinds.Parse(s.From)
	if err != nil || k.BySubtype() {
		return decide.Decision{Subtype: k.Subtype, From: s.From, BySubtype: true, Fields: []decide.Field{}}, false, err
	}
	i := slices.IndexFunc(e.Collections, func(c Observed) bool { return c.Name == s.Collection })
	if i < 0 {
		return d, false, errNotRead
	}
	of := e.Collections[i].Decisions[s.From]
	d = s.Decision(of)
	return d, k.IsBinary() && len(d.Fields) == len(of.Fields), nil
}
