// Package uuidgen makes the UUIDs of RFC 9562 that are used as the _id of a document: version 4 (random), versions 6
// and 7 (in the order of time), version 8 for the legacy representations (in the order of time), and name-based UUIDs.
//
//	id, err := uuidgen.NewV7()                                   // from the generator of the process
//	made, err := uuidgen.HalfOpenV7(yesterday, today)            // the ids of a span of time
//	filter, err := made.Filter("_id", uuidrep.Standard)          // as a query
//
// Use version 7 unless there is a reason for another: an index on it grows at one end, and the ids tell when they were
// made. [NewV7Generator] makes a [Generator] with options, or with an order of its own.
//
// MongoDB compares UUIDs of one subtype byte by byte. The representations standard and pythonLegacy store the bytes of
// a UUID as they are, so that versions 6 and 7 are in the order of time. The representations csharpLegacy and
// javaLegacy permute the bytes: only version 8 for that representation is in order.
//
// Each version is drawn at the function that makes its Generator. Bits are numbered from the most significant one of
// byte 0, and a row is four bytes. The version is in bits 48 to 51, and the variant, binary 10, is in bits 64 and 65.
package uuidgen
