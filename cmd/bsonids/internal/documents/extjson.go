package documents

import (
	"encoding/json"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ExtJSON returns v in canonical extended JSON, on one line. A value that extended JSON lacks is an error. So is a DBPointer
// to a collection whose name is not its own JSON, because the driver does not escape it.
func ExtJSON(v bson.RawValue) ([]byte, error) {
	b, err := bson.MarshalExtJSON(bson.D{{Key: "v", Value: v}}, true, false)
	if err != nil {
		return nil, err
	}
	b = b[len(`{"v":`) : len(b)-1]
	if !json.Valid(b) {
		return nil, fmt.Errorf("a %v cannot be written as JSON", v.Type)
	}
	return b, nil
}
