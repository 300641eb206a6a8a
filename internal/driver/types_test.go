package driver_test

import (
	"bytes"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// The tests here check what the driver does with types that hold a UUID and have no codec.

var idBytes = [16]byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF}

func driverMarshal(t *testing.T, v any) bson.Raw {
	t.Helper()
	raw, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// bsoncodec refuses types of kind [16]byte because of this.
func TestDriverWritesByteArraysAsSubtype0(t *testing.T) {
	type id [16]byte
	for _, v := range []any{idBytes, id(idBytes), uuid.UUID(idBytes)} {
		subtype, data, ok := driverMarshal(t, bson.M{"v": v}).Lookup("v").BinaryOK()
		if !ok || subtype != 0 || !bytes.Equal(data, idBytes[:]) {
			t.Errorf("%T: subtype %d, %X", v, subtype, data)
		}
	}
}

// bsoncodec leaves arrays of a defined byte type alone because of this.
func TestDriverWritesArraysOfDefinedBytesAsArrays(t *testing.T) {
	type octet byte
	if v := driverMarshal(t, bson.M{"v": [16]octet{}}).Lookup("v"); v.Type != bson.TypeArray {
		t.Errorf("got %v: such types must be registered too", v)
	}
}

// pointerReceiver has a marshaling method that its values do not have.
type pointerReceiver [16]byte

func (*pointerReceiver) MarshalBSONValue() (byte, []byte, error) {
	return byte(bson.TypeNull), nil, nil
}

// bsoncodec refuses such a value because of this.
func TestDriverIgnoresPointerReceiversOfValuesThatAreNotAddressable(t *testing.T) {
	if v := driverMarshal(t, bson.M{"v": pointerReceiver{}}).Lookup("v"); v.Type != bson.TypeBinary {
		t.Errorf("the driver calls the method: %v", v)
	}
	if v := driverMarshal(t, &struct{ V pointerReceiver }{}).Lookup("v"); v.Type != bson.TypeNull {
		t.Errorf("the driver does not call the method of an addressable value: %v", v)
	}
}

type v1Type byte

type v1Array [16]byte

func (v1Array) MarshalBSONValue() (v1Type, []byte, error) { return v1Type(bson.TypeNull), nil, nil }

type v1Struct struct{ uuid.UUID }

func (v1Struct) MarshalBSONValue() (v1Type, []byte, error) { return v1Type(bson.TypeNull), nil, nil }

type v1Unexported struct{ id uuid.UUID }

func (v v1Unexported) MarshalBSONValue() (bson.Type, []byte, error) {
	return bson.TypeNull, v.id[:0], nil
}

// bsoncodec refuses such types, and docs/leaving-driver-v1.md says what becomes of them.
func TestDriverIgnoresMethodsOfVersion1(t *testing.T) {
	if subtype, _, ok := driverMarshal(t, bson.M{"v": v1Array{}}).Lookup("v").BinaryOK(); !ok || subtype != 0 {
		t.Errorf("an array: subtype %d", subtype)
	}
	if v := driverMarshal(t, bson.M{"v": v1Struct{}}).Lookup("v", "uuid"); v.Type != bson.TypeBinary {
		t.Errorf("a struct: %v", v)
	}
	if v := driverMarshal(t, bson.M{"v": v1Unexported{}}).Lookup("v"); !bytes.Equal(v.Value, []byte{5, 0, 0, 0, 0}) {
		t.Errorf("a struct with an unexported field: %v", v)
	}
}

// bsoncodec reads these documents into a NullUUID.
func TestDriverWritesNullUUIDsAsDocuments(t *testing.T) {
	raw := driverMarshal(t, bson.M{"v": uuid.NullUUID{UUID: idBytes, Valid: true}})
	subtype, data, ok := raw.Lookup("v", "uuid").BinaryOK()
	if valid, isBool := raw.Lookup("v", "valid").BooleanOK(); !ok || subtype != 0 || !bytes.Equal(data, idBytes[:]) || !isBool || !valid {
		t.Errorf("got %v", raw)
	}
	if v := driverMarshal(t, bson.M{"v": uuid.NullUUID{}}).Lookup("v", "valid"); v.Type != bson.TypeBoolean || v.Boolean() {
		t.Errorf("got %v", v)
	}
}
