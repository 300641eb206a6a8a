package autoid

import (
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// contextProbe fails to encode, always, and keeps the EncodeContext that it was to be encoded with. It is how a
// Collection learns its registry and BSON options, which the driver does not tell. A document that cannot be encoded
// cannot be sent.
type contextProbe struct {
	ec    bson.EncodeContext
	known bool
}

var errProbed = errors.New("autoid: a probe is not a document")

// MarshalBSONValue is called by a registry without Register.
func (*contextProbe) MarshalBSONValue() (byte, []byte, error) { return 0, nil, ErrNotRegistered }

func encodeContextProbe(ec bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	if p, ok := val.Interface().(*contextProbe); ok && p != nil {
		p.ec, p.known = ec, true
	}
	return errProbed
}
