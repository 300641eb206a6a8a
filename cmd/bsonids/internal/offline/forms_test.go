package offline

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// formed returns a UUID as a value of any kind. The n-th text is in the n-th usual spelling, and the
// documents are those that the driver writes for a struct and for a NullUUID.
func formed(u [16]byte, kind string, n int) any {
	switch kind {
	case "text":
		s := fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
		if n%8 >= 4 {
			s = strings.ToUpper(s)
		}
		return []string{s, "{" + s + "}", "urn:uuid:" + s, strings.ReplaceAll(s, "-", "")}[n%4]
	case "goStruct":
		d := bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 0, Data: u[:]}}}
		if n%2 == 1 {
			d = append(d, bson.E{Key: "valid", Value: true})
		}
		return d
	}
	return kindstest.Stored(u, kind)
}

// formsDump returns a dump with UUIDs of the kind in _id, in arrays and in fields of data.
func formsDump(kind string, ids [][16]byte) []dumptest.Collection {
	var docs, kept []any
	id := func(i int) any { return formed(ids[i], kind, i) }
	for i, u := range ids {
		docs = append(docs, bson.D{{Key: "_id", Value: id(i)}, {Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: id(len(ids) - 1 - i)}, {Key: "n", Value: "1"}}, nil}},
			{Key: "by", Value: bson.D{{Key: "65", Value: id(i)}}}, {Key: "note", Value: formed(u, "text", 0)}, {Key: "go", Value: formed(u, "goStruct", 0)}, {Key: "last", Value: int32(i)}})
		kept = append(kept, bson.D{{Key: "_id", Value: int32(i)}, {Key: "of", Value: formed(u, "text", 0)}, {Key: "to", Value: formed(u, "goStruct", 1)}})
	}
	return []dumptest.Collection{
		{Database: "d", Name: "c", Metadata: `{"options":{},"indexes":[],"uuid":"9f2c8a526d1e4b609a570f6a1d2e3c4b","collectionName":"c","type":"collection"}`, Documents: docs},
		{Database: "d", Name: "kept", Documents: kept},
	}
}

// A dump of text or of documents of Go structs becomes what the same documents are with binary values,
// and with binary values it becomes text. Other values of these forms stay as they are.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	var ids [][16]byte
	for i := range 40 {
		ids = append(ids, v4(r, i))
	}
	fields := []string{"_id", "items.sku", "by.*"}
	for _, tt := range []struct{ from, to string }{{"text", "standard"}, {"goStruct", "standard"}, {"text", "csharpLegacy"}, {"goStruct", "javaLegacy"}} {
		before, after := formsDump(tt.from, ids), formsDump(tt.to, ids)
		what := tt.from + " to " + tt.to
		for form, path := range forms(t, before) {
			out, c := output(t, path), conversion(t, tt.from, tt.to, fields...)
			res, _, err := job(t, path, c, nil, "c").run(t.Context(), t, out)
			if err != nil || !res.Complete() || res.Collections["d.c"].Steps[0].Values != 120 {
				t.Fatalf("%s, %s: %v, %+v", what, form, err, res.Collections)
			}
			equal(t, what+", "+form, contents(t, out), wanted(t, after))
			v, err := Verify(t.Context(), job(t, path, c, nil, "c"), open(t, out))
			if err != nil || !v.Holds() || v.Equal != res.Documents {
				t.Errorf("%s, %s: %v, %+v", what, form, err, v)
			}
		}
	}
	before, after := formsDump("csharpLegacy", ids), formsDump("text", ids)
	for _, c := range after { // only the canonical spelling is written
		for i := range c.Documents {
			c.Documents[i] = canonical(c.Documents[i])
		}
	}
	for form, path := range forms(t, before) {
		out := output(t, path)
		res, _, err := job(t, path, conversion(t, "csharpLegacy", "text", fields...), nil).run(t.Context(), t, out)
		if err != nil || !res.Complete() {
			t.Fatalf("%s: %v, %+v", form, err, res.Collections)
		}
		equal(t, "to text, "+form, contents(t, out), wanted(t, after))
	}
}

// canonical returns a value with all text that is a UUID in its canonical spelling.
func canonical(v any) any {
	switch v := v.(type) {
	case bson.D:
		d := bson.D{}
		for _, e := range v {
			d = append(d, bson.E{Key: e.Key, Value: canonical(e.Value)})
		}
		return d
	case bson.A:
		a := bson.A{}
		for _, e := range v {
			a = append(a, canonical(e))
		}
		return a
	case string:
		s := strings.ToLower(strings.Trim(strings.TrimPrefix(v, "urn:uuid:"), "{}"))
		if len(s) == 32 {
			s = strings.Join([]string{s[:8], s[8:12], s[12:16], s[16:20], s[20:]}, "-")
		}
		return s
	}
	return v
}

// Text that is not a UUID, checksums, and text in the options of a collection are left and listed. Empty strings
// and nulls are not.
func TestFormsLeft(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	var texts, structs, sums []any
	for i := range 40 {
		u := v4(r, i)
		texts = append(texts, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: formed(u, "text", i)}})
		structs = append(structs, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: formed(u, "goStruct", i)}})
		for j := range u {
			u[j] = byte(r.Uint32())
		}
		sums = append(sums, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: formed(u, "text", 3)}})
	}
	texts = append(texts, bson.D{{Key: "_id", Value: "x"}, {Key: "u", Value: bson.A{"", "none", int32(1)}}})
	structs = append(structs, bson.D{{Key: "_id", Value: "x"}, {Key: "u", Value: bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}}},
		bson.D{{Key: "_id", Value: "y"}, {Key: "u", Value: bson.D{{Key: "name", Value: "n"}, {Key: "uuid", Value: nil}}}},
		bson.D{{Key: "_id", Value: "z"}, {Key: "u", Value: bson.D{{Key: "name", Value: "n"}}}})
	const metadata = `{"options":{"validator":{"u":{"$ne":"9F2C8A52-6D1E-4B60-9A57-0F6A1D2E3C4B"}}},"indexes":[],"uuid":"9f2c8a526d1e4b609a570f6a1d2e3c4b"}`
	for _, tt := range []struct {
		name, from, field       string
		docs                    []any
		trusted                 []string
		values, left, constants int64
		listed                  []string
	}{
		{"text", "text", "u", texts, nil, 40, 1, 1, []string{`"path":"u.1","value":"none","reason":"the text is not a UUID`, `"path":"options.validator.u.$ne","value":"9F2C8A52`}},
		{"checksums", "text", "u", sums, nil, 0, 40, 1, []string{"may be a checksum"}},
		{"trusted checksums", "text", "u", sums, []string{"u"}, 40, 0, 1, nil},
		{"structs", "goStruct", "u", structs, nil, 41, 1, 0, []string{`"value":{"name":"n","uuid":null},"reason":"the document has fields other`}},
	} {
		path := filepath.Join(t.TempDir(), "dump")
		c := []dumptest.Collection{{Database: "d", Name: "c", Metadata: metadata, Documents: tt.docs}}
		dumptest.Directory(t, path, false, c...)
		out := output(t, path)
		res, listed, err := job(t, path, conversion(t, tt.from, "standard", tt.field), tt.trusted).run(t.Context(), t, out)
		if err != nil {
			t.Fatal(err)
		}
		values, _ := res.total()
		if values != tt.values || res.Left != tt.left || res.Constants != tt.constants {
			t.Errorf("%s: %+v", tt.name, res)
		}
		for _, text := range tt.listed {
			if !strings.Contains(listed, text) {
				t.Errorf("%s: %s is not in\n%s", tt.name, text, listed)
			}
		}
		if tt.name == "structs" && !strings.Contains(contents(t, out)["d.c"], "\x02_id\x00\x02\x00\x00\x00x\x00\x0au\x00") {
			t.Error("the document without a UUID is not null")
		}
	}
}

// Two spellings of one UUID in _id become the same _id, which is an error.
func TestEqualSpellings(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	u := v4(r, 1)
	path := filepath.Join(t.TempDir(), "dump")
	for _, other := range []any{formed(u, "text", 1), kindstest.Stored(u, "standard")} {
		dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "c", Documents: []any{
			bson.D{{Key: "_id", Value: formed(u, "text", 0)}}, bson.D{{Key: "_id", Value: formed(v4(r, 2), "text", 0)}}, bson.D{{Key: "_id", Value: other}}}})
		_, _, err := job(t, path, conversion(t, "text", "standard", "_id"), nil).run(t.Context(), t, "")
		if err == nil || !strings.Contains(err.Error(), "equal: 1 documents of d.c get the _id of another one, among them {") {
			t.Errorf("%v: %v", other, err)
		}
		path += "2"
	}
}

// A document that would be larger than any server stores is left as it is.
func TestTooLarge(t *testing.T) {
	u := kindstest.Stored(v4(rand.New(rand.NewPCG(4, 9)), 1), "standard")
	path := filepath.Join(t.TempDir(), "dump")
	doc := func(n int) any {
		return bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: u}, {Key: "s", Value: strings.Repeat("s", n)}}
	}
	room := 16<<20 - len(dumptest.BSON(t, doc(0)))
	dumptest.Directory(t, path, false, dumptest.Collection{Database: "d", Name: "c", Documents: []any{doc(room), doc(room - 20), doc(room - 19)}})
	res, _, err := job(t, path, conversion(t, "standard", "text", "u"), nil).run(t.Context(), t, "")
	if values, _ := res.total(); err != nil || values != 1 || res.Left != 2 {
		t.Errorf("%v, %+v", err, res)
	}
}
