// Package uuidtext reads UUIDs that were stored as text.
package uuidtext

import "github.com/google/uuid"

// Parse returns the UUID that s is the text of, in one of the forms of [uuid.Validate]. Unlike
// [uuid.Parse] it refuses other characters than braces around the text.
func Parse(s string) (uuid.UUID, error) {
	if err := uuid.Validate(s); err != nil {
		return uuid.Nil, err
	}
	return uuid.Parse(s)
}
