package migration

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// InvalidError is the error of a conversion that is not described well. Name says what is wrong with it:
// db, collection, into, from, to, field, part or query.
type InvalidError struct {
	Name string
	Err  error
}

func (e *InvalidError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *InvalidError) Unwrap() error { return e.Err }

func invalid(name, format string, args ...any) error {
	return &InvalidError{name, fmt.Errorf(format, args...)}
}

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

// Describe returns the conversion that the identity describes. The error is an [*InvalidError].
func Describe(id convert.Identity) (d Described, err error) {
	d.ID = id
	if d.Conversion, err = rule.Compile(id.Pairs); err != nil {
		return d, err
	}
	switch {
	case !ValidDatabase(id.Database):
		return d, invalid("db", "invalid database name %q", id.Database)
	case ServerDatabase(id.Database):
		return d, invalid("db", "%s is a database of the server itself", id.Database)
	case !ValidCollection(id.Collection):
		return d, invalid("collection", "invalid collection name %q", id.Collection)
	case id.Into != "" && !ValidCollection(id.Into):
		return d, invalid("into", "invalid collection name %q", id.Into)
	}
	if d.Part, err = convert.ParsePart(id.Part); err != nil {
		return d, &InvalidError{"part", err}
	}
	if d.Query, _, err = convert.ParseFilter(id.Query); err != nil {
		return d, &InvalidError{"query", err}
	}
	return d, nil
}
