package i3core

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

const formatSequential = "sequential"

// DBMS is the two bits in a sequential UUID for the database in whose order the UUIDs are to
// ascend. The document gives two values and does not say what else they change. Here the layout is
// the same; see [NewSequentialGenerator] for the counter. It is a plain value, safe to copy.
type DBMS uint8

const (
	DBMSBinary    DBMS = 0b00 // bytes compared as they are, as MongoDB and Oracle do; the default
	DBMSSQLServer DBMS = 0b01
)

// String returns "binary", "SQL Server", or "DBMS(n)" for a value that is neither.
func (d DBMS) String() string {
	switch d {
	case DBMSBinary:
		return "binary"
	case DBMSSQLServer:
		return "SQL Server"
	}
	return fmt.Sprintf("DBMS(%d)", uint8(d))
}

// Sequential is the fields of a sequential UUID, whose memory sorts by timestamp and counter; its
// text does not. In MongoDB it keeps that order in the representation csharpLegacy only. It is a
// plain value, safe to copy.
//
//	memory  0–6 big-endian  7                8–9 big-endian              10–13 big-endian  14–15 big-endian
//	        timestamp:56    version:4 0000   10:2 dbms:2 random1:12      counterHi:32      counterLo:16
//
// It is "Sequential UUID Format" of the document, which gives neither the version's number nor the
// timestamp's unit and epoch. A Generator from [NewSequentialGenerator] makes them.
type Sequential struct {
	Timestamp uint64 // 56 bits; see [Sequential.Time]
	Version   byte   // 4 bits
	DBMS      DBMS
	Random1   uint16 // 12 bits
	CounterHi uint32 // random2 & counterHi
	CounterLo uint16
}

// sequentialAt returns the fields of a UUID made at t by the default clock: its timestamp is the
// whole microseconds from 2000-01-01T00:00:00Z to t, and all others are zero. An instant before
// 2000 or after 4283-05-31T22:20:37Z is [uuidgen.ErrTimeRange].
func sequentialAt(t time.Time) (Sequential, error) {
	timestamp, err := microsecondsAt(t, formatSequential, 56)
	return Sequential{Timestamp: timestamp}, err
}

// Time returns the instant, in UTC, of a timestamp that counts microseconds since
// 2000-01-01T00:00:00Z. That is what the default clock of the generator counts; the document does
// not give the unit.
func (f Sequential) Time() time.Time { return timeOf(f.Timestamp) }

// validate returns a [*uuidgen.FieldError] for a field that is wider than its bits, and for a DBMS type
// that is not one of the constants.
func (f Sequential) validate() error {
	for _, err := range [...]error{
		fits(formatSequential, "timestamp", f.Timestamp, 56),
		fits(formatSequential, "version", uint64(f.Version), 4),
		fits(formatSequential, "random1", uint64(f.Random1), 12),
	} {
		if err != nil {
			return err
		}
	}
	if f.DBMS > DBMSSQLServer {
		return fieldError(formatSequential, "dbms", uint64(f.DBMS), "0 (binary) or 1 (SQL Server)")
	}
	return nil
}

// UUID puts the fields together. A field that is wider than its bits, and a DBMS type that is not one
// of the constants, is a [*uuidgen.FieldError].
func (f Sequential) UUID() (uuid.UUID, error) {
	if err := f.validate(); err != nil {
		return uuid.Nil, err
	}
	return f.join(), nil
}

func (f Sequential) join() uuid.UUID {
	var m [16]byte
	binary.BigEndian.PutUint64(m[0:], f.Timestamp<<8|uint64(f.Version)<<4)
	binary.BigEndian.PutUint16(m[8:], variant<<14|uint16(f.DBMS)<<12|f.Random1)
	binary.BigEndian.PutUint32(m[10:], f.CounterHi)
	binary.BigEndian.PutUint16(m[14:], f.CounterLo)
	return ofMemory(m)
}

// DecodeSequential returns the fields of u, which was made with that version: the document does not
// give it. NULL is [ErrNull]; another version or variant, bits 0–3 of byte 7 that are not zero, and
// an unknown DBMS type, is a [*uuidgen.FieldError].
func DecodeSequential(u uuid.UUID, version byte) (Sequential, error) {
	if err := fits(formatSequential, "version", uint64(version), 4); err != nil {
		return Sequential{}, err
	}
	m, err := check(u, formatSequential, version)
	if err != nil {
		return Sequential{}, err
	}
	if zero := m[7] & 0xF; zero != 0 {
		return Sequential{}, fieldError(formatSequential, "zeroVal", uint64(zero), "zero")
	}
	second := binary.BigEndian.Uint16(m[8:])
	f := Sequential{
		Timestamp: binary.BigEndian.Uint64(m[0:]) >> 8,
		Version:   version,
		DBMS:      DBMS(second >> 12 & 0b11),
		Random1:   second & 0xFFF,
		CounterHi: binary.BigEndian.Uint32(m[10:]),
		CounterLo: binary.BigEndian.Uint16(m[14:]),
	}
	if err := f.validate(); err != nil {
		return Sequential{}, err
	}
	return f, nil
}
