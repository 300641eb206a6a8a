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
	fittingKey
	err    error // nil if they can
	option bool  // they can for clients with some option
	first  bson.RawValue
}

type fittingKey struct {
	id    reflect.Type
	place idPlaceType
}

// idPlaceType is the type of the field or of the element of a document that is the _id.
type idPlaceType struct {
	t        reflect.Type // nil if any id fits
	truncate bool         // the field has the tag truncate
}

// placeType returns the type of the _id of documents of type document if that is of type t. Any id fits an interface,
// and if it is not known how document is read.
func placeType(reg *bson.Registry, document, t reflect.Type, truncate bool) idPlaceType {
	p := reflect.PointerTo(document)
	switch {
	case t.Kind() == reflect.Interface,
		p.Implements(reflect.TypeFor[bson.Unmarshaler]()), p.Implements(reflect.TypeFor[bson.ValueUnmarshaler]()),
		document.Kind() == reflect.Struct && !driver.HasOwnDecoder(reg, document):
		return idPlaceType{}
	}
	return idPlaceType{t, truncate}
}

// fits returns an error if what the registry writes for id cannot be read into the place for it in
// the documents of p, or if it writes nothing for it.
func (p *plan) fits(ec bson.EncodeContext, d *document, id any) error {
	if p.idType.t == nil || d.misfits {
		return nil
	}
	of := reflect.TypeOf(id)
	f := p.lastFitting.Load()
	if f == nil || f.id != of {
		key := fittingKey{of, p.idType}
		kept, ok := p.fittings.Load(key)
		if !ok {
			f, err := newFitting(ec, id, key)
			if f == nil {
				return err
			}
			kept, _ = p.fittings.LoadOrStore(key, f)
		}
		f = kept.(*fitting)
		p.lastFitting.Store(f)
	}
	if f.err == nil || f.option && (d.contexts == nil || d.contexts.read(f)) {
		return nil
	}
	return f.err
}

// newFitting returns nil if id is encoded as null.
func newFitting(ec bson.EncodeContext, id any, key fittingKey) (*fitting, error) {
	raw, err := encodeValue(ec, id)
	if err != nil || formOfRaw(raw) == nullForm {
		return nil, err
	}
	f := &fitting{fittingKey: key, first: raw}
	if err := f.read(bson.DecodeContext{Registry: ec.Registry}); err != nil {
		remedy := " (WithMisfitIDs inserts it)"
		if isUUIDKind(f.place.t) {
			remedy = ""
			if t := marshalsItself(ec.Registry, f.place.t, f.id); t != nil {
				remedy = fmt.Sprintf(" (register %v with RegisterUUIDType of the registry's builder)", t)
			}
		}
		f.err = fmt.Errorf("autoid: an id of type %v does not fit into %v, which cannot read the %s that the registry writes for it%s: %w",
			f.id, f.place.t, describe(raw), remedy, err)
		dc := lenientContext()
		dc.Registry = ec.Registry
		f.option = f.read(dc) == nil
	}
	return f, nil
}

// isUUIDKind reports whether t is an array of 16 octets, which a registry can take for a UUID, or leads to one by pointers.
func isUUIDKind(t reflect.Type) bool {
	t = behindPointers(t)
	return t.Kind() == reflect.Array && t.Len() == 16 && t.Elem().Kind() == reflect.Uint8
}

func behindPointers(t reflect.Type) reflect.Type {
	for range maxPointers {
		if t.Kind() != reflect.Pointer {
			break
		}
		t = t.Elem()
	}
	return t
}

// selfMarshaler is a type that has a method for decoding, and that no registry has a codec for.
type selfMarshaler struct{}

func (*selfMarshaler) UnmarshalBSONValue(byte, []byte) error { return nil }

// marshalsItself returns the first of types that is of the kind of a UUID and for which reg calls the methods that the type has, such
// as an ID of package uuidrep that is not registered, or nil.
func marshalsItself(reg *bson.Registry, types ...reflect.Type) reflect.Type {
	methods, err := reg.LookupDecoder(reflect.TypeFor[selfMarshaler]())
	for _, t := range types {
		t = behindPointers(t)
		if dec, failed := reg.LookupDecoder(t); isUUIDKind(t) && err == nil && failed == nil && reflect.TypeOf(dec) == reflect.TypeOf(methods) &&
			reflect.PointerTo(t).Implements(reflect.TypeFor[bson.ValueUnmarshaler]()) {
			return t
		}
	}
	return nil
}

// read reads the first id into a new place.
func (f *fitting) read(dc bson.DecodeContext) error {
	if !f.place.truncate {
		return f.first.UnmarshalWithContext(&dc, reflect.New(f.place.t).Interface())
	}
	document := reflect.StructOf([]reflect.StructField{{Name: "ID", Type: f.place.t, Tag: `bson:"_id,truncate"`}})
	raw := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: idDocument(f.first, nil)}
	return raw.UnmarshalWithContext(&dc, reflect.New(document).Interface())
}

func describe(raw bson.RawValue) string {
	if subtype, _, ok := raw.BinaryOK(); ok {
		return fmt.Sprintf("%v of subtype %d", raw.Type, subtype)
	}
	return raw.Type.String()
}

// lenientContext returns the context of a decoder with the options by which more ids fit, without a registry. A
// context keeps its options to itself, so a decoder is asked for it.
var lenientContext = sync.OnceValue(func() (context bson.DecodeContext) {
	type probe struct{}
	reg := bson.NewRegistry()
	reg.RegisterTypeDecoder(reflect.TypeFor[probe](), bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, _ bson.ValueReader, _ reflect.Value) error {
			context = dc
			return nil
		}))
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(nil)))
	dec.SetRegistry(reg)
	dec.ObjectIDAsHexString()
	dec.AllowTruncatingDoubles()
	_ = dec.Decode(new(probe))
	return context
})

// read reports whether the collection's client reads the first id of f, or cannot be asked.
func (c *contexts) read(f *fitting) bool {
	dc := c.decode()
	return dc.Registry == nil || f.read(dc) == nil
}
