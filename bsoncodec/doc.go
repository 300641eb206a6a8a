// Package bsoncodec encodes UUIDs to BSON and decodes them the way every other MongoDB driver does: a registry built
// here stores each UUID in one representation and gives native UUIDs back, in struct fields and in any alike.
//
// It implements "Implicit decoding and encoding" of the MongoDB driver specification "Handling of Native UUID Types":
//
//	representation  encodes to                   decodes subtype 4 to  decodes subtype 3 to
//	unspecified     an error                     bson.Binary           bson.Binary
//	standard        subtype 4                    UUID                  bson.Binary
//	csharpLegacy    subtype 3, C# byte order     bson.Binary           UUID
//	javaLegacy      subtype 3, Java byte order   bson.Binary           UUID
//	pythonLegacy    subtype 3, network order     bson.Binary           UUID
//
// The table says what any, bson.D, bson.M and bson.A receive. A target of fixed type that would receive the other type
// is an error: a UUID field that meets the other subtype, for instance. A field of type [bson.Binary] always receives
// the value as it is.
//
// Give the registry to mongo.Client with its SetRegistry option, or let package clientopt do that from the connection
// string. The driver's own bson.Marshal and its relatives take no registry; [Marshal], [Unmarshal] and the others here
// do.
package bsoncodec
