// Package mixedrep is for a collection that holds UUIDs in two representations while its data is converted from one to the
// other. A [Collection] reads both, writes one, and matches both: the UUIDs of a filter become an $in of both binary values.
//
//	orders, err := mixedrep.Wrap(db.Collection("orders"), uuidrep.JavaLegacy, uuidrep.Standard)
//	if err != nil {
//		return err
//	}
//	err = orders.FindOne(ctx, bson.M{"customer": id}).Decode(&order) // finds either representation
//
// A program that uses the driver's own collection writes such filters by hand. [Match] and the functions beside it need no
// registry and no client:
//
//	filter, err := mixedrep.Match("customer", id, uuidrep.JavaLegacy, uuidrep.Standard)
//	err = coll.FindOne(ctx, filter).Decode(&order)
//
// Each binary subtype can have one representation only: Standard, and one of the legacy representations. Two of
// CSharpLegacy, JavaLegacy and PythonLegacy would match the octets of two different UUIDs, and no registry can read both.
//
// # What is rewritten
//
// A UUID is rewritten if the registry encodes it, that is, a value of a registered UUID type. A
// [bson.Binary], a raw document and a field type of package uuidrep name one representation, and
// are left as they are.
//
// Covered are the filters of every method of [Collection], the $match stages of Aggregate and Watch,
// also in $facet, $lookup and $unionWith, the array filters of updates, and $elemMatch in
// projections:
//
//	{field: u}, $eq, $in        an $in of both representations
//	$ne, $nin                   a $nin of both
//	$all                        an $in for each UUID, joined by $and
//	$and, $or, $nor, $not       their filters and conditions
//	$elemMatch                  its filter or condition
//
// # What is refused
//
// Everything else that contains such a UUID is an error, an [*UncoveredError], before anything
// is sent: comparisons ($gt), equality with a whole document or array, $expr, $jsonSchema, other
// pipeline stages, the options let, min and max, $pull, $pullAll, $addToSet, $min and $max in
// updates, operators in the expressions of an update that is a pipeline, and every filter of an
// upsert. An $in is not an equality, so an upsert would insert a document without the field, and
// with an ObjectID for a UUID _id. Look the document up first; then insert it, or update it by
// the _id found, with the collection of the driver.
//
// # What is not seen
//
// The server compares stored values by itself in $lookup with localField, $group, $addToSet from
// fields, unique indexes and shard keys. There, one UUID in two representations is two values. A
// unique index does not prevent one UUID under both. Distinct can return a UUID twice. The
// filters of mongo.Client.BulkWrite, of commands that the database runs, of partial indexes, and
// of the custom options of Aggregate and Watch match the written representation alone.
package mixedrep
