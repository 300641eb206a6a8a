// Package clientopt is for programs that connect to a deployment: it makes a client from a connection string that says how
// UUIDs are stored. [Connect] and [ApplyURI] replace mongo.Connect and ClientOptions.ApplyURI. They read the option
// uuidRepresentation, which the driver accepts and ignores, and give the client a registry of package bsoncodec:
//
//	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
//	if err != nil {
//		return err
//	}
//	setup, err := clientopt.Check(client) // notices a mongo.Connect that was left in place
//	if err != nil {
//		return err
//	}
//	log.Print("UUIDs are stored as ", setup)
//	_, err = client.Database("app").Collection("users").InsertOne(ctx, bson.M{"session": uuid.New()}) // subtype 4
//
// The driver parses all other options, and its errors come back. The registry also knows the
// documents of package autoid. Nothing is global: clients with different settings can live in one
// process. [Collection] gives one collection a representation of its own, and [GridFS] a bucket for the metadata of files.
//
// # Precedence
//
// The representation of a value is decided by the first of these that is set:
//
//  1. the type of the value, if it has a fixed representation (uuidrep.JavaLegacyUUID) or is a bson.Binary
//  2. a registry set on the collection, then one set on the database
//  3. uuidRepresentation in the connection string, the value unspecified included
//  4. [WithDefaultRepresentation]
//  5. unspecified: UUIDs are refused with uuidrep.ErrUnspecified
//
// For every other setting, [WithClientOptions] wins over the connection string.
//
// # Errors
//
// No error of this package shows a password, a session token or the password of a key file, even if
// the connection string is malformed. If its form is wrong, the error names the part and shows
// nothing of it. If the text of a driver's error holds a secret, [redacted] replaces it; such an
// error answers errors.Is as the driver's does, but does not unwrap to it. All other errors of the
// driver are wrapped.
//
// A password that is not percent-encoded can make a connection string valid with another meaning:
// in mongodb+srv://user:pa@ss/host, ss is the host, and an error of the DNS names it. The method
// String of url.UserPassword(name, password) returns both as they must be written.
package clientopt
