// Package survey reads all collections of a database and decides, for each field, in which byte
// order its UUIDs are.
package survey

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/constants"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
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
	// Definitions are the validators, partial indexes and views of the database.
	Definitions constants.Definitions
	// Only is set if only the collections with these names were read whole. Samples are the others, of which a
	// sample was read.
	Only    []string
	Samples []Sample
	// NotRead lists what was not read, each with the reason: views, time series, and collections that
	// the user may not read.
	NotRead []string
	Denied  map[string]error // why the user may not read them, by name
}

// Collection is what a collection contains.
type Collection struct {
	Name      string
	Filter    string // of the documents, in canonical extended JSON; empty for all
	UUID      string // that the server gives it, in hexadecimal digits; empty if it gives none
	Documents int64  // that were read: all
	Malformed int64  // documents that could not be walked
	Took      time.Duration
	Scan      scan.Collection
	// Kept says what the collection is, if a cutover has left it. It is not to be converted.
	Kept string
	// Unexchangeable is why a cutover cannot put a copy in its place; empty if it can.
	Unexchangeable string
	// Sharded is how it is sharded; nil if it is not. Settings are those that listCollections has as options.
	Sharded  *server.Sharded
	Settings bson.Raw
}

// Sample is a collection of which a sample was read, for references.
type Sample struct {
	Name   string
	Read   int64 // documents that were read
	Of     int64 // about how many documents there are
	Random bool  // otherwise the first ones or all were read
	Scan   scan.Collection
}

// Namespace returns the name of the collection behind that of the database, with its filter.
func (c Collection) Namespace(database string) string {
	name := c.Name
	if database != "" {
		name = database + "." + name
	}
	if c.Filter != "" {
		name += " " + c.Filter
	}
	return name
}

// Options are the options of Make.
type Options struct {
	Only     []string // names of the collections to read; empty for all
	Needed   []string // those of Only without which there is no survey
	Sample   bool     // whether a sample is read of each other collection, for references
	Patience *patience.Patience
	Progress func(total int64, doing, namespace string) terminal.Progress
	// Filters are the filters by which collections are read, once by each. Others are read without a filter.
	Filters map[string][]Filter
}

// Filter selects documents. It selects all if it is zero.
type Filter struct {
	Text  string // canonical extended JSON
	Query bson.D
}

// surveyor makes a survey.
type surveyor struct {
	Options
	db     *mongo.Database
	survey *Survey
	scan   *scan.Scan
	kept   []record.KeptCollection
}

// Make reads all documents of all collections of the database, or of those in Only, except views, time series,
// and the collections of the server and of this program. A collection that is needed and cannot be read is a
// usage error.
func Make(ctx context.Context, db *mongo.Database, o Options) (_ *Survey, err error) {
	now := time.Now()
	s := &surveyor{Options: o, db: db, scan: scan.New(os.TempDir(), now, true), survey: &Survey{Database: db.Name(), Only: o.Only, Denied: make(map[string]error), Made: now.UTC().Truncate(time.Second)}}
	defer func() { err = errors.Join(err, s.scan.Close()) }()
	err = s.Patience.Do(ctx, func() (err error) {
		s.kept, err = record.Kept(ctx, db)
		return err
	})
	if err != nil && failure.Explain(err, "").Kind != failure.Denied { // without the record, a person sees what they are
		return nil, err
	}
	specs, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	for _, spec := range specs {
		filters := s.Filters[spec.Name]
		if len(filters) == 0 || !s.whole(spec.Name) {
			filters = []Filter{{}}
		}
		for _, f := range filters {
			if err := s.read(ctx, spec, f); err != nil {
				return nil, err
			}
		}
	}
	return s.survey, s.survey.Decide(s.scan)
}

// Decide makes the decisions, when all documents were read.
func (s *Survey) Decide(of *scan.Scan) error {
	found, err := of.Decide()
	if err != nil {
		return err
	}
	judged := make(map[string]scan.Collection)
	for _, c := range found {
		judged[c.Namespace] = c
	}
	for i := range s.Collections {
		c := &s.Collections[i]
		c.Scan = judged[c.Namespace(s.Database)]
	}
	for i := range s.Samples {
		s.Samples[i].Scan = judged[s.Database+"."+s.Samples[i].Name]
	}
	s.References, err = of.References()
	return err
}

func (s *surveyor) notRead(name, reason string) {
	s.survey.NotRead = append(s.survey.NotRead, terminal.Cell(name)+": "+reason)
}

// list returns the collections to read, sorted by name.
func (s *surveyor) list(ctx context.Context) (out []mongo.CollectionSpecification, err error) {
	specs, err := patience.Ask(ctx, s.Patience, func() ([]mongo.CollectionSpecification, error) {
		return s.db.ListCollectionSpecifications(ctx, bson.D{})
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
		if err := s.define(ctx, spec); err != nil {
			return nil, err
		}
		switch {
		case strings.HasPrefix(spec.Name, "system."), strings.HasPrefix(spec.Name, "bsonids."), !s.whole(spec.Name) && !s.Sample:
		case spec.Type == "view":
			s.notRead(spec.Name, "a view, which shows the documents of collections")
		case spec.Type == "timeseries":
			s.notRead(spec.Name, "a time series, which cannot be converted")
		case s.whole(spec.Name) || s.keptAs(spec) == "":
			out = append(out, spec)
		}
	}
	for _, name := range s.Needed {
		if !slices.ContainsFunc(out, func(spec mongo.CollectionSpecification) bool { return spec.Name == name }) {
			return nil, failure.Usagef("collection %q does not exist in %s, or is none that can be converted", name, s.db.Name())
		}
	}
	return out, nil
}

// define adds the definitions of a collection or a view.
func (s *surveyor) define(ctx context.Context, spec mongo.CollectionSpecification) error {
	if strings.HasPrefix(spec.Name, "system.") || strings.HasPrefix(spec.Name, "bsonids.") || s.keptAs(spec) != "" || spec.Type == "timeseries" {
		return nil
	}
	add := func(d constants.Definition) { s.survey.Definitions = append(s.survey.Definitions, d) }
	if spec.Type == "view" {
		on, _ := spec.Options.Lookup("viewOn").StringValueOK()
		add(constants.Definition{Of: constants.View, Name: spec.Name, On: on, Is: spec.Options.Lookup("pipeline"), All: spec.Options})
		return nil
	}
	if v, err := spec.Options.LookupErr("validator"); err == nil {
		add(constants.Definition{Of: constants.Validator, Name: spec.Name, Is: v, All: spec.Options})
	}
	indexes, err := patience.Ask(ctx, s.Patience, func() ([]bson.Raw, error) { return server.Indexes(ctx, s.db.Collection(spec.Name)) })
	switch {
	case failure.Means(err, failure.Missing): // it was dropped
		return nil
	case err != nil && failure.Explain(err, "").Kind == failure.Denied:
		s.notRead(spec.Name, "the user may not list its indexes, whose filters may have UUIDs")
		return nil
	}
	for _, i := range indexes {
		name, _ := i.Lookup("name").StringValueOK()
		if v, err := i.LookupErr("partialFilterExpression"); err == nil {
			add(constants.Definition{Of: constants.Index, Name: spec.Name, Index: name, Is: v, All: i})
		}
	}
	return err
}

// whole reports whether all documents of the collection are read.
func (s *surveyor) whole(name string) bool { return len(s.Only) == 0 || slices.Contains(s.Only, name) }

// keptAs says what the collection is, if a cutover has left it.
func (s *surveyor) keptAs(spec mongo.CollectionSpecification) (what string) {
	for _, k := range s.kept {
		if k.Name == spec.Name && (k.ID == nil || spec.UUID == nil || k.ID.Equal(*spec.UUID)) {
			what = k.What
		}
	}
	return what
}

// FilterError is the error of a filter that the server does not take, such as one with an unknown operator.
type FilterError struct {
	Collection, Filter string
	Err                error
}

func (e *FilterError) Error() string { return fmt.Sprintf("the filter %s: %v", e.Filter, e.Err) }

// Unwrap returns the error of the server.
func (e *FilterError) Unwrap() error { return e.Err }

// samples is the number of documents that are read of a collection that is sampled.
const samples = 10_000

// read reads the documents of a collection that match the filter, or a sample of them.
func (s *surveyor) read(ctx context.Context, spec mongo.CollectionSpecification, f Filter) error {
	c := Collection{Name: spec.Name, Filter: f.Text}
	from, open, doing := source.Collection{Collection: s.db.Collection(spec.Name), Filter: f.Query}, s.scan.Collection, "reading"
	whole := s.whole(spec.Name)
	if !whole {
		from.Sample, open, doing = samples, s.scan.Sample, "searching"
	}
	collector, err := open(s.db.Name(), c.Namespace(""))
	if err != nil {
		return err
	}
	if whole {
		s.describe(&c, spec)
		c.Sharded, err = patience.Ask(ctx, s.Patience, func() (*server.Sharded, error) { return server.ShardingOf(ctx, s.db.Collection(spec.Name)) })
		if err != nil && failure.Explain(err, "").Kind != failure.Denied { // apply asks again, and a server refuses by itself what it cannot do
			return err
		}
		err = s.Patience.Do(ctx, func() (err error) {
			collector.Earlier, err = earlierOrders(ctx, s.db, spec, f.Text)
			return err
		})
		if err != nil && failure.Explain(err, "").Kind != failure.Denied { // without the record, the values decide
			return err
		}
	}
	begin := time.Now() // which counts the first answer, and passes that were begun again
	read, err := from.Read(ctx, s.Patience, func(total int64) terminal.Progress {
		return s.Progress(total, doing, s.db.Name()+"."+spec.Name)
	}, collector)
	if len(f.Query) > 0 && failure.Means(err, failure.BadValue) {
		return &FilterError{spec.Name, f.Text, err}
	}
	switch n := collector.Documents; {
	case err != nil && (failure.Explain(err, "").Kind != failure.Denied || slices.Contains(s.Needed, spec.Name)):
		return err
	case err != nil:
		s.notRead(spec.Name, "the user may not read it")
		s.survey.Denied[spec.Name] = err
		s.scan.Drop(collector)
	case whole:
		c.Documents, c.Malformed, c.Took = n, read.Malformed, time.Since(begin)
		s.survey.Collections = append(s.survey.Collections, c)
	default:
		s.survey.Samples = append(s.survey.Samples, Sample{Name: spec.Name, Read: n, Of: max(read.Documents, n), Random: read.Mode == source.Sample})
	}
	return nil
}

// describe adds what the server and the record tell of a collection.
func (s *surveyor) describe(c *Collection, spec mongo.CollectionSpecification) {
	c.Kept, c.Unexchangeable = s.keptAs(spec), server.Unexchangeable(&spec)
	c.Settings = spec.Options
	if spec.UUID != nil {
		c.UUID = hex.EncodeToString(spec.UUID.Data)
	}
}

// earlierOrders returns, by field, the legacy orders that earlier conversions of the documents have found. A value that
// fits one of these, too, may have been left by such a conversion because it fits both orders.
func earlierOrders(ctx context.Context, db *mongo.Database, spec mongo.CollectionSpecification, query string) (map[string][]decide.Rival, error) {
	out := make(map[string][]decide.Rival)
	decisions, err := record.Earlier(ctx, db, spec.Name, spec.UUID, query)
	for _, d := range decisions {
		if d.Subtype != bson.TypeBinaryUUIDOld {
			continue
		}
		for field, r := range d.Found() {
			out[field] = append(out[field], r)
		}
	}
	return out, err
}
