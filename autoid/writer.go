package autoid

import (
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// idWriter stands before the driver's ValueWriter for the time of one document and writes the _id in front of the
// document's first element. What it hands out for the elements' values is the driver's own writer.
type idWriter struct {
	bson.ValueWriter
	ec    bson.EncodeContext
	d     *document
	where placement
	oid   bool                // the registry encodes an ObjectID as the driver does
	dw    bson.DocumentWriter // of the document, while its first key is awaited
	value idValueWriter
}

var idWriters = sync.Pool{New: func() any { return new(idWriter) }}

// WriteDocument begins the document. The driver's codecs for documents call it once, on the writer they were given.
func (w *idWriter) WriteDocument() (bson.DocumentWriter, error) {
	dw, err := w.ValueWriter.WriteDocument()
	if err != nil {
		return nil, err
	}
	if w.where == nowhere {
		return dw, w.writeID(dw)
	}
	w.dw = dw
	return (*firstKeyWriter)(w), nil
}

func (w *idWriter) writeID(dw bson.DocumentWriter) error {
	id, draw, err := w.d.drawID()
	if err != nil {
		return w.d.idError(err)
	}
	vw, err := dw.WriteDocumentElement("_id")
	if err != nil {
		return err
	}
	if oid, ok := id.(bson.ObjectID); ok && w.oid {
		return vw.WriteObjectID(oid)
	}
	enc, err := w.ec.LookupEncoder(reflect.TypeOf(id))
	if err != nil {
		return w.d.idError(err)
	}
	w.value.ValueWriter = vw
	err = enc.EncodeValue(w.ec, &w.value, reflect.ValueOf(id))
	if w.value.null {
		w.d.dropID(draw)
		err = ErrNilID
	}
	if err != nil {
		return w.d.idError(err)
	}
	return nil
}

// firstKeyWriter is an idWriter that has begun its document and lets the first key decide.
type firstKeyWriter idWriter

func (w *firstKeyWriter) WriteDocumentElement(key string) (bson.ValueWriter, error) {
	if w.where != somewhere {
		if key != "_id" {
			if err := (*idWriter)(w).writeID(w.dw); err != nil {
				return nil, err
			}
		}
		w.where = somewhere
	}
	return w.dw.WriteDocumentElement(key)
}

func (w *firstKeyWriter) WriteDocumentEnd() error {
	if w.where != somewhere {
		if err := (*idWriter)(w).writeID(w.dw); err != nil {
			return err
		}
	}
	return w.dw.WriteDocumentEnd()
}

// idValueWriter refuses an id that encodes as null, such as a nil pointer. It remembers having done so, because the
// driver's codec for maps tries something else then.
type idValueWriter struct {
	bson.ValueWriter
	null bool
}

func (w *idValueWriter) WriteNull() error {
	w.null = true
	return ErrNilID
}

func (w *idValueWriter) WriteUndefined() error { return w.WriteNull() }
