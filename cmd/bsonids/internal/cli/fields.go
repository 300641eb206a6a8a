package cli

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// matching returns a usage error if a field that the user named does not have a value in coll.
func matching(ctx context.Context, coll *mongo.Collection, conv convert.Conversion) error {
	names, err := conv.Unmatched(ctx, coll)
	if err != nil || len(names) == 0 {
		return err
	}
	return failure.Usagef("--field %s: %s.%s has no such field with %s; bsonids scan prints the field names",
		strings.Join(names, ", "), coll.Database().Name(), coll.Name(), valuesFor(conv))
}

// valuesFor names the values that a field of the conversion may have.
func valuesFor(conv convert.Conversion) string {
	what := "a binary value of 16 bytes"
	for _, k := range []kinds.Kind{conv.From, conv.To} {
		if !k.IsBinary() {
			what += " or " + k.Name
		}
	}
	return what
}
