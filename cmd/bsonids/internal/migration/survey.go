package migration

import (
	"context"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/progress"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// Survey adds the documents of the collection that match the query, except for corrupt ones, which the
// conversion skips when it reads them.
func (s *Session) Survey(ctx context.Context, coll *mongo.Collection, query bson.D, to *decide.Surveyed) error {
	_, err := source.Collection{Collection: coll, Filter: query}.Read(ctx, s.Patience, func(total int64) *progress.Progress {
		return s.Progress(total, "deciding", to.Namespace)
	}, to)
	return err
}

// Matching returns a usage error if a field that the user named does not have a value in coll.
func Matching(ctx context.Context, coll *mongo.Collection, conv rule.Conversion) error {
	names, err := convert.Unmatched(ctx, coll, conv)
	if err != nil || len(names) == 0 {
		return err
	}
	return failure.Usagef("%s.%s has no such field with %s: %s; bsonids scan prints the field names",
		coll.Database().Name(), coll.Name(), ValuesFor(conv), strings.Join(names, ", "))
}

// ValuesFor names the values that a field of the conversion may have.
func ValuesFor(conv rule.Conversion) string {
	what := "a binary value of 16 bytes"
	for _, k := range []kinds.Kind{conv.From, conv.To} {
		if !k.IsBinary() {
			what += " or " + k.Name
		}
	}
	return what
}
