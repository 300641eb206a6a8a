package autoid

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
)

// The driver does not tell the registry and the BSON options of a collection. A Collection learns
// them by inserting a document that cannot be encoded, or whose _id cannot be decoded, and that is
// therefore never sent.

// encodeProbe fails to encode and keeps the EncodeContext.
type encodeProbe struct {
	ec    bson.EncodeContext
	known bool
}

// cancelled keeps a probe from being sent if a codec of the caller's encodes it.
var cancelled = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

var errProbed = errors.New("autoid: a probe is not a document")

// MarshalBSONValue is called by a registry without Register.
func (*encodeProbe) MarshalBSONValue() (byte, []byte, error) { return 0, nil, ErrNotRegistered }

func encodeEncodeProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	if p, ok := val.Interface().(*encodeProbe); ok && p != nil {
		p.ec, p.known = ec, true
	}
	return errProbed
}

// decodeProbe is a document whose _id fails to decode with an error that holds the DecodeContext.
// The driver decodes the _id of a document before it sends an insert.
type decodeProbe struct{}

// MarshalBSON returns a document whose _id is code with a scope, which hardly anything else is.
func (decodeProbe) MarshalBSON() ([]byte, error) {
	return bson.Marshal(bson.D{{Key: "_id", Value: bson.CodeWithScope{Code: probeCode(), Scope: bson.D{}}}})
}

// probeCode is a code that no data has.
var probeCode = sync.OnceValue(func() bson.JavaScript { return bson.JavaScript("autoid probe " + rand.Text()) })

type decodeProbed struct{ dc bson.DecodeContext }

func (*decodeProbed) Error() string { return errProbed.Error() }

// codeDecoder is the registry's decoder of CodeWithScope, except for the _id of a decodeProbe.
type codeDecoder struct{ bson.ValueDecoder }

func (d *codeDecoder) DecodeValue(dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if err := d.ValueDecoder.DecodeValue(dc, vr, val); err != nil {
		return err
	}
	if code, ok := val.Interface().(bson.CodeWithScope); ok && code.Code == probeCode() {
		return &decodeProbed{dc}
	}
	return nil
}

func registerProbes(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[*encodeProbe](), bson.ValueEncoderFunc(encodeEncodeProbe))
	code := reflect.TypeFor[bson.CodeWithScope]()
	if dec, err := reg.LookupDecoder(code); err == nil {
		if _, ours := dec.(*codeDecoder); !ours {
			reg.RegisterTypeDecoder(code, &codeDecoder{dec})
		}
	}
}

// contexts are the contexts in which the driver encodes and decodes the documents of a collection. Each of the two
// is probed when it is first needed, and never again once it is known.
type contexts struct {
	coll    *mongo.Collection
	probing sync.Mutex
	encode  atomic.Pointer[encoding]
	decode  func() bson.DecodeContext // without a registry if the context cannot be known
	oids    atomic.Pointer[bool]      // whether the ids of the source are ObjectIDs; nil until an upsert asks
}

// encoding is the context that the documents of a collection are encoded with, and how the tags of
// structs are read with it.
type encoding struct {
	ec      bson.EncodeContext
	reading reading
}

// plan returns the plan for documents of type t.
func (e *encoding) plan(t reflect.Type) (*plan, error) {
	enc, err := e.ec.LookupEncoder(reflect.TypeFor[*document]())
	codec, ok := enc.(*documentCodec)
	if !ok {
		return nil, cmp.Or(err, ErrNotRegistered)
	}
	return codec.plan(e.ec, t)
}

func newContexts(coll *mongo.Collection) *contexts {
	c := &contexts{coll: coll}
	c.decode = sync.OnceValue(c.probeDecode)
	return c
}

// encoding returns what the driver encodes the documents of the collection with.
func (c *contexts) encoding() (*encoding, error) {
	if e := c.encode.Load(); e != nil {
		return e, nil
	}
	c.probing.Lock()
	defer c.probing.Unlock()
	if e := c.encode.Load(); e != nil {
		return e, nil
	}
	var p encodeProbe
	_, err := c.coll.InsertOne(cancelled, &p)
	switch {
	case p.known:
	case errors.Is(err, ErrNotRegistered):
		return nil, ErrNotRegistered
	default:
		return nil, fmt.Errorf("autoid: %w", err)
	}
	e := &encoding{ec: p.ec, reading: readingOf(p.ec)}
	c.encode.Store(e)
	return e, nil
}

// probeDecode returns what the driver decodes an InsertedID of the collection with.
func (c *contexts) probeDecode() bson.DecodeContext {
	e, err := c.encoding()
	if err != nil {
		return bson.DecodeContext{}
	}
	// A codec of the caller's can keep the probe from failing, and then it must not get as far as
	// the driver.
	var probed *decodeProbed
	probe, _ := decodeProbe{}.MarshalBSON()
	if _, err := decodeID(bson.DecodeContext{Registry: e.ec.Registry}, probe); !errors.As(err, &probed) {
		return bson.DecodeContext{}
	}
	if _, err := c.coll.InsertOne(cancelled, decodeProbe{}); !errors.As(err, &probed) {
		return bson.DecodeContext{}
	}
	return probed.dc
}

// decodeID decodes the _id of doc as the driver decodes an InsertedID.
func decodeID(dc bson.DecodeContext, doc []byte) (any, error) {
	var result struct {
		ID any `bson:"_id"`
	}
	v := reflect.ValueOf(&result).Elem()
	dec, _ := dc.LookupDecoder(v.Type()) // a struct has one
	err := dec.DecodeValue(dc, bson.NewDocumentReader(bytes.NewReader(doc)), v)
	return result.ID, err
}

// errOwnFilters is the error of every method of a Collection that would lose filters.
var errOwnFilters = errors.New("autoid: this is the collection of a mixedrep.Collection, and filters would match one representation only: " +
	"use the methods of the mixedrep.Collection, and insert documents of autoid.Document")

// refusing returns a clone of coll that cannot encode a filter or a document.
func refusing(coll *mongo.Collection) *mongo.Collection {
	refuse := bson.ValueEncoderFunc(func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return errOwnFilters })
	reg := bson.NewRegistry()
	for _, t := range []reflect.Type{reflect.TypeFor[bson.D](), reflect.TypeFor[bson.Raw](), reflect.TypeFor[encodedDocument]()} {
		reg.RegisterTypeEncoder(t, refuse)
	}
	for _, kind := range []reflect.Kind{reflect.Struct, reflect.Map, reflect.Slice, reflect.Array} {
		reg.RegisterKindEncoder(kind, refuse)
	}
	return coll.Clone(options.Collection().SetRegistry(reg))
}
