package bsoncodec

import (
	"errors"
	"fmt"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// contextProbe fails to be encoded and to be decoded, always, and keeps the context that it met. It
// is how the registry and the options of a client are learned, which the driver does not tell.
type contextProbe struct {
	ec bson.EncodeContext
	dc bson.DecodeContext
}

var (
	tContextProbe = reflect.TypeFor[contextProbe]()

	errProbed = errors.New("bsoncodec: a probe is not a document")

	errNoProbe = errors.New("bsoncodec: the registry was not built by package bsoncodec, or no registry was asked")
)

// MarshalBSONValue is called by a registry that does not know the type.
func (*contextProbe) MarshalBSONValue() (byte, []byte, error) { return 0, nil, errNoProbe }

// UnmarshalBSONValue is called by a registry that does not know the type.
func (*contextProbe) UnmarshalBSONValue(byte, []byte) error { return errNoProbe }

func encodeContextProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	if p, ok := val.Interface().(*contextProbe); ok && p != nil {
		p.ec = ec
	}
	return errProbed
}

func decodeContextProbe(dc bson.DecodeContext, _ bson.ValueReader, val reflect.Value) error {
	if val.CanAddr() {
		if p, ok := val.Addr().Interface().(*contextProbe); ok {
			p.dc = dc
		}
	}
	return errProbed
}

func registerProbe(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.PointerTo(tContextProbe), bson.ValueEncoderFunc(encodeContextProbe))
	reg.RegisterTypeDecoder(tContextProbe, bson.ValueDecoderFunc(decodeContextProbe))
}

var probeRegistry = sync.OnceValue(func() *bson.Registry {
	reg := bson.NewRegistry()
	registerProbe(reg)
	return reg
})

// ProbeEncode learns the registry and the encoding options of whatever encode encodes its argument
// with. The argument cannot be encoded, so nothing is sent and no server is asked:
//
//	reg, opts, err := bsoncodec.ProbeEncode(func(v any) error {
//		_, err := collection.InsertOne(ctx, v)
//		return err
//	})
//
// The Options know encoding and not decoding: add that with [Options.Complete].
//
// It is an error if the registry was not built by this package, or if encode failed before it
// encoded its argument; the latter wraps the error of encode. Options that this version of the
// package does not know are [ErrUnknownOptions].
func ProbeEncode(encode func(v any) error) (*bson.Registry, Options, error) {
	if encode == nil {
		return nil, Options{}, errors.New("bsoncodec: the function to probe is nil")
	}
	var p contextProbe
	err := encode(&p)
	reg := p.ec.Registry
	if reg == nil {
		return nil, Options{}, probeError(err)
	}
	p.ec.Registry = nil
	o, ok := optionsByEncodeContext()[p.ec]
	if !ok {
		return nil, Options{}, fmt.Errorf("%w: the driver encodes with one that this version has not", ErrUnknownOptions)
	}
	return reg, o, nil
}

// ProbeDecode learns the registry and the decoding options of decode, a method such as Decode of a
// mongo.Cursor, a mongo.SingleResult or a mongo.ChangeStream. Its argument cannot be decoded into,
// and a cursor stays where it is:
//
//	reg, opts, err := bsoncodec.ProbeDecode(cursor.Decode)
//
// The Options know decoding and not encoding: add that with [Options.Complete]. DefaultDocumentM is
// not reported if DefaultDocumentMap prevails over it. Errors are those of [ProbeEncode].
func ProbeDecode(decode func(v any) error) (*bson.Registry, Options, error) {
	if decode == nil {
		return nil, Options{}, errors.New("bsoncodec: the function to probe is nil")
	}
	var p contextProbe
	err := decode(&p)
	reg := p.dc.Registry
	if reg == nil {
		return nil, Options{}, probeError(err)
	}
	p.dc.Registry = nil
	o, ok := optionsByDecodeContext()[p.dc]
	if !ok {
		return nil, Options{}, fmt.Errorf("%w: the driver decodes with one that this version has not", ErrUnknownOptions)
	}
	return reg, o, nil
}

func probeError(err error) error {
	if err == nil {
		err = errNoProbe
	}
	return fmt.Errorf("bsoncodec: cannot learn the options: %w", err)
}
