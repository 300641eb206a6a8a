package bsoncodec

import (
	"bytes"
	"fmt"
	"io"
	"reflect"
	"sync"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Options are optional behaviors of encoding and decoding: the fields of the driver's
// mongo/options.BSONOptions, with the same names and meanings. The zero value has none of them, as
// a client without BSONOptions.
//
// [Marshal] and the other functions read and write what a client reads and writes that has the same
// registry and the same options. Package clientopt tells those of a client, a collection and a
// cursor.
//
// Options are comparable with ==.
type Options struct {
	// UseJSONStructTags falls back to the "json" struct tag if a field has no "bson" struct tag.
	UseJSONStructTags bool

	// ErrorOnInlineDuplicates refuses to encode a struct if an inline field duplicates a key.
	ErrorOnInlineDuplicates bool

	// IntMinSize encodes integers as int32 if they fit, and as int64 if they do not.
	IntMinSize bool

	// NilMapAsEmpty encodes a nil map as an empty document instead of null.
	NilMapAsEmpty bool

	// NilSliceAsEmpty encodes a nil slice as an empty array instead of null.
	NilSliceAsEmpty bool

	// NilByteSliceAsEmpty encodes a nil byte slice as an empty binary value instead of null.
	NilByteSliceAsEmpty bool

	// OmitZeroStruct makes omitempty and OmitEmpty omit a struct that is zero.
	OmitZeroStruct bool

	// OmitEmpty omits every empty field, as the struct tag option omitempty does for one.
	OmitEmpty bool

	// StringifyMapKeysWithFmt converts map keys with fmt.Sprint.
	StringifyMapKeysWithFmt bool

	// AllowTruncatingDoubles truncates the fractional part of a double that is decoded into an
	// integer.
	AllowTruncatingDoubles bool

	// BinaryAsSlice decodes binary values of subtypes 0 and 2 into any as []byte instead of
	// bson.Binary.
	BinaryAsSlice bool

	// DefaultDocumentM decodes documents into any as bson.M.
	DefaultDocumentM bool

	// DefaultDocumentMap decodes documents into any as map[string]any. It prevails over
	// DefaultDocumentM.
	DefaultDocumentMap bool

	// ObjectIDAsHexString decodes an ObjectID into a string as its 24 hexadecimal digits.
	ObjectIDAsHexString bool

	// UseLocalTimeZone decodes times in the local time zone instead of UTC.
	UseLocalTimeZone bool

	// ZeroMaps deletes what a map holds before decoding into it.
	ZeroMaps bool

	// ZeroStructs sets a struct to zero before decoding into it.
	ZeroStructs bool
}

// optionsOf returns the one that opts holds, if any.
func optionsOf(opts []Options) (Options, error) {
	switch len(opts) {
	case 0:
		return Options{}, nil
	case 1:
		return opts[0], nil
	}
	return Options{}, fmt.Errorf("bsoncodec: %d Options were given: pass one", len(opts))
}

// encodeOptions are the options of the driver's Encoder.
var encodeOptions = []struct {
	field func(*Options) *bool
	set   func(*bson.Encoder)
}{
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

// decodeOptions are the options of the driver's Decoder, in the order in which a client sets them.
var decodeOptions = []struct {
	field func(*Options) *bool
	set   func(*bson.Decoder)
}{
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

// newDecoder returns the driver's Decoder with reg and the options o.
func (o Options) newDecoder(reg *bson.Registry, vr bson.ValueReader) *bson.Decoder {
	dec := bson.NewDecoder(vr)
	dec.SetRegistry(reg)
	for _, f := range decodeOptions {
		if *f.field(&o) {
			f.set(dec)
		}
	}
	return dec
}

// contexts are the driver's contexts for some Options, without a registry. Their fields cannot be
// set from outside the driver, so they are taken from an Encoder and a Decoder.
type contexts struct {
	of Options
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var (
	optionContexts = memo[Options, *contexts]{make: Options.newContexts}
	lastContexts   atomic.Pointer[contexts] // of the Options that were used last: most programs have one set
)

// contexts returns the contexts for o.
func (o Options) contexts() *contexts {
	if last := lastContexts.Load(); last != nil && last.of == o {
		return last
	}
	c := optionContexts.get(o)
	lastContexts.Store(c)
	return c
}

func (o Options) newContexts() *contexts {
	return &contexts{of: o, ec: o.newEncodeContext(), dc: o.newDecodeContext()}
}

func (o Options) newEncodeContext() bson.EncodeContext {
	var p contextProbe
	enc := bson.NewEncoder(bson.NewDocumentWriter(io.Discard))
	enc.SetRegistry(probeRegistry())
	for _, f := range encodeOptions {
		if *f.field(&o) {
			f.set(enc)
		}
	}
	_ = enc.Encode(&p) // never fails
	p.ec.Registry = nil
	return p.ec
}

func (o Options) newDecodeContext() bson.DecodeContext {
	var p contextProbe
	_ = o.newDecoder(probeRegistry(), bson.NewDocumentReader(bytes.NewReader(nil))).Decode(&p) // never fails
	p.dc.Registry = nil
	return p.dc
}

// contextProbe keeps the context that it is encoded or decoded in, and reads and writes nothing. It is how the contexts of
// the driver's options are made, whose fields cannot be set from outside.
type contextProbe struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var tContextProbe = reflect.TypeFor[contextProbe]()

func encodeContextProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	val.Interface().(*contextProbe).ec = ec
	return nil
}

func decodeContextProbe(dc bson.DecodeContext, _ bson.ValueReader, val reflect.Value) error {
	val.Addr().Interface().(*contextProbe).dc = dc
	return nil
}

var probeRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.PointerTo(tContextProbe), bson.ValueEncoderFunc(encodeContextProbe))
	reg.RegisterTypeDecoder(tContextProbe, bson.ValueDecoderFunc(decodeContextProbe))
	return reg
})

// encodeContextOf returns the EncodeContext of a client with the registry reg and the options opts. More
// than one Options, or no registry, is an error.
func encodeContextOf(reg *bson.Registry, opts []Options) (bson.EncodeContext, error) {
	if reg == nil {
		return bson.EncodeContext{}, errNilRegistry("encode")
	}
	if len(opts) == 0 { // comparing all fields of Options takes as long as a small struct
		return bson.EncodeContext{Registry: reg}, nil
	}
	o, err := optionsOf(opts)
	if err != nil {
		return bson.EncodeContext{}, err
	}
	ec := o.contexts().ec
	ec.Registry = reg
	return ec, nil
}

// decodeContextOf is encodeContextOf for a DecodeContext.
func decodeContextOf(reg *bson.Registry, opts []Options) (bson.DecodeContext, error) {
	if reg == nil {
		return bson.DecodeContext{}, errNilRegistry("decode")
	}
	if len(opts) == 0 {
		return bson.DecodeContext{Registry: reg}, nil
	}
	o, err := optionsOf(opts)
	if err != nil {
		return bson.DecodeContext{}, err
	}
	dc := o.contexts().dc
	dc.Registry = reg
	return dc, nil
}

func errNilRegistry(verb string) error {
	return fmt.Errorf("bsoncodec: cannot %s: %w", verb, bson.ErrNilRegistry)
}

// optionsByEncodeContext holds the Options for each EncodeContext without a registry.
var optionsByEncodeContext = sync.OnceValue(func() map[bson.EncodeContext]Options {
	all := map[bson.EncodeContext]Options{}
	for set := range 1 << len(encodeOptions) {
		o := Options{}
		for i, f := range encodeOptions {
			*f.field(&o) = set>>i&1 != 0
		}
		all[o.newEncodeContext()] = o
	}
	return all
})

// optionsByDecodeContext holds the Options for each DecodeContext without a registry: of DefaultDocumentMap with or without
// DefaultDocumentM, which make one context, it holds one.
var optionsByDecodeContext = sync.OnceValue(func() map[bson.DecodeContext]Options {
	all := map[bson.DecodeContext]Options{}
	for set := range 1 << len(decodeOptions) {
		o := Options{}
		for i, f := range decodeOptions {
			*f.field(&o) = set>>i&1 != 0
		}
		all[o.newDecodeContext()] = o
	}
	return all
})

// encodesJSONTags reports whether "json" struct tags stand in for "bson" struct tags in ec.
func encodesJSONTags(ec bson.EncodeContext) bool {
	ec.Registry = nil
	return optionsByEncodeContext()[ec].UseJSONStructTags
}

// decodesJSONTags does for dc what encodesJSONTags does.
func decodesJSONTags(dc bson.DecodeContext) bool {
	dc.Registry = nil
	return optionsByDecodeContext()[dc].UseJSONStructTags
}
