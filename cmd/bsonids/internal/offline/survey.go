// Package offline scans, converts and proves dumps, which are collections in files. It decides and
// converts by the same rules as a conversion on a server.
package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/survey"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Reading describes the reading of a dump.
type Reading struct {
	Input *dump.Input
	// Databases and Collections select what is read. If they are empty, it is all, except what belongs to the
	// server.
	Databases, Collections []string
	Temp                   string // directory for temporary files
	Now                    time.Time
	Progress               func(documents int)
}

// selects reports whether c is selected, and does not belong to the server or to this program. The buckets of a
// time series do not.
func (r *Reading) selects(c *dump.Collection) bool {
	db, name := c.Database, c.Name
	own := db == "admin" || db == "config" || db == "local" || db == "" // the oplog has no database
	reserved := strings.HasPrefix(name, "system.") || strings.HasPrefix(name, "$admin.")
	return (len(r.Databases) == 0 && !own || slices.Contains(r.Databases, db)) && (len(r.Collections) == 0 || slices.Contains(r.Collections, c.Visible())) &&
		(!reserved || c.TimeSeries()) && name != record.Name
}

// content is what a pass has found in a dump.
type content struct {
	seen   []*dump.Collection // all collections
	read   []collected
	digest string // of all documents
}

// collected is a collection whose documents were counted.
type collected struct {
	*dump.Collection
	*scan.Collector
}

// pass reads the dump, and counts the documents of the collections that takes accepts.
func (r *Reading) pass(ctx context.Context, s *scan.Scan, takes func(*dump.Collection) (bool, error)) (out content, err error) {
	d := source.OpenDump(r.Input, r.Progress)
	defer func() { err = errors.Join(err, d.Close()) }()
	sum, of := digest{}, make(map[*dump.Collection]*scan.Collector)
	collector := func(c *dump.Collection) (to *scan.Collector, err error) {
		ok, err := takes(c)
		if ok {
			to, err = s.Collection(c.Database, c.Name)
			out.read = append(out.read, collected{c, to})
		}
		of[c] = to
		return to, err
	}
	err = d.Each(ctx, func(doc bson.Raw) (err error) {
		c := d.Item.Collection
		sum.add(c, doc)
		to, ok := of[c]
		if !ok {
			if to, err = collector(c); err != nil {
				return err
			}
		}
		if to == nil {
			return check(doc)
		}
		return to.Add(doc)
	})
	if err == nil {
		err = r.missing(d.Collections)
	}
	out.seen, out.digest = d.Collections, sum.sum()
	return out, err
}

// check walks a document, so that damage is found.
func check(doc []byte) error {
	return walk.Document(doc, func(*walk.Path, walk.Leaf) error { return nil })
}

// missing returns an error if the dump does not have a database or a collection that is selected.
func (r *Reading) missing(seen []*dump.Collection) error {
	var missing []string
	has := func(what, name string, ok func(*dump.Collection) bool) {
		if !slices.ContainsFunc(seen, ok) {
			missing = append(missing, fmt.Sprintf("%s %q does not exist", what, name))
		}
	}
	for _, db := range r.Databases {
		has("database", db, func(c *dump.Collection) bool { return c.Database == db })
	}
	for _, name := range r.Collections {
		has("collection", name, func(c *dump.Collection) bool {
			return c.Visible() == name && (len(r.Databases) == 0 || slices.Contains(r.Databases, c.Database))
		})
	}
	if len(missing) > 0 {
		return failure.Usagef("the dump: %s", strings.Join(missing, " and "))
	}
	return nil
}

// Scan reads a dump and counts what the selected collections hold.
func Scan(ctx context.Context, r Reading) (found []scan.Collection, warnings []string, err error) {
	s := scan.New(r.Temp, r.Now, false)
	defer func() { err = errors.Join(err, s.Close()) }()
	of, err := r.pass(ctx, s, func(c *dump.Collection) (bool, error) { return r.selects(c), nil })
	if err != nil {
		return nil, nil, err
	}
	for _, c := range of.seen {
		read := slices.ContainsFunc(of.read, func(o collected) bool { return o.Collection == c })
		switch {
		case read && c.TimeSeries():
			warnings = append(warnings, c.String()+" has the buckets of a time series: its fields are those of the buckets, and compressed measurements are not read")
		case !read && r.selects(c) && !c.TimeSeries() && c.Type != "view": // it is empty
			if _, err := s.Collection(c.Database, c.Name); err != nil {
				return nil, nil, err
			}
		}
	}
	found, err = s.Decide()
	for i := range found {
		found[i].Mode, found[i].Documents = source.All, found[i].Scanned
	}
	return found, warnings, err
}

// ErrOplog is the error for a dump of mongodump --oplog: mongorestore applies the operations in it to the
// restored documents, and they name values and fields as they were before the conversion.
var ErrOplog = failure.Usagef("the dump: the dump has an oplog (mongodump --oplog), whose operations mongorestore would apply to converted documents: " +
	"restore it with mongorestore --oplogReplay and dump that server without --oplog, or convert on it")

// Survey reads a dump and makes all decisions about the selected collections. The digest tells the dump from
// others.
func Survey(ctx context.Context, r Reading) (_ *survey.Survey, digest string, err error) {
	begin := time.Now()
	s := scan.New(r.Temp, r.Now, true)
	defer func() { err = errors.Join(err, s.Close()) }()
	of, err := r.pass(ctx, s, func(c *dump.Collection) (bool, error) {
		if c.Oplog() {
			return false, ErrOplog
		}
		return r.selects(c) && !c.TimeSeries(), nil
	})
	if err != nil {
		return nil, "", err
	}
	if len(of.read) == 0 {
		return nil, "", failure.Usagef("the dump has no document of a collection that can be converted")
	}
	sv := &survey.Survey{Database: of.read[0].Database, Made: r.Now.UTC().Truncate(time.Second)}
	if slices.ContainsFunc(of.read, func(c collected) bool { return c.Database != sv.Database }) {
		sv.Database = ""
	}
	name := func(c *dump.Collection) string {
		if sv.Database == "" {
			return c.String()
		}
		return c.Visible()
	}
	slices.SortFunc(of.read, func(a, b collected) int { return strings.Compare(name(a.Collection), name(b.Collection)) })
	for _, c := range of.read {
		took := time.Since(begin) / time.Duration(len(of.read)) // of the whole pass
		sv.Collections = append(sv.Collections, survey.Collection{Name: name(c.Collection), Documents: c.Documents, Took: took})
	}
	for _, c := range of.seen {
		switch {
		case !r.selects(c):
		case c.TimeSeries():
			sv.NotRead = append(sv.NotRead, terminal.Cell(name(c))+": a time series, which cannot be converted")
		case c.Type == "view":
			sv.NotRead = append(sv.NotRead, terminal.Cell(name(c))+": a view, which shows the documents of collections")
		}
	}
	slices.Sort(sv.NotRead)
	sv.NotRead = slices.Compact(sv.NotRead) // a time series and its buckets
	return sv, of.digest, sv.Decide(s)
}
