// Package uuidgen generates the UUIDs of RFC 9562 that are used as the _id of a document: version 4
// (random), versions 6 and 7 (in the order of time), version 8 for the legacy representations (in
// the order of time), and name-based UUIDs. Use version 7 unless there is a reason for another: an
// index on it grows at one end, and the ids tell when they were made.
//
//	id, err := uuidgen.NewV7()             // from the default generator
//	ids, err := uuidgen.NewV7Generator()   // one with options, or with an order of its own
//	id, err = ids.NewUUID()
//
// # Layout
//
// Bits are numbered from the most significant one of byte 0; a row is four bytes. The version is in
// bits 48 to 51 and the variant, binary 10, is in bits 64 and 65.
//
// Version 4, RFC 9562 section 5.4: 122 random bits.
//
//	0       8       16      24      32
//	+-------------------------------+
//	|            random             |   0
//	+---------------+----+----------+
//	|    random     | 4  |  random  |  32
//	+--+------------+----+----------+
//	|10|           random           |  64
//	+--+----------------------------+
//	|            random             |  96
//	+-------------------------------+
//
// Version 6, section 5.6: the number of 100 ns since 1582-10-15T00:00:00Z, most significant bits
// first, then a clock sequence and a node. Both are random and drawn anew for every id, as the
// section recommends. The multicast bit of the node, m, is 1, which no MAC address has (section
// 6.10). The last instant is in the year 5236.
//
//	0       8       16      24      32
//	+-------------------------------+
//	|        time, bits 59-28       |   0
//	+---------------+----+----------+
//	|  time, 27-12  | 6  | time 11-0|  32
//	+--+------------+----+----------+
//	|10|  clock seq |    node    m  |  64
//	+--+------------+---------------+
//	|              node             |  96
//	+-------------------------------+
//
// Version 7, section 5.7: milliseconds since 1970-01-01T00:00:00Z, then the 4096ths of a
// millisecond (section 6.2, method 3), then random bits. The last instant is in the year 10889.
//
//	0       8       16      24      32
//	+-------------------------------+
//	|       milliseconds, 47-16     |   0
//	+---------------+----+----------+
//	|  ms, bits 15-0| 7  | fraction |  32
//	+--+------------+----+----------+
//	|10|           random           |  64
//	+--+----------------------------+
//	|            random             |  96
//	+-------------------------------+
//
// Version 8, section 5.8, from [NewV8Generator]: the timestamp of version 7 and random bits,
// arranged so that the bytes which the representation csharpLegacy or javaLegacy stores are in the
// order of time. The bits are those of the stored bytes:
//
//	csharpLegacy   0–55        56–59  60–63       64–65  66–127
//	               timestamp   ver 8  timestamp   var    random
//	javaLegacy     0–7         8–11   12–63       64–119 120–121 122–127
//	               timestamp   ver 8  timestamp   random var     random
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
// Go 1.27 has a uuid.UUID in its standard library. Time, CompareTime and their kin take it as it is.
// An id of a Generator becomes one by a conversion, and a source for inserts by autoid.SourceFunc:
//
//	autoid.SourceFunc(func() (any, error) {
//		id, err := ids.NewUUID()
//		return uuid.UUID(id), err // the standard library's
//	})
//
// # Randomness
//
// Without [WithRandom], random bits are the key stream of AES-256 in counter mode, 8064 bytes at a
// time (8192 in a large [Generator.Fill], 1024 in [Generator.NewUUIDAt]). Each stock has a key of its
// own from the system's source ([crypto/rand]), combined with the clocks: two virtual machines that
// are restored from one snapshot get the same bytes of that source for a while. An id therefore tells
// nothing about other ids to anyone who cannot read the memory of the process, except that NewUUIDAt
// counts. An id is still not a secret, and an id in the order of time tells its age.
//
// # Copies of a process
//
// A copy of a process has the same stock of random bytes, and would make the same ids: in version 4
// always, in the others if the timestamps agree too. A [Generator] draws its stock anew when it
// finds out:
//
//   - A fork is found before the next id.
//   - A process that is restored from a snapshot or a checkpoint is found when the wall clock and
//     the monotonic clock disagree, or when the clock was not read for a second. In versions 6, 7
//     and 8 the clocks are compared once a millisecond, so that a copy restored a millisecond or
//     more after its snapshot makes no id before the comparison. In version 4 they are compared
//     once in 64 ids, so that the copy repeats 64 ids of a Generator at most.
//   - A virtual machine whose two clocks both continue from the snapshot looks like the machine
//     before it. It is found when its wall clock is set. Until then, up to 504 ids of version 4 can
//     repeat, and up to 1008 random parts of an id of another version, for each Generator.
//
// The numbers of [Generator.NewUUIDAt] go on in a copy, so that their order is kept. They jump ahead
// at random when a fork is found, or clocks that disagree, which are compared once a millisecond; in
// other copies their random steps make them differ, and two ids for one instant are equal with a
// chance of 2^-20.
//
// Nothing finds a copy that no clock gives away. [Generator.Renew], called in the copy before the
// next id, is the only guarantee. [WithRandom] with [crypto/rand.Reader] holds no stock, at the
// price of a call to the system for every id or batch.
package uuidgen
