// Package survey reads all collections of a database and decides, for each field, in which byte
// order its UUIDs are.
package survey

import (
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Survey is what a database contains, or a dump.
type Survey struct {
	Database    string // empty for a dump of several databases; all names then begin with that of the database
	Made        time.Time
	Collections []Collection // sorted by name
	Names       []string     // of all collections and views
	References  []scan.Reference
	// NotRead lists what was not read, each with the reason: views, time series, and collections that
	// the user may not read.
	NotRead []string
}

// Collection is what a collection contains.
type Collection struct {
	Name      string
	UUID      string // that the server gives it, in hexadecimal digits; empty if it gives none
	Documents int64  // that were read: all
	Malformed int64  // documents that could not be walked
	Took      time.Duration
	Scan      scan.Collection
	// Decisions has the decision for each kind with a byte order, and for text and goStruct, by its
	// name, for all fields with values of its subtype or form.
	Decisions map[string]decide.Decision
	// Kept says what the collection is, if a cutover has left it. It is not to be converted.
	Kept string
}

// Options are the options of Make.
type Options struct {
	Temp     string // directory for a temporary file
	Now      func() time.Time
	Patience *patience.Patience
	Progress func(total int64, doing, namespace string) *progress.Progress
	Kept     []record.KeptCollection
}

// surveyor makes a survey.
type surveyor struct {
	Options
	db         *mongo.Database
	survey     *Survey
	scan       *scan.Scan
	collectors []*scan.Collector // of survey.Collections
}

// Make reads all documents of all collections of the database, except views, time series, and the
// collections of the server and of this program.
func Make(ctx context.Context, db *mongo.Database, o Options) (_ *Survey, err error) {
	s := &surveyor{Options: o, db: db, scan: scan.New(o.Temp, o.Now()), survey: &Survey{Database: db.Name(), Made: o.Now().UTC().Truncate(time.Second)}}
	defer func() { err = errors.Join(err, s.scan.Close()) }()
	s.scan.Compare(o.Temp)
	specs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := s.collection(ctx, spec); err != nil {
			return nil, err
		}
	}
	return s.survey, s.survey.Judge(s.scan, s.collectors)
}

// Judge makes the decisions, when all documents were read. The collectors are those of Collections.
func (s *Survey) Judge(of *scan.Scan, collectors []*scan.Collector) error {
	found, err := of.Judge()
	if err != nil {
		return err
	}
	judged := make(map[string]scan.Collection)
	for _, c := range found {
		judged[c.Namespace] = c
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		namespace := c.Name
		if s.Database != "" {
			namespace = s.Database + "." + c.Name
		}
		c.Scan, c.Decisions = judged[namespace], collectors[i].Decisions()
	}
	s.References, err = of.References()
	return err
}

func (s *surveyor) namespace(name string) string { return s.db.Name() + "." + name }

func (s *surveyor) notRead(name, reason string) {
	s.survey.NotRead = append(s.survey.NotRead, terminal.Cell(name)+": "+reason)
}

// list returns the collections to read, sorted by name.
func (s *surveyor) list(ctx context.Context) (out []mongo.CollectionSpecification, err error) {
	var specs []mongo.CollectionSpecification
	err = s.Patience.Do(ctx, func() (err error) {
		specs, err = s.db.ListCollectionSpecifications(ctx, bson.D{})
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(specs) == 0 {
		return nil, failure.Usagef("database %q does not exist, or the user may not list its collections", s.db.Name())
	}
	slices.SortFunc(specs, func(a, b mongo.CollectionSpecification) int { return strings.Compare(a.Name, b.Name) })
	for _, spec := range specs {
		s.survey.Names = append(s.survey.Names, spec.Name)
		switch {
		case strings.HasPrefix(spec.Name, "system."), strings.HasPrefix(spec.Name, "bsonids."):
		case spec.Type == "view":
			s.notRead(spec.Name, "a view, which shows the documents of collections")
		case spec.Type == "timeseries":
			s.notRead(spec.Name, "a time series, which cannot be converted")
		default:
			out = append(out, spec)
		}
	}
	return out, nil
}

// collection reads a collection.
func (s *surveyor) collection(ctx context.Context, spec mongo.CollectionSpecification) error {
	c := Collection{Name: spec.Name}
	for _, k := range s.Kept {
		if k.Name == spec.Name && (k.ID == nil || spec.UUID == nil || k.ID.Equal(*spec.UUID)) {
			c.Kept = k.What
		}
	}
	if spec.UUID != nil {
		c.UUID = hex.EncodeToString(spec.UUID.Data)
	}
	coll := s.db.Collection(spec.Name)
	collector, err := s.scan.Collection(s.db.Name(), spec.Name)
	if err != nil {
		return err
	}
	begin := s.Now()
	read, err := source.Collection{Collection: coll}.Read(ctx, s.Patience, func(total int64) *progress.Progress {
		begin = s.Now() // also of a pass that begins again
		return s.Progress(total, "reading", s.namespace(coll.Name()))
	}, collector)
	c.Documents, c.Malformed, c.Took = collector.Documents(), read.Malformed, s.Now().Sub(begin)
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		s.notRead(spec.Name, "the user may not read it")
		s.scan.Drop(collector)
		return nil
	}
	if err != nil {
		return err
	}
	s.collectors = append(s.collectors, collector)
	s.survey.Collections = append(s.survey.Collections, c)
	return nil
}
