package convert

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/server"
)

// index creates the indexes. It keeps those that exist.
func (c *copier) index(ctx context.Context, indexes []bson.Raw) error {
	if len(indexes) == 0 {
		return nil
	}
	// An index without a collation has the simple collation. If the collection has a default
	// collation, the new index would get that one.
	target, err := server.Specification(ctx, c.m.New)
	if err != nil {
		return err
	}
	_, err = target.Options.LookupErr("collation")
	collated := err == nil
	var specs bson.A
	for _, i := range indexes {
		elements, err := i.Elements()
		if err != nil {
			return err
		}
		var spec bson.D
		for _, e := range elements {
			switch e.Key() {
			case "v", "ns": // the server chooses the version; ns, of old servers, names the source
			case "key":
				key, err := indexKey(e.Value().Document())
				if err != nil {
					return err
				}
				spec = append(spec, bson.E{Key: "key", Value: key})
			default:
				spec = append(spec, bson.E{Key: e.Key(), Value: e.Value()})
			}
		}
		if _, err := i.LookupErr("collation"); err != nil && collated {
			spec = append(spec, bson.E{Key: "collation", Value: bson.D{{Key: "locale", Value: "simple"}}})
		}
		specs = append(specs, spec)
	}
	// Servers before 3.4 stored unknown index options and ignored them. Later servers return an
	// error for them.
	return c.m.New.Database().RunCommand(ctx, bson.D{{Key: "createIndexes", Value: c.m.New.Name()}, {Key: "indexes", Value: specs},
		{Key: "ignoreUnknownIndexOptions", Value: true}, writeConcern}).Err()
}

// indexKey returns the key of an index in the form that current servers accept. Servers before 3.4
// read every value except text and negative numbers as 1, including true and 0.
func indexKey(key bson.Raw) (bson.D, error) {
	elements, err := key.Elements()
	var d bson.D
	for _, e := range elements {
		v := e.Value()
		n, number := v.AsFloat64OK()
		text, isText := v.StringValueOK()
		if number && n != 0 || v.Type == bson.TypeDecimal128 || isText && text != "" {
			d = append(d, bson.E{Key: e.Key(), Value: v})
		} else {
			d = append(d, bson.E{Key: e.Key(), Value: int32(1)})
		}
	}
	return d, err
}
