// Package version1 has methods in the form of version 1 of the driver.
package version1

import "go.mongodb.org/mongo-driver/v2/bson"

type A [16]byte

func (a A) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	if a == (A{}) {
		return bson.TypeNull, nil, nil
	}
	return 5, append([]byte{16, 0, 0, 0, 4}, a[:]...), nil
}

func (a *A) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	copy(a[:], data[5:])
	return nil
}

type B struct{ a A }

func (b B) MarshalBSONValue() (typ bson.Type, data []byte, err error) { // want `ignores this form of MarshalBSONValue`
	typ = bson.TypeNull
	return
}

func (b *B) UnmarshalBSONValue(typ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	if typ == bson.TypeNull {
		return nil
	}
	return b.a.UnmarshalBSONValue(typ, data)
}

// C has the form of version 2.
type C struct{}

func (C) MarshalBSONValue() (byte, []byte, error) { return byte(bson.TypeNull), nil, nil }
func (*C) UnmarshalBSONValue(byte, []byte) error  { return nil }

// MarshalBSONValue is not a method.
func MarshalBSONValue() (bson.Type, []byte, error) { return 0, nil, nil }
