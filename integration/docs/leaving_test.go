package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The codec of docs/leaving-bsonids.md, as it is written there.

var tUUID = reflect.TypeFor[uuid.UUID]()

func encodeUUID(_ bson.EncodeContext, vw bson.ValueWriter, v reflect.Value) error {
	if !v.IsValid() || v.Type() != tUUID {
		return bson.ValueEncoderError{Name: "encodeUUID", Types: []reflect.Type{tUUID}, Received: v}
	}
	u := v.Interface().(uuid.UUID)
	return vw.WriteBinaryWithSubtype(u[:], bson.TypeBinaryUUID)
}

func decodeUUID(_ bson.DecodeContext, vr bson.ValueReader, v reflect.Value) error {
	if !v.CanSet() || v.Type() != tUUID {
		return bson.ValueDecoderError{Name: "decodeUUID", Types: []reflect.Type{tUUID}, Received: v}
	}
	if vr.Type() == bson.TypeNull {
		v.SetZero()
		return vr.ReadNull()
	}
	b, subtype, err := vr.ReadBinary()
	if err != nil {
		return err
	}
	if subtype != bson.TypeBinaryUUID || len(b) != 16 {
		return fmt.Errorf("cannot decode %d octets of subtype %d into a UUID", len(b), subtype)
	}
	v.Set(reflect.ValueOf(uuid.UUID(b)))
	return nil
}

// left holds UUIDs in the places that the page says the codec reaches.
type left struct {
	U    uuid.UUID
	P    *uuid.UUID
	Nil  *uuid.UUID
	List []uuid.UUID
	Map  map[string]uuid.UUID
	Keys map[uuid.UUID]int
	Sub  struct{ U uuid.UUID }
}

// What the codec of the page writes and reads is what a registry of this library for standard does.
func TestLeaving(t *testing.T) {
	own, err := os.ReadFile("leaving_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := pages(t)[filepath.Join("docs", "leaving-bsonids.md")]
	if len(blocks) == 0 || !strings.Contains(string(own), blocks[0].text) {
		t.Fatal("the codec of the page is not the one of this file")
	}
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(tUUID, bson.ValueEncoderFunc(encodeUUID))
	reg.RegisterTypeDecoder(tUUID, bson.ValueDecoderFunc(decodeUUID))
	ours, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}

	marshal := func(v any) []byte {
		t.Helper()
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(reg)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	unmarshal := func(b []byte, v any) error {
		dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(b)))
		dec.SetRegistry(reg)
		return dec.Decode(v)
	}
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	v := left{U: u, P: &u, List: []uuid.UUID{u, {}}, Map: map[string]uuid.UUID{"a": u}, Keys: map[uuid.UUID]int{u: 1}}
	v.Sub.U = u
	for _, doc := range []any{v, &v, left{}, bson.D{{Key: "u", Value: u}}, bson.M{"u": &u}} {
		want, err := bsoncodec.Marshal(ours, doc)
		if err != nil {
			t.Fatal(err)
		}
		if got := marshal(doc); !bytes.Equal(got, want) {
			t.Errorf("%v: got %v, want %v", doc, bson.Raw(got), bson.Raw(want))
		}
	}
	var got left
	if err := unmarshal(marshal(v), &got); err != nil || !reflect.DeepEqual(got, v) {
		t.Errorf("got %+v, %v, want %+v", got, err, v)
	}

	long := append(u[:], 0)
	for _, value := range []any{
		nil, bson.Binary{Subtype: 4, Data: u[:]}, bson.Binary{Subtype: 3, Data: u[:]}, bson.Binary{Data: u[:]}, bson.Binary{Subtype: 4, Data: u[:15]},
		bson.Binary{Subtype: 4, Data: long}, bson.Binary{Subtype: 4}, u.String(), 1, bson.D{}, bson.NewObjectID(),
	} {
		b, err := bson.Marshal(bson.D{{Key: "u", Value: value}})
		if err != nil {
			t.Fatal(err)
		}
		theirs, want := struct{ U uuid.UUID }{uuid.Max}, struct{ U uuid.UUID }{uuid.Max}
		wantErr := bsoncodec.Unmarshal(ours, b, &want)
		if err := unmarshal(b, &theirs); (err == nil) != (wantErr == nil) || err == nil && theirs != want {
			t.Errorf("%v: got %v, %v, want %v, %v", bson.Raw(b), theirs, err, want, wantErr)
		}
	}
}
