package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Decisions has the decisions for the collections of a dump.
type Decisions struct {
	Format  string    `json:"bsonids"` // decisionFormat
	Made    time.Time `json:"made"`
	From    string    `json:"from"`
	Fields  []string  `json:"fields,omitempty"` // of --field; all fields if empty
	Trusted []string  `json:"trusted,omitempty"`
	// Collections is sorted by namespace.
	Collections []Decided `json:"collections"`

	// Elsewhere has the fields that are not converted and have values equal to converted ones.
	Elsewhere []decide.Elsewhere `json:"-"`
	// Unknown has the trusted fields that have no value.
	Unknown []string `json:"-"`
	// Unmatched has the fields of the conversion that have no value.
	Unmatched []string `json:"-"`
	// Seen has the collections of the dump.
	Seen []*dump.Collection `json:"-"`
	// Values is how many values there are to decide about.
	Values int64 `json:"-"`
}

// Decided is the decision for one collection.
type Decided struct {
	Namespace string          `json:"collection"`
	Decision  decide.Decision `json:"decision"`
}

const decisionFormat = "decision 1"

// For returns the decision for a collection, or one that converts nothing if the collection was not
// in the dump.
func (d *Decisions) For(namespace string) *decide.Decision {
	i := slices.IndexFunc(d.Collections, func(c Decided) bool { return c.Namespace == namespace })
	if i < 0 {
		return &decide.Decision{From: d.From, Fields: []decide.Field{}}
	}
	return &d.Collections[i].Decision
}

// Has reports whether the decisions have one for the collection.
func (d *Decisions) Has(namespace string) bool {
	return slices.ContainsFunc(d.Collections, func(c Decided) bool { return c.Namespace == namespace })
}

// Reading describes the reading of a dump.
type Reading struct {
	Input     *dump.Input
	Selection Selection
	Temp      string // directory for temporary files
	Now       time.Time
	Progress  func(documents int)
}

// Decide reads the dump and decides which values of the selected collections c converts. In the same pass,
// it counts for also, which may be nil.
func Decide(ctx context.Context, r Reading, c rule.Conversion, trusted []string, also *Collectors) (d *Decisions, err error) {
	q := decide.Question{Kind: c.From, Trusted: trusted}
	matched := make([]bool, len(c.Fields))
	q.Wanted = func(path *walk.Path) bool {
		wanted := len(c.Fields) == 0
		for i, f := range c.Fields {
			if f.Match(path) {
				matched[i], wanted = true, true
			}
		}
		return wanted
	}
	s := decide.NewSurvey(r.Temp, r.Now, q)
	defer func() { err = errors.Join(err, s.Close()) }()
	d = &Decisions{Format: decisionFormat, Made: r.Now.UTC().Truncate(time.Second), From: c.From.Name, Trusted: trusted, Collections: []Decided{}}
	for _, f := range c.Fields {
		d.Fields = append(d.Fields, f.String())
	}
	slices.Sort(d.Fields)
	surveyed := make(map[*dump.Collection]*decide.Surveyed)
	deciding := &takers{r.Selection, func(coll *dump.Collection, role Role) (source.Taker, error) {
		switch {
		case coll.Oplog():
			return nil, ErrOplog
		case role != Converted && role != Unselected:
			return nil, nil
		}
		to, err := s.Collection(coll.Database, coll.Name, role == Converted)
		if role == Converted {
			surveyed[coll] = to
		}
		return to, err
	}, make(map[*dump.Collection]source.Taker)}
	if also == nil {
		d.Seen, err = r.pass(ctx, deciding)
	} else {
		d.Seen, err = r.pass(ctx, deciding, &also.takers)
		also.Seen = d.Seen
	}
	if err != nil {
		return nil, err
	}
	if err := s.Decide(); err != nil {
		return nil, err
	}
	d.Elsewhere, d.Unknown = s.Elsewhere(), s.Unknown()
	for i, f := range c.Fields {
		if !matched[i] {
			d.Unmatched = append(d.Unmatched, f.String())
		}
	}
	for _, to := range surveyed {
		one := to.Decision(c.From)
		for _, f := range one.Fields {
			d.Values += f.Values
		}
		if c.From.BySubtype() { // subtype 4 has one order
			one.BySubtype, one.Fields = true, []decide.Field{}
		}
		d.Collections = append(d.Collections, Decided{to.Namespace, *one})
	}
	slices.SortFunc(d.Collections, func(a, b Decided) int {
		if a.Namespace < b.Namespace {
			return -1
		}
		return 1
	})
	return d, nil
}

// Write writes the decisions to a new file.
func (d *Decisions) Write(path string) error {
	b, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	return dump.WriteFile(path, append(b, '\n'))
}

// ReadDecisions reads a file that Write wrote.
func ReadDecisions(path string) (*Decisions, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	d, err := parseDecisions(b)
	if err != nil {
		return nil, fmt.Errorf("%s is not a decision file: %w", path, err)
	}
	return d, nil
}

func parseDecisions(b []byte) (*Decisions, error) {
	var d Decisions
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, err
	}
	if d.Format != decisionFormat {
		return nil, fmt.Errorf("its format is %q, want %q", d.Format, decisionFormat)
	}
	from, err := kinds.Parse(d.From)
	if err != nil {
		return nil, err
	}
	for _, c := range d.Collections {
		if c.Decision.From != d.From || c.Decision.Subtype != from.Subtype {
			return nil, fmt.Errorf("the decision for %s is from %s and subtype %d", c.Namespace, c.Decision.From, c.Decision.Subtype)
		}
		if c.Decision.BySubtype != from.BySubtype() {
			return nil, fmt.Errorf("the decision for %s is not one for %s", c.Namespace, from.Name)
		}
	}
	return &d, nil
}
