// Package elsewhere has methods that another file calls. // want package:`driver: `
package elsewhere

import "go.mongodb.org/mongo-driver/v2/bson"

type A [16]byte

func (a A) MarshalBSONValue() (bson.Type, []byte, error) { // want `ignores this form of MarshalBSONValue`
	return bson.TypeBinary, append([]byte{16, 0, 0, 0, 4}, a[:]...), nil
}

func (a *A) UnmarshalBSONValue(_ bson.Type, data []byte) error { // want `ignores this form of UnmarshalBSONValue`
	if len(data) == 21 && data[4] == 4 {
		copy(a[:], data[5:])
	}
	return nil
}
