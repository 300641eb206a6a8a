package bsoncodec

import (
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ErrNotPlain is returned by a method of a [ValueCodec] that does not handle a value. The value is then passed to the
// EncodeValue or DecodeValue method of the same codec.
var ErrNotPlain = errors.New("bsoncodec: the value is not plain")

// ValueCodec can be implemented by an encoder or a decoder that an application registers for a type. Then the compiled
// plans call its methods, which append and read bytes. For a codec that does not implement it, a plan makes a
// [bson.ValueWriter] or a [bson.ValueReader] for each value, which is slower. The method AppendValue of a decoder, and
// ReadValue of an encoder, can always return [ErrNotPlain].
//
// Both methods must have the results of EncodeValue and DecodeValue for a context without options, and must be safe for
// concurrent use. For a client with options, EncodeValue and DecodeValue are called.
type ValueCodec interface {
	// AppendValue appends the BSON value of v, without type and key, to dst. It returns the BSON type and the extended
	// slice. If the error is not nil, what was appended is ignored.
	AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error)

	// ReadValue sets v, which is settable, to the BSON value of type t in data. It must not change data or keep a
	// reference to it. If it returns ErrNotPlain, v is unchanged.
	ReadValue(t bson.Type, data []byte, v reflect.Value) error
}

// noEncoder and noDecoder are embedded by codecs for one direction.
type (
	noEncoder struct{}
	noDecoder struct{}
)

// AppendValue reports [ErrNotPlain].
func (noEncoder) AppendValue(dst []byte, _ reflect.Value) (bson.Type, []byte, error) {
	return 0, dst, ErrNotPlain
}

// EncoderFor returns nil.
func (noEncoder) EncoderFor(*bson.Registry, reflect.Type) bson.ValueEncoder { return nil }

// ReadValue reports [ErrNotPlain].
func (noDecoder) ReadValue(bson.Type, []byte, reflect.Value) error { return ErrNotPlain }

// DecoderFor returns nil.
func (noDecoder) DecoderFor(*bson.Registry, reflect.Type) bson.ValueDecoder { return nil }
