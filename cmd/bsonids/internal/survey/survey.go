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
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Survey is what a database contains.
type Survey struct {
	Database    string
	Made        time.Time
	Collections []Collection // sorted by name
	Names       []string     // of all collections and views
	References  []scan.Reference
	Sparse      []scan.Sparse
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
	Cost      Cost
	// Kept says what the collection is, if a cutover has left it. It is not to be converted.
	Kept string
}

// Options are the options of Make.
type Options struct {
	// Known is the number of documents of each collection that are read in advance, at random, for
	// UUIDs of known order that may be equal to values of other collections.
	Known    int64
	Measure  bool // measure the costs of a sample
	Now      func() time.Time
	Patience *patience.Patience
	Progress func(total int64, doing, namespace string) *terminal.Progress
	Kept     []record.KeptCollection
}

// decided are the kinds about which the values decide.
var decided = kinds.Where(func(k kinds.Kind) bool { return !k.BySubtype() })

// surveyor makes a survey.
type surveyor struct {
	Options
	db         *mongo.Database
	survey     *Survey
	collectors []*scan.Collector
	known      map[string]*decide.Known
}

// Make reads all documents of all collections of the database, except views, time series, and the
// collections of the server and of this program.
func Make(ctx context.Context, db *mongo.Database, o Options) (*Survey, error) {
	s := &surveyor{Options: o, db: db, known: make(map[string]*decide.Known),
		survey: &Survey{Database: db.Name(), Made: o.Now().UTC().Truncate(time.Second)}}
	specs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		if err := s.readKnown(ctx, spec.Name); err != nil {
			return nil, err
		}
	}
	for _, spec := range specs {
		if err := s.collection(ctx, spec); err != nil {
			return nil, err
		}
	}
	judged := make(map[string]scan.Collection)
	for _, c := range scan.Judge(s.collectors, s.survey.Made) {
		judged[c.Namespace] = c
	}
	for i := range s.survey.Collections {
		c := &s.survey.Collections[i]
		c.Scan = judged[s.namespace(c.Name)]
	}
	s.survey.References, s.survey.Sparse = scan.References(s.collectors)
	return s.survey, nil
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

// readKnown reads a sample of a collection for UUIDs of known order.
func (s *surveyor) readKnown(ctx context.Context, name string) error {
	if s.Known == 0 {
		return nil
	}
	err := s.Patience.Do(ctx, func() error {
		k := decide.NewKnown()
		_, err := scan.Read(ctx, s.db.Collection(name), k, s.Known, func(total int64) *terminal.Progress {
			return s.Progress(total, "sampling", s.namespace(name))
		})
		s.known[name] = k
		return err
	})
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		return nil // said when the collection is read
	}
	return err
}

// collection reads a collection and decides about its fields.
func (s *surveyor) collection(ctx context.Context, spec mongo.CollectionSpecification) error {
	c := Collection{Name: spec.Name, Decisions: make(map[string]decide.Decision)}
	for _, k := range s.Kept {
		if k.Name == spec.Name && (k.ID == nil || spec.UUID == nil || k.ID.Equal(*spec.UUID)) {
			c.Kept = k.What
		}
	}
	if spec.UUID != nil {
		c.UUID = hex.EncodeToString(spec.UUID.Data)
	}
	coll := s.db.Collection(spec.Name)
	passes := make(map[byte]*decide.Pass)
	var collector *scan.Collector
	err := s.Patience.Pass(ctx, func(progress func(int)) error {
		collector = scan.NewCollector(s.namespace(spec.Name))
		for _, kind := range decided {
			passes[kind.Subtype] = decide.NewPass(decide.Question{Order: kind.Order, Name: kind.Name, Subtype: kind.Subtype, Form: kind.Form}, s.Now())
		}
		begin := s.Now()
		c.Documents, c.Malformed = 0, 0
		err := s.read(ctx, coll, func(doc []byte) error {
			progress(1)
			c.Documents++
			err := collector.Add(doc)
			for _, p := range passes {
				err = errors.Join(err, p.Add(doc))
			}
			if errors.Is(err, walk.ErrCorrupt) {
				c.Malformed++
				return nil
			}
			return err
		})
		c.Took = s.Now().Sub(begin)
		return err
	})
	if err != nil && failure.Explain(err, "").Kind == failure.Denied {
		s.notRead(spec.Name, "the user may not read it")
		return nil
	}
	if err != nil {
		return err
	}
	for other, known := range s.known {
		if other == spec.Name {
			continue // its values are compared with each other
		}
		for _, p := range passes {
			p.Compare(known)
		}
	}
	for _, kind := range decided {
		c.Decisions[kind.Name] = passes[kind.Subtype].DecideIn(kind.Order, kind.Name, nil)
	}
	if s.Measure && c.Documents > 0 {
		err := s.Patience.Do(ctx, func() (err error) {
			c.Cost, err = measure(ctx, coll, s.Now)
			return err
		})
		if err != nil {
			return err
		}
	}
	s.collectors = append(s.collectors, collector)
	s.survey.Collections = append(s.survey.Collections, c)
	return nil
}

func (s *surveyor) read(ctx context.Context, coll *mongo.Collection, add func([]byte) error) error {
	total, err := coll.EstimatedDocumentCount(ctx)
	if err != nil {
		return err
	}
	cur, err := coll.Find(ctx, bson.D{}, options.Find().SetBatchSize(2000))
	if err != nil {
		return err
	}
	defer func() { _ = cur.Close(context.WithoutCancel(ctx)) }()
	bar := s.Progress(total, "reading", s.namespace(coll.Name()))
	defer bar.Done()
	for cur.Next(ctx) {
		if err := add(cur.Current); err != nil {
			return err
		}
		bar.Add(1)
	}
	return cur.Err()
}
