package uuidrep_test

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type order struct {
	ID    uuidrep.ID[order]             `bson:"_id,omitempty" json:"id"`
	Prev  *uuidrep.ID[order]            `bson:"prev" json:"-"`
	Items []uuidrep.ID[item]            `bson:"items" json:"-"`
	Count map[uuidrep.ID[item]]int32    `bson:"count" json:"count"`
	Any   any                           `bson:"any" json:"-"`
	Of    map[string]*uuidrep.ID[order] `bson:"of" json:"-"`
}

type item struct{}

var (
	_ fmt.Stringer             = uuidrep.ID[order]{}
	_ encoding.TextMarshaler   = uuidrep.ID[order]{}
	_ encoding.TextUnmarshaler = (*uuidrep.ID[order])(nil)
	_ bson.ValueMarshaler      = uuidrep.ID[order]{}
	_ bson.ValueUnmarshaler    = (*uuidrep.ID[order])(nil)
	_ bson.Zeroer              = uuidrep.ID[order]{}
)

const idText = "00112233-4455-6677-8899-aabbccddeeff"

// The octets are those of idText in RFC 9562, section 4.
var idOctets = []byte{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff}

// An ID is subtype 4 in every place and with every registry, and nothing needs to be registered.
func TestIDIsStoredAsSubtype4(t *testing.T) {
	id := uuidrep.ID[order](uuid.MustParse(idText))
	it := uuidrep.ID[item](id)
	in := order{ID: id, Prev: &id, Items: []uuidrep.ID[item]{it, {}}, Count: map[uuidrep.ID[item]]int32{it: 7}, Any: id,
		Of: map[string]*uuidrep.ID[order]{"x": &id}}
	for _, r := range []uuidrep.Representation{uuidrep.Unspecified, uuidrep.Standard, uuidrep.CSharpLegacy, uuidrep.JavaLegacy, uuidrep.PythonLegacy} {
		for _, b := range []*bsoncodec.RegistryBuilder{
			nil, bsoncodec.NewRegistryBuilder(r), bsoncodec.NewRegistryBuilder(r).WithoutPlans(), bsoncodec.NewRegistryBuilder(r).UnregisteredAsUUID(),
		} {
			reg := bson.NewRegistry()
			if b != nil {
				var err error
				if reg, err = b.Build(); err != nil {
					t.Fatal(err)
				}
			}
			var buf bytes.Buffer
			enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
			enc.SetRegistry(reg)
			if err := enc.Encode(in); err != nil {
				t.Fatal(err)
			}
			raw := bson.Raw(buf.Bytes())
			for _, path := range [][]string{{"_id"}, {"prev"}, {"items", "0"}, {"any"}, {"of", "x"}} {
				if subtype, octets, ok := raw.Lookup(path...).BinaryOK(); !ok || subtype != 4 || !bytes.Equal(octets, idOctets) {
					t.Errorf("%v, %v: got %v", r, path, raw.Lookup(path...))
				}
			}
			if n, ok := raw.Lookup("count", idText).Int32OK(); !ok || n != 7 {
				t.Errorf("%v: got %v", r, raw)
			}
			var out order
			dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(raw)))
			dec.SetRegistry(reg)
			if err := dec.Decode(&out); err != nil {
				t.Fatal(err)
			}
			out.Any = in.Any // which receives what the registry says
			if !reflect.DeepEqual(in, out) {
				t.Errorf("%v: got %v, want %v", r, out, in)
			}
		}
	}
}

func TestIDReadsSubtype4Only(t *testing.T) {
	for _, v := range []any{
		bson.Binary{Subtype: 3, Data: idOctets}, bson.Binary{Data: idOctets}, bson.Binary{Subtype: 4, Data: idOctets[:15]}, idText, int32(1), bson.D{},
	} {
		raw, err := bson.Marshal(bson.D{{Key: "_id", Value: v}})
		if err != nil {
			t.Fatal(err)
		}
		out := order{ID: uuidrep.ID[order](uuid.Max)}
		if err := bson.Unmarshal(raw, &out); err == nil || out.ID != uuidrep.ID[order](uuid.Max) {
			t.Errorf("%v: got %v, %v", v, out.ID, err)
		}
	}
	raw, err := bson.Marshal(bson.D{{Key: "_id", Value: nil}})
	if err != nil {
		t.Fatal(err)
	}
	out := order{ID: uuidrep.ID[order](uuid.Max)}
	if err := bson.Unmarshal(raw, &out); err != nil || !out.ID.IsZero() {
		t.Errorf("got %v, %v", out.ID, err)
	}
	var e *uuidrep.SubtypeError
	if err := new(uuidrep.ID[order]).UnmarshalBSONValue(byte(bson.TypeBinary), append([]byte{16, 0, 0, 0, 3}, idOctets...)); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}

func TestIDOmitsZero(t *testing.T) {
	raw, err := bson.Marshal(order{})
	if err != nil || bson.Raw(raw).Lookup("_id").Type != 0 {
		t.Errorf("got %v, %v", bson.Raw(raw), err)
	}
}

// A registry decides for an ID that is registered.
func TestIDRegistered(t *testing.T) {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.PythonLegacy).RegisterUUIDType(reflect.TypeFor[uuidrep.ID[order]]()).Build()
	if err != nil {
		t.Fatal(err)
	}
	id := uuidrep.ID[order](idOctets)
	raw, err := bsoncodec.Marshal(reg, bson.M{"a": id, "b": uuidrep.ID[item](id)})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]byte{"a": 3, "b": 4} {
		if subtype, octets, ok := bson.Raw(raw).Lookup(key).BinaryOK(); !ok || subtype != want || !bytes.Equal(octets, idOctets) {
			t.Errorf("%s: got %v", key, bson.Raw(raw))
		}
	}
}

func TestIDText(t *testing.T) {
	id, err := uuidrep.ParseID[order](idText)
	if err != nil || !bytes.Equal(id[:], idOctets) || id.String() != idText || fmt.Sprintf("%v %s", id, id) != idText+" "+idText {
		t.Errorf("got %v, %v", id, err)
	}
	type doc struct {
		ID    uuidrep.ID[order]         `json:"id"`
		Count map[uuidrep.ID[order]]int `json:"count"`
	}
	text, err := json.Marshal(doc{id, map[uuidrep.ID[order]]int{id: 1}})
	if want := `{"id":"` + idText + `","count":{"` + idText + `":1}}`; err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	var out doc
	if err := json.Unmarshal(text, &out); err != nil || out.ID != id || out.Count[id] != 1 {
		t.Errorf("got %v, %v", out, err)
	}
	for _, s := range []string{"", "x", idText + "0", idText[1:], "00112233445566778899aabbccddeefg"} {
		got := id
		if _, err := uuidrep.ParseID[order](s); err == nil || got.UnmarshalText([]byte(s)) == nil || got != id {
			t.Errorf("%q is read as %v, %v", s, got, err)
		}
	}
}
