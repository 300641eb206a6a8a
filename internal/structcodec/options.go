package structcodec

import (
	"bytes"
	"io"
	"reflect"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// encodeOptions are the options in an [bson.EncodeContext], which has no exported fields for them.
type encodeOptions struct {
	jsonTags, noInlineDuplicates, minSize, nilMapAsEmpty, nilSliceAsEmpty, nilBytesAsEmpty bool
	omitZeroStruct, omitEmpty, stringKeys                                                  bool
}

// decodeOptions are the options in a [bson.DecodeContext].
type decodeOptions struct {
	truncate, binaryAsSlice, documentM, documentMap, hexObjectID, jsonTags, localTime, zeroMaps, zeroStructs bool
}

var encodeSetters = []struct {
	field func(*encodeOptions) *bool
	set   func(*bson.Encoder)
}{
	{func(o *encodeOptions) *bool { return &o.jsonTags }, (*bson.Encoder).UseJSONStructTags},
	{func(o *encodeOptions) *bool { return &o.noInlineDuplicates }, (*bson.Encoder).ErrorOnInlineDuplicates},
	{func(o *encodeOptions) *bool { return &o.minSize }, (*bson.Encoder).IntMinSize},
	{func(o *encodeOptions) *bool { return &o.nilMapAsEmpty }, (*bson.Encoder).NilMapAsEmpty},
	{func(o *encodeOptions) *bool { return &o.nilSliceAsEmpty }, (*bson.Encoder).NilSliceAsEmpty},
	{func(o *encodeOptions) *bool { return &o.nilBytesAsEmpty }, (*bson.Encoder).NilByteSliceAsEmpty},
	{func(o *encodeOptions) *bool { return &o.omitZeroStruct }, (*bson.Encoder).OmitZeroStruct},
	{func(o *encodeOptions) *bool { return &o.omitEmpty }, (*bson.Encoder).OmitEmpty},
	{func(o *encodeOptions) *bool { return &o.stringKeys }, (*bson.Encoder).StringifyMapKeysWithFmt},
}

var decodeSetters = []struct {
	field func(*decodeOptions) *bool
	set   func(*bson.Decoder)
}{
	{func(o *decodeOptions) *bool { return &o.truncate }, (*bson.Decoder).AllowTruncatingDoubles},
	{func(o *decodeOptions) *bool { return &o.binaryAsSlice }, (*bson.Decoder).BinaryAsSlice},
	{func(o *decodeOptions) *bool { return &o.documentM }, (*bson.Decoder).DefaultDocumentM},
	{func(o *decodeOptions) *bool { return &o.documentMap }, (*bson.Decoder).DefaultDocumentMap},
	{func(o *decodeOptions) *bool { return &o.hexObjectID }, (*bson.Decoder).ObjectIDAsHexString},
	{func(o *decodeOptions) *bool { return &o.jsonTags }, (*bson.Decoder).UseJSONStructTags},
	{func(o *decodeOptions) *bool { return &o.localTime }, (*bson.Decoder).UseLocalTimeZone},
	{func(o *decodeOptions) *bool { return &o.zeroMaps }, (*bson.Decoder).ZeroMaps},
	{func(o *decodeOptions) *bool { return &o.zeroStructs }, (*bson.Decoder).ZeroStructs},
}

// contextProbe is a type whose codecs keep the context that they are called with.
type contextProbe struct {
	N int // not zero, so that it is not omitted
}

// A probing has a registry of the driver's, and the contexts with which a contextProbe was last encoded and decoded.
type probing struct {
	reg *bson.Registry
	ec  bson.EncodeContext
	dc  bson.DecodeContext
}

func newProbing() *probing {
	p := &probing{reg: bson.NewRegistry()}
	p.reg.RegisterTypeEncoder(reflect.TypeFor[contextProbe](), bson.ValueEncoderFunc(
		func(ec bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
			p.ec = ec
			return vw.WriteNull()
		}))
	p.reg.RegisterTypeDecoder(reflect.TypeFor[contextProbe](), bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
			p.dc = dc
			return vr.Skip()
		}))
	return p
}

// encodeContexts holds the options of every context that an Encoder of this version of the driver can have, without a
// registry.
var encodeContexts = sync.OnceValue(func() map[bson.EncodeContext]encodeOptions {
	all := map[bson.EncodeContext]encodeOptions{}
	p := newProbing()
	for set := range 1 << len(encodeSetters) {
		var o encodeOptions
		enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
		enc.SetRegistry(p.reg)
		for i, s := range encodeSetters {
			if set>>i&1 != 0 {
				*s.field(&o) = true
				s.set(enc)
			}
		}
		_ = enc.Encode(contextProbe{1}) // a null is no document
		ec := p.ec
		ec.Registry = nil
		all[ec] = o
	}
	return all
})

// decodeContexts holds the options of every context that a Decoder can have, without a registry.
var decodeContexts = sync.OnceValue(func() map[bson.DecodeContext]decodeOptions {
	all := map[bson.DecodeContext]decodeOptions{}
	p := newProbing()
	for set := range 1 << len(decodeSetters) {
		var o decodeOptions
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(nil)))
		dec.SetRegistry(p.reg)
		for i, s := range decodeSetters {
			if set>>i&1 != 0 {
				*s.field(&o) = true
				s.set(dec)
			}
		}
		if o.documentM && o.documentMap { // the same as documentMap alone
			continue
		}
		_ = dec.Decode(new(contextProbe)) // there is no document
		dc := p.dc
		dc.Registry = nil
		all[dc] = o
	}
	return all
})

// fieldEncodeContext returns the context in which the driver encodes a field of a struct that is encoded in ec. The
// driver does not pass every option on, and the tag minsize adds one.
func fieldEncodeContext(ec bson.EncodeContext, minSize bool) *bson.EncodeContext {
	var v any = struct{ F contextProbe }{contextProbe{1}}
	if minSize {
		v = struct {
			F contextProbe `bson:",minsize"`
		}{contextProbe{1}}
	}
	p, reg := newProbing(), ec.Registry
	ec.Registry = p.reg
	if enc, err := ec.LookupEncoder(reflect.TypeOf(v)); err == nil {
		_ = enc.EncodeValue(ec, bson.NewDocumentWriter(io.Discard), reflect.ValueOf(v))
	}
	p.ec.Registry = reg
	return &p.ec
}

// fieldDecodeContext returns the context in which the driver decodes a field of a struct that is decoded in dc. The tag
// truncate adds an option.
func fieldDecodeContext(dc bson.DecodeContext, truncate bool) *bson.DecodeContext {
	var v any = new(struct{ F contextProbe })
	if truncate {
		v = new(struct {
			F contextProbe `bson:",truncate"`
		})
	}
	p, reg := newProbing(), dc.Registry
	dc.Registry = p.reg
	target := reflect.ValueOf(v).Elem()
	if dec, err := dc.LookupDecoder(target.Type()); err == nil {
		vr := bson.NewDocumentReader(bytes.NewReader([]byte("\x08\x00\x00\x00\x0af\x00\x00")))
		_ = dec.DecodeValue(dc, vr, target)
	}
	p.dc.Registry = reg
	return &p.dc
}

// perContext keeps a value for each of a few contexts. It is safe for concurrent use.
type perContext[C comparable, V any] struct {
	adding sync.Mutex
	kept   atomic.Pointer[[]contextEntry[C, V]]
}

type contextEntry[C comparable, V any] struct {
	context C
	value   V
}

// get returns the value for c, which is what make returns on the first call.
func (m *perContext[C, V]) get(c C, make func() V) V {
	if v, ok := m.load(c); ok {
		return v
	}
	m.adding.Lock()
	defer m.adding.Unlock()
	if v, ok := m.load(c); ok {
		return v
	}
	var entries []contextEntry[C, V]
	if kept := m.kept.Load(); kept != nil {
		entries = append(entries, *kept...)
	}
	v := make()
	entries = append(entries, contextEntry[C, V]{c, v})
	m.kept.Store(&entries)
	return v
}

func (m *perContext[C, V]) load(c C) (v V, ok bool) {
	kept := m.kept.Load()
	if kept == nil {
		return v, false
	}
	for i := range *kept {
		if e := &(*kept)[i]; e.context == c {
			return e.value, true
		}
	}
	return v, false
}

// An encodeMode is a Codec in one EncodeContext, with the plans for it.
type encodeMode struct {
	*Codec
	ec bson.EncodeContext
	encodeOptions
	plain bool // there are no options

	encPlans  typeMap[*encodePlan]
	dynamic   typeMap[appendFunc] // of the values in interfaces
	documents typeMap[*documentPlan]

	fields [2]func() *encodeMode // of fields without and with the tag minsize
}

func (c *Codec) newEncodeMode(ec bson.EncodeContext, o encodeOptions) *encodeMode {
	e := &encodeMode{Codec: c, ec: ec, encodeOptions: o, plain: o == encodeOptions{}}
	e.fields = [2]func() *encodeMode{
		sync.OnceValue(func() *encodeMode { return c.encodeModeIn(fieldEncodeContext(ec, false)) }),
		sync.OnceValue(func() *encodeMode { return c.encodeModeIn(fieldEncodeContext(ec, true)) }),
	}
	return e
}

// encodeModeIn returns the encodeMode for ec, nil if ec is not a context of the registry or has options that are not known.
func (c *Codec) encodeModeIn(ec *bson.EncodeContext) *encodeMode {
	if *ec == c.encodeMode.ec {
		return c.encodeMode
	}
	return c.encodeModeWith(*ec)
}

// encodeModeWith is encodeModeIn for a context with options, and for another registry.
func (c *Codec) encodeModeWith(ec bson.EncodeContext) *encodeMode {
	if ec.Registry != c.reg {
		return nil
	}
	return c.encodeModes.get(ec, func() *encodeMode {
		options := ec
		options.Registry = nil
		o, ok := encodeContexts()[options]
		if !ok {
			return nil
		}
		return c.newEncodeMode(ec, o)
	})
}

// field returns the encodeMode of the fields of structs, with the tag minsize or without, nil if it is not known.
func (e *encodeMode) field(minSize bool) *encodeMode {
	if minSize {
		return e.fields[1]()
	}
	if e.plain {
		return e
	}
	return e.fields[0]()
}

// A decodeMode is a Codec in one DecodeContext, with the plans for it.
type decodeMode struct {
	*Codec
	dc bson.DecodeContext
	decodeOptions
	documentType reflect.Type // of documents in any, nil if the type map has it
	plain        bool         // there are no options

	decPlans typeMap[*decodePlan]
	values   typeMap[readFunc] // of values that are not part of a document, nil if the driver must do it
	any      func() *anyReader

	fields [2]func() *decodeMode // of fields without and with the tag truncate
}

func (c *Codec) newDecodeMode(dc bson.DecodeContext, o decodeOptions) *decodeMode {
	d := &decodeMode{Codec: c, dc: dc, decodeOptions: o, plain: o == decodeOptions{}}
	switch {
	case o.documentMap:
		d.documentType = tMap
	case o.documentM:
		d.documentType = tM
	}
	d.any = sync.OnceValue(d.newAnyReader)
	d.fields = [2]func() *decodeMode{
		sync.OnceValue(func() *decodeMode { return c.decodeModeIn(fieldDecodeContext(dc, false)) }),
		sync.OnceValue(func() *decodeMode { return c.decodeModeIn(fieldDecodeContext(dc, true)) }),
	}
	return d
}

// decodeModeIn returns the decodeMode for dc, nil if dc is not a context of the registry or has options that are not known.
// A nil dc is that of the registry without options: comparing two contexts takes as long as a field.
func (c *Codec) decodeModeIn(dc *bson.DecodeContext) *decodeMode {
	if dc == nil || *dc == c.decodeMode.dc {
		return c.decodeMode
	}
	return c.decodeModeWith(*dc)
}

// decodeModeWith is decodeModeIn for a context with options, and for another registry.
func (c *Codec) decodeModeWith(dc bson.DecodeContext) *decodeMode {
	if dc.Registry != c.reg {
		return nil
	}
	return c.decodeModes.get(dc, func() *decodeMode {
		options := dc
		options.Registry = nil
		o, ok := decodeContexts()[options]
		if !ok {
			return nil
		}
		return c.newDecodeMode(dc, o)
	})
}

// field returns the decodeMode of the fields of structs, with the tag truncate or without, nil if it is not known.
func (d *decodeMode) field(truncate bool) *decodeMode {
	if truncate {
		return d.fields[1]()
	}
	if d.plain {
		return d
	}
	return d.fields[0]()
}
