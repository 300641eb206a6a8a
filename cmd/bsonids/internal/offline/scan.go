package offline

import (
	"context"
	"errors"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// Reading describes the reading of a dump.
type Reading struct {
	Input     *dump.Input
	Selection Selection
	Temp      string // directory for temporary files
	Now       time.Time
	Progress  func(documents int)
}

// takers has what takes the documents of each collection of a dump.
type takers struct {
	selection Selection
	new       func(*dump.Collection, Role) (source.Taker, error) // returns nil for a collection that is only walked
	of        map[*dump.Collection]source.Taker
}

// pass reads a dump, and gives each document to the takers. It returns the collections of the dump.
func (r *Reading) pass(ctx context.Context, digest *digest, all ...*takers) (seen []*dump.Collection, err error) {
	d, err := source.OpenDump(r.Input, r.Progress)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = source.Each(ctx, d, func(bson.Raw) error {
		c := d.Item.Collection
		digest.add(&d.Item)
		for _, t := range all {
			to, ok := t.of[c]
			if !ok {
				var err error
				if to, err = t.new(c, t.selection.role(c)); err != nil {
					return err
				}
				t.of[c] = to
			}
			if err := d.Add(to); err != nil {
				return err
			}
		}
		return nil
	})
	return d.Seen, err
}

// Collectors count what the selected collections of a dump hold.
type Collectors struct {
	scan   *scan.Scan
	takers takers
	Seen   []*dump.Collection // the collections of the dump
}

// NewCollectors returns Collectors for the reading. The caller must close them.
func NewCollectors(r Reading) *Collectors {
	c := &Collectors{scan: scan.New(r.Temp, r.Now)}
	c.takers = takers{r.Selection, func(coll *dump.Collection, role Role) (source.Taker, error) {
		if role != Converted && role != TimeSeries {
			return nil, nil
		}
		return c.scan.Collection(coll.Database, coll.Name)
	}, make(map[*dump.Collection]source.Taker)}
	return c
}

// Close removes the temporary file.
func (c *Collectors) Close() error { return c.scan.Close() }

// Scan reads a dump.
func (c *Collectors) Scan(ctx context.Context, r Reading) (err error) {
	c.Seen, err = r.pass(ctx, nil, &c.takers)
	return err
}

// Judge makes the report.
func (c *Collectors) Judge() ([]scan.Collection, error) {
	for _, coll := range c.Seen {
		if role := c.takers.selection.role(coll); c.takers.of[coll] == nil && role == Converted && coll.Type != "view" { // it is empty
			if _, err := c.scan.Collection(coll.Database, coll.Name); err != nil {
				return nil, err
			}
		}
	}
	out, err := c.scan.Judge()
	for i := range out {
		out[i].Mode, out[i].Documents = source.All, out[i].Scanned
	}
	return out, err
}

// TimeSeries returns the selected collections that hold the buckets of a time series.
func (c *Collectors) TimeSeries() []string {
	var names []string
	for _, coll := range c.Seen {
		if c.takers.of[coll] != nil && coll.TimeSeries() {
			names = append(names, coll.String())
		}
	}
	return names
}
