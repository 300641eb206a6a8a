// Package duplicates finds the documents that a conversion would give the _id, or the value of a unique
// index, that another document has or gets.
package duplicates

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/patience"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/terminal"
)

// Report says how many documents would get a unique value of another one.
type Report struct {
	Counted    []Counted    `json:"counted"`
	NotCounted []NotCounted `json:"notCounted,omitempty"`
	// File has the pairs of the _ids of these documents, one JSON object per line:
	//
	//	{"collection":"shop.orders","field":"_id","_id":{"$binary":{…}},"other":{"$binary":{…}}}
	//
	// The document with the _id would get the value of the other one. It is empty if there are none.
	File string `json:"file,omitempty"`
}

// Counted is the _id or a field with a unique index.
type Counted struct {
	Collection string `json:"collection"`
	Field      string `json:"field"`
	Index      string `json:"index"` // its name
	Documents  int64  `json:"documents"`
}

// NotCounted is a unique index with converted values that is not searched.
type NotCounted struct {
	Collection string `json:"collection"`
	Index      string `json:"index,omitempty"` // empty for all of the collection
	Reason     string `json:"reason"`
}

// Any reports whether there is a document that would get a unique value of another one. r may be nil.
func (r *Report) Any() bool { return r != nil && r.File != "" }

// Lines returns what there is to say about each field with such documents, and about each index that is not counted. r may be nil.
func (r *Report) Lines() (lines []string) {
	if r == nil {
		return nil
	}
	for _, c := range r.Counted {
		if c.Documents > 0 {
			lines = append(lines, fmt.Sprintf("%s, %s: %s would get the value of another one; the pairs are in %s",
				c.Collection, c.Field, terminal.Count(c.Documents, "document"), filepath.Base(r.File)))
		}
	}
	for _, n := range r.NotCounted {
		what := "unique indexes"
		if n.Index != "" {
			what = "unique index " + n.Index
		}
		lines = append(lines, fmt.Sprintf("%s, %s: documents that would get the value of another one are not counted, because %s", n.Collection, what, n.Reason))
	}
	return lines
}

// Part is a conversion of documents of a collection, with its judge.
type Part struct {
	convert.Selection
}

// Collection is a collection, and the conversions of its documents.
type Collection struct {
	*mongo.Collection
	Parts []Part
	// Copied is set if they make a copy, in which the values in _id are converted, too.
	Copied bool
	// Scan is what was found in all of its documents; nil if that is not known. A field in which no values can
	// become equal is not searched.
	Scan *scan.Collection
}

// Finder finds duplicates in one collection after the other. Its memory is bounded: it sorts on the disk. It is not safe
// for concurrent use.
type Finder struct {
	Patience *patience.Patience
	Progress func(total int64, doing, namespace string) terminal.Progress

	report Report
	pairs  spill.Scratch // the lines of the file
}

// Close removes the temporary files.
func (f *Finder) Close() error { return f.pairs.Close() }

// Report returns what was found, and writes the pairs to the file at path. It removes the file if there are none. The
// result is nil if no collection has a unique index, or an _id, that a conversion changes.
func (f *Finder) Report(path string) (*Report, error) {
	r := &f.report
	switch {
	case f.pairs.Size() > 0:
		r.File = path
		return r, files.ReplaceFrom(path, func(w io.Writer) error {
			_, err := io.Copy(w, io.NewSectionReader(&f.pairs, 0, f.pairs.Size()))
			return err
		})
	case len(r.Counted)+len(r.NotCounted) == 0:
		r = nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r, nil
}

// Find finds the duplicates in a collection.
func (f *Finder) Find(ctx context.Context, c Collection) (err error) {
	indexes, err := f.indexes(ctx, c)
	if err != nil {
		return err
	}
	s := &search{Collection: c, of: f, keys: spill.New(os.TempDir()), documents: spill.New(os.TempDir())}
	defer func() { err = errors.Join(err, s.keys.Close(), s.documents.Close(), s.ids.Close()) }()
	first := len(f.report.Counted)
	for n, i := range indexes {
		f.report.Counted = append(f.report.Counted, Counted{Collection: c.Name(), Field: i.field, Index: i.name})
		if i.number = uint64(n); c.mayMerge(i) {
			s.indexes = append(s.indexes, i)
		}
	}
	if len(s.indexes) == 0 {
		return nil
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	err = s.pair(func(n int, id, other bson.RawValue) error { return f.pair(c.Collection, indexes[n].field, id, other) })
	if err != nil {
		return err
	}
	return s.documents.Each(func(r spill.Record) error {
		f.report.Counted[first+int(r[2])].Documents++
		return nil
	})
}

// indexes returns the indexes whose keys are counted. It adds the others to the report.
func (f *Finder) indexes(ctx context.Context, c Collection) (indexes []*index, err error) {
	all, err := patience.Ask(ctx, f.Patience, func() ([]bson.Raw, error) { return server.Indexes(ctx, c.Collection) })
	switch {
	case failure.Means(err, failure.Missing):
		err = nil
	case err != nil && failure.Explain(err, "").Kind == failure.Denied:
		err = nil
		f.report.NotCounted = append(f.report.NotCounted, NotCounted{c.Name(), "", "the user may not list them"})
	}
	if id := (&index{name: "_id_", field: "_id", paths: [][]string{{"_id"}}}); c.changes(id) {
		indexes = append(indexes, id)
	}
	for _, raw := range all {
		i, reason := parse(raw)
		if i == nil || !c.changes(i) {
			continue
		}
		if reason == "" && len(indexes) == maxIndexes {
			reason = "there are too many"
		}
		if reason != "" {
			f.report.NotCounted = append(f.report.NotCounted, NotCounted{c.Name(), i.name, reason})
			continue
		}
		indexes = append(indexes, i)
	}
	return indexes, err
}

// pair adds a line to the file.
func (f *Finder) pair(coll *mongo.Collection, field string, id, other bson.RawValue) error {
	line := func(about ...bson.E) ([]byte, error) {
		of := bson.D{{Key: "collection", Value: coll.Database().Name() + "." + coll.Name()}, {Key: "field", Value: field}}
		b, err := bson.MarshalExtJSON(append(of, about...), true, false)
		if err == nil && !json.Valid(b) {
			err = errors.New("it is not JSON")
		}
		return b, err
	}
	b, err := line(bson.E{Key: "_id", Value: id}, bson.E{Key: "other", Value: other})
	if err != nil {
		b, err = line(bson.E{Key: "error", Value: "an _id of the pair cannot be written as extended JSON: " + err.Error()})
	}
	if err == nil {
		_, err = f.pairs.Append(append(b, '\n'))
	}
	return err
}
