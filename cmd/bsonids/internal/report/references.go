package report

import (
	"math"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
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
// one of them with a probability of 95 %. It is 1 if every document was read, and 0 if the
// collection is empty. A random sample of a share s misses r documents with a probability of
// (1-s)^r.
func (s Searched) Missed() int64 {
	switch {
	case s.Documents >= s.Of:
		return min(s.Of, 1)
	case s.Documents == 0:
		return s.Of
	}
	share := float64(s.Documents) / float64(s.Of)
	return min(s.Of, int64(math.Ceil(math.Log(0.05)/math.Log1p(-share))))
}
