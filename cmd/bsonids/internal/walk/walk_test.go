package walk

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
)

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	b, err := bson.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// everyType returns a document with a value of each BSON type, to compare the sizes of the walker
// with the encoding of the driver.
func everyType() bson.D {
	dec, _ := bson.ParseDecimal128("1.5")
	return bson.D{
		{Key: "double", Value: 1.5}, {Key: "string", Value: "text"}, {Key: "empty", Value: ""},
		{Key: "doc", Value: bson.D{{Key: "a", Value: int32(1)}}}, {Key: "array", Value: bson.A{int32(1), "x", bson.D{{Key: "y", Value: nil}}}},
		{Key: "binary", Value: bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}},
		{Key: "old", Value: bson.Binary{Subtype: 2, Data: []byte("0123456789ab")}},
		{Key: "none", Value: bson.Binary{Subtype: 4}},
		{Key: "undefined", Value: bson.Undefined{}}, {Key: "oid", Value: bson.ObjectID{1}}, {Key: "bool", Value: true},
		{Key: "date", Value: time.Unix(1, 0)}, {Key: "null", Value: nil}, {Key: "regex", Value: bson.Regex{Pattern: "a+", Options: "i"}},
		{Key: "pointer", Value: bson.DBPointer{DB: "a.b", Pointer: bson.ObjectID{2}}}, {Key: "code", Value: bson.JavaScript("1")},
		{Key: "symbol", Value: bson.Symbol("s")}, {Key: "scope", Value: bson.CodeWithScope{Code: "1", Scope: bson.D{{Key: "z", Value: "z"}}}},
		{Key: "int", Value: int32(1)}, {Key: "ts", Value: bson.Timestamp{T: 1}}, {Key: "long", Value: int64(1)}, {Key: "decimal", Value: dec},
		{Key: "min", Value: bson.MinKey{}}, {Key: "max", Value: bson.MaxKey{}}, {Key: "nothing", Value: bson.D{}}, {Key: "no", Value: bson.A{}},
	}
}

func TestDocument(t *testing.T) {
	doc := marshal(t, everyType())
	var got []string
	err := Document(doc, func(p *Path, l Leaf) error {
		got = append(got, p.Dotted()+" "+l.Type.String())
		// The driver finds the same value at the same path.
		v, err := bson.Raw(doc).LookupErr(strings.Split(p.Dotted(), ".")...)
		if err != nil || !v.Equal(bson.RawValue{Type: l.Type, Value: l.Value}) {
			t.Errorf("%s: the driver reads %v, %v", p.Dotted(), v, err)
		}
		if string(doc[l.Offset:l.Offset+len(l.Value)]) != string(l.Value) {
			t.Errorf("%s: not at its offset", p.Dotted())
		}
		if subtype, data, offset, ok := l.Binary(); ok {
			if doc[offset] != subtype || string(doc[offset+1:offset+1+len(data)]) != string(data) {
				t.Errorf("%s: not at its offset", p.Dotted())
			}
		} else if l.Type == bson.TypeBinary && p.Dotted() != "old" {
			t.Errorf("%s is not a binary value", p.Dotted())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split("double double,string string,empty string,doc.a 32-bit integer,array.0 32-bit integer,array.1 string,array.2.y null,"+
		"binary binary,old binary,none binary,undefined undefined,oid objectID,bool boolean,date UTC datetime,null null,regex regex,"+
		"pointer dbPointer,code javascript,symbol symbol,scope code with scope,int 32-bit integer,ts timestamp,long 64-bit integer,"+
		"decimal 128-bit decimal,min min key,max max key", ",")
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestDocumentCorrupt(t *testing.T) {
	doc := marshal(t, everyType())
	nothing := func(*Path, Leaf) error { return nil }
	for n := range doc {
		if err := Document(doc[:n], nothing); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d of %d octets: %v", n, len(doc), err)
		}
	}
	if err := Document(append(slices.Clone(doc), 0), nothing); !errors.Is(err, ErrCorrupt) {
		t.Errorf("with an octet more: %v", err)
	}
	deep := bson.D{}
	for range maxDepth + 1 {
		deep = bson.D{{Key: "a", Value: deep}}
	}
	if err := Document(marshal(t, deep), nothing); !errors.Is(err, ErrCorrupt) {
		t.Errorf("nested too deep: %v", err)
	}
	stop := errors.New("stop")
	if err := Document(doc, func(*Path, Leaf) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the visitor's error", err)
	}
}

func FuzzDocument(f *testing.F) {
	f.Add(marshal(f, everyType()))
	f.Add(marshal(f, bson.D{{Key: "a", Value: 1}, {Key: "a", Value: bson.A{bson.D{{Key: "", Value: 1}}}}}))
	f.Add([]byte{5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, doc []byte) {
		err := Document(doc, func(p *Path, l Leaf) error {
			p.Repeated(doc) // only walks what has been walked, so it cannot run past the end
			_ = p.Addressable()
			_ = p.AppendField(nil)
			if string(doc[l.Offset:l.Offset+len(l.Value)]) != string(l.Value) {
				t.Error("a value that is not at its offset")
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Error(err)
		}
	})
}

func paths(t *testing.T, doc any, f func(*Path, []byte) string) []string {
	t.Helper()
	raw := marshal(t, doc)
	var got []string
	if err := Document(raw, func(p *Path, _ Leaf) error { got = append(got, f(p, raw)); return nil }); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestField(t *testing.T) {
	const id, oid = "00112233-4455-6677-8899-aabbccddeeff", "699dfad90ca573f85c0eec1c"
	doc := bson.D{
		{Key: "a", Value: 1}, {Key: "items", Value: bson.A{bson.D{{Key: "id", Value: 1}}, bson.A{1}}},
		{Key: "by", Value: bson.D{{Key: id, Value: 1}, {Key: oid, Value: 1}, {Key: "17", Value: 1}, {Key: "face", Value: 1}, {Key: "", Value: 1}}},
	}
	got := paths(t, doc, func(p *Path, _ []byte) string { return string(p.AppendField(nil)) })
	want := []string{"a", "items[].id", "items[][]", "by.*", "by.*", "by.*", "by.face", "by.*"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPattern(t *testing.T) {
	doc := bson.D{{Key: "a", Value: bson.A{bson.D{{Key: "b", Value: 1}, {Key: "c", Value: 1}}}}, {Key: "b", Value: 1}, {Key: "a.b", Value: 1}}
	for pattern, want := range map[string]string{
		"a.b": "a.0.b a.b", "a[].b": "a.0.b a.b", "a.*": "a.0.b a.0.c a.b", "b": "b", "*": "b a.b", "*.b": "a.0.b a.b", "*.*": "a.0.b a.0.c a.b", "a": "", "a.0.b": "", "a.b.c": "",
	} {
		p, err := ParsePattern(pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := paths(t, doc, func(path *Path, _ []byte) string {
			if p.Match(path) {
				return path.Dotted()
			}
			return ""
		})
		if s := strings.Join(slices.DeleteFunc(got, func(s string) bool { return s == "" }), " "); s != want {
			t.Errorf("%s: got %q, want %q", pattern, s, want)
		}
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a..b", "[]"} {
		if p, err := ParsePattern(bad); err == nil {
			t.Errorf("%q: got %v", bad, p)
		}
	}
}

func TestAddressable(t *testing.T) {
	doc := bson.D{
		{Key: "ok", Value: bson.A{bson.D{{Key: "b", Value: 1}}}}, {Key: "", Value: 1}, {Key: "a.b", Value: 1}, {Key: "$x", Value: 1},
		{Key: "ref", Value: bson.D{{Key: "$ref", Value: 1}, {Key: "$id", Value: 1}, {Key: "$db", Value: 1}, {Key: "$x", Value: 1}}},
		{Key: "in", Value: bson.D{{Key: "", Value: 1}}},
	}
	got := paths(t, doc, func(p *Path, _ []byte) string { return fmt.Sprint(p.Addressable() == nil) })
	if want := strings.Fields("true false false false true true true false false"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRepeated(t *testing.T) {
	doc := bson.D{
		{Key: "a", Value: 1}, {Key: "b", Value: bson.D{{Key: "c", Value: 1}, {Key: "d", Value: 1}, {Key: "c", Value: 1}}}, {Key: "a", Value: 2},
		{Key: "e", Value: bson.A{1, bson.D{{Key: "f", Value: bson.A{1}}, {Key: "f", Value: 1}, {Key: "g", Value: 1}}}},
	}
	got := paths(t, doc, func(p *Path, raw []byte) string { return fmt.Sprint(p.Repeated(raw)) })
	if want := strings.Fields("true true false true true false true true false"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Repeated names are detected among many names, in time linear in their number.
func TestRepeatedAmongMany(t *testing.T) {
	var doc bson.D
	var list bson.A
	for i := range 100_000 {
		doc = append(doc, bson.E{Key: fmt.Sprint("k", i%99_999), Value: 1}) // the first name is repeated at the end
		list = append(list, 1)
	}
	doc = append(doc, bson.E{Key: "list", Value: list})
	for i, got := range paths(t, doc, func(p *Path, raw []byte) string { return fmt.Sprint(p.Repeated(raw)) }) {
		if want := fmt.Sprint(i == 0 || i == 99_999); got != want {
			t.Fatalf("value %d: %s, want %s", i, got, want)
		}
	}
}
