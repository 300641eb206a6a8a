package mixedrep

import (
	"bytes"
	"errors"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
)

// role is the role of an argument of the driver's method.
type role uint8

const (
	filterRole role = iota
	stageRole
	updateRole
	updateStageRole // of an update that is a pipeline
	projectionRole
	valueRole // of an option: it is not rewritten
)

// An argument stands for an argument of the caller's in a call of the driver. The driver encodes
// it with the registry and the BSON options of the collection.
type argument struct {
	value  any
	role   role
	upsert bool
}

// An updateArgument is an argument that is an update. The driver asks an update for marshalling
// methods before it asks the registry, so the type has none.
type updateArgument struct{ argument *argument }

var errForeignRegistry = errors.New("mixedrep: the argument met a registry that is not the collection's")

// MarshalBSONValue is called if a registry does not have the argumentCodec.
func (*argument) MarshalBSONValue() (byte, []byte, error) { return 0, nil, errForeignRegistry }

func register(reg, other *bson.Registry) {
	codec := &argumentCodec{other}
	reg.RegisterTypeEncoder(reflect.TypeFor[*argument](), codec)
	reg.RegisterTypeEncoder(reflect.TypeFor[*updateArgument](), codec)
}

// argumentCodec is the ValueEncoder of arguments in the registry of a Collection. other is the
// registry that differs from it in the representation of UUIDs.
type argumentCodec struct{ other *bson.Registry }

func (c *argumentCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	a, ok := val.Interface().(*argument)
	if u, isUpdate := val.Interface().(*updateArgument); isUpdate {
		a, ok = u.argument, true
	}
	if !ok || a == nil {
		return bson.ValueEncoderError{
			Name: "mixedrep", Types: []reflect.Type{reflect.TypeFor[*argument]()}, Received: val,
		}
	}
	written, err := encode(ec, a.value)
	if err != nil {
		return err
	}
	twin := ec
	twin.Registry = c.other
	other, err := encode(twin, a.value)
	if err != nil {
		return err
	}
	doc := any(written)
	if !bytes.Equal(written, other) {
		if doc, err = a.rewrite(pair{document(written), document(other)}); err != nil {
			return err
		}
	}
	// The registry may have another encoder for bson.D.
	return driver.Encoder(reflect.TypeOf(doc)).EncodeValue(ec, vw, reflect.ValueOf(doc))
}

// rewrite returns the document to send: a bson.Raw or a bson.D of what was encoded.
func (a *argument) rewrite(p pair) (any, error) {
	switch a.role {
	case updateRole:
		return bson.Raw(p.written.Value), p.checkUpdate()
	case stageRole:
		return p.stage("")
	case updateStageRole:
		return p.updateStage()
	case projectionRole:
		return p.projection()
	case valueRole:
		return p.plainDocument(explicitly)
	}
	if a.upsert {
		return p.plainDocument("an upsert takes the values of new documents from its filter, and an $in is not a value; " +
			"look the document up first, then insert it or update it by what was found")
	}
	return p.filter("")
}

// plainDocument returns the document p as it is written if it contains no UUID.
func (p pair) plainDocument(reason string) (bson.Raw, error) {
	ms, err := p.members()
	if err != nil {
		return nil, err
	}
	for _, m := range ms {
		if _, err := m.plain(m.key, reason); err != nil {
			return nil, err
		}
	}
	return p.written.Value, nil
}

func document(raw bson.Raw) bson.RawValue {
	return bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: raw}
}

// encode returns v as the driver's Encoder writes it.
func encode(ec bson.EncodeContext, v any) (bson.Raw, error) {
	switch v := v.(type) {
	case []byte:
		return v, nil
	case bson.Marshaler:
		return built.MarshalDocument(ec, v)
	}
	enc, err := ec.LookupEncoder(reflect.TypeOf(v))
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = enc.EncodeValue(ec, bson.NewDocumentWriter(&buf), reflect.ValueOf(v))
	return buf.Bytes(), err
}

// callerError turns the driver's error for an argument into one for the caller's value.
func callerError(err error) error {
	if caller, ok := marshalError(err); ok {
		return caller
	}
	return err
}

// callerResult is callerError for a result that holds its error.
func callerResult(res *mongo.SingleResult) *mongo.SingleResult {
	if caller, ok := marshalError(res.Err()); ok {
		return mongo.NewSingleResultFromDocument(bson.D{}, caller, nil)
	}
	return res
}

// marshalError returns the driver's error for an argument as one for the caller's value.
func marshalError(err error) (caller mongo.MarshalError, ok bool) {
	_ = errors.As(err, &caller)
	switch a := caller.Value.(type) {
	case *argument:
		caller.Value = a.value
	case *updateArgument:
		caller.Value = a.argument.value
	default:
		return caller, false
	}
	return caller, true
}
