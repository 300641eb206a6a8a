package mixedrep

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Find is the driver's Find, with both representations matched.
func (c *Collection) Find(
	ctx context.Context, filter any, opts ...options.Lister[options.FindOptions],
) (*mongo.Cursor, error) {
	cursor, err := c.Collection.Find(ctx, filterOf(filter, nil), optionsOf(opts)...)
	return cursor, callerError(err)
}

// FindOne is the driver's FindOne, with both representations matched.
func (c *Collection) FindOne(
	ctx context.Context, filter any, opts ...options.Lister[options.FindOneOptions],
) *mongo.SingleResult {
	return callerResult(c.Collection.FindOne(ctx, filterOf(filter, nil), optionsOf(opts)...))
}

// FindOneAndDelete is the driver's FindOneAndDelete, with both representations matched.
func (c *Collection) FindOneAndDelete(
	ctx context.Context, filter any, opts ...options.Lister[options.FindOneAndDeleteOptions],
) *mongo.SingleResult {
	return callerResult(c.Collection.FindOneAndDelete(ctx, filterOf(filter, nil), optionsOf(opts)...))
}

// FindOneAndReplace is the driver's FindOneAndReplace, with both representations matched.
func (c *Collection) FindOneAndReplace(
	ctx context.Context, filter, replacement any, opts ...options.Lister[options.FindOneAndReplaceOptions],
) *mongo.SingleResult {
	return callerResult(c.Collection.FindOneAndReplace(ctx, filterOf(filter, set(opts).Upsert), replacement, optionsOf(opts)...))
}

// FindOneAndUpdate is the driver's FindOneAndUpdate, with both representations matched.
func (c *Collection) FindOneAndUpdate(
	ctx context.Context, filter, update any, opts ...options.Lister[options.FindOneAndUpdateOptions],
) *mongo.SingleResult {
	args := set(opts)
	return callerResult(c.Collection.FindOneAndUpdate(ctx, filterOf(filter, args.Upsert), updateOf(update), optionsOf(opts)...))
}

// CountDocuments is the driver's CountDocuments, with both representations matched.
func (c *Collection) CountDocuments(
	ctx context.Context, filter any, opts ...options.Lister[options.CountOptions],
) (int64, error) {
	n, err := c.Collection.CountDocuments(ctx, filterOf(filter, nil), optionsOf(opts)...)
	return n, callerError(err)
}

// Distinct is the driver's Distinct, with both representations matched. A UUID that is stored in
// both representations is two values of the result.
func (c *Collection) Distinct(
	ctx context.Context, field string, filter any, opts ...options.Lister[options.DistinctOptions],
) *mongo.DistinctResult {
	res := c.Collection.Distinct(ctx, field, filterOf(filter, nil), optionsOf(opts)...)
	if caller, ok := marshalError(res.Err()); ok {
		return c.refuseDistinct(field, caller, res)
	}
	return res
}

// refuseDistinct returns the result of a Distinct that failed with caller. Nothing outside the driver can make a
// DistinctResult, so the driver is asked with the caller's filter and a registry that fails to encode it with the same
// error. It returns res if the filter encodes itself.
func (c *Collection) refuseDistinct(field string, caller mongo.MarshalError, res *mongo.DistinctResult) *mongo.DistinctResult {
	reg := bson.NewRegistry()
	fail := bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return caller.Err })
	reg.RegisterTypeEncoder(reflect.TypeOf(caller.Value), fail)
	done, cancel := context.WithCancel(context.Background())
	cancel()
	refused := c.Collection.Clone(options.Collection().SetRegistry(reg)).Distinct(done, field, caller.Value)
	if !errors.As(refused.Err(), new(mongo.MarshalError)) {
		return res
	}
	return refused
}

// DeleteOne is the driver's DeleteOne, with both representations matched.
func (c *Collection) DeleteOne(
	ctx context.Context, filter any, opts ...options.Lister[options.DeleteOneOptions],
) (*mongo.DeleteResult, error) {
	res, err := c.Collection.DeleteOne(ctx, filterOf(filter, nil), optionsOf(opts)...)
	return res, callerError(err)
}

// DeleteMany is the driver's DeleteMany, with both representations matched.
func (c *Collection) DeleteMany(
	ctx context.Context, filter any, opts ...options.Lister[options.DeleteManyOptions],
) (*mongo.DeleteResult, error) {
	res, err := c.Collection.DeleteMany(ctx, filterOf(filter, nil), optionsOf(opts)...)
	return res, callerError(err)
}

// UpdateByID is the driver's UpdateByID, with both representations of the id matched.
func (c *Collection) UpdateByID(
	ctx context.Context, id, update any, opts ...options.Lister[options.UpdateOneOptions],
) (*mongo.UpdateResult, error) {
	if id == nil {
		return c.Collection.UpdateByID(ctx, id, update, opts...) // which is an error
	}
	return c.UpdateOne(ctx, bson.D{{Key: "_id", Value: id}}, update, opts...)
}

// UpdateOne is the driver's UpdateOne, with both representations matched.
func (c *Collection) UpdateOne(
	ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateOneOptions],
) (*mongo.UpdateResult, error) {
	args := set(opts)
	res, err := c.Collection.UpdateOne(ctx, filterOf(filter, args.Upsert), updateOf(update), optionsOf(opts)...)
	return res, callerError(err)
}

// UpdateMany is the driver's UpdateMany, with both representations matched.
func (c *Collection) UpdateMany(
	ctx context.Context, filter, update any, opts ...options.Lister[options.UpdateManyOptions],
) (*mongo.UpdateResult, error) {
	args := set(opts)
	res, err := c.Collection.UpdateMany(ctx, filterOf(filter, args.Upsert), updateOf(update), optionsOf(opts)...)
	return res, callerError(err)
}

// ReplaceOne is the driver's ReplaceOne, with both representations matched.
func (c *Collection) ReplaceOne(
	ctx context.Context, filter, replacement any, opts ...options.Lister[options.ReplaceOptions],
) (*mongo.UpdateResult, error) {
	res, err := c.Collection.ReplaceOne(ctx, filterOf(filter, set(opts).Upsert), replacement, optionsOf(opts)...)
	return res, callerError(err)
}

// Aggregate is the driver's Aggregate, with both representations matched in the filters of its
// stages.
func (c *Collection) Aggregate(
	ctx context.Context, pipeline any, opts ...options.Lister[options.AggregateOptions],
) (*mongo.Cursor, error) {
	cursor, err := c.Collection.Aggregate(ctx, pipelineOf(pipeline), optionsOf(opts)...)
	return cursor, callerError(err)
}

// Watch is the driver's Watch, with both representations matched in the $match stages.
func (c *Collection) Watch(
	ctx context.Context, pipeline any, opts ...options.Lister[options.ChangeStreamOptions],
) (*mongo.ChangeStream, error) {
	stream, err := c.Collection.Watch(ctx, pipelineOf(pipeline), opts...)
	return stream, callerError(err)
}

// BulkWrite is the driver's BulkWrite, with both representations matched in the filters of its
// models. The caller's models are not changed; the Request of a write error is the caller's.
func (c *Collection) BulkWrite(
	ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions],
) (*mongo.BulkWriteResult, error) {
	rewritten := make([]mongo.WriteModel, len(models))
	for i, m := range models {
		rewritten[i] = modelOf(m)
	}
	res, err := c.Collection.BulkWrite(ctx, rewritten, optionsOf(opts)...)
	showModels(err, models)
	return res, callerError(err)
}

// showModels makes the Request of each write error in err that of models.
func showModels(err error, models []mongo.WriteModel) {
	var failed mongo.BulkWriteException
	_ = errors.As(err, &failed)
	for i, e := range failed.WriteErrors {
		failed.WriteErrors[i].Request = models[e.Index]
	}
}

// modelOf returns a copy of m with its filters rewritten. What is nil is the driver's to refuse.
func modelOf(m mongo.WriteModel) mongo.WriteModel {
	switch m := m.(type) {
	case *mongo.DeleteOneModel:
		if m != nil {
			c := *m
			c.Filter = filterOf(m.Filter, nil)
			return &c
		}
	case *mongo.DeleteManyModel:
		if m != nil {
			c := *m
			c.Filter = filterOf(m.Filter, nil)
			return &c
		}
	case *mongo.ReplaceOneModel:
		if m != nil {
			c := *m
			c.Filter = filterOf(m.Filter, m.Upsert)
			return &c
		}
	case *mongo.UpdateOneModel:
		if m != nil {
			c := *m
			c.Filter, c.Update = filterOf(m.Filter, m.Upsert), updateOf(m.Update)
			c.ArrayFilters = filtersOf(m.ArrayFilters)
			return &c
		}
	case *mongo.UpdateManyModel:
		if m != nil {
			c := *m
			c.Filter, c.Update = filterOf(m.Filter, m.Upsert), updateOf(m.Update)
			c.ArrayFilters = filtersOf(m.ArrayFilters)
			return &c
		}
	}
	return m
}

// filterOf stands for the filter f. upsert is the option of an update, nil if it is not set.
func filterOf(f any, upsert *bool) any {
	if f == nil {
		return nil // which the driver refuses
	}
	return &argument{value: f, upsert: upsert != nil && *upsert}
}

func filtersOf(fs []any) []any {
	if fs == nil {
		return nil
	}
	wrapped := make([]any, len(fs))
	for i, f := range fs {
		wrapped[i] = filterOf(f, nil)
	}
	return wrapped
}

// updateOf stands for the update u. The driver does not ask the registry for bytes and for what
// marshals itself.
func updateOf(u any) any {
	switch u.(type) {
	case nil, bson.Marshaler, bson.ValueMarshaler:
		return u
	case bson.D:
		return &updateArgument{&argument{value: u, role: updateRole}}
	}
	if t := reflect.TypeOf(u); t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return u
	}
	if stages, ok := elementsOf(u, updateStageRole); ok {
		return stages
	}
	return &updateArgument{&argument{value: u, role: updateRole}}
}

// pipelineOf stands for the pipeline p. What the driver refuses, or encodes without the registry,
// stays.
func pipelineOf(p any) any {
	switch p.(type) {
	case nil, bson.D, bson.Raw, []byte, bson.ValueMarshaler:
		return p
	}
	if stages, ok := elementsOf(p, stageRole); ok {
		return stages
	}
	return p
}

// elementsOf stands for the documents of a slice or an array; ok is false for another value.
func elementsOf(list any, r role) (elements []any, ok bool) {
	v := reflect.ValueOf(list)
	if k := v.Kind(); k != reflect.Slice && k != reflect.Array {
		return nil, false
	}
	elements = make([]any, v.Len())
	for i := range elements {
		if e := v.Index(i).Interface(); e != nil {
			elements[i] = &argument{value: e, role: r}
		}
	}
	return elements, true
}

// set returns what opts set. An error among them is returned by the driver's method, which gets
// the same options.
func set[T any](opts []options.Lister[T]) *T {
	args := new(T)
	for _, opt := range opts {
		if opt == nil || reflect.ValueOf(opt).IsNil() {
			continue
		}
		for _, f := range opt.List() {
			if f != nil {
				_ = f(args)
			}
		}
	}
	return args
}

// setter is one option.
type setter[T any] func(*T) error

func (s setter[T]) List() []func(*T) error { return []func(*T) error{s} }

// optionsOf returns opts and an option that stands for those of them that hold documents: the array
// filters, the projection, and the values of min, max and let.
func optionsOf[T any](opts []options.Lister[T]) []options.Lister[T] {
	return append(slices.Clone(opts), setter[T](func(args *T) error {
		v := reflect.ValueOf(args).Elem()
		for name, r := range map[string]role{
			"Projection": projectionRole, "Min": valueRole, "Max": valueRole, "Let": valueRole,
		} {
			if f := v.FieldByName(name); f.IsValid() && !f.IsNil() {
				f.Set(reflect.ValueOf(&argument{value: f.Interface(), role: r}))
			}
		}
		if f := v.FieldByName("ArrayFilters"); f.IsValid() && !f.IsNil() {
			f.Set(reflect.ValueOf(filtersOf(f.Interface().([]any))))
		}
		return nil
	}))
}
