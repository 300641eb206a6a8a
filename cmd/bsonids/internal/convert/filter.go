package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/hashset"
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

// Values is a set of values that are not to be converted: other conversions of the collection have made them. It has
// each by itself, and with the _id of its document. The nil set has none.
type Values struct{ set *hashset.Set }

// ReadNew returns the new values of the undo logs, as [eachNew] reads them.
func ReadNew(logs []string) (*Values, error) {
	v := &Values{set: hashset.New()}
	for _, path := range logs {
		err := eachNew(path, func(e Entry) error {
			for _, ch := range e.Changes {
				v.set.Add(named(bson.RawValue{}, ch.New))
				v.set.Add(named(e.ID, ch.New))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if v.set.Full() {
		return nil, fmt.Errorf("the undo logs of the other conversions of the collection have more than %d values", hashset.Most)
	}
	return v, nil
}

// eachNew calls f for the entries of the undo log at path. A log that does not exist has none.
func eachNew(path string, f func(Entry) error) error {
	u, err := ReadUndoLog(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(u.each(f), u.Close())
}

// named returns a value as an element of the set, with the _id if that is not zero.
func named(id bson.RawValue, v rule.Value) []byte {
	return append(appendStored([]byte{byte(id.Type)}, v), id.Value...)
}

// leftMade is why a value is left that may be new in its document.
const leftMade = "another conversion of the plan has made such a value in another document, so that it may be converted already"

// drop removes from what the plan of a document changes and leaves the values that are new in it. Values that are
// new in another document are left.
func (v *Values) drop(id bson.RawValue, p *rule.Plan) {
	if v == nil {
		return
	}
	p.Skipped = slices.DeleteFunc(p.Skipped, func(l rule.Left) bool { return !l.Document && v.set.Has(named(id, l.Value)) })
	p.Changes = slices.DeleteFunc(p.Changes, func(ch rule.Change) bool {
		own := v.set.Has(named(id, ch.Old))
		made := own || v.set.Has(named(bson.RawValue{}, ch.Old))
		if made && !own {
			p.Skipped = append(p.Skipped, ch.Left(leftMade))
		}
		return made
	})
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

// planOf returns what to change in a document.
func (r *runner) planOf(doc bson.Raw) (rule.Plan, error) {
	p, err := r.Conversion.Plan(doc)
	p.Sharded(doc, r.key)
	r.Made.drop(doc.Lookup("_id"), &p)
	return p, err
}
