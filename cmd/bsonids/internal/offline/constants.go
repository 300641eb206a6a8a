package offline

import (
	"bytes"
	"encoding/base64"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/convert"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Constant is a value in the metadata of a collection, which is copied as it is: in a validator, a
// partial index, or the pipeline of a view.
type Constant struct {
	Path  string `json:"path"`
	Value string `json:"value"` // in base64
	old   [16]byte
}

// constants finds the values of the old kind in the metadata of a collection.
func (r *run) constants(c *Collection, item *dump.Item) {
	if c.Role != Converted && c.Role != TimeSeries || len(bytes.TrimSpace(item.Text)) == 0 {
		return
	}
	note := func(k Constant, reason string) {
		c.Constants = append(c.Constants, k)
		r.res.Constants++
		left := convert.Left{Path: k.Path, Old: k.old, Reason: reason}
		r.SkipList.Add(c.Namespace, bson.RawValue{}, r.Conversion.From.Subtype, []convert.Left{left})
	}
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON(item.Text, false, &doc); err != nil {
		note(Constant{}, fmt.Sprintf("the metadata is not extended JSON, so its constants were not looked at: %v", err))
		return
	}
	anywhere := r.Conversion
	anywhere.Fields = nil // the paths are not those of documents
	err := anywhere.Wants(doc, func(path string, _ int, old [16]byte) {
		note(Constant{path, base64.StdEncoding.EncodeToString(old[:]), old}, "a constant in the options or indexes of the collection, which is copied as it is")
	})
	if err != nil {
		note(Constant{}, fmt.Sprintf("the metadata could not be read: %v", err))
	}
}

// hasColumn reports whether a bucket has compressed measurements.
func hasColumn(doc bson.Raw) (found bool, err error) {
	err = walk.Document(doc, func(_ *walk.Path, l walk.Leaf) error {
		if subtype, _, _, ok := l.Binary(); ok && subtype == typeColumn {
			found = true
		}
		return nil
	})
	return found, err
}
