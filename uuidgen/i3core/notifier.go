package i3core

import (
	"time"

	"github.com/google/uuid"
)

const formatNotifier = "notifier"

// Notifier is the fields of a Notifier based UUID, version 0xE, by which a Notifier server routes
// messages to instances. It is a plain value, safe to copy.
//
//	memory  0–7 little-endian                          8–9 big-endian          10–15
//	        version:4 custom:8 instance_sequence:52    10:2 connection_id:14   node_address:48
//
// It is "Notifier Format" of the document. A Generator from [NewNotifierGenerator] makes them.
type Notifier struct {
	InstanceSequence uint64 // 52 bits: microseconds since 2000-01-01T00:00:00Z when the generator made it
	Custom           byte
	ConnectionID     uint16  // 14 bits
	NodeAddress      [6]byte // MAC address, as Notifier id
}

// Time returns the instant, in UTC, of an instance sequence that counts microseconds since
// 2000-01-01T00:00:00Z. The document only requires that it lies between the start of the connection
// and the making of the UUID.
func (f Notifier) Time() time.Time { return timeOf(f.InstanceSequence) }

// validate returns a [*uuidgen.FieldError] for a field that is wider than its bits.
func (f Notifier) validate() error {
	if err := fits(formatNotifier, "instance_sequence", f.InstanceSequence, 52); err != nil {
		return err
	}
	return fits(formatNotifier, "connection_id", uint64(f.ConnectionID), 14)
}

// ValidateTimes returns a [*uuidgen.FieldError] for an instance sequence that the note of the document does
// not allow: it must be above the microseconds since 2000 of the connection's start and below those
// of now, the latest instant at which f can have been made. An instant before 2000 is
// [uuidgen.ErrTimeRange].
func (f Notifier) ValidateTimes(start, now time.Time) error {
	low, err := microseconds(start)
	if err != nil {
		return err
	}
	high, err := microseconds(now)
	if err != nil {
		return err
	}
	if f.InstanceSequence <= low {
		return fieldError(formatNotifier, "instance_sequence", f.InstanceSequence, "above the connection's start")
	}
	if f.InstanceSequence >= high {
		return fieldError(formatNotifier, "instance_sequence", f.InstanceSequence, "below the present")
	}
	return nil
}

// UUID puts the fields together. A field that is wider than its bits is a [*uuidgen.FieldError].
func (f Notifier) UUID() (uuid.UUID, error) {
	if err := f.validate(); err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

func (f Notifier) join() uuid.UUID {
	return ietf{uint64(f.Custom)<<52 | f.InstanceSequence, f.ConnectionID, f.NodeAddress}.join(versionNote)
}

// DecodeNotifier returns the fields of u. NULL is [ErrNull], another version or variant a
// [*uuidgen.FieldError].
func DecodeNotifier(u uuid.UUID) (Notifier, error) {
	i, err := split(u, formatNotifier, versionNote)
	if err != nil {
		return Notifier{}, err
	}
	return Notifier{i.low & (1<<52 - 1), byte(i.low >> 52), i.mid, i.node}, nil
}
