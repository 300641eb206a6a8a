package serial

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/internal/wait"
)

// restless begins a new order with every UUID, as if other goroutines did.
type restless struct {
	Maker
	orders uint64
}

func (r *restless) Next(bool) (uuid.UUID, bool, error) {
	r.orders++
	return uuid.UUID{15: byte(r.orders)}, true, nil
}

func (r *restless) Orders() uint64 { return r.orders }

// A batch of two orders is never returned.
func TestInterruptedFill(t *testing.T) {
	m := New("name", new(restless), time.Second, nil)
	us := []uuid.UUID{{1}, {2}}
	if err := m.Fill(us); !errors.Is(err, wait.Err) || us[0] != uuid.Nil || us[1] != uuid.Nil {
		t.Errorf("%v, %v", us, err)
	}
}
