package convert

import (
	"encoding/json"
	"errors"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// unmarshalLine decodes a line of canonical extended JSON into a struct. A line that is cut off is
// found first, because the driver does not return from skipping an unknown field that has no end.
func unmarshalLine(line []byte, v any) error {
	if !json.Valid(line) {
		return errors.New("it is not JSON")
	}
	return bson.UnmarshalExtJSON(line, true, v)
}
