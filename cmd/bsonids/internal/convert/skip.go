package convert

import (
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Skip is a document that was left unchanged, wholly or in part.
type Skip struct {
	ID     bson.RawValue
	Reason string
}

// MarshalJSON writes the _id in canonical extended JSON.
func (s Skip) MarshalJSON() ([]byte, error) {
	id, err := documents.ExtJSON(s.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID     json.RawMessage `json:"_id"`
		Reason string          `json:"reason"`
	}{id, s.Reason})
}

// note counts the values that the edits of a document leave unchanged.
func (r *runner) note(p edit) {
	left := p.Skipped
	for _, ch := range p.InID {
		left = append(left, ch.Left("the value is in _id, which cannot be changed in place; convert into a new collection"))
	}
	r.leave(p.ID, left)
}

// skipPlan counts and lists the values of p as left unchanged.
func (r *runner) skipPlan(p edit, reason string) {
	left := make([]rule.Left, len(p.Changes))
	for i, ch := range p.Changes {
		left[i] = ch.Left(reason)
	}
	r.leave(p.ID, left)
}
