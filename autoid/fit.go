package autoid

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// A fitting says whether the ids of one Go type, as a registry encodes them, can be read into
// places of another type. It is decided by the first id of the type.
type fitting struct {
	id  reflect.Type
	err error // nil if it can
	hex bool  // it can for clients with ObjectIDAsHexString
}

type fittingKey struct{ id, place reflect.Type }

// placeType returns t, the type of the field or of the element of document that is the _id, or nil if
// it takes all ids or it is not known how document is read.
func placeType(reg *bson.Registry, document, t reflect.Type) reflect.Type {
	p := reflect.PointerTo(document)
	switch {
	case t.Kind() == reflect.Interface,
		p.Implements(reflect.TypeFor[bson.Unmarshaler]()), p.Implements(reflect.TypeFor[bson.ValueUnmarshaler]()),
		document.Kind() == reflect.Struct && !driver.HasOwnDecoder(reg, document):
		return nil
	}
	return t
}

// fits returns an error if what the registry writes for id cannot be read into the place for it in
// the documents of p.
func (p *plan) fits(ec bson.EncodeContext, d *document, id any) error {
	if p.idType == nil || d.misfits {
		return nil
	}
	of := reflect.TypeOf(id)
	f := p.lastFitting.Load()
	if f == nil || f.id != of {
		key := fittingKey{of, p.idType}
		kept, ok := p.fittings.Load(key)
		if !ok {
			f := newFitting(ec, id, p.idType)
			if f == nil {
				return nil // the encoding of the id reports its error
			}
			kept, _ = p.fittings.LoadOrStore(key, f)
		}
		f = kept.(*fitting)
		p.lastFitting.Store(f)
	}
	if f.err == nil || f.hex && (d.contexts == nil || d.contexts.hexStrings()) {
		return nil
	}
	return f.err
}

// newFitting returns nil if id cannot be encoded or is encoded as null.
func newFitting(ec bson.EncodeContext, id any, place reflect.Type) *fitting {
	raw, err := encodeValue(ec, id)
	if err != nil || formOfRaw(raw) == nullForm {
		return nil
	}
	f := &fitting{id: reflect.TypeOf(id)}
	dc := bson.DecodeContext{Registry: ec.Registry}
	if err := raw.UnmarshalWithContext(&dc, reflect.New(place).Interface()); err != nil {
		f.err = fmt.Errorf("autoid: an id of type %v does not fit into %v, which cannot read the %s that the registry writes for it "+
			"(AllowMisfitIDs inserts it): %w", f.id, place, describe(raw), err)
		dc = hexStringContext()
		dc.Registry = ec.Registry
		f.hex = raw.UnmarshalWithContext(&dc, reflect.New(place).Interface()) == nil
	}
	return f
}

func describe(raw bson.RawValue) string {
	if subtype, _, ok := raw.BinaryOK(); ok {
		return fmt.Sprintf("%v of subtype %d", raw.Type, subtype)
	}
	return raw.Type.String()
}

// hexStringContext returns the context of a decoder with ObjectIDAsHexString, without a registry. A
// context keeps its options to itself, so a decoder is asked for it.
var hexStringContext = sync.OnceValue(func() (context bson.DecodeContext) {
	type probe struct{}
	reg := bson.NewRegistry()
	reg.RegisterTypeDecoder(reflect.TypeFor[probe](), bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, _ bson.ValueReader, _ reflect.Value) error {
			context = dc
			return nil
		}))
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader([]byte{5, 0, 0, 0, 0})))
	dec.SetRegistry(reg)
	dec.ObjectIDAsHexString()
	_ = dec.Decode(new(probe))
	return context
})

// hexStrings reports whether the collection's client has ObjectIDAsHexString, or cannot be asked.
func (c *contexts) hexStrings() bool {
	dc := c.decode()
	if dc.Registry == nil {
		return true
	}
	var s string
	oid := bson.RawValue{Type: bson.TypeObjectID, Value: make([]byte, 12)}
	return oid.UnmarshalWithContext(&dc, &s) == nil
}
