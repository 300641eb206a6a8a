package autoid

import (
	"errors"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Document returns doc with src as the source of its _id, for any place where the driver inserts a
// document: a plain [go.mongodb.org/mongo-driver/v2/mongo.Collection], the models of its bulk write
// and of the client's, and all of them inside a transaction.
//
// If doc has no _id when the driver encodes it, the next id of src becomes its first element. A doc
// with an _id, at any position and of any type, is encoded as it is and src is not asked. A struct
// field whose tag has omitempty counts as missing if it is zero or encoded as null, arrays and
// structs such as a UUID and a NullUUID included; the tag can be a json tag if the client has
// UseJSONStructTags, and the client's OmitEmpty counts as omitempty. [WithZeroIDAsMissing] makes every
// zero _id count as missing. An _id that is null, the zero ObjectID or a binary value of 16 zero
// octets, and does not count as missing, is an error that wraps [ErrZeroID], unless [WithZeroIDs] is
// set. Other zero values, such as 0 and "", are ids.
//
// An id of the source must fit the field or the element of a map that is the _id: if what the
// registry writes for the id cannot be read back into the type of the field, encoding fails, unless
// [WithMisfitIDs] is set. This is decided once for a type of ids and a type of fields. Fields of an
// interface type take any id. What an option of a client lets it read fits, too: an ObjectID into a
// string, a fraction into an integer.
//
// doc can be whatever the driver accepts as a document, and it is never changed. A nil doc gives
// nil, which the driver refuses. A doc that is a Document is returned as it is, without src and
// opts.
//
// A Document draws one id and keeps it, however often it is encoded: the driver encodes it again
// when it splits a batch or repeats a command, and the application does when it runs a transaction
// again. Inserting one Document twice is therefore a duplicate key error. A Document is safe for
// concurrent use if doc can be read concurrently.
//
// Document is for inserts. ReplaceOne and FindOneAndReplace encode it as an insert does, which
// suits an upsert only. In an update, and in the replacements of a bulk write, the driver asks no
// registry: these fail with [ErrNotRegistered], as does a registry without [Register].
//
// If src fails or its id is nil or refused, encoding fails with an [*IDError] whose Index is -1, and src is
// asked again the next time. A nil Option and [WithWriteBack] are such errors, too. A client-level bulk
// write encodes its models batch by batch, so the batches before such an error have been written.
// The methods of a [Collection] have no such limit.
func Document(src Source, doc any, opts ...Option) any {
	switch d := doc.(type) {
	case nil:
		return nil
	case *document:
		return d
	}
	s, err := newSettings(opts)
	if err == nil && s.writeBack {
		err = errors.New("autoid: WithWriteBack does not apply to a Document: call Assign")
	}
	return &document{origin: &origin{src: src, settings: s, err: err}, doc: doc, index: -1}
}

// Register makes reg encode [Document], and so serve [Wrap]. It must be called before reg is used
// by more than one goroutine, and, as with the driver's own codecs, reg must not be given other
// codecs once it has encoded a document. Calling Register again changes nothing.
func Register(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[*document](), new(documentCodec))
	registerProbes(reg)
}

// document is a document whose _id comes from a source.
type document struct {
	*origin
	doc any

	mu    sync.Mutex
	id    any    // nil until it is drawn
	draws uint32 // how often the source gave one; more than once only if that encodes as null

	index  int32 // among the documents of a call of a Collection, which hold fewer than 2³¹, or -1
	single bool  // it is the only document of the call
}

// An origin has the source of ids for documents, and the options for them. The documents of a Collection share one.
type origin struct {
	src      Source
	err      error     // of the arguments
	contexts *contexts // of the Collection; nil if the document stands alone
	settings
}

// MarshalBSONValue is called by a registry that does not know the type. There must be no
// MarshalBSON: the driver would call that without asking the registry.
func (*document) MarshalBSONValue() (byte, []byte, error) { return 0, nil, ErrNotRegistered }

// drawID returns the document's id and the number of its draw.
func (d *document) drawID() (any, uint32, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.id == nil {
		id, err := draw(d.src)
		if err != nil {
			return nil, 0, err
		}
		d.id = id
		d.draws++
	}
	return d.id, d.draws, nil
}

// dropID forgets the id of a draw that encodes as null, unless another goroutine has drawn since.
func (d *document) dropID(draw uint32) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draws == draw {
		d.id = nil
	}
}

// caller returns the document that the caller of this package passed.
func (d *document) caller() any {
	if inner, ok := d.doc.(*document); ok {
		return inner.doc
	}
	return d.doc
}

func (d *document) idError(err error) error {
	e := &IDError{Index: int(d.index), Document: d.caller(), Err: err, single: d.single}
	if d.index >= 0 {
		return &heldError{e}
	}
	return &aloneError{e}
}
