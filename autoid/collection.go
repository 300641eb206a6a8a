package autoid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// Collection is a collection of the driver whose inserts take a missing _id from a [Source].
//
// InsertOne, InsertMany and BulkWrite give a document without an _id the source's next id as its
// first element. A document with an _id keeps it, and the source is not asked; see [Document] for
// what counts as missing, and which ids are refused. An ObjectID fits a string if the client has
// ObjectIDAsHexString. The caller's documents are not changed, unless [WriteBack] is set. All
// other methods are the driver's, so the source makes no _id for an upsert, for what $out and
// $merge write, and for the files of GridFS.
//
// The ids in the results of inserts, updates, replacements and bulk writes are native: they are
// decoded into any with the collection's registry and BSON options. The driver itself does this for
// inserted ids only.
//
// If a document of a call gets no id, because the source fails or its id is refused, or if the
// document's own _id is refused, nothing of the call is sent and the error is an [*IDError]. If the collection's registry lacks [Register], inserts
// return [ErrNotRegistered] and send nothing, and upserted ids stay as the driver returns them. All
// other errors are the driver's, and hold the caller's document and models.
//
// A Collection is safe for concurrent use.
type Collection struct {
	*mongo.Collection
	src      Source
	settings settings
	err      error // of the arguments of Wrap
	contexts *contexts
}

// Wrap returns coll with src as the source of its ids. The registry of coll, which is its client's
// unless it was given one, needs [Register].
//
// A nil src and a nil Option are an error of every insert. A nil coll is not valid.
func Wrap(coll *mongo.Collection, src Source, opts ...Option) *Collection {
	s, err := newSettings(opts)
	if err == nil && isNilSource(src) {
		err = errNilSource
	}
	return wrap(coll, src, s, err)
}

func wrap(coll *mongo.Collection, src Source, s settings, err error) *Collection {
	return &Collection{Collection: coll, src: src, settings: s, err: err, contexts: newContexts(coll)}
}

// NewID returns the next id of the collection's source, for a document whose _id must be known
// before the insert. It makes a Collection a [Source]. The error wraps that of the source, and
// [ErrNilID] if the id is nil.
func (c *Collection) NewID() (any, error) {
	id, err := draw(c.src)
	if err != nil {
		return nil, fmt.Errorf("autoid: no id: %w", err)
	}
	return id, nil
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
		d := new(document)
		c.setDocument(d, doc, 0)
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
		doc := v.Index(i)
		if doc.Interface() == nil {
			continue
		}
		d := &sourced[i]
		c.setDocument(d, doc.Interface(), i)
		target := d.doc
		if doc.Kind() != reflect.Interface {
			target = doc.Addr().Interface()
		}
		if err := c.writeBack(d, target); err != nil {
			return nil, err
		}
		d.doc = doc.Interface() // with the id
		wrapped[i] = d
	}
	res, err := c.Collection.InsertMany(ctx, wrapped, opts...)
	return res, callerError(err)
}

// BulkWrite is the driver's BulkWrite. The driver encodes and sends one run of models after the
// other. This method first encodes all documents to insert and holds them in memory. If one of them
// gets no id, is nil or cannot be encoded, nothing is sent. The Request of a write error is the
// caller's model, and UpsertedIDs hold the ids as the registry decodes them into any.
func (c *Collection) BulkWrite(
	ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions],
) (*mongo.BulkWriteResult, error) {
	if c.err != nil {
		return &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}, c.err
	}
	encoded, err := c.encodeInserts(models)
	if err != nil {
		return &mongo.BulkWriteResult{UpsertedIDs: map[int64]any{}}, err
	}
	res, err := c.Collection.BulkWrite(ctx, encoded, opts...)
	var failed mongo.BulkWriteException
	if errors.As(err, &failed) {
		for i, e := range failed.WriteErrors {
			if e.Index >= 0 && e.Index < len(models) {
				failed.WriteErrors[i].Request = models[e.Index]
			}
		}
	}
	if res != nil {
		for i, id := range res.UpsertedIDs {
			res.UpsertedIDs[i] = c.nativeID(id)
		}
	}
	return res, err
}

func (c *Collection) setDocument(d *document, doc any, index int) {
	d.src, d.doc, d.index, d.settings, d.contexts = c.src, doc, int32(index), c.settings, c.contexts
}

// writeBack puts an id into target, which is the caller's document or a pointer to it, if the
// options ask for that.
func (c *Collection) writeBack(d *document, target any) error {
	if !c.settings.writeBack {
		return nil
	}
	var r reading
	if e, err := c.contexts.encoding(); err == nil {
		r = e.reading
	}
	id, err := assign(c.src, target, r)
	if err != nil {
		return &IDError{Index: int(d.index), Document: d.caller(), Err: err}
	}
	d.id = id // in case the document's own encoding leaves out what was assigned
	return nil
}

// encodeInserts returns models with every document to insert replaced by its encoded form, its _id
// in it.
func (c *Collection) encodeInserts(models []mongo.WriteModel) ([]mongo.WriteModel, error) {
	var at []int
	for i, m := range models {
		switch m := m.(type) {
		case nil:
			return models, nil // the driver refuses all of them
		case *mongo.InsertOneModel:
			if m == nil {
				return nil, fmt.Errorf("autoid: invalid model at index %d: %w", i, mongo.ErrNilDocument)
			}
			if m.Document == nil {
				return nil, mongo.ErrNilDocument
			}
			at = append(at, i)
		}
	}
	if len(at) == 0 {
		return models, nil
	}
	encoding, err := c.contexts.encoding()
	if err != nil {
		return nil, err
	}
	ec := encoding.ec
	enc, err := ec.LookupEncoder(reflect.TypeFor[*document]())
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	vw := bson.NewDocumentWriter(&buf)
	ends := make([]int, len(at))
	for i, m := range at {
		doc := models[m].(*mongo.InsertOneModel).Document
		d := new(document)
		c.setDocument(d, doc, m)
		if err := c.writeBack(d, doc); err != nil {
			return nil, err
		}
		if err := enc.EncodeValue(ec, vw, reflect.ValueOf(d)); err != nil {
			return nil, callerError(mongo.MarshalError{Value: d, Err: err})
		}
		ends[i] = buf.Len()
	}
	all := buf.Bytes()
	inserts := make([]mongo.InsertOneModel, len(at))
	encoded := slices.Clone(models)
	start := 0
	for i, m := range at {
		inserts[i] = *models[m].(*mongo.InsertOneModel)
		inserts[i].Document = encodedDocument(all[start:ends[i]:ends[i]])
		encoded[m] = &inserts[i]
		start = ends[i]
	}
	return encoded, nil
}

// encodedDocument is a document that the driver copies as it is, whatever the registry says of byte
// slices.
type encodedDocument []byte

func (d encodedDocument) MarshalBSON() ([]byte, error) { return d, nil }

// callerError turns the driver's error for a document of this package into one for the caller's
// document.
func callerError(err error) error {
	var failed mongo.MarshalError
	if !errors.As(err, &failed) {
		return err
	}
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
