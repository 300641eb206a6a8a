// Package autoid lets an application decide how the _id values of its documents are made.
//
// The driver gives each inserted document without an _id an ObjectID that it makes itself. A
// [Collection] takes the id from a [Source] instead, for upserts too, and [Document] does so for a
// single document wherever the driver inserts one:
//
//	users := autoid.Wrap(client.Database("app").Collection("users"), source)
//	res, err := users.InsertOne(ctx, bson.M{"name": "Ada"}) // res.InsertedID is the id from source
//
// [Assign] puts an id into a document before it is inserted, for code that needs the id earlier,
// such as an object-document mapper. The generators of packages objectidgen and uuidgen are
// sources; any function is one as a [SourceFunc].
//
// The driver encodes the documents with the client's registry and BSON options. The registry must
// know them: package clientopt registers them, and a registry made by hand needs [Register].
// Without it, inserts fail with [ErrNotRegistered].
package autoid
