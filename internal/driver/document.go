package driver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// A DocumentBuffer is a writer of documents and what it wrote.
type DocumentBuffer struct {
	buf bytes.Buffer
	vw  bson.ValueWriter
}

var documentBuffers = sync.Pool{New: func() any {
	b := new(DocumentBuffer)
	b.vw = bson.NewDocumentWriter(&b.buf)
	return b
}}

// maxPooled keeps a rare large document from staying in memory.
const maxPooled = 1 << 20

// ErrNotOneDocument reports an encoder that did not fail and wrote no document, or more than one.
var ErrNotOneDocument = errors.New("the encoder did not write exactly one document")

// WriteDocument calls write with a writer of documents and returns the document that write wrote.
// The caller must give the buffer back with Release and must not use the document after that.
//
// Errors are that of write, and ErrNotOneDocument.
func WriteDocument(write func(bson.ValueWriter) error) (*DocumentBuffer, []byte, error) {
	b := documentBuffers.Get().(*DocumentBuffer)
	b.buf.Reset()
	if err := write(b.vw); err != nil {
		return nil, nil, err // the writer may be in the middle of a document
	}
	doc := b.buf.Bytes()
	if len(doc) < 5 || uint64(binary.LittleEndian.Uint32(doc)) != uint64(len(doc)) {
		return nil, nil, ErrNotOneDocument
	}
	if !b.atTop() {
		return nil, nil, ErrNotOneDocument
	}
	return b, b.buf.Bytes()[:len(doc)], nil
}

// atTop reports whether the writer is between two documents: whether it writes an empty one at
// once.
func (b *DocumentBuffer) atTop() bool {
	n := b.buf.Len()
	dw, err := b.vw.WriteDocument()
	if err != nil {
		return false
	}
	return dw.WriteDocumentEnd() == nil && bytes.Equal(b.buf.Bytes()[n:], emptyDocument)
}

// Release gives the buffer back.
func (b *DocumentBuffer) Release() {
	if b.buf.Cap() <= maxPooled {
		documentBuffers.Put(b)
	}
}
