package bsoncodec

import (
	"errors"
	"reflect"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
	"github.com/bsonids/bsonids/uuidrep"
)

// wayOutError is an error of the driver's with what to do about it.
type wayOutError struct{ err error }

func (e *wayOutError) Error() string {
	return e.err.Error() + "; binary subtypes 3 and 4 are UUIDs: a uuid.UUID reads the UUID, a bson.Binary the bytes"
}

func (e *wayOutError) Unwrap() error { return e.err }

// notText are the driver's errors of decoding a UUID into a string or a slice of bytes, as text.
var notText = sync.OnceValue(func() map[string]bool {
	type named []byte
	texts := map[string]bool{}
	for _, r := range []uuidrep.Representation{uuidrep.Standard, uuidrep.PythonLegacy} {
		b, err := uuidrep.NewBinaryWithRepresentation([16]byte{}, r)
		if err != nil {
			continue
		}
		data := append([]byte{16, 0, 0, 0, b.Subtype}, b.Data...)
		for _, target := range []any{new(string), new([]byte), new(named)} {
			if err := (bson.RawValue{Type: bson.TypeBinary, Value: data}).UnmarshalWithRegistry(driver.Registry(), target); err != nil {
				texts[err.Error()] = true
			}
		}
	}
	return texts
})

// withWayOut returns err, an error of decoding a whole document or a value, with the way out if a UUID
// was decoded into text or bytes. The errors that the driver wraps it in stay together.
func withWayOut(err error) error {
	if err == nil {
		return nil // most errors
	}
	cause := err
	for {
		if _, ok := cause.(*wayOutError); ok {
			return err
		}
		next := errors.Unwrap(cause)
		if next == nil {
			break
		}
		cause = next
	}
	if !notText()[cause.Error()] {
		return err
	}
	return &wayOutError{err}
}

// ofDocument decodes a value with dec, and adds the way out to its error if it is a whole document.
func ofDocument(dec bson.ValueDecoder, dc bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	return withWayOut(dec.DecodeValue(dc, vr, val))
}
