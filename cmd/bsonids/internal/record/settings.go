package record

import (
	"bytes"
	"encoding/json"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Settings are the validator of a collection, its level and its action.
type Settings struct {
	Validator []byte `bson:"validator"` // a BSON document, as a binary value; empty if there is none
	Level     string `bson:"level"`
	Action    string `bson:"action"`
}

// Equal reports whether both settings have the same effect.
func (s Settings) Equal(t Settings) bool {
	return bytes.Equal(s.Validator, t.Validator) && s.Level == t.Level && s.Action == t.Action
}

// Text returns the validator in canonical extended JSON.
func (s Settings) Text() string {
	if len(s.Validator) == 0 {
		return "{}"
	}
	b, err := bson.MarshalExtJSON(bson.Raw(s.Validator), true, false)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// MarshalJSON writes the settings as results of commands have them, the validator in relaxed extended JSON.
func (s Settings) MarshalJSON() ([]byte, error) {
	var validator json.RawMessage
	if len(s.Validator) > 0 {
		var err error
		if validator, err = bson.MarshalExtJSON(bson.Raw(s.Validator), false, false); err != nil {
			return nil, err
		}
	}
	return json.Marshal(struct {
		Validator json.RawMessage `json:"validator"`
		Level     string          `json:"validationLevel"`
		Action    string          `json:"validationAction"`
	}{validator, s.Level, s.Action})
}
