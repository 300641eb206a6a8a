// Package uuidgen generates the UUIDs of RFC 9562 that are used as the _id of a document: version 4
// (random), versions 6 and 7 (in the order of time), version 8 for the legacy representations (in
// the order of time), and name-based UUIDs. Use version 7 unless there is a reason for another: an
// index on it grows at one end, and the ids tell when they were made.
//
//	id, err := uuidgen.NewV7()             // from the default generator
//	ids, err := uuidgen.NewV7Generator()   // one with options, or with an order of its own
//	id, err = ids.NewUUID()
//
// The layout of each version is drawn at the function that makes its [Generator]. Bits are numbered from the most significant
// one of byte 0, and a row is four bytes. The version is in bits 48 to 51, and the variant, binary 10, is in bits 64 and 65.
//
// # Order
//
// MongoDB compares UUIDs of one subtype byte by byte. The representations standard and pythonLegacy
// store the bytes of a UUID as they are, and so versions 6 and 7 are in the order of time. The
// representations csharpLegacy and javaLegacy permute the bytes, and only version 8 for that
// representation is in order. The ids of one [Generator] are strictly increasing within an order,
// which ends only if its clock was set back by more than a minute. Ids of several generators, in one
// process or on many machines, are in order as their clocks are.
//
// # Time
//
// [Time] returns the instant in a UUID, and [CompareTime] compares it. [HalfOpenV7] and its kin
// return a [Range], which makes a query filter for a span of time that needs no index but that of
// _id. [Generator.NewUUIDAt] makes ids for given instants; neighbouring ones of one instant differ by
// at most 2^20 in their last 54 bits, except after a jump in a copy of the process.
//
// # The standard library's type
//
// Go 1.27 has a uuid.UUID in its standard library. Time, TimeV8 and CompareTime take it as it is.
// An id of a Generator becomes one by a conversion, and a source for inserts by autoid.SourceFunc:
//
//	autoid.SourceFunc(func() (any, error) {
//		id, err := ids.NewUUID()
//		return uuid.UUID(id), err // the standard library's
//	})
//
// # Randomness and copies of a process
//
// Without [WithRandom], random bits come from a stock whose key is from the system's source (crypto/rand). An id tells nothing
// about other ids to anyone who cannot read the memory of the process, except that NewUUIDAt counts. An id is still not a
// secret, and an id in the order of time tells its age.
//
// A copy of a process has the same stock. A Generator notices a fork before the next id, and a restored snapshot when the
// clocks show it. Nothing finds a copy that no clock gives away: [Generator.Renew], called in the copy before the next id, is
// the only guarantee. The page docs/copies-of-a-process.md of the repository says what can repeat until then.
package uuidgen
