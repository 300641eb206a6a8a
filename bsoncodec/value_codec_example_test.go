package bsoncodec_test

import (
	"encoding/binary"
	"fmt"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// cents is an amount of money that is stored as an int64.
type cents struct{ n int64 }

// centsCodec encodes and decodes cents, and takes part in plans.
type centsCodec struct{}

func (centsCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	return vw.WriteInt64(v.Field(0).Int())
}

func (centsCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	n, err := vr.ReadInt64()
	if err != nil {
		return err
	}
	v.Set(reflect.ValueOf(cents{n}))
	return nil
}

func (centsCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	return bson.TypeInt64, binary.LittleEndian.AppendUint64(dst, uint64(v.Field(0).Int())), nil
}

func (centsCodec) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if t != bson.TypeInt64 {
		return bsoncodec.ErrNotPlain // DecodeValue has the error
	}
	v.Set(reflect.ValueOf(cents{int64(binary.LittleEndian.Uint64(data))}))
	return nil
}

func ExampleValueCodec() {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(func(reg *bson.Registry) {
		reg.RegisterTypeEncoder(reflect.TypeFor[cents](), centsCodec{})
		reg.RegisterTypeDecoder(reflect.TypeFor[cents](), centsCodec{})
	}).Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	type line struct{ Price cents }
	doc, err := bsoncodec.Marshal(reg, line{cents{1999}})
	fmt.Println(bson.Raw(doc), err)
	var l line
	err = bsoncodec.Unmarshal(reg, doc, &l)
	fmt.Println(l.Price.n, err)
	fmt.Println(bsoncodec.CheckPlans(reg, reflect.TypeFor[line]()))
	// Output:
	// {"price": {"$numberLong":"1999"}} <nil>
	// 1999 <nil>
	// <nil>
}
