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
// InsertOne, InsertMany, BulkWrite and Clone stand in for the driver's; all other methods are the driver's own. So the
// source makes no _id of an upsert, which the server, the filter or the replacement gives, of what $out and $merge
// write, and of the files of GridFS.
//
// A document without an _id gets the source's next id as its first element. A document that has one keeps it, and the
// source is not asked; see [Document] for what counts as having one. No document of the caller is changed.
//
// Where a document of a call gets no id, because the source fails or gives nil, nothing of the call is sent and the
// error is an [*IDError]. The collection's registry needs [Register]; without it these methods return
// [ErrNotRegistered], and nothing is sent either. All other errors are the driver's, and show the caller's document
// and models.
//
// A Collection is safe for concurrent use, as the driver's is and as its Source must be.
type Collection struct {
	*mongo.Collection
	src Source
}

// Wrap returns coll with src as the source of its ids. The registry of coll, which is its client's unless it was given
// one, needs [Register].
func Wrap(coll *mongo.Collection, src Source) *Collection {
	return &Collection{Collection: coll, src: src}
}

// NewID draws one id from the collection's source, for a document whose _id must be known beforehand. It makes a
// Collection a [Source]. The error wraps the source's; for a nil id it wraps [ErrNilID].
func (c *Collection) NewID() (any, error) {
	id, err := draw(c.src)
	if err != nil {
		return nil, fmt.Errorf("autoid: no id: %w", err)
	}
	return id, nil
}

// Clone returns the driver's clone of the collection, with the same source.
func (c *Collection) Clone(opts ...options.Lister[options.CollectionOptions]) *Collection {
	return Wrap(c.Collection.Clone(opts...), c.src)
}

// InsertOne is the driver's InsertOne. InsertedID holds the id as the registry decodes it into any.
func (c *Collection) InsertOne(
	ctx context.Context, doc any, opts ...options.Lister[options.InsertOneOptions],
) (*mongo.InsertOneResult, error) {
	if doc != nil {
		doc = &document{src: c.src, doc: doc}
	}
	res, err := c.Collection.InsertOne(ctx, doc, opts...)
	return res, callerError(err)
}

// InsertMany is the driver's InsertMany. InsertedIDs holds the ids as the registry decodes them into any.
func (c *Collection) InsertMany(
	ctx context.Context, docs any, opts ...options.Lister[options.InsertManyOptions],
) (*mongo.InsertManyResult, error) {
	v := reflect.ValueOf(docs)
	if v.Kind() != reflect.Slice || v.Len() == 0 {
		return c.Collection.InsertMany(ctx, docs, opts...)
	}
	sourced := make([]document, v.Len())
	wrapped := make([]any, v.Len())
	for i := range wrapped {
		if doc := v.Index(i).Interface(); doc != nil {
			sourced[i] = document{src: c.src, doc: doc, index: int32(i)}
			wrapped[i] = &sourced[i]
		}
	}
	res, err := c.Collection.InsertMany(ctx, wrapped, opts...)
	return res, callerError(err)
}

// BulkWrite is the driver's BulkWrite. The driver encodes and sends one run of models after the other; this method
// encodes all documents to insert before it begins, so that one that has no id, is nil, or cannot be encoded keeps
// everything from being sent. They are held in memory together. The Request of a write error is the caller's model.
func (c *Collection) BulkWrite(
	ctx context.Context, models []mongo.WriteModel, opts ...options.Lister[options.BulkWriteOptions],
) (*mongo.BulkWriteResult, error) {
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
	return res, err
}

// encodeInserts returns models with every document to insert replaced by its encoded form, its _id in it.
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
	ec, err := c.encodeContext()
	if err != nil {
		return nil, err
	}
	enc, err := ec.LookupEncoder(reflect.TypeFor[*document]())
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	vw := bson.NewDocumentWriter(&buf)
	ends := make([]int, len(at))
	for i, m := range at {
		d := &document{src: c.src, doc: models[m].(*mongo.InsertOneModel).Document, index: int32(m)}
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

// encodeContext returns what the driver encodes the collection's documents with.
func (c *Collection) encodeContext() (bson.EncodeContext, error) {
	var p contextProbe
	_, err := c.Collection.InsertOne(context.Background(), &p)
	switch {
	case p.known:
		return p.ec, nil
	case errors.Is(err, ErrNotRegistered):
		return p.ec, ErrNotRegistered
	default:
		return p.ec, fmt.Errorf("autoid: %w", err)
	}
}

// encodedDocument is a document that the driver copies as it is, whatever the registry says of byte slices.
type encodedDocument []byte

func (d encodedDocument) MarshalBSON() ([]byte, error) { return d, nil }

// callerError turns the driver's error for a document of this package into one for the caller's document.
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
