package autoid

import (
	"context"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// UpdateOne is the driver's UpdateOne. UpsertedID holds the id as the registry decodes it into any.
func (c *Collection) UpdateOne(
	ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateOneOptions],
) (*mongo.UpdateResult, error) {
	if isUpsert(opts, func(o *options.UpdateOneOptions) *bool { return o.Upsert }) {
		var err error
		if filter, update, err = c.updateUpsert(filter, update, alone); err != nil {
			return nil, err
		}
	}
	res, err := c.Collection.UpdateOne(ctx, filter, update, opts...)
	return c.nativeResult(res), err
}

// UpdateByID is the driver's UpdateByID. UpsertedID holds the id as the registry decodes it into
// any.
func (c *Collection) UpdateByID(
	ctx context.Context, id, update any, opts ...options.Lister[options.UpdateOneOptions],
) (*mongo.UpdateResult, error) {
	if id == nil {
		return c.Collection.UpdateByID(ctx, id, update, opts...) // which is an error
	}
	return c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, update, opts...)
}

// UpdateMany is the driver's UpdateMany. UpsertedID holds the id as the registry decodes it into
// any.
func (c *Collection) UpdateMany(
	ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateManyOptions],
) (*mongo.UpdateResult, error) {
	if isUpsert(opts, func(o *options.UpdateManyOptions) *bool { return o.Upsert }) {
		var err error
		if filter, update, err = c.updateUpsert(filter, update, alone); err != nil {
			return nil, err
		}
	}
	res, err := c.Collection.UpdateMany(ctx, filter, update, opts...)
	return c.nativeResult(res), err
}

// ReplaceOne is the driver's ReplaceOne. UpsertedID holds the id as the registry decodes it into
// any.
func (c *Collection) ReplaceOne(
	ctx context.Context, filter, replacement any, opts ...options.Lister[options.ReplaceOptions],
) (*mongo.UpdateResult, error) {
	if isUpsert(opts, func(o *options.ReplaceOptions) *bool { return o.Upsert }) {
		var err error
		if filter, replacement, err = c.replaceUpsert(filter, replacement, alone, encodeReplacement); err != nil {
			return nil, err
		}
	}
	res, err := c.Collection.ReplaceOne(ctx, filter, replacement, opts...)
	return c.nativeResult(res), err
}

// FindOneAndUpdate is the driver's FindOneAndUpdate.
func (c *Collection) FindOneAndUpdate(
	ctx context.Context, filter, update any, opts ...options.Lister[options.FindOneAndUpdateOptions],
) *mongo.SingleResult {
	if isUpsert(opts, func(o *options.FindOneAndUpdateOptions) *bool { return o.Upsert }) {
		var err error
		if filter, update, err = c.updateUpsert(filter, update, alone); err != nil {
			return mongo.NewSingleResultFromDocument(bson.D{}, err, nil)
		}
	}
	return c.Collection.FindOneAndUpdate(ctx, filter, update, opts...)
}

// FindOneAndReplace is the driver's FindOneAndReplace.
func (c *Collection) FindOneAndReplace(
	ctx context.Context, filter, replacement any, opts ...options.Lister[options.FindOneAndReplaceOptions],
) *mongo.SingleResult {
	if isUpsert(opts, func(o *options.FindOneAndReplaceOptions) *bool { return o.Upsert }) {
		var err error
		if filter, replacement, err = c.replaceUpsert(filter, replacement, alone, encodeReplacement); err != nil {
			return mongo.NewSingleResultFromDocument(bson.D{}, err, nil)
		}
	}
	return c.Collection.FindOneAndReplace(ctx, filter, replacement, opts...)
}

func (c *Collection) nativeResult(res *mongo.UpdateResult) *mongo.UpdateResult {
	if res != nil && res.UpsertedID != nil {
		res.UpsertedID = c.nativeID(res.UpsertedID)
	}
	return res
}

// nativeID returns an upserted id as the driver would return it as an InsertedID. The driver has
// decoded it with a registry of its own. If the registry of the collection is not known or cannot
// decode the id, the id stays as it is.
func (c *Collection) nativeID(id any) any {
	decode := c.contexts.decode()
	if decode.Registry == nil {
		return id
	}
	doc, err := bson.Marshal(bson.D{{Key: "_id", Value: id}})
	if err != nil {
		return id
	}
	native, err := decodeID(decode, doc)
	if err != nil {
		return id
	}
	return native
}
