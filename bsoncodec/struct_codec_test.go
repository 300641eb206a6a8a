package bsoncodec_test

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

type user struct {
	ID   uuid.UUID `json:"_id"`
	Name string    `json:"fullName"`
	Best *user     `json:"best"`
}

// decodeWithJSONTags decodes as a client with UseJSONStructTags does.
func decodeWithJSONTags(reg *bson.Registry, doc bson.Raw, v any) error {
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc)))
	dec.SetRegistry(reg)
	dec.UseJSONStructTags()
	return dec.Decode(v)
}

// Whoever decodes a struct first without the options of the client does not change what the client
// decodes.
func TestUnmarshalWithoutOptionsLeavesTheClientAlone(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	want := user{ID: testUUID, Name: "Ada", Best: &user{Name: "Bob"}}
	doc := bson.D{{Key: "_id", Value: testUUID}, {Key: "fullName", Value: "Ada"}, {Key: "best", Value: bson.D{{Key: "fullName", Value: "Bob"}}}}
	raw := marshal(t, reg, doc)

	var without, client, with user
	unmarshal(t, reg, raw, &without)
	if without.Name != "" {
		t.Fatalf("got %+v without UseJSONStructTags", without)
	}
	if err := decodeWithJSONTags(reg, raw, &client); err != nil || !reflect.DeepEqual(client, want) {
		t.Errorf("the client decodes %+v, %v; want %+v", client, err, want)
	}
	if err := bsoncodec.Unmarshal(reg, raw, &with, bsoncodec.Options{UseJSONStructTags: true}); err != nil || !reflect.DeepEqual(with, want) {
		t.Errorf("Unmarshal decodes %+v, %v; want %+v", with, err, want)
	}
}

// The same for encoding.
func TestMarshalWithoutOptionsLeavesTheClientAlone(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	v := user{ID: testUUID, Name: "Ada"}
	if got := marshal(t, reg, v).Lookup("name").StringValue(); got != "Ada" {
		t.Fatalf("got %q", got)
	}
	var client bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&client))
	enc.SetRegistry(reg)
	enc.UseJSONStructTags()
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	if got, ok := bson.Raw(client.Bytes()).Lookup("fullName").StringValueOK(); !ok || got != "Ada" {
		t.Errorf("the client writes %v", bson.Raw(client.Bytes()))
	}
	with, err := bsoncodec.Marshal(reg, v, bsoncodec.Options{UseJSONStructTags: true})
	if err != nil || !bytes.Equal(with, client.Bytes()) {
		t.Errorf("Marshal writes %v, %v; the client %v", bson.Raw(with), err, bson.Raw(client.Bytes()))
	}
}

// mgo has types whose encoding the mgo registries change: empty structs, unexported embedded
// fields, inline duplicates, fields that are kept.
type mgo struct {
	hidden `bson:",inline"`
	Empty  struct{ A int } `bson:",omitempty"`
	Kept   int
	Rest   map[string]any `bson:",inline"`
}

type hidden struct{ E int }

// The codecs of structs of the driver's registries are replaced by their own kind.
func TestStructsOfTheDriversRegistries(t *testing.T) {
	type duplicate struct {
		hidden `bson:",inline"`
		In     struct{ A int } `bson:",inline"`
		A      int
	}
	for name, newRegistry := range map[string]func() *bson.Registry{
		"NewRegistry": bson.NewRegistry, "NewMgoRegistry": bson.NewMgoRegistry, "NewRespectNilValuesMgoRegistry": bson.NewRespectNilValuesMgoRegistry,
	} {
		reg := newRegistry()
		if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(reg); err != nil {
			t.Fatal(err)
		}
		for _, set := range optionSets() {
			for _, v := range []any{mgo{}, &mgo{Kept: 1, Rest: map[string]any{"x": []int(nil)}}, &mgo{Rest: map[string]any{"y": map[string]int(nil)}}, duplicate{}} {
				got, err := bsoncodec.Marshal(reg, v, withOptions(set...))
				want, wantErr := bsoncodec.Marshal(newRegistry(), v, withOptions(set...))
				if !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Fatalf("%s, %v: Marshal(%+v): got %v, %v; want %v, %v", name, set, v, bson.Raw(got), err, bson.Raw(want), wantErr)
				}
			}
			doc := marshal(t, bson.NewRegistry(), bson.D{{Key: "e", Value: 1}, {Key: "x", Value: 1}})
			got, want := mgo{Kept: 7}, mgo{Kept: 7}
			err := bsoncodec.Unmarshal(reg, doc, &got, withOptions(set...))
			wantErr := bsoncodec.Unmarshal(newRegistry(), doc, &want, withOptions(set...))
			if !reflect.DeepEqual(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
				t.Fatalf("%s, %v: Unmarshal: got %+v, %v; want %+v, %v", name, set, got, err, want, wantErr)
			}
		}
	}
}

type constantCodec struct{}

// The caller's own codec of structs stays.
func TestStructCodecOfTheCaller(t *testing.T) {
	own := func(reg *bson.Registry) {
		reg.RegisterKindEncoder(reflect.Struct, constantCodec{})
		reg.RegisterKindDecoder(reflect.Struct, constantCodec{})
	}
	applied := bson.NewRegistry()
	own(applied)
	if err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).ApplyTo(applied); err != nil {
		t.Fatal(err)
	}
	for name, reg := range map[string]*bson.Registry{
		"With":    build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(own)),
		"ApplyTo": applied,
	} {
		if got := marshal(t, reg, user{Name: "Ada"}); len(got) != 5 {
			t.Errorf("%s: the caller's codec was replaced: got %v", name, got)
		}
	}
}

// A codec of the caller's that wraps the registry's codec of structs, or brings another one of the
// driver's, keeps the options apart too.
func TestStructCodecThatTheCallerBringsAlong(t *testing.T) {
	type wrapped user
	for name, f := range map[string]func(*bson.Registry){
		"wraps": func(reg *bson.Registry) {
			dec, err := reg.LookupDecoder(reflect.TypeFor[wrapped]())
			if err != nil {
				t.Fatal(err)
			}
			reg.RegisterTypeDecoder(reflect.TypeFor[wrapped](), bson.ValueDecoderFunc(dec.DecodeValue))
		},
		"brings": func(reg *bson.Registry) {
			dec, err := bson.NewMgoRegistry().LookupDecoder(reflect.TypeFor[wrapped]())
			if err != nil {
				t.Fatal(err)
			}
			reg.RegisterKindDecoder(reflect.Struct, dec)
		},
	} {
		reg := build(t, bsoncodec.NewRegistryBuilder(uuidrep.Standard).With(f))
		raw := marshal(t, reg, bson.D{{Key: "fullName", Value: "Ada"}})
		var without, client wrapped
		unmarshal(t, reg, raw, &without)
		if err := decodeWithJSONTags(reg, raw, &client); err != nil || client.Name != "Ada" {
			t.Errorf("%s: the client decodes %+v, %v", name, client, err)
		}
	}
}

// Many goroutines may meet a registry with many options at once.
func TestStructsAreSafeForConcurrentUse(t *testing.T) {
	reg := registry(t, uuidrep.Standard)
	sets := optionSets()
	v := optioned{ID: testUUID, Keys: map[keyed]int{{1}: 1}}
	want := make([][]byte, len(sets))
	for i, set := range sets {
		want[i], _ = bsoncodec.Marshal(registry(t, uuidrep.Standard), v, withOptions(set...))
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range sets {
				i = (i + g*len(sets)/8) % len(sets)
				got, err := bsoncodec.Marshal(reg, v, withOptions(sets[i]...))
				if err != nil || !bytes.Equal(got, want[i]) {
					t.Errorf("%v: got %v, %v; want %v", sets[i], bson.Raw(got), err, bson.Raw(want[i]))
					return
				}
				var back optioned
				if err := bsoncodec.Unmarshal(reg, got, &back, withOptions(sets[i]...)); err == nil && back.ID != v.ID {
					t.Errorf("%v: got %v back", sets[i], back.ID)
				}
			}
		})
	}
	wg.Wait()
}

func (constantCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	dw, err := vw.WriteDocument()
	if err != nil {
		return err
	}
	return dw.WriteDocumentEnd()
}

func (constantCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
	return vr.Skip()
}
