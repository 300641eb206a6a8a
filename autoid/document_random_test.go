package autoid

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// TestDocumentStructs makes random struct types with every tag that affects keys, and compares them
// with the driver under every option that does. It also uses two options with one registry: the
// driver keeps the description of a struct type that it made first.
func TestDocumentStructs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	tags := []reflect.StructTag{
		``, `bson:"_id"`, `bson:"_id,omitempty"`, `json:"_id"`, `json:"_id,omitempty"`, `bson:"-"`, `json:"-"`, `_id`,
		`_id,omitempty`, `bson:",inline"`, `,inline`, `json:",inline"`, `bson:"x,omitempty"`, `bson:"y" json:"_id"`,
		`bson:",omitempty" json:"-"`, `xml:"_id"`, `bson:"inline"`,
	}
	leaves := []reflect.Type{
		reflect.TypeFor[int32](), reflect.TypeFor[string](), reflect.TypeFor[bson.ObjectID](), reflect.TypeFor[*int32](),
		reflect.TypeFor[any](), reflect.TypeFor[map[string]int32](), reflect.TypeFor[base](), reflect.TypeFor[*base](),
		reflect.TypeFor[time.Time](), reflect.TypeFor[[0]byte](), reflect.TypeFor[[2]byte](), reflect.TypeFor[float64](),
		reflect.TypeFor[bool](), reflect.TypeFor[odd](), reflect.TypeFor[*odd](), reflect.TypeFor[bson.D](),
	}
	var structOf func(depth int) reflect.Type
	structOf = func(depth int) reflect.Type {
		var fields []reflect.StructField
		for i := range rnd.IntN(5) {
			typ := leaves[rnd.IntN(len(leaves))]
			if depth > 0 && rnd.IntN(3) == 0 {
				typ = structOf(depth - 1)
				if rnd.IntN(2) == 0 {
					typ = reflect.PointerTo(typ)
				}
			}
			tag := tags[rnd.IntN(len(tags))]
			if k := typ.Kind(); (k == reflect.Array || k == reflect.Struct) && strings.Contains(string(tag), "omitempty") {
				tag = `bson:"_id"` // omitempty of an array or a struct differs from the driver, see TestZeroArray
			}
			fields = append(fields, reflect.StructField{Name: fmt.Sprintf("F%d%d", depth, i), Type: typ, Tag: tag})
		}
		return reflect.StructOf(fields)
	}
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		if rnd.IntN(2) == 0 {
			return
		}
		switch v.Kind() {
		case reflect.Int32:
			v.SetInt(7)
		case reflect.String:
			v.SetString("s")
		case reflect.Array:
			if v.Len() > 0 {
				v.Index(0).SetUint(1)
			}
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Float64:
			v.SetFloat(math.Copysign(0, -1))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		case reflect.Interface:
			v.Set(reflect.ValueOf("any"))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]int32{[]string{"_id", "z"}[rnd.IntN(2)]: 1}))
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(time.Unix(1, 0)))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		}
	}
	const omitEmpty = 0
	options := []setting{
		(*bson.Encoder).OmitEmpty, (*bson.Encoder).UseJSONStructTags, (*bson.Encoder).OmitZeroStruct,
		(*bson.Encoder).ErrorOnInlineDuplicates,
	}
	newRegistry := []func() *bson.Registry{bson.NewRegistry, bson.NewRegistry, bson.NewMgoRegistry, registries(t)["plans"], registries(t)["codecs"]}
	rounds := 4_000
	if testing.Short() {
		rounds = 1_000
	}
	encoded, drew, kept, places := 0, 0, 0, map[placement]int{}
	for range rounds {
		v := reflect.New(structOf(2))
		fill(v.Elem())
		for i := range v.Elem().NumField() {
			fill(v.Elem().Field(i))
		}
		where, _ := idFieldOf(v.Type().Elem(), reading{json: rnd.IntN(2) == 0}).place(v.Elem(), false)
		places[where]++
		reg := newRegistry[rnd.IntN(len(newRegistry))]()
		Register(reg)
		if rnd.IntN(4) == 0 {
			_, _ = encode(reg, v.Interface(), (*bson.Encoder).UseJSONStructTags)
		}
		var set []setting
		for i, o := range options {
			// OmitEmpty of an array or a struct differs from the driver, too.
			if rnd.IntN(3) == 0 && (i != omitEmpty || !hasWritten(v.Type().Elem())) {
				set = append(set, o)
			}
		}
		doc := v.Interface()
		if rnd.IntN(2) == 0 {
			doc = v.Elem().Interface()
		}
		var src counter
		got, gotErr := encode(reg, Document(&src, doc, WithZeroIDs(), WithMisfitIDs()), set...)
		plain, err := encode(reg, doc, set...)
		if err != nil || gotErr != nil {
			if fmt.Sprint(err) != fmt.Sprint(gotErr) {
				t.Fatalf("%T:\ngot  %v\nwant %v", doc, gotErr, err)
			}
			continue
		}
		encoded++
		want := withID(t, plain, int32(1))
		if !bytes.Equal(got, want) {
			t.Fatalf("%T:\ngot  %s\nwant %s", doc, hex(got), hex(want))
		}
		has := len(want) == len(plain)
		if has == (src.drawn() == 1) {
			t.Fatalf("%T: drew %d ids for %s", doc, src.drawn(), hex(plain))
		}
		if has {
			kept++
		} else {
			drew++
		}
	}
	t.Logf("%d encoded, %d with an id drawn, %d with their own; placements %v", encoded, drew, kept, places)
	if drew < rounds/10 || kept < rounds/10 || places[anywhere] == 0 || places[nowhere] == 0 || places[firstOrNever] == 0 || places[somewhere] == 0 {
		t.Error("the types made do not cover the cases")
	}
}

// TestZeroIDsOfStructs makes random struct types whose _id is zero, null or set, with every tag and in
// inline structs, under the options that decide on keys and with registries that met the type under
// other options before. Whatever the driver writes, exactly one _id is encoded, it is never null or
// zero, one that is set stays, and a zero one is refused only if no field that is the _id has omitempty.
func TestZeroIDsOfStructs(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	u := uuid.UUID{1, 2, 15: 3}
	ids := []any{
		uuid.Nil, u, &u, new(uuid.UUID), (*uuid.UUID)(nil), uuid.NullUUID{}, uuid.NullUUID{UUID: u, Valid: true}, bson.NilObjectID,
		bson.ObjectID{1}, (*bson.ObjectID)(nil), &bson.ObjectID{}, emptyAsNull{}, emptyAsNull{[]byte("x")}, &emptyAsNull{},
		bson.Binary{Subtype: 4, Data: make([]byte, 16)}, bson.Binary{Subtype: 4, Data: u[:]}, uuidrep.StandardUUID{}, "", "x", int32(0), int32(1),
	}
	idTags := []reflect.StructTag{`bson:"_id"`, `bson:"_id,omitempty"`, `json:"_id"`, `json:"_id,omitempty"`, `json:"x" bson:"_id,omitempty"`, `_id,omitempty`}
	inlineTags := []reflect.StructTag{`bson:",inline"`, `json:",inline"`, ``}
	kinds := registries(t)
	kinds["mgo"] = func() *bson.Registry { reg := bson.NewMgoRegistry(); Register(reg); return reg }
	names := []string{"driver", "plans", "codecs", "mgo"}
	rounds := 6_000
	if testing.Short() {
		rounds = 1_500
	}
	refused, drawn, kept := 0, 0, 0
	for range rounds {
		id := ids[rnd.IntN(len(ids))]
		idType := reflect.TypeOf(id)
		if rnd.IntN(4) == 0 {
			idType = reflect.TypeFor[any]()
		}
		tag := idTags[rnd.IntN(len(idTags))]
		field := reflect.StructField{Name: "ID", Type: idType, Tag: tag}
		other := reflect.StructField{Name: "Other", Type: reflect.TypeFor[string](), Tag: `bson:"other"`}
		rest := reflect.StructField{Name: "Rest", Type: reflect.TypeFor[bson.M](), Tag: `bson:",inline"`}
		var value reflect.Value
		set := func(fields ...reflect.StructField) {
			if rnd.IntN(2) == 0 {
				slices.Reverse(fields)
			}
			if rnd.IntN(3) == 0 {
				fields = append(fields, rest)
			}
			value = reflect.New(reflect.StructOf(fields)).Elem()
		}
		set(field, other)
		value.FieldByName("ID").Set(reflect.ValueOf(id))
		for range rnd.IntN(3) {
			inner := value
			if rnd.IntN(3) == 0 {
				inner = reflect.New(value.Type())
				inner.Elem().Set(value)
			}
			rest.Tag = reflect.StructTag(fmt.Sprintf(`bson:"r%d"`, rnd.Uint32())) // one inline map
			other.Tag = reflect.StructTag(fmt.Sprintf(`bson:"o%d"`, rnd.Uint32()))
			set(reflect.StructField{Name: "In", Type: inner.Type(), Tag: inlineTags[rnd.IntN(len(inlineTags))]}, other)
			value.FieldByName("In").Set(inner)
		}
		doc := value.Interface()
		if rnd.IntN(2) == 0 {
			doc = value.Addr().Interface()
		}
		name := names[rnd.IntN(len(names))]
		reg := kinds[name]()
		contexts := [][]setting{nil, {(*bson.Encoder).UseJSONStructTags}, {(*bson.Encoder).OmitEmpty}, {(*bson.Encoder).OmitEmpty, (*bson.Encoder).UseJSONStructTags},
			{(*bson.Encoder).OmitZeroStruct}}
		for range 1 + rnd.IntN(3) {
			at := rnd.IntN(len(contexts))
			settings := contexts[at]
			what := fmt.Sprintf("%s, context %d: %T with %#v", name, at, doc, id)
			var src counter
			got, err := encode(reg, Document(&src, doc, WithMisfitIDs()), settings...)
			plain, plainErr := encode(reg, doc, settings...)
			if plainErr != nil {
				t.Fatalf("%s: %v", what, plainErr)
			}
			driverID, missing := bson.Raw(plain).LookupErr("_id")
			zero := missing == nil && (driverID.Type == bson.TypeNull || bytes.HasSuffix(driverID.Value, make([]byte, 12)) && driverID.Type != bson.TypeEmbeddedDocument)
			omits := strings.Contains(string(tag), "omitempty") || at == 2 || at == 3
			if err != nil {
				if !errors.Is(err, ErrZeroID) || !zero || omits || src.drawn() != 0 {
					t.Fatalf("%s: %v, where the driver writes %s", what, err, hex(plain))
				}
				refused++
				continue
			}
			if n := bytes.Count(got, []byte("_id\x00")) - bytes.Count(plain, []byte("_id\x00")); missing != nil && n != 1 || missing == nil && n != 0 {
				t.Fatalf("%s: %s, where the driver writes %s", what, hex(got), hex(plain))
			}
			if id == any(uuid.NullUUID{}) && (name == "driver" || name == "mgo") {
				continue // without a codec it is a document, see TestNullableID
			}
			if missing == nil && !zero {
				if !bytes.Equal(got, plain) || src.drawn() != 0 {
					t.Fatalf("%s: %s, where the driver writes %s", what, hex(got), hex(plain))
				}
				kept++
				continue
			}
			if zero && !omits {
				t.Fatalf("%s: not refused: %s, where the driver writes %s", what, hex(got), hex(plain))
			}
			if e := bson.Raw(got).Index(0); e.Key() != "_id" || e.Value().Type != bson.TypeInt32 || src.drawn() != 1 ||
				!bytes.Equal(withoutID(t, got), withoutID(t, plain)) {
				t.Fatalf("%s: %s, where the driver writes %s", what, hex(got), hex(plain))
			}
			drawn++
		}
	}
	if refused < rounds/20 || drawn < rounds/5 || kept < rounds/5 {
		t.Errorf("%d refused, %d drawn, %d kept", refused, drawn, kept)
	}
}

// hasWritten reports whether t has an array or a struct as a field that can be the _id.
func hasWritten(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		k := f.Type.Kind()
		if strings.Contains(string(f.Tag), "_id") && (k == reflect.Array || k == reflect.Struct) || hasWritten(f.Type) {
			return true
		}
	}
	return false
}

// FuzzDocumentRaw tests that a raw document is accepted or refused as the driver accepts or refuses
// it.
func FuzzDocumentRaw(f *testing.F) {
	for _, d := range []bson.D{
		{}, {{Key: "a", Value: 1}}, {{Key: "_id", Value: 1}}, {{Key: "a", Value: 1}, {Key: "_id", Value: nil}},
		{{Key: "a", Value: bson.D{{Key: "_id", Value: 1}}}}, {{Key: "user_id", Value: "_id\x00"}},
		{{Key: "a", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "_id", Value: 1}}}}},
	} {
		b, err := bson.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte{5, 0, 0, 0})
	f.Add([]byte{6, 0, 0, 0, 0, 0})
	f.Add([]byte("\x10\x00\x00\x00\x10_id\x00\x01\x00\x00\x00\x00\xff"))
	f.Add([]byte("\x11\x00\x00\x00\x10a\x00\x01\x00\x00\x00\n_id\x00")) // a null _id, and no end
	reg := registered()
	f.Fuzz(func(t *testing.T, data []byte) {
		plain, want := encode(reg, bson.Raw(data))
		id, noID := bson.Raw(data).LookupErr("_id")
		refused := want == nil && noID == nil && (id.Type == bson.TypeNull || id.Type == bson.TypeUndefined ||
			id.Type == bson.TypeObjectID && bytes.Equal(id.Value, make([]byte, 12)) ||
			id.Type == bson.TypeBinary && len(id.Value) == 21 && id.Value[0] == 16 && bytes.Equal(id.Value[5:], make([]byte, 16)))
		for _, doc := range []any{bson.Raw(data), data, &data} {
			if p, ok := doc.(*[]byte); ok {
				r := bson.Raw(*p)
				doc = &r
			}
			var src counter
			switch _, err := encode(reg, Document(&src, doc)); {
			case want != nil && err == nil:
				t.Fatalf("a document that the driver refuses, for %v, is encoded", want)
			case want == nil && errors.Is(err, ErrZeroID) != refused:
				t.Fatalf("got %v, want it refused: %v", err, refused)
			}
			got, err := encode(reg, Document(&src, doc, WithZeroIDs()))
			if fmt.Sprint(err) != fmt.Sprint(want) {
				t.Fatalf("got %v, want %v", err, want)
			}
			if err != nil {
				continue
			}
			if full := withID(t, plain, int32(2)); !bytes.Equal(got, full) {
				t.Fatalf("got %x, want %x", got, full)
			} else if (len(full) == len(plain)) == (src.drawn() > 0) {
				t.Fatalf("drew %d ids", src.drawn())
			}
		}
	})
}
