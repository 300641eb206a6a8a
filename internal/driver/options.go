package driver

import (
	"bytes"
	"io"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options are the options of the driver's Encoder and Decoder. Each has the name of the method that sets it.
type Options struct {
	UseJSONStructTags       bool // of both
	ErrorOnInlineDuplicates bool // of the Encoder, as those down to StringifyMapKeysWithFmt
	IntMinSize              bool
	NilMapAsEmpty           bool
	NilSliceAsEmpty         bool
	NilByteSliceAsEmpty     bool
	OmitZeroStruct          bool
	OmitEmpty               bool
	StringifyMapKeysWithFmt bool
	AllowTruncatingDoubles  bool // of the Decoder, as all that follow
	BinaryAsSlice           bool
	DefaultDocumentM        bool
	DefaultDocumentMap      bool // prevails over DefaultDocumentM
	ObjectIDAsHexString     bool
	UseLocalTimeZone        bool
	ZeroMaps                bool
	ZeroStructs             bool
}

// A setting is an option of C, the driver's Encoder or Decoder.
type setting[C any] struct {
	field func(*Options) *bool
	set   func(*C)
}

var encoderSettings = []setting[bson.Encoder]{
	{func(o *Options) *bool { return &o.UseJSONStructTags }, (*bson.Encoder).UseJSONStructTags},
	{func(o *Options) *bool { return &o.ErrorOnInlineDuplicates }, (*bson.Encoder).ErrorOnInlineDuplicates},
	{func(o *Options) *bool { return &o.IntMinSize }, (*bson.Encoder).IntMinSize},
	{func(o *Options) *bool { return &o.NilMapAsEmpty }, (*bson.Encoder).NilMapAsEmpty},
	{func(o *Options) *bool { return &o.NilSliceAsEmpty }, (*bson.Encoder).NilSliceAsEmpty},
	{func(o *Options) *bool { return &o.NilByteSliceAsEmpty }, (*bson.Encoder).NilByteSliceAsEmpty},
	{func(o *Options) *bool { return &o.OmitZeroStruct }, (*bson.Encoder).OmitZeroStruct},
	{func(o *Options) *bool { return &o.OmitEmpty }, (*bson.Encoder).OmitEmpty},
	{func(o *Options) *bool { return &o.StringifyMapKeysWithFmt }, (*bson.Encoder).StringifyMapKeysWithFmt},
}

// decoderSettings are in the order in which a client sets them.
var decoderSettings = []setting[bson.Decoder]{
	{func(o *Options) *bool { return &o.AllowTruncatingDoubles }, (*bson.Decoder).AllowTruncatingDoubles},
	{func(o *Options) *bool { return &o.BinaryAsSlice }, (*bson.Decoder).BinaryAsSlice},
	{func(o *Options) *bool { return &o.DefaultDocumentM }, (*bson.Decoder).DefaultDocumentM},
	{func(o *Options) *bool { return &o.DefaultDocumentMap }, (*bson.Decoder).DefaultDocumentMap},
	{func(o *Options) *bool { return &o.ObjectIDAsHexString }, (*bson.Decoder).ObjectIDAsHexString},
	{func(o *Options) *bool { return &o.UseJSONStructTags }, (*bson.Decoder).UseJSONStructTags},
	{func(o *Options) *bool { return &o.UseLocalTimeZone }, (*bson.Decoder).UseLocalTimeZone},
	{func(o *Options) *bool { return &o.ZeroMaps }, (*bson.Decoder).ZeroMaps},
	{func(o *Options) *bool { return &o.ZeroStructs }, (*bson.Decoder).ZeroStructs},
}

// apply sets the options o of coder.
func apply[C any](settings []setting[C], o Options, coder *C) {
	for _, s := range settings {
		if *s.field(&o) {
			s.set(coder)
		}
	}
}

// subsets returns every set of the options in settings.
func subsets[C any](settings []setting[C]) []Options {
	all := make([]Options, 1<<len(settings))
	for set := range all {
		for i, s := range settings {
			*s.field(&all[set]) = set>>i&1 != 0
		}
	}
	return all
}

// NewDecoder returns the driver's Decoder with reg and the options o.
func (o Options) NewDecoder(reg *bson.Registry, vr bson.ValueReader) *bson.Decoder {
	dec := bson.NewDecoder(vr)
	dec.SetRegistry(reg)
	apply(decoderSettings, o, dec)
	return dec
}

// EncodeContext returns the context with the options o, without a registry. Its fields cannot be set from outside the
// driver: an Encoder makes it.
func (o Options) EncodeContext() bson.EncodeContext {
	var p contextProbe
	enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
	enc.SetRegistry(probeRegistry())
	apply(encoderSettings, o, enc)
	_ = enc.Encode(&p) // never fails
	p.ec.Registry = nil
	return p.ec
}

// DecodeContext returns the context with the options o, without a registry, as [Options.EncodeContext] does.
func (o Options) DecodeContext() bson.DecodeContext {
	var p contextProbe
	_ = o.NewDecoder(probeRegistry(), bson.NewDocumentReader(bytes.NewReader(nil))).Decode(&p) // never fails
	p.dc.Registry = nil
	return p.dc
}

// EncodeContexts returns the options of every context that an Encoder of this version of the driver can have, without a
// registry. The map must not be changed.
var EncodeContexts = sync.OnceValue(func() map[bson.EncodeContext]Options {
	all := map[bson.EncodeContext]Options{}
	for _, o := range subsets(encoderSettings) {
		all[o.EncodeContext()] = o
	}
	return all
})

// DecodeContexts returns the options of every context that a Decoder can have, without a registry. The map must not be
// changed. No options have both DefaultDocumentM and DefaultDocumentMap, whose context is that of the second one alone.
var DecodeContexts = sync.OnceValue(func() map[bson.DecodeContext]Options {
	all := map[bson.DecodeContext]Options{}
	for _, o := range subsets(decoderSettings) {
		if !o.DefaultDocumentM || !o.DefaultDocumentMap {
			all[o.DecodeContext()] = o
		}
	}
	return all
})

// EncodeOptions returns the options in ec, and whether they are known.
func EncodeOptions(ec bson.EncodeContext) (Options, bool) {
	if ec.Registry = nil; ec == (bson.EncodeContext{}) { // most programs have no other context
		return Options{}, true
	}
	o, ok := EncodeContexts()[ec]
	return o, ok
}

// DecodeOptions returns the options in dc, and whether they are known.
func DecodeOptions(dc bson.DecodeContext) (Options, bool) {
	if dc.Registry = nil; dc == (bson.DecodeContext{}) {
		return Options{}, true
	}
	o, ok := DecodeContexts()[dc]
	return o, ok
}

// FieldEncodeContext returns the context in which the driver encodes a field of a struct that is encoded in ec. The
// driver does not pass every option on, and the tag minsize adds one.
func FieldEncodeContext(ec bson.EncodeContext, minSize bool) bson.EncodeContext {
	var p contextProbe
	var v any = struct{ F *contextProbe }{&p}
	if minSize {
		v = struct {
			F *contextProbe `bson:",minsize"`
		}{&p}
	}
	reg := ec.Registry
	ec.Registry = probeRegistry()
	if enc, err := ec.LookupEncoder(reflect.TypeOf(v)); err == nil {
		_ = enc.EncodeValue(ec, bson.NewDocumentWriter(io.Discard), reflect.ValueOf(v))
	}
	p.ec.Registry = reg
	return p.ec
}

// FieldDecodeContext returns the context in which the driver decodes a field of a struct that is decoded in dc. The tag
// truncate adds an option.
func FieldDecodeContext(dc bson.DecodeContext, truncate bool) bson.DecodeContext {
	var v any = new(struct{ F contextProbe })
	if truncate {
		v = new(struct {
			F contextProbe `bson:",truncate"`
		})
	}
	reg := dc.Registry
	dc.Registry = probeRegistry()
	target := reflect.ValueOf(v).Elem()
	if dec, err := dc.LookupDecoder(target.Type()); err == nil {
		vr := bson.NewDocumentReader(bytes.NewReader([]byte("\x08\x00\x00\x00\x0af\x00\x00")))
		_ = dec.DecodeValue(dc, vr, target)
	}
	p := target.Field(0).Addr().Interface().(*contextProbe)
	p.dc.Registry = reg
	return p.dc
}

// contextProbe keeps the context that it is encoded or decoded in. It writes nothing and reads nothing.
type contextProbe struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var probeRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.TypeFor[*contextProbe](), bson.ValueEncoderFunc(
		func(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
			val.Interface().(*contextProbe).ec = ec
			return nil
		}))
	reg.RegisterTypeDecoder(reflect.TypeFor[contextProbe](), bson.ValueDecoderFunc(
		func(dc bson.DecodeContext, _ bson.ValueReader, val reflect.Value) error {
			val.Addr().Interface().(*contextProbe).dc = dc
			return nil
		}))
	return reg
})
