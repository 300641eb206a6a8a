// Package objectidgen makes ObjectIDs as the MongoDB driver specification "ObjectID format" describes them, and takes
// them apart.
//
// An ObjectID is 12 octets:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|          seconds since 1970-01-01T00:00:00Z, unsigned         |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|         process value: 40 bits, random once per process       |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	| process value |    counter: 24 bits, random start, +1 each    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The seconds and the counter are big-endian, so that comparing octets compares times first.
//
// # What a Generator promises
//
// The type is the driver's own, [bson.ObjectID]; what this package adds is how one comes about. The counter alone
// repeats after 2^24 ObjectIDs, so a generator that only counts makes duplicates as soon as it makes more than 2^24
// of them in one second, or when its clock steps back into a second that it has used. A [Generator] does neither:
// see there for the whole promise.
//
// # Processes
//
// [Default] is one Generator for the process, made at its first use, which is what the specification's "once per
// process" asks for. A process that is started again, by itself or by another, draws a new process value.
//
// A virtual machine or container that is restored from a snapshot goes on with the memory of the snapshot: the
// process value and the counter in it are the same in every copy, and two copies that run at the same time make the
// same ObjectIDs as soon as their counters meet in one second. Nothing inside the process can see that it happened.
// Whoever restores snapshots calls [Generator.Renew] in each copy, in the hook that the platform offers for it, before
// the first insert. A snapshot taken before the first use of Default holds nothing that could repeat, as long as the
// kernel's random source is seeded anew.
package objectidgen
