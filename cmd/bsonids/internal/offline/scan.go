package offline

import (
	"context"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Collectors count what the selected collections of a dump hold.
type Collectors struct {
	selection  Selection
	collectors map[*dump.Collection]*scan.Collector // nil for a collection that is not selected
	Seen       []*dump.Collection                   // the collections of the dump
}

// NewCollectors returns Collectors for the selection.
func NewCollectors(s Selection) *Collectors {
	return &Collectors{selection: s, collectors: make(map[*dump.Collection]*scan.Collector)}
}

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
		to = scan.NewCollector(item.Collection.String())
		c.collectors[item.Collection] = to
	}
	return to.Add(item.Bytes)
}

// Scan reads a dump.
func (c *Collectors) Scan(ctx context.Context, r Reading) error { return r.each(ctx, c.Item) }

// Judge makes the report.
func (c *Collectors) Judge(now time.Time) []scan.Collection {
	var list []*scan.Collector
	for _, coll := range c.Seen {
		to := c.collectors[coll]
		if role := c.selection.role(coll); to == nil && role == Converted && coll.Type != "view" { // it is empty
			to = scan.NewCollector(coll.String())
		}
		if to != nil {
			list = append(list, to)
		}
	}
	out := scan.Judge(list, now)
	for i := range out {
		out[i].Mode, out[i].Documents = scan.All, out[i].Scanned
	}
	return out
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
