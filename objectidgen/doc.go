// Package objectidgen makes ObjectIDs by the MongoDB driver specification "ObjectID format", and takes them apart.
//
// An ObjectID has 12 bytes:
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
// The seconds and the counter are big-endian, so that the order of the bytes is the order of time.
//
// The type is the driver's, [bson.ObjectID]. The driver's own generator repeats ids when more than 2^24 are made in one
// second or when its clock steps back; a [Generator] repeats none.
//
//	id := objectidgen.NewObjectID()                              // from the generator of the process
//	made, err := objectidgen.HalfOpen(yesterday, today)          // the ids of a span of time
//	filter, err := made.Filter("_id")
//
// # Copies of a process
//
// [Default] is one Generator for the process, as the specification demands. A process that is started again draws a new
// process value. A copy of a running process begins with the process value and the counter of the original, and a
// Generator notices this as follows:
//
//   - fork(2): on Linux 4.14 and later before the first id, by a page of memory that the kernel clears. On other systems
//     the process id is compared every millisecond, or for every id with [WithClock].
//   - A snapshot of a virtual machine or a checkpoint of a process that is restored: at the next comparison of the wall
//     clock with the monotonic clock, which comes within a millisecond of the monotonic clock. They are apart if one of
//     the clocks continued where it was and the other shows the present. In many virtual machines both continue, until
//     a time service sets the wall clock; the copy is noticed then, if the clock is set by 2 ms or more at once (on
//     systems other than Linux by 50 ms and a thousandth of the time since the last comparison). With WithClock it is
//     not noticed.
//
// What can repeat before that are the ids of calls that were in progress when the copy was made, and those that the
// original and the copy make until the comparison: with the clock already set, the ids of one millisecond.
//
// A copy that no clock gives away is never noticed: one in which both clocks continue and are adjusted slowly, or both
// show the present. [Generator.Renew] is the only guarantee. If you restore snapshots, call it in each copy before the
// first insert, in the hook that your platform offers.
//
// The kernel's random source is copied with a virtual machine, too. Unless the kernel is told of the copy (by a VM
// generation ID, since Linux 5.18), it returns the same bytes in all copies for up to a minute. What a Generator draws is
// therefore combined with the time to the nanosecond, which tells copies apart as far as their clocks do.
//
// The clocks are apart, too, when the wall clock was set or the machine was asleep. A Generator then begins a new order
// although it was not copied, which does no harm. The ids of [Generator.NewObjectIDAt] keep their order in a copy; their
// numbers jump ahead, so that copies differ.
package objectidgen
