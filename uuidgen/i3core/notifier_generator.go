package i3core

import (
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/bsonids/bsonids/uuidgen"
)

// NewNotifierGenerator returns a Generator of the notifier format for a connection, 14 bits, of a
// node, which begins now: its instance sequences are above the present microsecond. A connection id
// of more bits is a [*uuidgen.FieldError]; a clock before 2000 or after 2142-09-17 is
// [uuidgen.ErrTimeRange], here, in NewUUID and in Renew. The options are [WithCustom],
// [uuidgen.WithClock] and [uuidgen.WithMaxWait].
//
// Each instance sequence is the microsecond before the one in which its UUID is made, the highest
// that is below the present, and no two are the same. While the clock has not passed the last one,
// in a burst of UUIDs or because it was set back, a call waits, at most as long as WithMaxWait says,
// two seconds by default, and then returns [uuidgen.ErrWait]. A Generator thus makes at most a
// million UUIDs a second. Two Generators for one connection at a time, such as those of two copies of
// a process, make the same UUIDs.
//
// [uuidgen.Generator.Renew] begins anew at the clock's time, also if the clock was once far ahead by
// mistake. The Generator can then make an instance sequence again that it made before; only a new
// connection id prevents it.
func NewNotifierGenerator(node [6]byte, connection uint16, opts ...uuidgen.Option) (*uuidgen.Generator, error) {
	c, o, err := newConfig(formatNotifier, opts, "WithCustom", "WithClock", "WithMaxWait")
	if err != nil {
		return nil, err
	}
	m := &notifierMaker{constant: Notifier{ConnectionID: connection, NodeAddress: node}, now: c.Now}
	if m.now == nil {
		m.now = time.Now
	}
	if o.custom != nil {
		m.constant.Custom = *o.custom
	}
	if err := m.constant.validate(); err != nil {
		return nil, err
	}
	if err := m.Renew(); err != nil {
		return nil, err
	}
	return newGenerator(c, m), nil
}

type notifierMaker struct {
	constant Notifier
	now      func() time.Time
	last     uint64 // instance sequence, or the connection's start
	orders   uint64
}

func (m *notifierMaker) Renew() error {
	start, err := microsecondsAt(m.now(), formatNotifier, 52)
	if err != nil {
		return err
	}
	m.last = start
	m.orders++
	return nil
}

func (m *notifierMaker) Next(bool) (uuid.UUID, bool, error) {
	now, err := microsecondsAt(m.now(), formatNotifier, 52)
	if err != nil || now <= m.last+1 {
		return uuid.Nil, false, err
	}
	m.last = now - 1
	f := m.constant
	f.InstanceSequence = m.last
	return f.join(), true, nil
}

func (m *notifierMaker) Ahead() time.Duration {
	now, err := microsecondsAt(m.now(), formatNotifier, 52)
	if err != nil {
		return math.MaxInt64
	}
	return microsecondsAhead(m.last, now)
}

func (m *notifierMaker) Orders() uint64 { return m.orders }
