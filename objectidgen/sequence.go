package objectidgen

import (
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Fixed is a source of given ids, in their order, for tests that must know the _id of what they insert. [Sequence]
// makes one; the zero value has no ids. It is safe for concurrent use: every id is handed out once.
type Fixed struct {
	mu  sync.Mutex
	ids []bson.ObjectID
}

// Sequence returns a source that hands out ids, each as often as it is given, then [ErrExhausted]. The slice is
// copied.
func Sequence(ids ...bson.ObjectID) *Fixed {
	return &Fixed{ids: slices.Clone(ids)}
}

// NewID returns the next id, a [bson.ObjectID], or [ErrExhausted] where there is none left, then and ever after.
func (f *Fixed) NewID() (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.ids) == 0 {
		return nil, ErrExhausted
	}
	id := f.ids[0]
	f.ids = f.ids[1:]
	return id, nil
}
