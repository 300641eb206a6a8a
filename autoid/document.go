package autoid

import (
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Document returns doc with src as the source of its _id, for any place where the driver inserts a document: the
// methods of a plain [go.mongodb.org/mongo-driver/v2/mongo.Collection], the models of its bulk write and of the
// client's, and all of them inside a transaction.
//
// When the driver encodes the result and doc has no _id in its encoded form, the next id of src becomes its first
// element. A doc that has an _id, at any position and of any type, null and zero values included, is encoded as it is
// and src is not asked. A field that omitempty omits is no _id; note that the driver omits no array, so that a zero
// google/uuid.UUID is one. doc may be whatever the driver accepts as a document, and it is never changed. It is encoded
// with the registry and the BSON options in force, and so is the id.
//
// The result draws one id and keeps it, however often it is encoded: the driver does so again when it splits a batch
// or repeats a command, and the application when it runs a transaction again. This is what makes a retry idempotent,
// and it is why inserting one Document twice is a duplicate key error. A new insert needs a new Document.
//
// Where src fails, or its id is nil, encoding fails with an [*IDError] whose Index is -1, and src is asked again the
// next time. A client-level bulk write encodes its models as it fills one batch after the other, so such an error
// comes before the batch that holds the document, but after the batches before it: those have been written. The
// methods of a [Collection] have no such limit. Where the registry lacks [Register], encoding fails with
// [ErrNotRegistered]. The driver's text for such an error names the type of the Document and not that of doc.
//
// A Document is for inserts. ReplaceOne and FindOneAndReplace encode it as an insert does: the replacement has an _id of
// its own, which suits an upsert, and which the server refuses where the document that is there has another. In an
// update, and in the replacements of a bulk write, the driver asks no registry, and it fails with [ErrNotRegistered]. A
// bulk write comes to such a model only when others may have been sent: those before it, and in an unordered one those
// after it too. A nil doc gives nil, which the driver refuses as usual. A doc that is a Document itself is returned as
// it is.
//
// The result is safe for concurrent use as far as doc is: encoding it only reads doc.
func Document(src Source, doc any) any {
	switch d := doc.(type) {
	case nil:
		return nil
	case *document:
		return d
	}
	return &document{src: src, doc: doc, index: -1}
}

// Register makes reg encode [Document], and so serve [Wrap]. It must be called before reg is used by more than one
// goroutine, and like the driver's own it must not be given other codecs once it has encoded a document. Calling
// Register again changes nothing.
func Register(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[*document](), new(documentCodec))
	reg.RegisterTypeEncoder(reflect.TypeFor[*contextProbe](), bson.ValueEncoderFunc(encodeContextProbe))
}

// document is a document whose _id comes from a source.
type document struct {
	src Source
	doc any

	mu    sync.Mutex
	id    any    // nil until it is drawn
	draws uint32 // how often the source gave one; another than the first one only where that encodes as null

	index int32 // among the documents of a call of a Collection, which hold fewer than 2³¹, or -1
}

// MarshalBSONValue is called by a registry that does not know the type. There must be no MarshalBSON beside it: the
// driver would call that without asking the registry.
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
	e := &IDError{Index: int(d.index), Document: d.caller(), Err: err}
	if d.index >= 0 {
		return &heldError{e}
	}
	return &aloneError{e}
}
