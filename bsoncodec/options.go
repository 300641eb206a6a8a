package bsoncodec

import (
	"fmt"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
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

// contexts are the driver's contexts for some Options, without a registry.
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
	options := driver.Options(o)
	return &contexts{of: o, ec: options.EncodeContext(), dc: options.DecodeContext()}
}

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

// encodesJSONTags reports whether "json" struct tags stand in for "bson" struct tags in ec.
func encodesJSONTags(ec bson.EncodeContext) bool {
	o, _ := driver.EncodeOptions(ec)
	return o.UseJSONStructTags
}

// decodesJSONTags does for dc what encodesJSONTags does.
func decodesJSONTags(dc bson.DecodeContext) bool {
	o, _ := driver.DecodeOptions(dc)
	return o.UseJSONStructTags
}
