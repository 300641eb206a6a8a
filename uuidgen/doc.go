// Package uuidgen generates the UUIDs of RFC 9562 that serve as a document's _id: version 4 (random), version 6 and
// version 7 (ordered by time). Version 7 is the one to take unless something else asks for another: its ids sort in the
// order they were made, so an index on them grows at one end, and they say when they were made.
//
//	ids, err := uuidgen.NewV7()
//	id, err := ids.NewUUID()
//
// # Layout
//
// Bits are numbered from the most significant one of octet 0; a row is four octets. The version stands in bits 48 to 51
// and the variant, binary 10, in bits 64 and 65.
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
// Version 6, section 5.6: a count of 100 ns since 1582-10-15T00:00:00Z with its highest bits first, then a clock
// sequence and a node. Both are random here and drawn afresh for every id, as the section recommends; the multicast bit
// of the node, m, is 1, which no MAC address has (section 6.10). The last instant is in the year 5236.
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
// Version 7, section 5.7: milliseconds since 1970-01-01T00:00:00Z, then (section 6.2, method 3) the 4096ths of a
// millisecond, then random bits. The last instant is in the year 10889.
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
// # Order
//
// MongoDB compares UUIDs of one subtype octet by octet. The representations standard and pythonLegacy keep the octets
// as they stand and so the order of time; javaLegacy and csharpLegacy move them and destroy it. Ids of one [Generator]
// of version 6 or 7 are strictly increasing. Ids of several generators, whether in one process or on many machines,
// interleave as their clocks do.
//
// # Time
//
// [Time] reads the instant back. [MinV7At] and [MaxV7At], [MinV6At] and [MaxV6At] bound the ids of an instant, for
// queries such as "made since yesterday" that need no field and no index but _id.
//
// # Randomness
//
// Without [WithRandom], random bits are the key stream of AES-256 in counter mode, 8064 octets at a time (for a large
// [Generator.Fill] up to 8192), each such stock under a key of 256 bits that the system's source ([crypto/rand]) gave
// for it alone. Ids thus show nothing of each other to whoever cannot read the process's memory, and nothing of the ids
// of other stocks to whoever can. That is more than an identifier needs; an identifier is still not a secret, and one
// in the order of time tells everyone its age.
//
// A stock lives in memory, so a copy of the memory copies it. When a virtual machine is cloned, or restored from one
// snapshot twice, both copies of a process hold the same stock, and until it is used up (at most 504 ids of version 4,
// 1008 of version 6 or 7, from each [Generator], and those that a Fill was about to make) they draw the same random
// bits: the same ids in version 4; in version 6 or 7 the same ids only where the timestamps agree too, to 100 ns or 244
// ns. Call [Generator.Renew] after the restore and before the next id, or pass [crypto/rand.Reader] to [WithRandom]:
// the process then holds no bits in stock, and a system that learns of the restore (Linux does where the hypervisor
// gives a VM generation id) gives each copy bits of its own, at the price of a call to the system for every id or
// batch.
package uuidgen
