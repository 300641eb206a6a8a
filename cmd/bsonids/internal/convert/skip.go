package convert

import (
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Skip is a document that was left unchanged, wholly or in part.
type Skip struct {
	ID     bson.RawValue
	Reason string
}

// MarshalJSON writes the _id in canonical extended JSON.
func (s Skip) MarshalJSON() ([]byte, error) {
	id, err := extJSON(s.ID)
	if err != nil {
		return nil, err
	}
	return json.Marshal(struct {
		ID     json.RawMessage `json:"_id"`
		Reason string          `json:"reason"`
	}{id, s.Reason})
}
