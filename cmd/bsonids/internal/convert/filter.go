package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// ParseFilter parses a filter of documents in extended JSON, and returns it as canonical extended JSON, too. An
// empty text is no filter.
func ParseFilter(text string) (bson.D, string, error) {
	if text == "" {
		return nil, "", nil
	}
	// The driver ignores what follows the first value.
	if t := strings.TrimSpace(text); !json.Valid([]byte(t)) || t[0] != '{' {
		return nil, "", errors.New("must be a filter in extended JSON, such as {\"year\": 2020}")
	}
	var d bson.D
	if err := bson.UnmarshalExtJSON([]byte(text), false, &d); err != nil {
		return nil, "", fmt.Errorf("invalid extended JSON: %w", err)
	}
	if key := repeated(d); key != "" { // servers differ in which of the two counts
		return nil, "", fmt.Errorf("the key %q is there twice", key)
	}
	b, err := bson.MarshalExtJSON(d, true, false)
	return d, string(b), err
}

// repeated returns a key that a document, or a document in it, has twice, or "".
func repeated(v any) (key string) {
	switch v := v.(type) {
	case bson.D:
		seen := make(map[string]bool, len(v))
		for _, e := range v {
			if seen[e.Key] {
				return e.Key
			}
			seen[e.Key] = true
			if key = repeated(e.Value); key != "" {
				return key
			}
		}
	case bson.A:
		for _, e := range v {
			if key = repeated(e); key != "" {
				return key
			}
		}
	}
	return ""
}

// leftFilter is why values of a document are left that another program has changed.
const leftFilter = "the document does not match the filter any more"

// filtered returns the filter as the value of $and, for updates. It is zero if there is none.
func filtered(query bson.D) (v bson.RawValue, err error) {
	if len(query) > 0 {
		v.Type, v.Value, err = bson.MarshalValue(bson.A{query})
	}
	return v, err
}

// planOf returns what to change in a document, of which edits knows no shard key.
func (r *runner) planOf(doc bson.Raw, edits func(bson.Raw) (rule.Edits, error)) (rule.Edits, error) {
	p, err := edits(doc)
	p.Sharded(doc, r.key)
	return p, err
}
