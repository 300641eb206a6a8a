package autoid

import (
	"bytes"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// documentCodec is the ValueEncoder of document for one registry.
type documentCodec struct {
	plans sync.Map             // reflect.Type of a document to *plan
	last  atomic.Pointer[plan] // the one used last, as most inserts repeat a type
}

// A plan is how the documents of one type are encoded.
type plan struct {
	of       reflect.Type
	pointers int               // how many there are before the type that enc encodes
	enc      bson.ValueEncoder // nil for a type that comes as bytes
	place    func(reflect.Value) placement
	oid      bool // the registry encodes an ObjectID as the driver does
}

// EncodeValue takes the way of the driver's Encoder for a whole document, and streams through the driver's codec
// wherever it can know in time whether an _id comes.
func (c *documentCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	d, ok := val.Interface().(*document)
	if !ok || d == nil {
		return bson.ValueEncoderError{
			Name: "autoid.Document", Types: []reflect.Type{reflect.TypeFor[*document]()}, Received: val,
		}
	}
	if inner, ok := d.doc.(*document); ok { // a Document given to a Collection
		err := c.EncodeValue(ec, vw, reflect.ValueOf(inner))
		var failed *IDError
		if errors.As(err, &failed) {
			return d.idError(failed.Err)
		}
		return err
	}
	p, err := c.plan(ec, reflect.TypeOf(d.doc))
	if err != nil {
		return err
	}
	if p.enc == nil {
		b, ok := d.doc.([]byte)
		if !ok {
			if b, err = d.doc.(bson.Marshaler).MarshalBSON(); err != nil {
				return err
			}
		}
		return p.encodeBytes(ec, vw, d, b)
	}
	rv := reflect.ValueOf(d.doc)
	for range p.pointers {
		if rv.IsNil() {
			return vw.WriteNull() // which is an error where a whole document is due
		}
		rv = rv.Elem()
	}
	switch where := p.place(rv); where {
	case somewhere:
		return p.enc.EncodeValue(ec, vw, rv)
	case anywhere:
		return p.encodeBuffered(ec, vw, d, rv)
	default:
		return p.encodeWithID(ec, vw, d, where, p.enc, rv)
	}
}

// maxPointers is how many pointers are followed to a document's type. A type can be a pointer to itself.
const maxPointers = 8

// plan finds how to encode documents of type t. Like the driver's codecs it keeps what it found, so codecs must be
// registered before the registry is used.
func (c *documentCodec) plan(ec bson.EncodeContext, t reflect.Type) (*plan, error) {
	if p := c.last.Load(); p != nil && p.of == t {
		return p, nil
	}
	if p, ok := c.plans.Load(t); ok {
		p := p.(*plan)
		c.last.Store(p)
		return p, nil
	}
	oid, err := ec.LookupEncoder(reflect.TypeFor[bson.ObjectID]())
	if err != nil {
		return nil, err
	}
	p := &plan{of: t, oid: sameFunc(oid, oidCodec)}
	if t != reflect.TypeFor[[]byte]() && !t.Implements(reflect.TypeFor[bson.Marshaler]()) {
		to := t
		enc, err := ec.LookupEncoder(to)
		for err == nil && reflect.TypeOf(enc) == pointerCodec && p.pointers < maxPointers {
			p.pointers++
			to = to.Elem()
			enc, err = ec.LookupEncoder(to)
		}
		if err != nil {
			return nil, err
		}
		p.enc, p.place = enc, placer(enc, to)
	}
	kept, _ := c.plans.LoadOrStore(t, p)
	return kept.(*plan), nil
}

// The driver's codecs for documents, known by their types: what keys they write is known from the value. Codecs of
// another type may do anything.
var (
	driverRegistry = bson.NewRegistry()
	pointerCodec   = codecType[*struct{}]()
	structCodec    = codecType[struct{}]()
	mapCodec       = codecType[map[string]any]()
	sliceCodec     = codecType[[]any]()
	rawCodec       = codecOf[bson.Raw]()
	oidCodec       = codecOf[bson.ObjectID]()
)

func codecOf[T any]() bson.ValueEncoder {
	enc, err := driverRegistry.LookupEncoder(reflect.TypeFor[T]())
	if err != nil {
		panic(err) // a driver that does not encode its own documents
	}
	return enc
}

// sameFunc tells whether a codec that may be a function is that one of the driver's.
func sameFunc(enc, driver bson.ValueEncoder) bool {
	return reflect.TypeOf(enc) == reflect.TypeOf(driver) &&
		reflect.ValueOf(enc).Pointer() == reflect.ValueOf(driver).Pointer()
}

func codecType[T any]() reflect.Type { return reflect.TypeOf(codecOf[T]()) }

// placer returns what tells, from a value of type t alone, where enc writes its _id.
func placer(enc bson.ValueEncoder, t reflect.Type) func(reflect.Value) placement {
	switch typ := reflect.TypeOf(enc); {
	case typ == structCodec:
		return idFieldOf(t).place
	case typ == mapCodec && t.Key().Kind() == reflect.String && t.Key().NumMethod() == 0:
		// A key type with methods could turn any key into "_id".
		key := reflect.ValueOf("_id").Convert(t.Key())
		return func(v reflect.Value) placement { return given(v.MapIndex(key).IsValid()) }
	case typ == sliceCodec && t == reflect.TypeFor[bson.D]():
		return func(v reflect.Value) placement {
			d := v.Interface().(bson.D)
			for i := range d {
				if d[i].Key == "_id" {
					return somewhere
				}
			}
			return nowhere
		}
	case t == reflect.TypeFor[bson.Raw]() && sameFunc(enc, rawCodec):
		return func(v reflect.Value) placement { return given(hasID(v.Interface().(bson.Raw))) }
	default:
		return func(reflect.Value) placement { return anywhere }
	}
}

func given(id bool) placement {
	if id {
		return somewhere
	}
	return nowhere
}

func hasID(raw bson.Raw) bool {
	if !bytes.Contains(raw, []byte("_id\x00")) {
		return false
	}
	_, err := raw.LookupErr("_id")
	return err == nil
}

// encodeWithID streams a document through its codec, with an idWriter that puts the _id in front.
func (p *plan) encodeWithID(
	ec bson.EncodeContext, vw bson.ValueWriter, d *document, where placement, enc bson.ValueEncoder, rv reflect.Value,
) error {
	w := idWriters.Get().(*idWriter)
	*w = idWriter{ValueWriter: vw, ec: ec, d: d, where: where, oid: p.oid}
	err := enc.EncodeValue(ec, w, rv)
	*w = idWriter{}
	idWriters.Put(w)
	return err
}

// encodeBytes writes a document that is encoded already.
func (p *plan) encodeBytes(ec bson.EncodeContext, vw bson.ValueWriter, d *document, b []byte) error {
	rv := reflect.ValueOf(bson.Raw(b))
	if hasID(b) {
		return rawCodec.EncodeValue(ec, vw, rv)
	}
	return p.encodeWithID(ec, vw, d, nowhere, rawCodec, rv)
}

// A buffer is a writer of whole documents and what it wrote. The driver's writer can be used again after a document
// that was finished.
type buffer struct {
	bytes.Buffer
	vw bson.ValueWriter
}

var buffers = sync.Pool{New: func() any {
	b := new(buffer)
	b.vw = bson.NewDocumentWriter(b)
	return b
}}

// maxPooledBuffer keeps a rare large document from staying in memory.
const maxPooledBuffer = 64 << 10

// encodeBuffered writes a document whose _id may come after other elements, by encoding it aside first.
func (p *plan) encodeBuffered(ec bson.EncodeContext, vw bson.ValueWriter, d *document, rv reflect.Value) error {
	b := buffers.Get().(*buffer)
	b.Reset()
	if err := p.enc.EncodeValue(ec, b.vw, rv); err != nil {
		return err // and the writer stands in the middle of a document
	}
	// An error can mean that the codec did not finish its document, and so the writer stands in the middle of one, too.
	err := p.encodeBytes(ec, vw, d, b.Bytes())
	if err == nil && b.Cap() <= maxPooledBuffer {
		buffers.Put(b)
	}
	return err
}
