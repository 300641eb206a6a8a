package rule

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// changed returns v with random changes: fields and elements are removed and others inserted. The
// same numbers make the same changes to an old document and to its copy.
func changed(v any, r *rand.Rand) any {
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			if e.Key != "_id" && r.IntN(8) == 0 {
				continue
			}
			out = append(out, bson.E{Key: e.Key, Value: changed(e.Value, r)})
			if r.IntN(8) == 0 {
				out = append(out, bson.E{Key: "new", Value: r.Int32()})
			}
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			if r.IntN(4) == 0 {
				continue
			}
			out = append(out, changed(e, r))
		}
		return out
	}
	return v
}

// A document whose copy is unchanged is restored byte for byte. One whose copy was changed is
// restored as the old document with the same changes, if its values are distinct: an old value is
// never restored in another way, wherever it was moved within its field.
func TestRestore(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	exact, moved := 0, 0
	c := conversion(t, "javaLegacy")
	for range 20_000 {
		fields := append(bson.D{{Key: "_id", Value: anyFields(r, 1)}}, anyFields(r, 3)...)
		before := marshal(t, fields)
		copied := formed(fields, nil, true, func(v any, _ []string) (any, bool) { return fromJava(v) })
		got, open, err := c.Restore(marshal(t, copied), before)
		if err != nil || len(open) > 0 || !bytes.Equal(got, before) {
			t.Fatalf("%v is restored as %v, %v, %v", before, got, open, err)
		}
		seed := r.Uint64()
		doc := marshal(t, changed(copied, rand.New(rand.NewPCG(seed, 1))))
		want := marshal(t, changed(fields, rand.New(rand.NewPCG(seed, 1))))
		got, open, err = c.Restore(doc, before)
		if err != nil || len(open) > 0 {
			t.Fatalf("%v: %v, %v", doc, open, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%v, which became %v, is restored as %v, want %v", before, doc, got, want)
		}
		if exact++; !bytes.Equal(doc, marshal(t, copied)) {
			moved++
		}
	}
	t.Logf("%d documents, %d of them changed", exact, moved)
}

// The values of a collection with both kinds are restored as they were. Values that are new since
// are converted back.
func TestRestoreNew(t *testing.T) {
	a, b, n := uuid.New(), uuid.New(), uuid.New()
	in := func(u uuid.UUID, r uuidrep.Representation) bson.Binary {
		v, err := uuidrep.NewBinaryWithRepresentation(u, r)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	const java, standard = uuidrep.JavaLegacy, uuidrep.Standard
	d := func(fields ...any) bson.Raw {
		out := bson.D{{Key: "_id", Value: 1}}
		for i, f := range fields {
			out = append(out, bson.E{Key: string(rune('a' + i)), Value: f})
		}
		return marshal(t, out)
	}
	for name, tt := range map[string]struct {
		guide, doc, want bson.Raw // no want: open
	}{
		"mixed":                  {d(in(a, java), in(b, standard)), d(in(a, standard), in(b, standard), true), d(in(a, java), in(b, standard), true)},
		"new value":              {d(in(a, java), in(b, standard)), d(in(n, standard), in(n, standard)), d(in(n, java), in(n, java))},
		"new document":           {nil, d(in(n, standard)), d(in(n, java))},
		"new in the old form":    {nil, d(in(n, java)), d(in(n, java))},
		"moved":                  {d(bson.A{in(b, standard), in(a, java)}), d(bson.A{in(a, standard)}), d(bson.A{in(a, java)})},
		"moved, one of two":      {d(bson.A{in(a, standard), in(a, java)}), d(bson.A{nil, nil, in(a, standard)}), nil},
		"same place, one of two": {d(bson.A{in(a, standard), in(a, java)}), d(bson.A{in(a, standard), in(a, standard)}, 1), d(bson.A{in(a, standard), in(a, java)}, 1)},
	} {
		c := conversion(t, "javaLegacy")
		got, open, err := c.Restore(tt.doc, tt.guide)
		if err != nil || (tt.want == nil) != (len(open) > 0) || tt.want != nil && !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, %v; want %v", name, got, open, err, tt.want)
		}
	}
}

// Text gets its spelling back, and a document of a Go struct its fields. What is new is text in the
// usual spelling; there is no conversion back to documents.
func TestRestoreForms(t *testing.T) {
	const one, two = "00112233-4455-4677-8899-aabbccddeeff", "{0A112233-4455-4677-8899-AABBCCDDEEFF}"
	fresh := func(text string) bson.Binary {
		u := uuid.MustParse(text)
		return bson.Binary{Subtype: 4, Data: u[:]}
	}
	structOf := func(text string, valid ...bool) bson.D {
		u := uuid.MustParse(text)
		d := bson.D{{Key: "uuid", Value: bson.Binary{Data: u[:]}}}
		for _, v := range valid {
			d = append(d, bson.E{Key: "valid", Value: v})
		}
		return d
	}
	nobody := structOf("00000000-0000-0000-0000-000000000000", false)
	doc := func(n int, a ...any) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: bson.A(a)}, {Key: "n", Value: n}, {Key: "other", Value: bson.A{nil, one}}})
	}
	for name, tt := range map[string]struct {
		from             string
		guide, doc, want bson.Raw // no want: open
	}{
		"text, unchanged":    {"text", doc(1, one, two, "x"), doc(1, fresh(one), fresh(two), "x"), doc(1, one, two, "x")},
		"text, changed":      {"text", doc(1, one, two, "x"), doc(2, fresh(one), fresh(two), "x", "y"), doc(2, one, two, "x", "y")},
		"text, moved":        {"text", doc(1, one, two), doc(1, fresh(two)), doc(1, two)},
		"text, new":          {"text", doc(1, two), doc(1, fresh(one)), doc(1, one)},
		"struct, unchanged":  {"goStruct", doc(1, structOf(one), structOf(two, true), nobody, nil), doc(1, fresh(one), fresh(two), nil, nil), doc(1, structOf(one), structOf(two, true), nobody, nil)},
		"struct, changed":    {"goStruct", doc(1, structOf(one), structOf(two, true), nobody, nil), doc(2, fresh(one), fresh(two), nil, nil), doc(2, structOf(one), structOf(two, true), nobody, nil)},
		"struct, moved":      {"goStruct", doc(1, structOf(one), structOf(two, true)), doc(1, fresh(two)), doc(1, structOf(two, true))},
		"struct, null moved": {"goStruct", doc(1, structOf(one), nobody), doc(1, nil), doc(1, nil)},
		"struct, left":       {"goStruct", doc(1, structOf(one, false), structOf(two)), doc(2, structOf(one, false), fresh(two)), doc(2, structOf(one, false), structOf(two))},
		"struct, new":        {"goStruct", doc(1, structOf(one)), doc(1, fresh(two)), nil},
	} {
		c := conversion(t, tt.from, "a")
		got, open, err := c.Restore(tt.doc, tt.guide)
		if err != nil || (tt.want == nil) != (len(open) > 0) || tt.want != nil && !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %v, %v, %v; want %v", name, got, open, err, tt.want)
		}
		if copied, _, _, err := c.Rewrite(tt.guide); err != nil || strings.HasSuffix(name, "unchanged") && !bytes.Equal(copied, tt.doc) {
			t.Errorf("%s: copied as %v, %v", name, copied, err)
		}
	}
}

// A null is a document of a Go struct again only at a path that tells one value, and a guide that becomes
// the document is restored whatever its paths tell. Damaged documents are errors.
func TestRestoreOddNames(t *testing.T) {
	c := conversion(t, "goStruct", "a", "a.b")
	nobody := bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}
	d := func(fields ...bson.E) bson.Raw { return marshal(t, append(bson.D{{Key: "_id", Value: 1}}, fields...)) }
	twice, dotted := d(bson.E{Key: "a", Value: nobody}, bson.E{Key: "a", Value: nobody}), d(bson.E{Key: "a.b", Value: nobody})
	for _, tt := range []struct{ guide, doc, want bson.Raw }{
		{twice, d(bson.E{Key: "a", Value: nil}, bson.E{Key: "a", Value: nil}), twice},
		{dotted, d(bson.E{Key: "a.b", Value: nil}), dotted},
		{twice, d(bson.E{Key: "a", Value: nil}), d(bson.E{Key: "a", Value: nil})},
		{dotted, d(bson.E{Key: "a", Value: bson.D{{Key: "b", Value: nil}}}), d(bson.E{Key: "a", Value: bson.D{{Key: "b", Value: nil}}})},
		{d(bson.E{Key: "a", Value: nobody}), d(bson.E{Key: "a", Value: nil}, bson.E{Key: "a", Value: nil}), d(bson.E{Key: "a", Value: nil}, bson.E{Key: "a", Value: nil})},
		{d(bson.E{Key: "a", Value: bson.D{{Key: "b", Value: nobody}}}), d(bson.E{Key: "a.b", Value: nil}), d(bson.E{Key: "a.b", Value: nil})},
		{d(bson.E{Key: "a", Value: nobody}), d(bson.E{Key: "a", Value: nil}, bson.E{Key: "n", Value: 1}), d(bson.E{Key: "a", Value: nobody}, bson.E{Key: "n", Value: 1})},
	} {
		got, open, err := c.Restore(tt.doc, tt.guide)
		if err != nil || len(open) > 0 || !bytes.Equal(got, tt.want) {
			t.Errorf("%v of %v: %v, %v, %v", tt.doc, tt.guide, got, open, err)
		}
	}
	for _, damaged := range [][2]bson.Raw{{twice[:len(twice)-2], nil}, {twice, dotted[:len(dotted)-2]}} {
		if _, _, err := c.Restore(damaged[0], damaged[1]); !errors.Is(err, walk.ErrCorrupt) {
			t.Errorf("damaged: %v", err)
		}
	}
}

// A damaged document cannot be restored, with a guide or without, whether it has values or not.
func TestRestoreDamaged(t *testing.T) {
	c := conversion(t, "javaLegacy")
	for _, d := range []bson.D{{{Key: "_id", Value: 1}}, {{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("standard")}}} {
		doc := marshal(t, d)
		damaged := doc[:len(doc)-1]
		for _, guide := range []bson.Raw{nil, doc} {
			if old, open, err := c.Restore(damaged, guide); !errors.Is(err, walk.ErrCorrupt) || old != nil || open != nil {
				t.Errorf("got %v, %v, %v", old, open, err)
			}
		}
		if old, open, err := c.Restore(doc, damaged); !errors.Is(err, walk.ErrCorrupt) || old != nil || open != nil {
			t.Errorf("a damaged guide: got %v, %v, %v", old, open, err)
		}
	}
}
