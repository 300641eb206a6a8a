package i3core

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/bsonids/bsonids/uuidgen"
	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
)

// inMemory returns the 16 bytes of u as i3core holds them: 0–3, 4–5 and 6–7 little-endian. These are
// the bytes of a BSON binary of subtype 3 in the representation csharpLegacy.
func inMemory(u uuid.UUID) [16]byte { return uuidrep.CSharpLegacy.Permute(u) }

// ofMemory returns the UUID that i3core holds as these 16 bytes; it is the inverse of inMemory.
func ofMemory(m [16]byte) uuid.UUID { return uuidrep.CSharpLegacy.Permute(m) }

// The document's simplified format: the version in bits 4–7 of byte 7, the variant in bits 6–7 of
// byte 8.
const (
	variant     = 0b10
	versionTime = 1
	versionName = 3
	versionRand = 4
	versionCall = 0xC
	versionNote = 0xE
)

// ietf is the simplified format, which most formats divide further.
type ietf struct {
	low  uint64 // bytes 0–7 little-endian, without the version: 60 bits
	mid  uint16 // bytes 8–9 big-endian, without the variant: 14 bits
	node [6]byte
}

func (i ietf) join(version byte) uuid.UUID {
	var m [16]byte
	binary.LittleEndian.PutUint64(m[0:], i.low|uint64(version)<<60)
	binary.BigEndian.PutUint16(m[8:], i.mid|variant<<14)
	copy(m[10:], i.node[:])
	return ofMemory(m)
}

func split(u uuid.UUID, format string, version byte) (ietf, error) {
	m, err := check(u, format, version)
	if err != nil {
		return ietf{}, err
	}
	return ietf{
		low:  binary.LittleEndian.Uint64(m[0:]) &^ (0xF << 60),
		mid:  binary.BigEndian.Uint16(m[8:]) &^ (0b11 << 14),
		node: [6]byte(m[10:]),
	}, nil
}

// check returns the memory of a UUID with that version.
func check(u uuid.UUID, format string, version byte) ([16]byte, error) {
	if u == uuid.Nil {
		return [16]byte{}, fmt.Errorf("%w, not one of the %s format", ErrNull, format)
	}
	m := inMemory(u)
	if got := m[7] >> 4; got != version {
		return m, fieldError(format, "version", uint64(got), fmt.Sprintf("%#x", version))
	}
	if got := m[8] >> 6; got != variant {
		return m, fieldError(format, "variant", uint64(got), "binary 10")
	}
	return m, nil
}

// epoch is 2000-01-01T00:00:00Z, from which the notifier format counts.
const epoch = 946684800

// microseconds returns the whole microseconds from 2000-01-01T00:00:00Z to t. The notifier format
// counts time like this, and a sequential generator does by default.
func microseconds(t time.Time) (uint64, error) {
	seconds := t.Unix() - epoch
	if t.Unix() < epoch || seconds > 1<<43 {
		return 0, fmt.Errorf("i3core: %w: %v in microseconds since 2000", uuidgen.ErrTimeRange, t)
	}
	return uint64(seconds)*1e6 + uint64(t.Nanosecond())/1e3, nil
}

// microsecondsAt returns the microseconds of an instant that a field of so many bits holds.
func microsecondsAt(t time.Time, format string, bits int) (uint64, error) {
	n, err := microseconds(t)
	if err != nil {
		return 0, err
	}
	if n>>bits != 0 {
		return 0, fmt.Errorf("i3core: %w: %s format at %v", uuidgen.ErrTimeRange, format, t)
	}
	return n, nil
}

func timeOf(microseconds uint64) time.Time {
	return time.Unix(epoch+int64(microseconds/1e6), int64(microseconds%1e6)*1e3).UTC()
}
