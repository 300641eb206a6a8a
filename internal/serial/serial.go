// Package serial draws ids one at a time, under a lock, for the generators whose formats need no more.
package serial

import (
	"errors"
	"fmt"
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

	// Renew begins a new order.
	Renew() error

	// Ahead returns how far the last timestamp is ahead of the clock.
	Ahead() time.Duration

	// Orders returns the number of the present order, counted from 1, or 0 if the format has none.
	Orders() uint64
}

// A Machine draws from a [Maker]. It is safe for concurrent use. A nil Machine is that of the zero Generator: it returns
// errors only.
type Machine struct {
	pkg     string
	maxWait time.Duration
	id      func(uuid.UUID) any

	mu    sync.Mutex
	maker Maker
}

// maxInterrupted is how often Fill starts again at most, if other goroutines begin new orders without end.
const maxInterrupted = 100

// New returns a Machine that waits for the clock at most so long. Errors begin with the name of the package. What is
// inserted as an id is the result of id.
func New(pkg string, m Maker, maxWait time.Duration, id func(uuid.UUID) any) *Machine {
	return &Machine{pkg: pkg, maker: m, maxWait: maxWait, id: id}
}

// ErrNotMade is the error of a nil Machine.
var ErrNotMade = errors.New("uuidgen: a Generator is made by one of the New…Generator functions")

// ID returns a UUID as it is inserted.
func (m *Machine) ID(u uuid.UUID) any { return m.id(u) }

// Next returns the next UUID.
func (m *Machine) Next() (uuid.UUID, error) {
	u, ok, err := m.try(true, nil)
	if ok {
		return u, nil
	}
	return m.wait(nil, err)
}

// try asks the Maker once, and sets the order of the UUID unless it is not wanted.
func (m *Machine) try(look bool, order *uint64) (u uuid.UUID, ok bool, err error) {
	if m == nil {
		return u, false, ErrNotMade
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok, err = m.maker.Next(look)
	if order != nil {
		*order = m.maker.Orders()
	}
	return u, ok, err
}

// wait asks the Maker until it has a UUID, after it had none and no error.
func (m *Machine) wait(order *uint64, err error) (uuid.UUID, error) {
	if err != nil {
		return uuid.Nil, err
	}
	u, err := wait.For(m.maxWait, m.pkg, func() (uuid.UUID, bool, error) { return m.try(true, order) })
	if err != nil {
		return uuid.Nil, err
	}
	return u, nil
}

// Fill sets every element of us to a new UUID, all in one order: when another one begins, it starts again. After an error
// all of us is the nil UUID.
func (m *Machine) Fill(us []uuid.UUID) error {
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
		if i > 0 && order != first {
			if interrupted++; interrupted > maxInterrupted {
				clear(us)
				return fmt.Errorf("%s: %w: new orders interrupt the batch", m.pkg, wait.Err)
			}
			i = 0
		}
		if i == 0 {
			first = order
		}
		us[i] = u
	}
	return nil
}

// Renew begins a new order.
func (m *Machine) Renew() error {
	if m == nil {
		return ErrNotMade
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.maker.Renew()
}

// Ahead returns how far the last timestamp is ahead of the clock, 0 for a nil Machine.
func (m *Machine) Ahead() time.Duration {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.maker.Ahead()
}

// Orders returns the number of the present order, 0 for a nil Machine.
func (m *Machine) Orders() uint64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.maker.Orders()
}
