package offline

import (
	"context"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Collectors count what the selected collections of a dump hold.
type Collectors struct {
	scan       *scan.Scan
	selection  Selection
	collectors map[*dump.Collection]*scan.Collector // nil for a collection that is not selected
	Seen       []*dump.Collection                   // the collections of the dump
}

// NewCollectors returns Collectors for the reading. The caller must close them.
func NewCollectors(r Reading) *Collectors {
	return &Collectors{scan: scan.New(r.Temp, r.Now), selection: r.Selection, collectors: make(map[*dump.Collection]*scan.Collector)}
}

// Close removes the temporary file.
func (c *Collectors) Close() error { return c.scan.Close() }

// Item counts an item. The error wraps walk.ErrCorrupt.
func (c *Collectors) Item(item *dump.Item) error {
	if item.Collection == nil {
		return nil
	}
	if _, ok := c.collectors[item.Collection]; !ok {
		c.Seen = append(c.Seen, item.Collection)
		c.collectors[item.Collection] = nil
	}
	if item.Kind != dump.Document {
		return nil
	}
	to := c.collectors[item.Collection]
	if to == nil {
		if role := c.selection.role(item.Collection); role != Converted && role != TimeSeries {
			return walk.Document(item.Bytes, func(*walk.Path, walk.Leaf) error { return nil })
		}
		var err error
		if to, err = c.scan.Collection(item.Collection.Database, item.Collection.Name); err != nil {
			return err
		}
		c.collectors[item.Collection] = to
	}
	return to.Add(item.Bytes)
}

// Scan reads a dump.
func (c *Collectors) Scan(ctx context.Context, r Reading) error { return r.each(ctx, c.Item) }

// Judge makes the report.
func (c *Collectors) Judge() ([]scan.Collection, error) {
	for _, coll := range c.Seen {
		if role := c.selection.role(coll); c.collectors[coll] == nil && role == Converted && coll.Type != "view" { // it is empty
			if _, err := c.scan.Collection(coll.Database, coll.Name); err != nil {
				return nil, err
			}
		}
	}
	out, err := c.scan.Judge()
	for i := range out {
		out[i].Mode, out[i].Documents = scan.All, out[i].Scanned
	}
	return out, err
}

// TimeSeries returns the selected collections that hold the buckets of a time series.
func (c *Collectors) TimeSeries() []string {
	var names []string
	for _, coll := range c.Seen {
		if c.collectors[coll] != nil && coll.TimeSeries() {
			names = append(names, coll.String())
		}
	}
	return names
}
