package structcodec_test

import (
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/structcodec"
)

// counted is a type whose codec counts its calls. An odd value is not plain.
type counted [1]byte

type countingCodec struct{ appended, encoded, read, decoded int }

func (c *countingCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	c.appended++
	b := byte(v.Index(0).Uint())
	if b%2 == 1 {
		return 0, dst, bsoncodec.ErrNotPlain
	}
	return bson.TypeBinary, append(dst, 1, 0, 0, 0, 0x80, b), nil
}

func (c *countingCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	c.encoded++
	return vw.WriteBinaryWithSubtype([]byte{byte(v.Index(0).Uint())}, 0x80)
}

func (c *countingCodec) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	c.read++
	if t != bson.TypeBinary || len(data) != 6 || data[5]%2 == 1 {
		return bsoncodec.ErrNotPlain
	}
	v.Index(0).SetUint(uint64(data[5]))
	return nil
}

func (c *countingCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	c.decoded++
	data, _, err := vr.ReadBinary()
	if err == nil {
		v.Index(0).SetUint(uint64(data[0]))
	}
	return err
}

// TestValueCodecCalls checks that a codec is called once for each value, and once more by its other method if the value is
// not plain.
func TestValueCodecCalls(t *testing.T) {
	type document struct {
		Even  counted
		Odd   counted
		Maybe counted `bson:",omitempty"`
	}
	codec := new(countingCodec)
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.TypeFor[counted](), codec)
	reg.RegisterTypeDecoder(reflect.TypeFor[counted](), codec)
	enc, _ := reg.LookupEncoder(reflect.TypeFor[struct{}]())
	dec, _ := reg.LookupDecoder(reflect.TypeFor[struct{}]())
	c := structcodec.New(reg, enc, dec, bsoncodec.ErrNotPlain)
	(&built.Note{Plans: c}).AddTo(reg)
	reg.RegisterKindEncoder(reflect.Struct, c)
	reg.RegisterKindDecoder(reflect.Struct, c)

	want := document{counted{2}, counted{3}, counted{4}}
	doc, planned, err := c.AppendDocument(&bson.EncodeContext{Registry: reg}, nil, want)
	if !planned || err != nil {
		t.Fatal(planned, err)
	}
	if codec.appended != 3 || codec.encoded != 1 {
		t.Errorf("AppendValue was called %d times and EncodeValue %d times, want 3 and 1", codec.appended, codec.encoded)
	}
	var got document
	if planned, err := c.ReadDocument(&bson.DecodeContext{Registry: reg}, doc, &got); !planned || err != nil {
		t.Fatal(planned, err)
	}
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	if codec.read != 3 || codec.decoded != 1 {
		t.Errorf("ReadValue was called %d times and DecodeValue %d times, want 3 and 1", codec.read, codec.decoded)
	}
}
