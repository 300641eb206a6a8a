// Package serial draws ids one at a time, under a lock, for the generators whose formats need no more.
package serial

import (
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/wait"
)

// A Maker makes the UUIDs of one format. The lock of a Machine covers its calls.
type Maker interface {
	// Next returns the next UUID, or not ok if it is to be asked again when the clock has advanced. Without a look at
	// the clock, the reading is the highest of the present order.
	Next(look bool) (u uuid.UUID, ok bool, err error)

	// At returns a UUID for a given instant.
	At(t time.Time) (uuid.UUID, error)

	// Renew begins a new order.
	Renew() error

	// Ahead returns how far the last timestamp is ahead of the clock.
	Ahead() time.Duration

	// Orders returns the number of the present order, counted from 1, or 0 if the format has none.
	Orders() uint64
}

// A Machine draws from a [Maker]. It is safe for concurrent use. The zero Machine returns errors only, which begin with the
// name of the package: that of N.
type Machine[N interface{ Package() string }] struct {
	mu      sync.Mutex
	maker   Maker
	maxWait time.Duration
}

// maxInterrupted is how often Fill starts again at most, if other goroutines begin new orders without end.
const maxInterrupted = 100

// Init sets the Maker and how long a call waits for the clock.
func (m *Machine[N]) Init(maker Maker, maxWait time.Duration) {
	m.maker, m.maxWait = maker, maxWait
}

// Maker returns the Maker. It is for tests.
func (m *Machine[N]) Maker() Maker { return m.maker }

func name[N interface{ Package() string }]() string {
	var n N
	return n.Package()
}

func (m *Machine[N]) errNotMade() error {
	return fmt.Errorf("%s: a Generator is made by one of the New…Generator functions", name[N]())
}

// Next returns the next UUID.
func (m *Machine[N]) Next() (uuid.UUID, error) {
	u, ok, err := m.try(true, nil)
	if ok {
		return u, nil
	}
	return m.wait(nil, err)
}

// try asks the Maker once, and sets the order of the UUID unless it is not wanted.
func (m *Machine[N]) try(look bool, order *uint64) (u uuid.UUID, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maker == nil {
		return u, false, m.errNotMade()
	}
	u, ok, err = m.maker.Next(look)
	if order != nil {
		*order = m.maker.Orders()
	}
	return u, ok, err
}

// wait asks the Maker until it has a UUID, after it had none and no error.
func (m *Machine[N]) wait(order *uint64, err error) (uuid.UUID, error) {
	if err != nil {
		return uuid.Nil, err
	}
	u, err := wait.For(m.maxWait, name[N](), func() (uuid.UUID, bool, error) { return m.try(true, order) })
	if err != nil {
		return uuid.Nil, err
	}
	return u, nil
}

// Fill sets every element of us to a new UUID, all in one order: when another one begins, it starts again. After an error
// all of us is the nil UUID.
func (m *Machine[N]) Fill(us []uuid.UUID) error {
	var first, order uint64
	interrupted := 0
	for i := 0; i < len(us); i++ {
		u, ok, err := m.try(interrupted == 0, &order)
		if !ok {
			u, err = m.wait(&order, err)
		}
		if err != nil {
			clear(us)
			return err
		}
		if i > 0 && order != first && interrupted < maxInterrupted {
			interrupted++
			i = 0
		}
		if i == 0 {
			first = order
		}
		us[i] = u
	}
	return nil
}

// UUIDs returns an iterator over n new UUIDs. After an error, which comes with the nil UUID, it ends.
func (m *Machine[N]) UUIDs(n int) iter.Seq2[uuid.UUID, error] {
	return func(yield func(uuid.UUID, error) bool) {
		for range n {
			if u, err := m.Next(); !yield(u, err) || err != nil {
				return
			}
		}
	}
}

// At returns a UUID for a given instant.
func (m *Machine[N]) At(t time.Time) (uuid.UUID, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maker == nil {
		return uuid.Nil, m.errNotMade()
	}
	return m.maker.At(t)
}

// Renew begins a new order.
func (m *Machine[N]) Renew() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maker == nil {
		return m.errNotMade()
	}
	return m.maker.Renew()
}

// Ahead returns how far the last timestamp is ahead of the clock, 0 for the zero Machine.
func (m *Machine[N]) Ahead() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maker == nil {
		return 0
	}
	return m.maker.Ahead()
}

// Orders returns the number of the present order, 0 for the zero Machine.
func (m *Machine[N]) Orders() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.maker == nil {
		return 0
	}
	return m.maker.Orders()
}
