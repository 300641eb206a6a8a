package driver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// The tests below are the places of docs/where-the-driver-bypasses.md that need no server: where
// the driver does not use the registry of the client. If one fails, the driver has changed, and its
// way out there may not be needed any more.

var bypassUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

func standardRegistry(t *testing.T) *bson.Registry {
	t.Helper()
	reg, err := bsoncodec.NewRegistry(uuidrep.Standard)
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func wantSubtype(t *testing.T, rv bson.RawValue, want byte) {
	t.Helper()
	subtype, data, ok := rv.BinaryOK()
	if !ok || subtype != want || !bytes.Equal(data, bypassUUID[:]) {
		t.Errorf("got %v, want the UUID as subtype %d", rv, want)
	}
}

func TestDriverIgnoresUUIDRepresentation(t *testing.T) {
	opts := options.Client().ApplyURI("mongodb://localhost/?uuidRepresentation=standard")
	if err := opts.Validate(); err != nil || opts.Registry != nil {
		t.Errorf("the registry is %v, %v", opts.Registry, err)
	}
}

func TestDriverMarshalTakesNoRegistry(t *testing.T) {
	doc := bson.D{{Key: "u", Value: bypassUUID}}
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(b).Lookup("u"), 0)
	subtype, value, err := bson.MarshalValue(bypassUUID)
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.RawValue{Type: subtype, Value: value}, 0)
	if b, err := bson.MarshalExtJSON(doc, true, false); err != nil || !strings.Contains(string(b), `"subType":"00"`) {
		t.Errorf("%s, %v", b, err)
	}

	stored, err := bsoncodec.Marshal(standardRegistry(t), doc)
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(stored).Lookup("u"), 4)
	var typed struct{ U uuid.UUID }
	if err := bson.Unmarshal(stored, &typed); err == nil {
		t.Errorf("bson.Unmarshal reads subtype 4 as %v", typed.U)
	}
	if err := bsoncodec.Unmarshal(standardRegistry(t), stored, &typed); err != nil || typed.U != bypassUUID {
		t.Errorf("%v, %v", typed.U, err)
	}
}

func TestDriverEncoderHasARegistryOfItsOwn(t *testing.T) {
	var buf bytes.Buffer
	enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
	if err := enc.Encode(bson.D{{Key: "u", Value: bypassUUID}}); err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(buf.Bytes()).Lookup("u"), 0)

	buf.Reset()
	enc = bson.NewEncoder(bson.NewDocumentWriter(&buf))
	enc.SetRegistry(standardRegistry(t))
	if err := enc.Encode(bson.D{{Key: "u", Value: bypassUUID}}); err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(buf.Bytes()).Lookup("u"), 4)
	var typed struct{ U uuid.UUID }
	if err := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(buf.Bytes()))).Decode(&typed); err == nil {
		t.Errorf("a new decoder reads subtype 4 as %v", typed.U)
	}
	dec := bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(buf.Bytes())))
	dec.SetRegistry(standardRegistry(t))
	if err := dec.Decode(&typed); err != nil || typed.U != bypassUUID {
		t.Errorf("%v, %v", typed.U, err)
	}
}

// marshals has a MarshalBSON of the usual kind.
type marshals struct{ U uuid.UUID }

func (m marshals) MarshalBSON() ([]byte, error) {
	type plain marshals
	return bson.Marshal(plain(m))
}

func (m *marshals) UnmarshalBSON(b []byte) error {
	type plain marshals
	return bson.Unmarshal(b, (*plain)(m))
}

// marshalsFixed has a field of a fixed representation, which every registry writes and reads.
type marshalsFixed struct{ U uuidrep.StandardUUID }

func (m marshalsFixed) MarshalBSON() ([]byte, error) {
	type plain marshalsFixed
	return bson.Marshal(plain(m))
}

func (m *marshalsFixed) UnmarshalBSON(b []byte) error {
	type plain marshalsFixed
	return bson.Unmarshal(b, (*plain)(m))
}

func TestDriverTakesMarshalBSONAsItIs(t *testing.T) {
	reg, err := bsoncodec.NewRegistryBuilder(uuidrep.Standard).AllowSubtype0OfMethods().Build()
	if err != nil {
		t.Fatal(err)
	}
	b, err := bsoncodec.Marshal(reg, bson.D{{Key: "sub", Value: marshals{bypassUUID}}})
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(b).Lookup("sub", "u"), 0)
	stored, err := bsoncodec.Marshal(reg, bson.D{{Key: "u", Value: bypassUUID}})
	if err != nil {
		t.Fatal(err)
	}
	var m marshals
	if err := bsoncodec.Unmarshal(reg, stored, &m); err == nil {
		t.Errorf("UnmarshalBSON reads subtype 4 as %v", m.U)
	}

	fixed := marshalsFixed{uuidrep.StandardUUID{UUID: bypassUUID}}
	b, err = bsoncodec.Marshal(reg, bson.D{{Key: "sub", Value: fixed}})
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, bson.Raw(b).Lookup("sub", "u"), 4)
	var back marshalsFixed
	if err := bsoncodec.Unmarshal(reg, stored, &back); err != nil || back != fixed {
		t.Errorf("%v, %v", back, err)
	}
}

func encodeByRegistry(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	dw, err := vw.WriteDocument()
	if err != nil {
		return err
	}
	return dw.WriteDocumentEnd()
}

// A registry's encoder for a type with MarshalBSON is asked for the value of an element, and not
// for a whole document.
func TestDriverAsksNoRegistryForADocumentWithMarshalBSON(t *testing.T) {
	reg := bson.NewRegistry()
	reg.RegisterTypeEncoder(reflect.TypeFor[marshals](), bson.ValueEncoderFunc(encodeByRegistry))
	encode := func(doc any) bson.Raw {
		var buf bytes.Buffer
		enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
		enc.SetRegistry(reg)
		if err := enc.Encode(doc); err != nil {
			t.Fatal(err)
		}
		return buf.Bytes()
	}
	wantSubtype(t, encode(marshals{bypassUUID}).Lookup("u"), 0)
	if sub := encode(bson.D{{Key: "sub", Value: marshals{bypassUUID}}}).Lookup("sub").Document(); len(sub) != 5 {
		t.Errorf("an element is encoded as %v", sub)
	}
}

func TestDriverRawValueForgetsItsRegistry(t *testing.T) {
	reg := standardRegistry(t)
	stored, err := bsoncodec.Marshal(reg, bson.D{{Key: "u", Value: bypassUUID}})
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ U bson.RawValue }
	if err := bsoncodec.Unmarshal(reg, stored, &doc); err != nil {
		t.Fatal(err)
	}
	for _, rv := range []bson.RawValue{doc.U, bson.Raw(stored).Lookup("u")} {
		var u uuid.UUID
		if err := rv.Unmarshal(&u); err == nil {
			t.Errorf("RawValue.Unmarshal reads subtype 4 as %v", u)
		}
		if err := rv.UnmarshalWithRegistry(reg, &u); err != nil || u != bypassUUID {
			t.Errorf("%v, %v", u, err)
		}
		if err := bsoncodec.UnmarshalValue(reg, rv, &u); err != nil || u != bypassUUID {
			t.Errorf("%v, %v", u, err)
		}
	}
}

func TestDriverPrintsWithARegistryOfItsOwn(t *testing.T) {
	for _, text := range []string{bson.D{{Key: "u", Value: bypassUUID}}.String(), bson.M{"u": bypassUUID}.String()} {
		if !strings.Contains(text, `"subType":"00"`) {
			t.Errorf("a document prints as %s", text)
		}
	}
	// encoding/json writes the text of the UUID, whatever the registry.
	want := `{"u":"` + bypassUUID.String() + `"}`
	for _, doc := range []any{bson.D{{Key: "u", Value: bypassUUID}}, bson.M{"u": bypassUUID}} {
		if b, err := json.Marshal(doc); err != nil || string(b) != want {
			t.Errorf("%T is %s in JSON, %v", doc, b, err)
		}
	}
	b, err := bsoncodec.MarshalExtJSON(standardRegistry(t), bson.D{{Key: "u", Value: bypassUUID}}, true, false)
	if err != nil || !strings.Contains(string(b), `"subType":"04"`) {
		t.Errorf("%s, %v", b, err)
	}
}

func TestDriverDecodesGridFSFilesWithARegistryOfItsOwn(t *testing.T) {
	reg := standardRegistry(t)
	stored, err := bsoncodec.Marshal(reg, bson.D{
		{Key: "_id", Value: bypassUUID}, {Key: "metadata", Value: bson.D{{Key: "owner", Value: bypassUUID}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var file mongo.GridFSFile
	if err := bsoncodec.Unmarshal(reg, stored, &file); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(file.ID, uuidrep.NewBinary(bypassUUID)) {
		t.Errorf("the file's id is %#v", file.ID)
	}
	if id, err := bsoncodec.DecodeNative(reg, file.ID); err != nil || id != bypassUUID {
		t.Errorf("%v, %v", id, err)
	}
	var metadata struct{ Owner uuid.UUID }
	if err := bsoncodec.Unmarshal(reg, file.Metadata, &metadata); err != nil || metadata.Owner != bypassUUID {
		t.Errorf("%v, %v", metadata, err)
	}
}

func TestDriverGridFSUploadHasARegistryOfItsOwn(t *testing.T) {
	var args options.GridFSUploadOptions
	for _, set := range options.GridFSUpload().List() {
		if err := set(&args); err != nil {
			t.Fatal(err)
		}
	}
	if args.Registry == nil {
		t.Error("options.GridFSUpload leaves the registry to the bucket")
	}
}

func TestDriverResultsFromDocumentsHaveARegistryOfTheirOwn(t *testing.T) {
	doc := bson.D{{Key: "u", Value: bypassUUID}}
	raw, err := mongo.NewSingleResultFromDocument(doc, nil, nil).Raw()
	if err != nil {
		t.Fatal(err)
	}
	wantSubtype(t, raw.Lookup("u"), 0)
	reg := standardRegistry(t)
	var typed struct{ U uuid.UUID }
	if err := mongo.NewSingleResultFromDocument(doc, nil, reg).Decode(&typed); err != nil || typed.U != bypassUUID {
		t.Errorf("%v, %v", typed.U, err)
	}

	cursor, err := mongo.NewCursorFromDocuments([]any{doc}, nil, nil)
	if err != nil || !cursor.Next(context.Background()) {
		t.Fatal(err)
	}
	wantSubtype(t, cursor.Current.Lookup("u"), 0)
	cursor, err = mongo.NewCursorFromDocuments([]any{doc}, nil, reg)
	if err != nil || !cursor.Next(context.Background()) {
		t.Fatal(err)
	}
	if err := cursor.Decode(&typed); err != nil || typed.U != bypassUUID {
		t.Errorf("%v, %v", typed.U, err)
	}
}

// The session id that the driver makes is subtype 4 for every client.
func TestDriverSessionIDIsStandard(t *testing.T) {
	reg, err := bsoncodec.NewRegistry(uuidrep.JavaLegacy)
	if err != nil {
		t.Fatal(err)
	}
	client, err := mongo.Connect(options.Client().ApplyURI("mongodb://nowhere.invalid").SetRegistry(reg))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Disconnect(context.Background()) }()
	session, err := client.StartSession()
	if err != nil {
		t.Fatal(err)
	}
	if subtype, data, ok := session.ID().Lookup("id").BinaryOK(); !ok || subtype != 4 || len(data) != 16 {
		t.Errorf("lsid is %v", session.ID())
	}
	var java struct{ ID uuid.UUID }
	if err := bsoncodec.Unmarshal(reg, session.ID(), &java); err == nil || !strings.Contains(err.Error(), "StandardUUID") {
		t.Errorf("a javaLegacy registry reads lsid as %v, %v; the error must name the way out", java, err)
	}
	var fixed struct{ ID uuidrep.StandardUUID }
	if err := bsoncodec.Unmarshal(reg, session.ID(), &fixed); err != nil || fixed.ID.IsZero() {
		t.Errorf("%v, %v", fixed, err)
	}
}
