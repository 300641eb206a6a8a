package report

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
)

// References holds the values, found before a conversion, that are equal to converted values and
// are not converted.
type References struct {
	Left     []decide.Elsewhere `json:"leftBehind,omitempty"`
	Searched []Searched         `json:"searched"`
	Unread   []string           `json:"unread,omitempty"` // collections that could not be searched
}

// Searched is a collection that was searched.
type Searched struct {
	Namespace string `json:"collection"`
	Documents int64  `json:"documentsRead"`
	Of        int64  `json:"documents"`
	Random    bool   `json:"random"` // otherwise the first documents or all of them were read
}

// Missed returns how many documents with references a collection must have for the search to find
// one of them with a probability of 95 %, as [source.Missed] does.
func (s Searched) Missed() int64 { return source.Missed(s.Documents, s.Of) }
