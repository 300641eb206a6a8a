// Package clientopt makes client options from a connection string that says how UUIDs are stored.
//
// [Connect] and [ApplyURI] take the place of mongo.Connect and ClientOptions.ApplyURI. They read the option
// uuidRepresentation, which the driver accepts and ignores, and give the client a registry of the package bsoncodec:
//
//	client, err := clientopt.Connect("mongodb://localhost:27017/?uuidRepresentation=standard")
//
// All other options are the driver's: it parses them, and its errors come back. The registry knows the documents of the
// package autoid too. Nothing is global: clients with different settings live in one process.
//
// # Precedence
//
// The representation of a value is decided by the first of these that speaks:
//
//  1. the value's own type, where it is one of a fixed representation (uuidrep.JavaLegacyUUID, a bson.Binary)
//  2. a registry set on the collection, then one set on the database
//  3. uuidRepresentation in the connection string, the value unspecified included
//  4. [WithDefaultRepresentation]
//  5. unspecified: UUIDs are refused with uuidrep.ErrUnspecified
//
// For every other setting, [WithClientOptions] wins over the connection string.
//
// # Errors
//
// No error of this package shows a password, a session token or the password of a key file, be it the driver's error or
// the connection string mangled, its @ missing for instance. Where the form of the string is at fault, the error names
// the part and shows nothing of it. Where the driver's own text held a secret, it is replaced by [redacted]; such an
// error answers to errors.Is like the driver's, but does not unwrap to it, for that one would show the secret. All other
// errors of the driver are wrapped.
//
// One thing no parser can know: a password that breaks the string so that it reads well with another meaning. In
// mongodb+srv://user:pa@ss/host, its own @ missing, ss is the host, and an error of the DNS names it. What
// url.UserPassword(name, password).String() of the standard library returns is encoded as it must be.
package clientopt
