package documents

import (
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Error is the error of a document that cannot be converted or written.
type Error struct {
	ID     bson.RawValue
	Reason string
}

func (e *Error) Error() string { return fmt.Sprintf("document with _id %s: %s", e.ID, e.Reason) }
