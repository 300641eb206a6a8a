// Package bsoncodec encodes UUIDs to BSON and decodes them as other MongoDB drivers do. A registry of
// this package stores UUIDs in one representation and decodes native UUIDs, into struct fields and
// into any.
//
//	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
//	if err != nil {
//		return err
//	}
//	client, err := mongo.Connect(options.Client().ApplyURI(uri).SetRegistry(reg))
//	if err != nil {
//		return err
//	}
//	doc, err := bsoncodec.Marshal(reg, bson.M{"session": uuid.New()}) // subtype 4, as the client stores it
//
// It implements "Implicit decoding and encoding" of the MongoDB driver specification "Handling of
// Native UUID Types":
//
//	representation  encodes to                   decodes subtype 4 to  decodes subtype 3 to
//	unspecified     an error                     bson.Binary           bson.Binary
//	standard        subtype 4                    UUID                  bson.Binary
//	csharpLegacy    subtype 3, C# byte order     bson.Binary           UUID
//	javaLegacy      subtype 3, Java byte order   bson.Binary           UUID
//	pythonLegacy    subtype 3, network order     bson.Binary           UUID
//
// The table says what any, bson.D, bson.M and bson.A receive. A UUID field refuses the subtype that
// the table decodes to bson.Binary. A field of type [bson.Binary] receives every binary value as it
// is.
//
// Give the registry to mongo.Client with its SetRegistry option, or let package clientopt do that
// from the connection string. The driver's own functions, such as bson.Marshal, take no registry;
// [Marshal], [Unmarshal] and the others of this package do, and the BSONOptions of a client as
// [Options].
package bsoncodec
