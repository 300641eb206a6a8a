// Package peabody01 makes and reads the UUIDs of the Internet-Draft draft-peabody-dispatch-new-uuid-format-01 of April
// 2021: its version 6, its version 7 with millisecond, microsecond or nanosecond precision, and its version 8 with a
// timestamp of 32, 48, 60 or 64 bits from a clock of the caller's. It is there for data and systems of that time; new
// ones want the version 7 of RFC 9562, which is in package uuidgen.
//
// Warning: the version 7 of this draft and the version 7 of RFC 9562 are different formats, and nothing in a value
// tells them apart. The draft counts 36 bits of seconds and a binary fraction, the RFC 48 bits of milliseconds. Read as
// the other, a UUID gives a wrong time without any error, and the two do not sort together: never mix them in one
// collection.
//
// A [Generator] from [NewV6], [NewV7] or [NewV8] is a source of ids for inserts. [DecodeV6], [DecodeV7] and [DecodeV8]
// give every field of a value, [V6.UUID], [V7.UUID] and [V8.UUID] put fields together, [Time] needs no layout, and the
// MinV…/MaxV… functions bound queries by time.
//
// All values are [uuid.UUID], octets in network order. Octets, and the text that [uuid.UUID.String] gives, sort by
// timestamp, then by sequence. In MongoDB that order survives in the representations standard and pythonLegacy;
// csharpLegacy and javaLegacy destroy it.
package peabody01
