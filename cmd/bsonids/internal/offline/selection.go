// Package offline scans, converts and proves dumps, which are collections in files. It decides and
// converts by the same rules as a conversion on a server.
package offline

import (
	"errors"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
)

// Selection selects collections of a dump. An empty list selects all, except what belongs to the
// server.
type Selection struct{ Databases, Collections []string }

// Role is what a conversion does with a collection.
type Role string

// The roles.
const (
	Converted  Role = "converted"
	Unselected Role = "unselected" // copied, and compared with converted collections
	System     Role = "system"     // of the server, or the record of conversions: copied
	TimeSeries Role = "timeseries" // selected, and copied nevertheless
)

// role returns the role of a collection.
func (s Selection) role(c *dump.Collection) Role {
	selected := (len(s.Collections) == 0 || slices.Contains(s.Collections, c.Visible())) && (len(s.Databases) == 0 || slices.Contains(s.Databases, c.Database))
	switch {
	case c.TimeSeries() && selected:
		return TimeSeries
	case c.Oplog() || c.Reserved() || c.Name == record.Name || c.ServerDatabase() && !slices.Contains(s.Databases, c.Database):
		return System
	case selected && !c.TimeSeries():
		return Converted
	}
	return Unselected
}

// ErrOplog is the error for a dump of mongodump --oplog: mongorestore applies the operations in it to the
// restored documents, and they name values and fields as they were before the conversion.
var ErrOplog = errors.New("the dump has an oplog (mongodump --oplog), whose operations mongorestore would apply to converted documents: " +
	"restore it with mongorestore --oplogReplay and dump that server without --oplog, or convert on it")

// Check returns a *Missing if the dump does not have a database or collection of the selection.
func (s Selection) Check(seen []*dump.Collection) error {
	var m Missing
	for _, d := range s.Databases {
		if !slices.ContainsFunc(seen, func(c *dump.Collection) bool { return c.Database == d }) {
			m.Databases = append(m.Databases, d)
		}
	}
	for _, name := range s.Collections {
		if !slices.ContainsFunc(seen, func(c *dump.Collection) bool {
			return c.Visible() == name && (len(s.Databases) == 0 || slices.Contains(s.Databases, c.Database))
		}) {
			m.Collections = append(m.Collections, name)
		}
	}
	if len(m.Databases)+len(m.Collections) > 0 {
		return &m
	}
	return nil
}
