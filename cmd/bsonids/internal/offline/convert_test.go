package offline

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// A dump in any form and any representation becomes what the same documents are in the standard one. The
// record, and what belongs to the server, stays as it is.
func TestRepresentations(t *testing.T) {
	for i, from := range []string{"pythonLegacy", "csharpLegacy", "javaLegacy"} {
		r := rand.New(rand.NewPCG(uint64(i), 0))
		before, after := shop(r, 20+r.IntN(40), from, "standard")
		n := int64(len(before[0].Documents))
		convertAll(t, conversion(t, from), before, after, nil, nil, func(res Result, _ string) bool {
			values, changed := res.total()
			return res.Complete() && changed == 2*n && values == 5*n && res.Documents == 2*n+2
		})
	}
}

// What is not planned is copied. A selection of what the dump does not have is an error.
func TestSelection(t *testing.T) {
	before, after := shop(rand.New(rand.NewPCG(1, 1)), 30, "javaLegacy", "standard")
	any := func(Result, string) bool { return true }
	convertAll(t, conversion(t, "javaLegacy"), before, concat(after[:1], before[1:]), nil, []string{"customers"}, any)
	path := dumptest.Forms(t, before...)["archive"]
	if _, _, err := Survey(t.Context(), reading(t, path, "none")); err == nil || !strings.Contains(err.Error(), `collection "none" does not exist`) {
		t.Error(err)
	}
}

// Text and documents of Go structs become binary values, also in _id. Other values of these
// forms stay as they are.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	ids := make([][16]byte, 40)
	for i := range ids {
		ids[i] = v4(r, i)
	}
	dump := func(kind string) []dumptest.Collection {
		c, kept := dumptest.Collection{Database: "d", Name: "c", Metadata: `{"options":{},"indexes":[],"uuid":"9f2c8a526d1e4b609a570f6a1d2e3c4b"}`}, dumptest.Collection{Database: "d", Name: "kept"}
		for i, u := range ids {
			id := formed(u, kind, i)
			c.Documents = append(c.Documents, bson.D{{Key: "_id", Value: id}, {Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: formed(ids[39-i], kind, i)}, {Key: "n", Value: "1"}}, nil}},
				{Key: "by", Value: bson.D{{Key: "65", Value: id}}}, {Key: "note", Value: formed(u, "text", 1)}, {Key: "go", Value: formed(u, "goStruct", 0)}, {Key: "last", Value: int32(i)}})
			kept.Documents = append(kept.Documents, bson.D{{Key: "_id", Value: int32(i)}, {Key: "of", Value: formed(u, "text", 0)}, {Key: "to", Value: formed(u, "goStruct", 1)}})
		}
		return []dumptest.Collection{c, kept}
	}
	for _, from := range []string{"text", "goStruct", "binaryText"} {
		convertAll(t, conversion(t, from, "_id", "items.sku", "by.*"), dump(from), dump("standard"), nil, []string{"c"}, func(res Result, _ string) bool {
			return res.Complete() && res.Collections["d.c"].Values == 120
		})
	}
}

// formed returns a UUID as a value of any kind. The n-th text is in the n-th usual spelling, and the
// documents are those that the driver writes for a struct and for a NullUUID.
func formed(u [16]byte, kind string, n int) any {
	s := fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
	switch {
	case kind == "canonical":
		return s
	case kind == "digits":
		return strings.ReplaceAll(s, "-", "")
	case kind == "text":
		if n%8 >= 4 {
			s = strings.ToUpper(s)
		}
		return []string{s, "{" + s + "}", "urn:uuid:" + s, strings.ReplaceAll(s, "-", "")}[n%4]
	case kind == "binaryText" && n%2 == 1:
		return bson.Binary{Subtype: []byte{0, 2, 3, 4}[n/2%4], Data: []byte(strings.ReplaceAll(s, "-", ""))}
	case kind == "binaryText":
		return bson.Binary{Subtype: []byte{0, 2, 3, 4}[n/2%4], Data: []byte(s)}
	case kind == "goStruct" && n%2 == 1:
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}, {Key: "valid", Value: true}}
	case kind == "goStruct":
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
	}
	return kindstest.Stored(u, kind)
}

// Values that are left as they are, are listed with their collection: those of another order, text that is not a
// UUID, checksums, and constants in the metadata. Empty strings and nulls are not.
func TestLeft(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 4))
	ids, sums := make([][16]byte, 40), make([][16]byte, 40)
	for i := range ids {
		ids[i], sums[i] = v4(r, i), [16]byte(kindstest.Octets(r))
	}
	docs := func(ids [][16]byte, kind string, more ...any) (out []any) { // every fourth one is of the first of two kinds
		for i, u := range ids {
			k := strings.Split(kind, "/")
			out = append(out, bson.D{{Key: "_id", Value: int32(i)}, {Key: "u", Value: formed(u, k[min(i%4, len(k)-1)], i)}})
		}
		for i, v := range more {
			out = append(out, bson.D{{Key: "_id", Value: fmt.Sprint(i)}, {Key: "u", Value: v}})
		}
		return out
	}
	odd, named, nameless := bson.A{"", "none", int32(1)}, bson.D{{Key: "name", Value: "n"}, {Key: "uuid", Value: nil}}, bson.D{{Key: "name", Value: "n"}}
	null := bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}
	data := bson.A{bson.Binary{Data: make([]byte, 36)}, bson.Binary{Subtype: 2, Data: make([]byte, 32)}, bson.Binary{Subtype: 5, Data: []byte("9f2c8a52-6d1e-4b60-9a57-0f6a1d2e3c4b")}}
	const octets = `{"$binary":{"base64":"OWYyYzhhNTItNmQxZS00YjYwLTlhNTctMGY2YTFkMmUzYzRi","subType":"03"}}`
	const binary, text = `{"$binary":{"base64":"AAECAwQFBgcICQoLDA0ODw==","subType":"03"}}`, `"9F2C8A52-6D1E-4B60-9A57-0F6A1D2E3C4B"`
	for _, tt := range []struct {
		name, from, constant string
		before, after        []any
		trusted              []string
		values, left, listed int64 // with two constants, if they are of the kind
		lines                []string
	}{
		{"another order", "javaLegacy", binary, docs(ids, "csharpLegacy/javaLegacy"), docs(ids, "csharpLegacy/standard"), nil, 30, 10, 12, []string{
			`{"collection":"d.c","_id":{"$numberInt":"4"},"path":"u"`, `"_id":null,"path":"options.validator.u.$ne","value":` + binary, `"path":"indexes.0.partialFilterExpression.u.$gt"`}},
		{"text", "text", text, docs(ids, "text", odd), docs(ids, "standard", odd), nil, 40, 1, 3, []string{
			`"path":"u.1","value":"none","reason":"the text is not a UUID`, `"path":"options.validator.u.$ne","value":` + text}},
		{"text in binary", "binaryText", octets, docs(ids, "binaryText", data), docs(ids, "standard", data), nil, 40, 0, 2, []string{
			`"path":"options.validator.u.$ne","value":` + octets}},
		{"checksums", "text", text, docs(sums, "digits"), docs(sums, "digits"), nil, 0, 40, 42, []string{"may be a checksum"}},
		{"trusted checksums", "text", text, docs(sums, "digits"), docs(sums, "standard"), []string{"u"}, 40, 0, 2, nil},
		{"structs", "goStruct", text, docs(ids, "goStruct", null, named, nameless), docs(ids, "standard", nil, named, nameless), nil, 41, 1, 1, []string{
			`"value":{"name":"n","uuid":null},"reason":"the document has fields other`}},
	} {
		metadata := `{"options":{"validator":{"u":{"$ne":` + tt.constant + `}}},"indexes":[{"partialFilterExpression":{"u":{"$gt":` + tt.constant + `}}}],"uuid":"9f2c8a526d1e4b609a570f6a1d2e3c4b"}`
		of := func(docs []any) []dumptest.Collection {
			return []dumptest.Collection{{Database: "d", Name: "c", Metadata: metadata, Documents: docs}, {Database: "d", Name: "empty", Metadata: "{}"}}
		}
		convertAll(t, conversion(t, tt.from, "u"), of(tt.before), of(tt.after), tt.trusted, nil, func(res Result, listed string) bool {
			for _, line := range tt.lines {
				if !strings.Contains(listed, line) {
					t.Errorf("%s: %s is not in the list", tt.name, line)
				}
			}
			values, _ := res.total()
			return values == tt.values && res.Left == tt.left && res.Constants == tt.listed-tt.left && int64(strings.Count(listed, "\n")) == tt.listed && !res.Complete()
		})
	}
}

// The buckets of a time series are copied, and listed.
func TestTimeSeries(t *testing.T) {
	u := v4(rand.New(rand.NewPCG(4, 4)), 1)
	bucket := func(kind string) any {
		return bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "meta", Value: kindstest.Stored(u, kind)}, {Key: "data", Value: bson.D{{Key: "x", Value: bson.Binary{Subtype: 7, Data: []byte{1}}}}}}
	}
	c := []dumptest.Collection{{Database: "d", Name: "w", Type: "timeseries", Metadata: `{"type":"timeseries"}`},
		{Database: "d", Name: "system.buckets.w", Documents: []any{bucket("javaLegacy"), bucket("standard")}},
		{Database: "d", Name: "c", Documents: []any{bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: kindstest.Stored(u, "javaLegacy")}}}}}
	convertAll(t, conversion(t, "javaLegacy"), c, c, nil, nil, func(res Result, _ string) bool {
		values, _ := res.total()
		return res.Left == 4 && values == 0 // a value that nothing decides, one in a bucket, and compressed measurements twice
	})
}

// Two _ids that become equal, in two representations or in two spellings, are an error, which names them. Nothing is
// written.
func TestEqualIDs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	id := func(u, n any) bson.D {
		return bson.D{{Key: "_id", Value: bson.D{{Key: "u", Value: u}, {Key: "n", Value: n}}}}
	}
	for from, also := range map[string]string{"javaLegacy": "standard", "text": "standard", "canonical": "text"} {
		var docs []any
		for i := range 30 {
			u := v4(r, i)
			docs = append(docs, id(formed(u, from, i), int32(i)))
			if i == 7 {
				docs = append(docs, id(formed(u, also, 1), float64(i)))
			}
		}
		c := conversion(t, strings.Replace(from, "canonical", "text", 1), "_id.u")
		for form, path := range dumptest.Forms(t, dumptest.Collection{Database: "d", Name: "c", Documents: docs}, dumptest.Collection{Database: "d", Name: "e"}) {
			for _, out := range []string{output(t, path), ""} {
				_, _, err := job(t, path, c, nil).run(t.Context(), t, out)
				if err == nil || !strings.Contains(err.Error(), "equal: 1 documents of d.c get the _id of another one, among them {") || !strings.Contains(err.Error(), `"7`) {
					t.Errorf("%s, %s: %v", from, form, err)
				}
			}
		}
	}
}

// A damaged dump, a full disk in the middle, or an interrupt leaves nothing under any name.
func TestNothingIsLeft(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(5, 5)), 3000, "javaLegacy", "standard")
	for form, path := range dumptest.Forms(t, before...) {
		ctx, cancel := context.WithCancel(t.Context())
		j := job(t, path, conversion(t, "javaLegacy"), nil)
		j.Progress = func(int) { cancel() }
		if _, _, err := j.run(ctx, t, output(t, path)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// A document that is not BSON is damage, at its offset, also if its length and its end are right.
func TestCorruptDocument(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "c.bson")
	good := dumptest.BSON(t, bson.D{{Key: "_id", Value: int32(1)}})
	bad := dumptest.BSON(t, bson.D{{Key: "s", Value: "text"}})
	bad[7] = 100 // the length of the text
	dumptest.Write(t, path, concat(good, bad))
	_, _, err := Survey(t.Context(), reading(t, path))
	if want := fmt.Sprintf("%s is damaged at byte %d", path, len(good)); !errors.Is(err, walk.ErrCorrupt) || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}

// An input that changes while it is read is an error, and so is one that has changed since the survey.
func TestChangedInput(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(6, 6)), 3000, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, before...)
	changing, half := filepath.Join(path, "shop", "customers.bson"), dumptest.BSON(t, before[0].Documents[:1500]...)
	j := job(t, path, conversion(t, "javaLegacy"), nil)
	j.Progress = func(int) { dumptest.Write(t, changing, half) }
	if _, _, err := j.run(t.Context(), t, output(t, path)); err == nil || !strings.Contains(err.Error(), changing+": it changed while it was read") {
		t.Error(err)
	}
	j.Input, j.Progress = open(t, path), func(int) {}
	if _, _, err := j.run(t.Context(), t, output(t, path)); err == nil || !strings.Contains(err.Error(), "not the dump that the plan was made of") {
		t.Error(err)
	}
}

// A proof finds each kind of difference.
func TestVerifyFinds(t *testing.T) {
	before, after := shop(rand.New(rand.NewPCG(7, 7)), 30, "javaLegacy", "standard")
	path := filepath.Join(t.TempDir(), "dump")
	dumptest.Directory(t, path, false, before...)
	docs := after[0].Documents
	for name, tt := range map[string]struct {
		change                       func(out string)
		wrong, missing, extra, other int64
	}{
		"nothing": {func(string) {}, 0, 0, 0, 0},
		"wrong": {func(out string) {
			dumptest.Write(t, out, dumptest.BSON(t, concat(before[0].Documents[:1], docs[1:])...))
		}, 1, 0, 0, 0},
		"missing": {func(out string) { dumptest.Write(t, out, dumptest.BSON(t, docs[:28]...)) }, 0, 2, 0, 0},
		"extra":   {func(out string) { dumptest.Write(t, out, dumptest.BSON(t, concat(docs, docs[:1])...)) }, 0, 0, 1, 0},
		"a file":  {func(out string) { _ = os.Remove(out) }, 0, 0, 0, 1},
		"metadata": {func(out string) {
			dumptest.Write(t, filepath.Join(filepath.Dir(out), "empty.metadata.json"), []byte("{}"))
		}, 0, 0, 0, 1},
	} {
		out := filepath.Join(t.TempDir(), "out")
		dumptest.Directory(t, out, false, after...)
		tt.change(filepath.Join(out, "shop", "customers.bson"))
		v, err := Verify(t.Context(), job(t, path, conversion(t, "javaLegacy"), nil), open(t, out))
		if err != nil || v.Wrong != tt.wrong || v.Missing != tt.missing || v.Extra != tt.extra || v.Other != tt.other || v.Holds() != (name == "nothing") {
			t.Errorf("%s: %v, %+v", name, err, v)
		}
	}
}

// A dump with an oplog is refused: the survey, the conversion, and the proof. Nothing is
// written.
func TestOplogRefused(t *testing.T) {
	before, _ := shop(rand.New(rand.NewPCG(8, 8)), 40, "javaLegacy", "standard")
	plain := dumptest.Forms(t, before...)
	with := dumptest.Forms(t, append(before, dumptest.Collection{Name: "oplog", Documents: []any{bson.D{{Key: "op", Value: "n"}}}})...)
	for form, path := range with {
		if _, _, err := Survey(t.Context(), reading(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, surveyed: %v", form, err)
		}
		j := job(t, plain[form], conversion(t, "javaLegacy"), nil) // has the conversions
		j.Input = open(t, path)
		if _, _, err := j.run(t.Context(), t, output(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, converted: %v", form, err)
		}
		if _, err := Verify(t.Context(), j, open(t, path)); !errors.Is(err, ErrOplog) {
			t.Errorf("%s, verified: %v", form, err)
		}
	}
}
