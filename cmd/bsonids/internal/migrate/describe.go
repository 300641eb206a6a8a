package migrate

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// Described is a task in a database, and what it says.
type Described struct {
	Database string
	Task     kinds.Task
	convert.Selection
}

// Describe returns what a task in a database says.
func Describe(database string, of kinds.Task) (d Described, err error) {
	d.Database, d.Task = database, of
	if d.Conversion, err = rule.Compile(of.Pairs); err != nil {
		return d, err
	}
	switch {
	case !server.ValidDatabase(database):
		return d, failure.Usagef("invalid database name %q", database)
	case server.ServerDatabase(database):
		return d, failure.Usagef("%s is a database of the server itself", database)
	case !server.ValidCollection(of.Collection):
		return d, failure.Usagef("invalid collection name %q", of.Collection)
	case of.Into != "" && !server.ValidCollection(of.Into):
		return d, failure.Usagef("invalid collection name %q", of.Into)
	case of.Collection == record.Name || of.Into == record.Name:
		return d, failure.Usagef("cannot convert %s, the record of conversions", record.Name)
	}
	if d.Query, _, err = convert.ParseFilter(of.Filter); err != nil {
		return d, failure.Usagef("the filter %s: %v", of.Filter, err)
	}
	return d, nil
}
