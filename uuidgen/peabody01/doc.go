// Package peabody01 makes and reads the UUIDs of the Internet-Draft
// draft-peabody-dispatch-new-uuid-format-01 of April 2021: version 6, version 7 with precisions
// from a second to a nanosecond, and version 8 with a timestamp of 1 to 98 bits from a clock of the
// caller. It is for data and systems of that time. New ones use version 7 of RFC 9562, which is in
// package uuidgen.
//
//	ids, err := peabody01.NewV7Generator(peabody01.Microsecond) // a *uuidgen.Generator
//	if err != nil {
//		return err
//	}
//	id, err := ids.NewUUID()
//	v7, err := peabody01.DecodeV7(id, peabody01.Microsecond, peabody01.RoundUp)
//	made, err := peabody01.HalfOpenV7(yesterday, today, peabody01.Microsecond, peabody01.RoundUp)
//	filter, err := made.Filter("_id", uuidrep.Standard)
//
// Warning: version 7 of this draft and version 7 of RFC 9562 are different formats, and nothing in
// a value tells them apart. The draft has 36 bits of seconds and a binary fraction, the RFC 48 bits
// of milliseconds. Read as the other, a UUID gives a wrong time without an error, and the two do
// not sort together: never mix them in one collection.
//
// [DecodeV6], [DecodeV7] and [DecodeV8] return the fields of a value, [V6.UUID], [V7.UUID] and
// [V8.UUID] put fields together, and [Time] needs no layout. [HalfOpenV7] and its kin return the
// ranges of a span of time, which make query filters; version 6 is that of RFC 9562, and so are its
// ranges, uuidgen.HalfOpenV6. A field that does not fit is a uuidgen.FieldError.
//
// [NewV6Generator], [NewV7Generator] and [NewV8Generator] make generators. The node is random in every UUID and never zero; see [WithMachineID] for its top bits. From
// the reader of [uuidgen.WithRandom] every UUID takes 8 bytes, and each clock sequence of version 6
// takes 8 more. They make no UUIDs for given instants: [uuidgen.Generator.NewUUIDAt] returns
// [errors.ErrUnsupported]. The draft's steps for versions 6 and 8 also count up when time has
// advanced, against the text of its sections; the text holds here.
//
// Section 4.4 of the draft allows other widths of the sub-seconds and the sequence of version 7 than
// those of its figures. They are left out.
//
// All values are [uuid.UUID], with the bytes in network order. The bytes, and the text that
// [uuid.UUID.String] returns, sort by timestamp, then by sequence. In MongoDB the representations
// standard and pythonLegacy keep this order; csharpLegacy and javaLegacy do not.
package peabody01
