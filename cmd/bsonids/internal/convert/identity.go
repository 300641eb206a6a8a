package convert

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Identity identifies a conversion.
type Identity struct {
	Database   string       `json:"database"`
	Collection string       `json:"collection"`
	Pairs      []kinds.Pair `json:"pairs"`
	Into       string       `json:"into,omitempty"`
	Part       string       `json:"part,omitempty"`
	Query      string       `json:"query,omitempty"` // canonical extended JSON
}
