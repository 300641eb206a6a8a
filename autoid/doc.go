// Package autoid lets an application decide how the _id values of its documents are made.
//
// The driver gives every inserted document without an _id an ObjectID of its own making. A [Collection] takes the id
// from a [Source] instead, and [Document] does so for a single document wherever the driver inserts one:
//
//	users := autoid.Wrap(client.Database("app").Collection("users"), source)
//	res, err := users.InsertOne(ctx, bson.M{"name": "Ada"}) // res.InsertedID is the id from source
//
// The generators of the packages objectidgen and uuidgen are sources; any function is one as a [SourceFunc].
//
// KtMongo's ObjectIdGenerator and newId are the model: a Source is the one, [Collection.NewID] the other, for ids of any
// type.
//
// The documents reach the driver as values of a type that the client's registry must know, so that they are encoded
// with that registry and the client's BSON options like any other. The package clientopt registers it; on a registry
// made by hand, call [Register]. Without it, inserts fail with [ErrNotRegistered].
package autoid
