// Package objectidgen makes ObjectIDs by the MongoDB driver specification "ObjectID format", and takes them apart.
//
//	id := objectidgen.NewObjectID()                              // from the generator of the process
//	made, err := objectidgen.HalfOpen(yesterday, today)          // the ids of a span of time
//	filter, err := made.Filter("_id")                            // as a query
//
// The type is the driver's, [bson.ObjectID]. The driver's own generator repeats ids when more than 2^24 are made in one
// second or when its clock steps back; a [Generator] repeats none.
//
// An ObjectID has 12 bytes: 4 for the seconds, 5 random ones of the process and 3 for a counter. [Parts] draws them.
package objectidgen
