package migration

import (
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// ValidDatabase reports whether a database may have the name.
func ValidDatabase(name string) bool {
	return name != "" && len(name) < 64 && !strings.ContainsAny(name, "/\\. \"$\x00")
}

// ServerDatabase reports whether the database is one of the server itself.
func ServerDatabase(name string) bool {
	return slices.Contains([]string{"admin", "config", "local"}, name)
}

// ValidCollection reports whether a collection of a user may have the name.
func ValidCollection(name string) bool {
	return name != "" && !strings.HasPrefix(name, "system.") && !strings.ContainsAny(name, "$\x00")
}

// Described is a conversion as its identity describes it.
type Described struct {
	Conversion rule.Conversion
	ID         convert.Identity
	Part       convert.Part
	Query      bson.D // nil for all documents
}

// Describe returns the conversion that the identity describes.
func Describe(id convert.Identity) (d Described, err error) {
	d.ID = id
	if d.Conversion, err = rule.Compile(id.Pairs); err != nil {
		return d, err
	}
	switch {
	case !ValidDatabase(id.Database):
		return d, failure.Usagef("invalid database name %q", id.Database)
	case ServerDatabase(id.Database):
		return d, failure.Usagef("%s is a database of the server itself", id.Database)
	case !ValidCollection(id.Collection):
		return d, failure.Usagef("invalid collection name %q", id.Collection)
	case id.Into != "" && !ValidCollection(id.Into):
		return d, failure.Usagef("invalid collection name %q", id.Into)
	case id.Collection == record.Name || id.Into == record.Name:
		return d, failure.Usagef("cannot convert %s, the record of conversions", record.Name)
	}
	if d.Part, err = convert.ParsePart(id.Part); err != nil {
		return d, failure.Usagef("%v", err)
	}
	if d.Query, _, err = convert.ParseFilter(id.Query); err != nil {
		return d, failure.Usagef("the filter %s: %v", id.Query, err)
	}
	return d, nil
}
