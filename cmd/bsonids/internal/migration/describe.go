package migration

import (
	"fmt"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
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
	ID         convert.Identity // with sorted fields, and the filter in canonical extended JSON
	Part       convert.Part
	Query      bson.D // nil for all documents
}

// Describe returns the conversion that the identity describes. The error is an [*InvalidError].
func Describe(id convert.Identity) (d Described, err error) {
	if d.Conversion, err = Conversion(id.From, id.To, id.Fields); err != nil {
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
	if d.Query, id.Query, err = convert.ParseFilter(id.Query); err != nil {
		return d, &InvalidError{"query", err}
	}
	id.From, id.To, id.Fields, id.Part = d.Conversion.From.Name, d.Conversion.To.Name, nil, d.Part.String()
	for _, p := range d.Conversion.Fields {
		id.Fields = append(id.Fields, p.String())
	}
	slices.Sort(id.Fields)
	d.ID = id
	return d, nil
}

// Conversion returns the conversion of the fields, as scan prints them, or of all fields if there are
// none. The error is an [*InvalidError].
func Conversion(from, to string, fields []string) (rule.Conversion, error) {
	var c rule.Conversion
	source, err := kinds.Parse(from)
	if err != nil {
		return c, &InvalidError{"from", err}
	}
	target, err := kinds.Parse(to)
	if err != nil {
		return c, &InvalidError{"to", err}
	}
	patterns, err := Patterns(source, fields)
	if err != nil {
		return c, err
	}
	if c, err = rule.NewConversion(source, target, patterns); err != nil {
		return c, invalid("to", "from %s to %s: %w", from, to, err)
	}
	return c, nil
}

// Patterns returns the patterns of the fields of a conversion. The error is an [*InvalidError].
func Patterns(from kinds.Kind, fields []string) (patterns []walk.Pattern, err error) {
	for _, field := range fields {
		p, err := walk.ParsePattern(field)
		if err != nil {
			return nil, &InvalidError{"field", err}
		}
		patterns = append(patterns, p)
	}
	switch {
	case len(fields) > 0 || !from.NeedsField():
	case from.IsBinary():
		return nil, invalid("field", "from %s, the fields must be named, because 16 bytes of subtype %d may be anything, such as a checksum", from.Name, from.Subtype)
	default:
		return nil, invalid("field", "from %s, the fields must be named, because a value that looks like a UUID may be something else in another field", from.Name)
	}
	return patterns, nil
}
