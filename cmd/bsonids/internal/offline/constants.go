package offline

import (
	"bytes"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// constants lists the values of the old kind in the metadata of a collection, which is copied as it is: in a
// validator, a partial index, or the pipeline of a view.
func (r *run) constants(c *Collection, item *dump.Item) {
	if c.Role != Converted && c.Role != TimeSeries || len(bytes.TrimSpace(item.Text)) == 0 {
		return
	}
	note := func(subtype byte, l rule.Left, reason string) {
		l.Reason = reason
		c.Constants++
		r.res.Constants++
		r.SkipList.Add(c.Namespace, bson.RawValue{}, subtype, []rule.Left{l})
	}
	var doc bson.Raw
	if err := bson.UnmarshalExtJSON(item.Text, false, &doc); err != nil {
		note(0, rule.Left{Document: true}, fmt.Sprintf("the metadata is not extended JSON, so its constants were not looked at: %v", err))
		return
	}
	for _, conv := range r.all { // the paths are not those of documents
		err := conv.Wants(doc, func(_ *walk.Path, l rule.Left) {
			if top, _, _ := strings.Cut(l.Path, "."); l.Value == "" || top == "options" || top == "indexes" { // the UUID of the collection is text
				note(conv.From.Subtype, l, "a constant in the options or indexes of the collection, which is copied as it is")
			}
		})
		if err != nil {
			note(0, rule.Left{Document: true}, fmt.Sprintf("the metadata could not be read: %v", err))
		}
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
