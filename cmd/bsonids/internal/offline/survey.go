package offline

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// surveyed is a collection of a survey of a dump.
type surveyed struct {
	of        *dump.Collection
	collector *scan.Collector
}

// Survey reads a dump and makes all decisions about the selected collections. The digest tells the dump from
// others.
func Survey(ctx context.Context, r Reading) (_ *survey.Survey, digest string, err error) {
	begin := time.Now()
	s := scan.New(r.Temp, r.Now)
	defer func() { err = errors.Join(err, s.Close()) }()
	s.Compare(r.Temp)
	var all []surveyed
	sum := newDigest()
	seen, err := r.pass(ctx, sum, &takers{r.Selection, func(coll *dump.Collection, role Role) (source.Taker, error) {
		switch {
		case coll.Oplog():
			return nil, ErrOplog
		case role != Converted:
			return nil, nil
		}
		c, err := s.Collection(coll.Database, coll.Name)
		all = append(all, surveyed{coll, c})
		return c, err
	}, make(map[*dump.Collection]source.Taker)})
	if err == nil {
		err = r.Selection.Check(seen)
	}
	if err != nil {
		return nil, "", err
	}
	if len(all) == 0 {
		return nil, "", failure.Usagef("the dump has no document of a collection that can be converted")
	}
	sv := r.survey(all, seen)
	collectors := make([]*scan.Collector, 0, len(all))
	for i, c := range all {
		collectors = append(collectors, c.collector)
		sv.Collections[i].Took = time.Since(begin) / time.Duration(len(all)) // of the whole pass
	}
	return sv, sum.sum(), sv.Judge(s, collectors)
}

// survey returns the survey of the collections, which it sorts by name, without decisions.
func (r *Reading) survey(all []surveyed, seen []*dump.Collection) *survey.Survey {
	sv := &survey.Survey{Database: all[0].of.Database, Made: r.Now.UTC().Truncate(time.Second)}
	if slices.ContainsFunc(all, func(c surveyed) bool { return c.of.Database != sv.Database }) {
		sv.Database = ""
	}
	name := func(c *dump.Collection) string {
		if sv.Database == "" {
			return c.String()
		}
		return c.Visible()
	}
	slices.SortFunc(all, func(a, b surveyed) int { return strings.Compare(name(a.of), name(b.of)) })
	for _, c := range all {
		sv.Collections = append(sv.Collections, survey.Collection{Name: name(c.of), Documents: c.collector.Documents()})
	}
	for _, c := range seen {
		switch role := r.Selection.role(c); {
		case role == TimeSeries:
			sv.NotRead = append(sv.NotRead, terminal.Cell(name(c))+": a time series, which cannot be converted")
		case role == Converted && c.Type == "view":
			sv.NotRead = append(sv.NotRead, terminal.Cell(name(c))+": a view, which shows the documents of collections")
		}
	}
	slices.SortFunc(sv.NotRead, cmp.Compare)
	sv.NotRead = slices.Compact(sv.NotRead) // a time series and its buckets
	return sv
}
