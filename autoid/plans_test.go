package autoid_test

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/autoid"
	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// TestZeroIDWithPlans checks that a zero value of an _id counts as missing also if a plan encodes the document, and its
// encoded form does not show that it is zero.
func TestZeroIDWithPlans(t *testing.T) {
	build := func(plans bool) *bson.Registry {
		b := bsoncodec.NewRegistryBuilder(uuidrep.Standard)
		if !plans {
			b.WithoutPlans()
		}
		reg, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		autoid.Register(reg)
		return reg
	}
	src := autoid.SourceFunc(func() (any, error) { return "drawn", nil })
	others := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: 2}, {Key: "c", Value: 3}}
	d := append(bson.D{{Key: "_id", Value: time.Time{}}}, others...)
	m := bson.M{"_id": time.Time{}, "a": 1, "b": 2, "c": 3}
	for _, doc := range []any{d, &d, m, &m, map[string]time.Time{"_id": {}, "a": {}}} {
		for _, plans := range []bool{false, true} {
			var buf bytes.Buffer
			enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
			enc.SetRegistry(build(plans))
			if err := enc.Encode(autoid.Document(src, doc, autoid.WithZeroIDAsMissing(), autoid.WithMisfitIDs())); err != nil {
				t.Fatal(err)
			}
			if id, ok := bson.Raw(buf.Bytes()).Lookup("_id").StringValueOK(); !ok || id != "drawn" {
				t.Errorf("%T, plans %v: the zero _id was kept: %v", doc, plans, bson.Raw(buf.Bytes()))
			}
		}
	}
}

// TestDocumentsWithPlans checks that a plan writes the same document, or returns the same error, as codecs do, wherever the
// document has its _id and whatever the id of the source is.
func TestDocumentsWithPlans(t *testing.T) {
	build := func(plans bool) *bson.Registry {
		b := bsoncodec.NewRegistryBuilder(uuidrep.JavaLegacy).With(autoid.Register)
		if !plans {
			b.WithoutPlans()
		}
		reg, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return reg
	}
	type first struct {
		ID uuid.UUID `bson:"_id,omitempty"`
		A  int
		B  uuid.UUID
	}
	type always struct {
		ID any `bson:"_id"`
		A  []string
	}
	type late struct {
		A  int
		ID bson.ObjectID `bson:"_id,omitempty"`
		B  map[string]any
	}
	type open struct {
		A int
		M map[string]any `bson:",inline"`
	}
	type text string
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	oid := bson.ObjectID{1, 2, 3}
	abc := bson.D{{Key: "a", Value: 1}, {Key: "b", Value: bson.D{{Key: "_id", Value: 5}}}, {Key: "c", Value: u}}
	docs := []any{
		first{}, first{A: 1, B: u}, first{ID: u, A: 2}, &first{A: 3}, always{}, always{ID: u}, always{ID: uuid.Nil, A: []string{"x"}},
		&always{ID: first{}}, late{A: 4}, &late{A: 5, ID: oid, B: map[string]any{"_id": 1}}, open{}, open{A: 6, M: map[string]any{"_id": u}},
		open{M: map[string]any{"_id": nil}}, struct{}{}, abc, append(bson.D{{Key: "_id", Value: u}}, abc...),
		append(bson.D{{Key: "_id", Value: bson.ObjectID{}}}, abc...), append(abc[:3:3], bson.E{Key: "_id", Value: 0}),
		append(bson.D{{Key: "_id", Value: ""}}, append(abc[:3:3], bson.E{Key: "_id", Value: u})...),
		bson.M{"a": 1}, bson.M{"_id": u}, bson.M{"_id": uuid.Nil}, map[string]uuid.UUID{"_id": {}}, bson.D{}, bson.M{},
		struct{ Wrong chan int }{}, struct{ Wrong uuid.UUID }{u}, bson.Raw("\x05\x00\x00\x00\x00"),
	}
	ids := []any{
		u, uuid.Nil, oid, bson.ObjectID{}, "text", text("own"), 7, int32(8), int64(1 << 40), 1.5, &u, []byte("x"), [16]byte{1}, [4]byte{},
		bson.Binary{Subtype: 4, Data: u[:]}, bson.D{{Key: "x", Value: 1}}, nil, (*int)(nil), bson.Null{}, make(chan int), uuidrep.NewBinary(uuid.Nil),
		[2]string{"a", "b"}, bson.RawValue{Type: bson.TypeNull},
	}
	options := map[string][]autoid.Option{
		"": nil, "zero is missing": {autoid.WithZeroIDAsMissing()}, "zero is kept": {autoid.WithZeroIDs()}, "misfits": {autoid.WithMisfitIDs()},
		"all": {autoid.WithZeroIDAsMissing(), autoid.WithZeroIDs(), autoid.WithMisfitIDs()},
	}
	plans, codecs := build(true), build(false)
	encoded := 0
	for name, opts := range options {
		for _, doc := range docs {
			for _, id := range ids {
				encode := func(reg *bson.Registry) (raw bson.Raw, draws int, err error) {
					src := autoid.SourceFunc(func() (any, error) { draws++; return id, nil })
					d := autoid.Document(src, doc, opts...)
					for range 2 { // the second time with the id of the first
						var buf bytes.Buffer
						enc := bson.NewEncoder(bson.NewDocumentWriter(&buf))
						enc.SetRegistry(reg)
						if err = enc.Encode(d); err != nil {
							return nil, draws, err
						}
						raw = buf.Bytes()
					}
					return raw, draws, nil
				}
				want, wantDraws, wantErr := encode(codecs)
				got, gotDraws, gotErr := encode(plans)
				if wantErr != nil {
					if gotErr == nil || gotErr.Error() != wantErr.Error() || gotDraws != wantDraws {
						t.Errorf("%s, %T with the id %v: got error %v, %d draws, want %v, %d", name, doc, id, gotErr, gotDraws, wantErr, wantDraws)
					}
					continue
				}
				encoded++
				same := bytes.Equal(got, want)
				if reflect.ValueOf(doc).Kind() == reflect.Map { // of one element or two, in any order
					same = len(got) == len(want) && got.Lookup("_id").Equal(want.Lookup("_id")) && got.Validate() == nil
				}
				if gotErr != nil || !same || gotDraws != wantDraws {
					t.Errorf("%s, %T with the id %v: got %v, %d draws, error %v, want %v, %d", name, doc, id, got, gotDraws, gotErr, want, wantDraws)
				}
			}
		}
	}
	if encoded < 1000 {
		t.Errorf("only %d documents were encoded", encoded)
	}
}
