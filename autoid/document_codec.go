package autoid

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// documentCodec is the ValueEncoder of document for one registry.
type documentCodec struct {
	fittings sync.Map // fittingKey to *fitting

	adding  sync.Mutex // held when a client is added
	clients atomic.Pointer[[]*clientPlans]
}

// clientPlans are the plans for the clients that encode with one context. A registry serves few.
type clientPlans struct {
	ec    bson.EncodeContext
	plans sync.Map             // reflect.Type of a document to *plan
	last  atomic.Pointer[plan] // the one used last, because most inserts repeat a type
}

// A plan says how the documents of one type are encoded for one client.
type plan struct {
	of        reflect.Type
	pointers  int               // the number of pointers before the type that enc encodes
	enc       bson.ValueEncoder // nil for a type that encodes itself
	place     placeFunc
	field     *idField // of a struct; nil if it is not one
	omitEmpty bool     // the field that is the _id has omitempty
	oid       bool     // the registry encodes an ObjectID as the driver does

	idType      idPlaceType
	fittings    *sync.Map // of the documentCodec
	lastFitting atomic.Pointer[fitting]
}

// A placeFunc tells, from a document alone, where its _id is, and returns the _id if it is known and there.
type placeFunc func(v reflect.Value, zeroIsMissing bool) (placement, reflect.Value)

// EncodeValue encodes a document as the driver's Encoder does. It streams through the driver's
// codec if it can know in time whether an _id comes.
func (c *documentCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	d, ok := val.Interface().(*document)
	if !ok || d == nil {
		return bson.ValueEncoderError{
			Name: "autoid.Document", Types: []reflect.Type{reflect.TypeFor[*document]()}, Received: val,
		}
	}
	if doc, ok := d.doc.(encodedDocument); ok { // of a bulk write, which encodes all documents before it sends the first
		return structcodec.WriteDocument(ec, vw, bson.Raw(doc))
	}
	if inner, ok := d.doc.(*document); ok { // a Document given to a Collection
		err := c.EncodeValue(ec, vw, reflect.ValueOf(inner))
		var failed *IDError
		if errors.As(err, &failed) {
			return d.idError(failed.Err)
		}
		return err
	}
	if d.err != nil {
		return d.idError(d.err)
	}
	p, err := c.plan(ec, reflect.TypeOf(d.doc))
	if err != nil {
		return err
	}
	if p.enc == nil {
		b, ok := d.doc.([]byte)
		if !ok {
			if b, err = built.MarshalDocument(ec, d.doc.(bson.Marshaler)); err != nil {
				return err
			}
		}
		return p.encodeBytes(ec, vw, d, b, nil)
	}
	rv := reflect.ValueOf(d.doc)
	for range p.pointers {
		if rv.IsNil() {
			return vw.WriteNull() // an error of a writer of whole documents
		}
		rv = rv.Elem()
	}
	where, id := p.place(rv, d.zeroIsMissing)
	if id.IsValid() && where != replaced && where != nowhere {
		form, err := formOf(ec, id)
		switch {
		case err != nil:
			return err
		case form.isZero() && (p.omitEmpty || d.zeroIsMissing):
			where = replaced
		case where == somewhere && form.refused(d):
			return d.idError(form.ofDocument())
		}
	}
	switch where {
	case somewhere:
		return p.enc.EncodeValue(ec, vw, rv)
	case anywhere:
		return p.encodeBuffered(ec, vw, d, rv)
	default:
		return p.encodeWithID(ec, vw, d, where, p.enc, rv)
	}
}

// maxPointers is how many pointers are followed to a document's type. A type can be a pointer to
// itself.
const maxPointers = 8

// plan returns the plan for documents of type t. It keeps plans, as the driver's codecs do, so
// codecs must be registered before the registry is used.
func (c *documentCodec) plan(ec bson.EncodeContext, t reflect.Type) (*plan, error) {
	client := c.client(ec)
	if p := client.last.Load(); p != nil && p.of == t {
		return p, nil
	}
	if p, ok := client.plans.Load(t); ok {
		p := p.(*plan)
		client.last.Store(p)
		return p, nil
	}
	p, err := c.newPlan(ec, t)
	if err != nil {
		return nil, err
	}
	kept, _ := client.plans.LoadOrStore(t, p)
	return kept.(*plan), nil
}

// client returns the plans for the clients that encode with ec.
func (c *documentCodec) client(ec bson.EncodeContext) *clientPlans {
	find := func() *clientPlans {
		if kept := c.clients.Load(); kept != nil {
			for _, client := range *kept {
				if client.ec == ec {
					return client
				}
			}
		}
		return nil
	}
	if client := find(); client != nil {
		return client
	}
	c.adding.Lock()
	defer c.adding.Unlock()
	var extended []*clientPlans
	if kept := c.clients.Load(); kept != nil {
		extended = slices.Clip(*kept)
	}
	client := &clientPlans{ec: ec}
	extended = append(extended, client)
	c.clients.Store(&extended)
	return client
}

func (c *documentCodec) newPlan(ec bson.EncodeContext, t reflect.Type) (*plan, error) {
	oid, _ := ec.LookupEncoder(reflect.TypeFor[bson.ObjectID]())
	p := &plan{of: t, oid: sameFunc(oid, oidCodec), fittings: &c.fittings}
	if t == reflect.TypeFor[[]byte]() || t.Implements(reflect.TypeFor[bson.Marshaler]()) {
		return p, nil
	}
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
	p.enc = enc
	behind := driver.EncoderBehind(ec.Registry, enc, to)
	if !driver.IsStructEncoder(behind) {
		p.place = placer(behind, to)
		if to.Kind() == reflect.Map {
			p.idType = placeType(ec.Registry, to, to.Elem(), false)
		}
		return p, nil
	}
	r := readingOf(ec)
	f := idFieldOf(to, r)
	if f.Index != nil {
		p.idType = placeType(ec.Registry, to, f.Type, f.Truncate)
	}
	if _, ok := behind.(driver.StructEncoder); !ok {
		f = idFieldOfEither(to, r)
	}
	p.field, p.place, p.omitEmpty = f, f.place, f.OmitEmpty
	return p, nil
}

// The driver's codecs for documents are known by their types, and the keys that they write are
// known from the value. Codecs of another type can write anything.
var (
	pointerCodec   = reflect.TypeOf(driver.Encoder(reflect.TypeFor[*struct{}]()))
	interfaceCodec = reflect.TypeOf(driver.Encoder(reflect.TypeFor[any]()))
	sliceCodec     = reflect.TypeOf(driver.Encoder(reflect.TypeFor[[]any]()))
	rawCodec       = driver.Encoder(reflect.TypeFor[bson.Raw]())
	rawValueCodec  = driver.Encoder(reflect.TypeFor[bson.RawValue]())
	dCodec         = driver.Encoder(reflect.TypeFor[bson.D]())
	oidCodec       = driver.Encoder(reflect.TypeFor[bson.ObjectID]())
)

// sameFunc reports whether enc, which can be a function, is of.
func sameFunc(enc, of bson.ValueEncoder) bool {
	return reflect.TypeOf(enc) == reflect.TypeOf(of) &&
		reflect.ValueOf(enc).Pointer() == reflect.ValueOf(of).Pointer()
}

// placer returns the placeFunc of values of type t, which are not structs, that enc encodes.
func placer(enc bson.ValueEncoder, t reflect.Type) placeFunc {
	switch typ := reflect.TypeOf(enc); {
	case driver.IsMapEncoder(enc) && hasPlainKeys(t):
		key := reflect.ValueOf("_id").Convert(t.Key())
		return func(v reflect.Value, zeroIsMissing bool) (placement, reflect.Value) {
			id := v.MapIndex(key)
			return given(id.IsValid(), zeroIsMissing && id.IsValid() && isZero(id)), id
		}
	case typ == sliceCodec && t == reflect.TypeFor[bson.D]():
		return func(v reflect.Value, zeroIsMissing bool) (placement, reflect.Value) {
			d := v.Interface().(bson.D)
			for i := range d {
				if d[i].Key == "_id" {
					id := reflect.ValueOf(&d[i].Value).Elem()
					return given(true, zeroIsMissing && isZero(id)), id
				}
			}
			return nowhere, reflect.Value{}
		}
	case t == reflect.TypeFor[bson.Raw]() && sameFunc(enc, rawCodec):
		return func(v reflect.Value, zeroIsMissing bool) (placement, reflect.Value) {
			where, id := rawPlacement(v.Interface().(bson.Raw), zeroIsMissing)
			if where != somewhere {
				return where, reflect.Value{}
			}
			return where, reflect.ValueOf(id)
		}
	default:
		return func(reflect.Value, bool) (placement, reflect.Value) { return anywhere, reflect.Value{} }
	}
}

// hasPlainKeys reports whether the keys of the map type t are encoded as they are. A key type with
// methods could turn any key into "_id".
func hasPlainKeys(t reflect.Type) bool {
	return t.Key().Kind() == reflect.String && t.Key().NumMethod() == 0
}

func given(id, zero bool) placement {
	switch {
	case zero:
		return replaced
	case id:
		return somewhere
	default:
		return nowhere
	}
}

// rawPlacement tells where raw has its _id, and returns it.
func rawPlacement(raw bson.Raw, zeroIsMissing bool) (placement, bson.RawValue) {
	if !bytes.Contains(raw, []byte("_id\x00")) {
		return nowhere, bson.RawValue{}
	}
	id, err := raw.LookupErr("_id")
	if err != nil {
		return nowhere, id
	}
	return given(true, zeroIsMissing && isZeroRaw(id)), id
}

// isZeroRaw reports whether an encoded _id is zero, see WithZeroIDAsMissing.
func isZeroRaw(id bson.RawValue) bool {
	switch id.Type {
	case bson.TypeNull, bson.TypeUndefined:
		return true
	case bson.TypeString:
		s, ok := id.StringValueOK()
		return ok && s == ""
	case bson.TypeBinary:
		_, data, ok := id.BinaryOK()
		return ok && allZero(data)
	case bson.TypeObjectID, bson.TypeBoolean, bson.TypeInt32, bson.TypeInt64, bson.TypeDouble:
		return allZero(id.Value)
	default:
		return false
	}
}

func allZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// encodeWithID encodes a document through an idWriter, which puts the _id in front.
func (p *plan) encodeWithID(
	ec bson.EncodeContext, vw bson.ValueWriter, d *document, where placement, enc bson.ValueEncoder, rv reflect.Value,
) error {
	w := idWriters.Get().(*idWriter)
	*w = idWriter{ValueWriter: vw, ec: ec, d: d, where: where, p: p}
	err := enc.EncodeValue(ec, w, rv)
	if w.value.err != nil && !w.value.drawn {
		err = w.value.err
	}
	*w = idWriter{}
	idWriters.Put(w)
	return err
}

// encodeBytes writes a document that is encoded already. An _id that is encoded as one of zero counts as missing.
func (p *plan) encodeBytes(ec bson.EncodeContext, vw bson.ValueWriter, d *document, b []byte, zero []reflect.Value) error {
	rv := reflect.ValueOf(bson.Raw(b))
	where, id := rawPlacement(b, d.zeroIsMissing)
	if where == somewhere {
		switch form := formOfRaw(id); {
		case form.isZero() && p.omitEmpty, isEncoded(ec, id, zero):
			where = replaced
		case form.refused(d):
			return d.idError(form.ofDocument())
		default:
			return rawCodec.EncodeValue(ec, vw, rv)
		}
	}
	return p.encodeWithID(ec, vw, d, where, rawCodec, rv)
}

// encodeBuffered writes a document whose _id may come after other elements. It encodes the document
// aside first.
func (p *plan) encodeBuffered(ec bson.EncodeContext, vw bson.ValueWriter, d *document, rv reflect.Value) error {
	b, doc, err := driver.WriteDocument(func(aside bson.ValueWriter) error {
		return p.enc.EncodeValue(ec, aside, rv)
	})
	if errors.Is(err, driver.ErrNotOneDocument) {
		return fmt.Errorf("autoid: cannot encode a document of type %v: %w", rv.Type(), err)
	}
	if err != nil {
		return err
	}
	defer b.Release()
	var zero []reflect.Value
	if p.field != nil {
		zero = p.field.zeroFields(rv, d.zeroIsMissing)
	}
	return p.encodeBytes(ec, vw, d, doc, zero)
}

// isEncoded reports whether the registry of ec writes id for one of values.
func isEncoded(ec bson.EncodeContext, id bson.RawValue, values []reflect.Value) bool {
	for _, v := range values {
		if raw, err := encodeValue(ec, v.Interface()); err == nil && raw.Equal(id) {
			return true
		}
	}
	return false
}
