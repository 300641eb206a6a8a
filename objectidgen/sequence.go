package objectidgen

import (
	"fmt"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Sequence is a source of given ids in a given order, for tests that must know the _id of what they insert. Use
// [NewSequence] to make one; the zero value has no ids. It is safe for concurrent use.
type Sequence struct {
	mu  sync.Mutex
	ids []bson.ObjectID
}

// NewSequence returns a source of ids, each as often as it is given. The slice is copied.
func NewSequence(ids ...bson.ObjectID) *Sequence {
	return &Sequence{ids: slices.Clone(ids)}
}

// NewID returns the next id, a [bson.ObjectID]. If there are no more, it returns [ErrExhausted].
func (s *Sequence) NewID() (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ids) == 0 {
		return nil, fmt.Errorf("objectidgen: %w in the sequence", ErrExhausted)
	}
	id := s.ids[0]
	s.ids = s.ids[1:]
	return id, nil
}
