package autoid

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/internal/built"
)

// Collection is a collection of the driver whose inserts and upserts take a missing _id from a
// [Source].
//
// InsertOne, InsertMany and BulkWrite give a document without an _id the source's next id as its
// first element. A document with an _id keeps it, and the source is not asked; see [Document] for
// what counts as missing, and which ids are refused. An ObjectID fits a string if the client has
// ObjectIDAsHexString. The caller's documents are not changed, unless [WithWriteBack] is set.
//
// UpdateOne, UpdateMany, FindOneAndUpdate and the updates of BulkWrite set the source's next id with
// $setOnInsert, if their option Upsert is set, the filter does not give the _id, and the update does
// not set it. The id must fit a struct with an _id that $set or $setOnInsert has. It is not used if a document matches. A filter gives the _id by equality with one
// value, as a value, $eq, $in or $all, also within $and and a $or of one clause, and a part of it by
// equality with a part (_id.shop); then the source is not asked. Other conditions on the _id, such as
// $ne, $gt and $in of several, give none. Whether a $or of several equalities on the _id gives one, or
// a filter that can never match, or one with a double negation, depends on the version of the server.
//
// A replacement gets no new id, since it would then fail for every document that it matches: if Upsert
// is set, it must have an _id, or the filter must give it. An update that is a pipeline needs a filter
// that gives the _id. If not, and if it depends on the server whether the filter gives one, the upsert
// is an error that wraps [ErrUpsert], unless the ids of the source are ObjectIDs, which the server
// makes. To know whether they are, the source is asked for one that is not used. A zero _id in the
// filter, the update or the replacement of an upsert is an error that wraps [ErrZeroID], except that a
// zero _id of a replacement is left out for an ObjectID of the server.
//
// ClientWrites does the same for the bulk write of a client. All other methods are the driver's, so
// the source makes no _id for what $out and $merge write, and for the files of GridFS.
//
// The ids in the results of inserts, updates, replacements and bulk writes are native: they are
// decoded into any with the collection's registry and BSON options. The driver itself does this for
// inserted ids only.
//
// If a document of a call gets no id, because the source fails or its id is refused, or if the
// document's own _id is refused, nothing of the call is sent and the error is an [*IDError]. If the
// collection's registry lacks [Register], inserts, upserts and ClientWrites return [ErrNotRegistered] and send
// nothing. All other errors are the driver's, and hold the caller's document and models.
//
// A Collection is safe for concurrent use.
type Collection struct {
	*mongo.Collection
	*origin
}

// Wrap returns coll with src as the source of its ids. The registry of coll, which is its client's
// unless it was given one, needs [Register].
//
// A nil src and a nil Option are an error of every insert and every upsert. The collection in a
// mixedrep.Collection is an error of every method, because its filters would lose what package
// mixedrep does to them. A nil coll is not valid.
func Wrap(coll *mongo.Collection, src Source, opts ...Option) *Collection {
	s, err := newSettings(opts)
	if err == nil && isNilSource(src) {
		err = errNilSource
	}
	return wrap(coll, src, s, err)
}

func wrap(coll *mongo.Collection, src Source, s settings, err error) *Collection {
	c := &Collection{coll, &origin{src: src, settings: s, err: err, contexts: newContexts(coll)}}
	if coll == nil {
		return c
	}
	if e, err := c.contexts.encoding(); err == nil {
		if n := built.Of(e.ec.Registry); n != nil && n.OwnFilters {
			c.Collection, c.err = refusing(coll), errOwnFilters
		}
	}
	return c
}

// NewID returns the next id of the collection's source, for a document whose _id must be known
// before the insert. It makes a Collection a [Source]. The error wraps that of the source; an
// id that is nil is an error, too.
func (c *Collection) NewID() (any, error) {
	id, err := draw(c.src)
	switch err {
	case nil:
		return id, nil
	case errNilSource, errNilID:
		return nil, err
	default:
		return nil, fmt.Errorf("autoid: no id: %w", err)
	}
}

// Clone returns the driver's clone of the collection, with the same source and options.
func (c *Collection) Clone(opts ...options.Lister[options.CollectionOptions]) *Collection {
	return wrap(c.Collection.Clone(opts...), c.src, c.settings, c.err)
}

// InsertOne is the driver's InsertOne. InsertedID holds the id as the registry decodes it into any.
func (c *Collection) InsertOne(
	ctx context.Context, doc any, opts ...options.Lister[options.InsertOneOptions],
) (*mongo.InsertOneResult, error) {
	if c.err != nil {
		return nil, c.err
	}
	if doc != nil {
		d := &document{origin: c.origin, doc: doc, single: true}
		if err := c.writeBack(d, doc); err != nil {
			return nil, err
		}
		doc = d
	}
	res, err := c.Collection.InsertOne(ctx, doc, opts...)
	return res, callerError(err)
}

// InsertMany is the driver's InsertMany. InsertedIDs holds the ids as the registry decodes them
// into any.
func (c *Collection) InsertMany(
	ctx context.Context, docs any, opts ...options.Lister[options.InsertManyOptions],
) (*mongo.InsertManyResult, error) {
	if c.err != nil {
		return nil, c.err
	}
	v := reflect.ValueOf(docs)
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		return c.Collection.InsertMany(ctx, docs, opts...)
	}
	sourced := make([]document, v.Len())
	wrapped := make([]any, v.Len())
	for i := range wrapped {
		element := v.Index(i)
		doc := element.Interface() // a copy, unless the elements are of an interface type
		if doc == nil {
			continue
		}
		d := &sourced[i]
		d.origin, d.doc, d.index = c.origin, doc, int32(i)
		if c.settings.writeBack {
			if err := c.writeBack(d, element.Addr().Interface()); err != nil {
				return nil, err
			}
			d.doc = element.Interface() // with the id
		}
		wrapped[i] = d
	}
	res, err := c.Collection.InsertMany(ctx, wrapped, opts...)
	return res, callerError(err)
}

// BulkWrite is the driver's BulkWrite. The driver encodes and sends one run of models after the
// other. This method first encodes all documents to insert and all upserts and holds them in memory.
// If one of them gets no id, is nil or cannot be encoded, nothing is sent. The Request of a write error is the
// caller's model, and UpsertedIDs hold the ids as the registry decodes them into any.
func (c *Collection) BulkWrite(
	ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions],
) (*mongo.BulkWriteResult, error) {
	if c.err != nil {
		return &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}, c.err
	}
	encoded, err := c.prepare(models)
	if err != nil {
		return &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}, err
	}
	res, err := c.Collection.BulkWrite(ctx, encoded, opts...)
	var failed mongo.BulkWriteException
	_ = errors.As(err, &failed)
	for i, e := range failed.WriteErrors {
		failed.WriteErrors[i].Request = models[e.Index]
	}
	if res != nil {
		for i, id := range res.UpsertedIDs {
			res.UpsertedIDs[i] = c.nativeID(id)
		}
	}
	return res, err
}

// writeBack puts an id into target, which is the caller's document or a pointer to it, if the
// options ask for that.
func (c *Collection) writeBack(d *document, target any) error {
	if !c.settings.writeBack {
		return nil
	}
	e, err := c.contexts.encoding()
	if err != nil {
		return err
	}
	id, err := assign(c.src, target, e.reading, func(id any) error { return c.fitsWrittenBack(e, d, id) })
	if err != nil {
		if errors.Is(err, ErrNotAssignable) {
			err = fmt.Errorf("%w (the option WithWriteBack puts it there)", err)
		}
		return &IDError{Index: int(d.index), Document: d.caller(), Err: err, single: d.single}
	}
	d.id = id // in case the document's own encoding leaves out what was assigned
	return nil
}

// fitsWrittenBack returns an error if id does not fit into the document that d is for. WithWriteBack converts an id to the type of
// its place, so most ids fit that do not without it. But a UUID that is converted to a type that marshals itself is written
// in the representation of that type, and not in that of the registry, as the upserts of the collection write it.
func (c *Collection) fitsWrittenBack(e *encoding, d *document, id any) error {
	p, err := e.plan(reflect.TypeOf(d.doc))
	if err != nil || p.idType.t == nil || !isUUIDKind(p.idType.t) {
		return nil // the encoding of the document reports the error
	}
	return p.fits(e.ec, d, id)
}

// prepare returns models with every document to insert replaced by its encoded form, its _id in it,
// and with the filters and updates of upserts replaced by what gives them an id.
func (c *Collection) prepare(models []mongo.WriteModel) ([]mongo.WriteModel, error) {
	for _, m := range models {
		if m == nil {
			return models, nil // the driver refuses all of them
		}
	}
	prepared := slices.Clone(models)
	for i, m := range models {
		var err error
		switch m := m.(type) {
		case *mongo.InsertOneModel:
			if m == nil {
				return nil, errNilModel(i)
			}
			insert := *m
			insert.Document, err = c.encodedInsert(m.Document, i)
			prepared[i] = &insert
		case *mongo.UpdateOneModel:
			if m != nil && isSet(m.Upsert) {
				update := *m
				update.Filter, update.Update, err = c.updateUpsert(m.Filter, m.Update, i)
				prepared[i] = &update
			}
		case *mongo.UpdateManyModel:
			if m != nil && isSet(m.Upsert) {
				update := *m
				update.Filter, update.Update, err = c.updateUpsert(m.Filter, m.Update, i)
				prepared[i] = &update
			}
		case *mongo.ReplaceOneModel:
			if m != nil && isSet(m.Upsert) {
				replace := *m
				replace.Filter, replace.Replacement, err = c.replaceUpsert(m.Filter, m.Replacement, i, encodeUpdate)
				prepared[i] = &replace
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return prepared, nil
}

func errNilModel(index int) error {
	return fmt.Errorf("autoid: invalid model at index %d: %w", index, mongo.ErrNilDocument)
}

// ClientWrites returns models as writes to the collection for the BulkWrite of a mongo.Client, which
// can write to several collections:
//
//	writes, err := orders.ClientWrites(mongo.NewClientInsertOneModel().SetDocument(order))
//	…
//	res, err := client.BulkWrite(ctx, writes)
//
// The documents to insert and the upserts among models have their ids then, and all models are
// encoded as BulkWrite encodes them, with the registry of the collection: the client would use its
// own. The caller's models are not changed. The writes can be sent again: they
// keep their ids. If one of the documents gets no id, is nil or cannot be encoded, there are no
// writes; the Index of an [*IDError] is that of the model.
func (c *Collection) ClientWrites(models ...mongo.ClientWriteModel) ([]mongo.ClientBulkWrite, error) {
	if c.err != nil {
		return nil, c.err
	}
	db, name := c.Database().Name(), c.Name()
	writes := make([]mongo.ClientBulkWrite, len(models))
	for i, m := range models {
		var err error
		if v := reflect.ValueOf(m); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, errNilModel(i)
		}
		switch model := m.(type) {
		case *mongo.ClientInsertOneModel:
			insert := *model
			insert.Document, err = c.encodeInsert(model.Document, i)
			m = &insert
		case *mongo.ClientUpdateOneModel:
			update := *model
			update.Filter, update.Update, err = c.encodeModel(model.Filter, model.Update, model.Upsert, i, c.updateUpsert)
			if err == nil {
				update.ArrayFilters, err = c.encodeEach(model.ArrayFilters)
			}
			m = &update
		case *mongo.ClientUpdateManyModel:
			update := *model
			update.Filter, update.Update, err = c.encodeModel(model.Filter, model.Update, model.Upsert, i, c.updateUpsert)
			if err == nil {
				update.ArrayFilters, err = c.encodeEach(model.ArrayFilters)
			}
			m = &update
		case *mongo.ClientReplaceOneModel:
			replace := *model
			replace.Filter, replace.Replacement, err = c.encodeModel(model.Filter, model.Replacement, model.Upsert, i,
				func(filter, replacement any, index int) (any, any, error) {
					return c.replaceUpsert(filter, replacement, index, encodeUpdate)
				})
			m = &replace
		case *mongo.ClientDeleteOneModel:
			remove := *model
			remove.Filter, err = c.encodeFilter(model.Filter)
			m = &remove
		case *mongo.ClientDeleteManyModel:
			remove := *model
			remove.Filter, err = c.encodeFilter(model.Filter)
			m = &remove
		}
		if err != nil {
			return nil, err
		}
		writes[i] = mongo.ClientBulkWrite{Database: db, Collection: name, Model: m}
	}
	return writes, nil
}

// encodeModel returns what to send for the filter and the update of a model. The client would encode
// them with its own registry, which can be another than that of the collection.
func (c *Collection) encodeModel(
	filter, update any, upserts *bool, index int, upsert func(filter, update any, index int) (f, u any, err error),
) (f, u any, err error) {
	if isSet(upserts) {
		return upsert(filter, update, index)
	}
	if f, err = c.encodeFilter(filter); err != nil || update == nil {
		return f, update, err // the driver refuses nil
	}
	e, err := c.contexts.encoding()
	if err != nil {
		return nil, nil, err
	}
	_, _, u, err = encodeUpdate(e.ec, update)
	return f, u, err
}

// encodeFilter returns what to send for filter. The driver refuses nil.
func (c *Collection) encodeFilter(filter any) (any, error) {
	if filter == nil {
		return nil, nil
	}
	e, err := c.contexts.encoding()
	if err != nil {
		return nil, err
	}
	raw, err := encodeDocument(e.ec, filter)
	return encodedDocument(raw), err
}

// encodeEach returns what to send for array filters.
func (c *Collection) encodeEach(filters []any) ([]any, error) {
	encoded := slices.Clone(filters)
	for i, f := range filters {
		var err error
		if encoded[i], err = c.encodeFilter(f); err != nil {
			return nil, err
		}
	}
	return encoded, nil
}

// encodeInsert returns doc, that of the model with the index, as a client inserts it whose registry is another one.
func (c *Collection) encodeInsert(doc any, index int) (any, error) {
	d, err := c.encodedInsert(doc, index)
	if err != nil {
		return nil, err
	}
	return d.doc, nil
}

// encodedInsert returns doc, that of the model with the index, as it is inserted: an encodedDocument in a document, because the
// driver copies what is not encoded by a codec of this package element by element.
func (c *Collection) encodedInsert(doc any, index int) (*document, error) {
	if doc == nil {
		return nil, mongo.ErrNilDocument
	}
	e, err := c.contexts.encoding()
	if err != nil {
		return nil, err
	}
	d := &document{origin: c.origin, doc: doc, index: int32(index)}
	if err := c.writeBack(d, doc); err != nil {
		return nil, err
	}
	raw, err := encodeDocument(e.ec, d)
	if err != nil {
		return nil, callerError(err)
	}
	d.doc = encodedDocument(raw)
	return d, nil
}

// callerError turns the driver's error for a document of this package into one for the caller's
// document.
func callerError(err error) error {
	var failed mongo.MarshalError
	_ = errors.As(err, &failed)
	d, ok := failed.Value.(*document)
	if !ok {
		return err
	}
	var held *heldError
	switch {
	case errors.As(failed.Err, &held):
		return held.err
	case errors.Is(failed.Err, ErrNotRegistered):
		return ErrNotRegistered
	default:
		return mongo.MarshalError{Value: d.caller(), Err: failed.Err}
	}
}
