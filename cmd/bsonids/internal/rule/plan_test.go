package rule

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Every pair of kinds is converted as the specification gives their bytes. Only values with the
// subtype and the length of --from are converted.
func TestPlanAndRewrite(t *testing.T) {
	for _, from := range kindstest.Binary {
		for _, to := range kindstest.Binary {
			if from == to || to == "generic" {
				continue
			}
			c := conversion(t, from, to)
			doc := func(v bson.Binary) bson.D {
				return bson.D{
					{Key: "_id", Value: 1}, {Key: "a", Value: v}, {Key: "deep", Value: bson.A{bson.D{{Key: "b", Value: bson.A{v, "x", v}}}}},
					{Key: "other", Value: bson.Binary{Subtype: 5, Data: v.Data}}, {Key: "short", Value: bson.Binary{Subtype: v.Subtype, Data: v.Data[:15]}},
					{Key: "text", Value: "00112233-4455-6677-8899-aabbccddeeff"}, {Key: "md5", Value: bson.Binary{Subtype: 5, Data: v.Data}},
				}
			}
			in := marshal(t, doc(kindstest.Value(from)))
			before := bytes.Clone(in)
			got, n, _, err := c.Rewrite(in)
			if err != nil || n != 3 {
				t.Fatalf("%s to %s: %d values, %v", from, to, n, err)
			}
			for _, path := range []string{"a", "deep.0.b.0", "deep.0.b.2"} {
				if v, ok := HeldBy(got, 1).At(path); !ok || !kindstest.Value(to).Equal(bson.Binary{Subtype: v.Subtype, Data: v.Octets[:]}) {
					t.Errorf("%s to %s, %s: %+v", from, to, path, v)
				}
			}
			// The other fields are unchanged.
			for _, key := range []string{"_id", "other", "short", "text", "md5"} {
				if !got.Lookup(key).Equal(in.Lookup(key)) {
					t.Errorf("%s to %s: %s changed", from, to, key)
				}
			}
			if !bytes.Equal(in, before) {
				t.Fatal("the input was changed")
			}

			p, err := c.Plan(in)
			if err != nil || len(p.Skipped)+len(p.InID) > 0 {
				t.Fatalf("%+v, %v", p, err)
			}
			var paths []string
			for _, ch := range p.Changes {
				paths = append(paths, ch.Path)
				if !bytes.Equal(ch.Old.Octets[:], kindstest.Value(from).Data) || !bytes.Equal(ch.New.Octets[:], kindstest.Value(to).Data) {
					t.Errorf("%s to %s: %+v becomes %+v", from, to, ch.Old, ch.New)
				}
			}
			if s := strings.Join(paths, " "); s != "a deep.0.b.0 deep.0.b.2" {
				t.Errorf("%s to %s: changes %s", from, to, s)
			}
		}
	}
}

func TestPlanSkips(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	v := kindstest.Value("javaLegacy")
	p, err := c.Plan(marshal(t, bson.D{
		{Key: "_id", Value: bson.D{{Key: "u", Value: v}}}, {Key: "a.b", Value: v}, {Key: "twice", Value: v}, {Key: "twice", Value: 1},
		{Key: "", Value: v}, {Key: "ok", Value: v}, {Key: "ref", Value: bson.D{{Key: "$ref", Value: "x"}, {Key: "$id", Value: v}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.InID) != 1 || len(p.Skipped) != 3 || len(p.Changes) != 2 || p.Changes[0].Path != "ok" || p.Changes[1].Path != "ref.$id" {
		t.Errorf("%+v", p)
	}
	if _, err := c.Plan([]byte("no document")); err == nil {
		t.Error("garbage is planned")
	}
	// A value with the same bytes in both orders needs no change if the subtype stays.
	p, err = conversion(t, "javaLegacy", "csharpLegacy").Plan(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "nil", Value: bson.Binary{Subtype: 3, Data: make([]byte, 16)}}}))
	if err != nil || len(p.Changes) != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestNewConversionRefuses(t *testing.T) {
	for _, tt := range [][2]string{
		{"standard", "standard"}, {"javaLegacy", "generic"}, {"unspecified", "standard"}, {"", "standard"},
		{"java", "standard"}, {"javaLegacy", ""}, {"JAVALEGACY", "javaLegacy"},
	} {
		from, err1 := kinds.Parse(tt[0])
		to, err2 := kinds.Parse(tt[1])
		if c, err := NewConversion(from, to, nil); errors.Join(err1, err2, err) == nil {
			t.Errorf("%q: got %+v", tt, c)
		}
	}
}

// The update and its filter are decoded as the server reads them.
func TestModel(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	doc := marshal(t, bson.D{{Key: "_id", Value: "x"}, {Key: "a", Value: bson.A{kindstest.Value("javaLegacy")}}})
	p, err := c.Plan(doc)
	if err != nil {
		t.Fatal(err)
	}
	m := p.Model(bson.RawValue{})
	if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n != p.Size() {
		t.Errorf("%d bytes, said to be %d", n, p.Size())
	}
	wantFilter := marshal(t, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: "x"}}}, {Key: "a.0", Value: bson.D{
		{Key: "$eq", Value: kindstest.Value("javaLegacy")}, {Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}}}})
	wantUpdate := marshal(t, bson.D{{Key: "$set", Value: bson.D{{Key: "a.0", Value: kindstest.Value("standard")}}}})
	if !bytes.Equal(m.Filter.(bson.Raw), wantFilter) {
		t.Errorf("filter %v, want %v", m.Filter, wantFilter)
	}
	if !bytes.Equal(m.Update.(bson.Raw), wantUpdate) {
		t.Errorf("update %v, want %v", m.Update, wantUpdate)
	}
}

// The filter for a null does not match a field that is not there.
func TestModelOfNull(t *testing.T) {
	null := Change{Path: "a", Old: Null, New: Value{Subtype: 4, Octets: [16]byte(kindstest.Value("standard").Data)}}
	p := Plan{ID: bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}, Changes: []Change{null}}
	m := p.Model(bson.RawValue{})
	want := marshal(t, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: 1}}}, {Key: "a", Value: bson.D{
		{Key: "$eq", Value: nil}, {Key: "$exists", Value: true}, {Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}}}})
	if !bytes.Equal(m.Filter.(bson.Raw), want) {
		t.Errorf("filter %v, want %v", m.Filter, want)
	}
	if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n != p.Size() {
		t.Errorf("%d bytes, said to be %d", n, p.Size())
	}
}

// An _id may have values of both kinds. Each _id of the copy has the sources that are converted to
// it.
func TestSources(t *testing.T) {
	old, fresh := kindstest.Value("javaLegacy"), kindstest.Value("standard")
	id := func(vs ...any) bson.RawValue {
		var d bson.D
		for i, v := range vs {
			d = append(d, bson.E{Key: string(rune('a' + i)), Value: v})
		}
		return marshal(t, bson.D{{Key: "_id", Value: d}}).Lookup("_id")
	}
	for _, tt := range []struct {
		of   bson.RawValue
		want []bson.RawValue
	}{
		{id(1, "x"), []bson.RawValue{id(1, "x")}},
		{id(fresh, 1), []bson.RawValue{id(fresh, 1), id(old, 1)}},
		{id(fresh, fresh), []bson.RawValue{id(fresh, fresh), id(old, fresh), id(fresh, old), id(old, old)}},
		{id(fresh, 1, 2, 3, 4, 5, 6), []bson.RawValue{id(fresh, 1, 2, 3, 4, 5, 6), id(old, 1, 2, 3, 4, 5, 6)}},
		{id(old), nil}, // no document of the copy has this _id
	} {
		got, err := conversion(t, "javaLegacy", "standard").Sources(tt.of)
		if err != nil || !slices.EqualFunc(got, tt.want, bson.RawValue.Equal) {
			t.Errorf("%v: %v, want %v, %v", tt.of, got, tt.want, err)
		}
	}
	// If both kinds have one subtype, a value of the copy has one source.
	got, err := conversion(t, "javaLegacy", "pythonLegacy").Sources(id(kindstest.Value("pythonLegacy")))
	if err != nil || len(got) != 1 || !got[0].Equal(id(old)) {
		t.Errorf("%v, %v", got, err)
	}
}

// A document without an _id cannot be updated, which is said if there is something to update.
func TestPlanWithoutID(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	p, err := c.Plan(marshal(t, bson.D{{Key: "a", Value: kindstest.Value("javaLegacy")}}))
	if err != nil || len(p.Changes) > 0 || len(p.Skipped) != 1 || !p.Skipped[0].Document || p.Skipped[0].Reason == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = c.Plan(marshal(t, bson.D{{Key: "a", Value: 1}})); err != nil || len(p.Changes)+len(p.Skipped)+len(p.InID) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// The paths of a plan are those of all its values.
func TestPaths(t *testing.T) {
	p := Plan{Changes: []Change{{Path: "a"}}, InID: []Change{{Path: "_id"}}, Skipped: []Left{{Path: "b.0"}}}
	if got := p.Paths(); !maps.Equal(got, map[string]bool{"a": true, "_id": true, "b.0": true}) {
		t.Errorf("%v", got)
	}
}

// Of a document that would grow too large, _id is converted, because its copy is found by it. If _id alone makes it too large, there
// is no copy.
func TestLargestID(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "_id", Value: kindstest.Value("standard")}, {Key: "u", Value: kindstest.Value("standard")}, {Key: "pad", Value: ""}})
	doc = marshal(t, bson.D{{Key: "_id", Value: kindstest.Value("standard")}, {Key: "u", Value: kindstest.Value("standard")}, {Key: "pad", Value: strings.Repeat("x", maxDocument-len(doc))}})
	c := append(conversion(t, "standard", "javaLegacy", "_id"), conversion(t, "standard", "javaLegacy", "u")...)
	c[1].To = kindstest.Kind(t, "text")
	out, values, left, err := c.Rewrite(doc)
	if err != nil || values != 1 || len(left) != 1 || left[0].Path != "u" {
		t.Fatalf("%d values, %d left, %v", values, len(left), err)
	}
	id, _, _, err := c.Rewrite(marshal(t, bson.D{{Key: "_id", Value: doc.Lookup("_id")}}))
	if err != nil || !out.Lookup("_id").Equal(id.Lookup("_id")) || !out.Lookup("u").Equal(doc.Lookup("u")) || len(out) != maxDocument {
		t.Errorf("%v, %d bytes, %v", out.Lookup("_id"), len(out), err)
	}
	c[0].To = kindstest.Kind(t, "text")
	if out, _, _, err := c.Rewrite(doc); err == nil {
		t.Errorf("%d bytes", len(out))
	}
	if out, values, left, err := NewRewriter(c).Document(slices.Clone(doc)); err != nil || values != 0 || len(left) != 2 || !bytes.Equal(out, doc) {
		t.Errorf("in a dump: %d values, %d left, %v", values, len(left), err)
	}
	// A field that is named so is not in _id.
	all := conversion(t, "standard", "javaLegacy")
	all[0].To = kindstest.Kind(t, "text")
	doc = marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "_id.u", Value: kindstest.Value("standard")}, {Key: "pad", Value: strings.Repeat("x", maxDocument-60)}})
	if out, values, left, err := all.Rewrite(doc); err != nil || values != 0 || len(left) != 1 || !bytes.Equal(out, doc) {
		t.Errorf("a field _id.u: %d values, %d left, %v", values, len(left), err)
	}
}

// A document may grow to 16 MiB, and not by a byte more, in place and in a copy.
func TestLargest(t *testing.T) {
	c := conversion(t, "standard", "javaLegacy")
	c[0].To = kindstest.Kind(t, "text")
	doc := func(n int) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: int32(1)}, {Key: "u", Value: bson.A{kindstest.Value("standard"), kindstest.Value("standard")}}, {Key: "pad", Value: make([]byte, n)}})
	}
	const more = 2 * ((4 + 36 + 1) - (4 + 1 + 16)) // text, and a binary value, in BSON
	room := maxDocument - len(doc(0)) - more
	for n, want := range map[int]int{room: 2, room + 1: 0} {
		d := doc(n)
		p, err := c.Plan(d)
		if err != nil || len(p.Changes) != want || len(p.Skipped) != 2-want {
			t.Errorf("%d bytes: %d changes, %d skipped, %v", len(d), len(p.Changes), len(p.Skipped), err)
		}
		out, values, left, err := NewRewriter(c).Document(d)
		if err != nil || values != want || len(left) != 2-want || len(out) != len(d)+want/2*more {
			t.Errorf("%d bytes: %d values, %d left, %d bytes, %v", len(d), values, len(left), len(out), err)
		}
	}
}

// Every combination of the kinds that the values of an _id may have had is tried, and too many are an error: the one that was may be
// among those that are left out. What is not BSON is an error.
func TestSourcesBounds(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	two := append(c, conversion(t, "csharpLegacy", "standard", "_id.b.c")...)
	two[1].From = kindstest.Kind(t, "generic")
	for values, want := range map[int][2]int{1: {2, 3}, 5: {32, 243}, 6: {64, 0}, 8: {256, 0}, 9: {0, 0}} {
		var d bson.D
		for range values {
			d = append(d, bson.E{Key: "b", Value: bson.D{{Key: "c", Value: kindstest.Value("standard")}}})
		}
		id := marshal(t, bson.D{{Key: "_id", Value: d}}).Lookup("_id")
		for i, c := range []Conversion{c, two} {
			got, err := c.Sources(id)
			distinct := map[string]bool{}
			for _, id := range got {
				distinct[string(id.Value)] = true
			}
			if len(got) != want[i] || len(distinct) != want[i] || (err != nil) != (want[i] == 0) {
				t.Errorf("%d values of %d kinds: %d sources, %d different ones, %v", values, i+1, len(got), len(distinct), err)
			}
		}
	}
	for _, bad := range []bson.RawValue{{}, {Type: bson.TypeEmbeddedDocument, Value: []byte{9, 0, 0, 0, 2, 'a', 0, 0, 0}}} {
		if got, err := c.Sources(bad); err == nil {
			t.Errorf("%v: %v", bad, got)
		}
	}
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
	if out, n, left, err := c.Rewrite(doc[:len(doc)-1]); !errors.Is(err, walk.ErrCorrupt) || out != nil || n != 0 || left != nil {
		t.Errorf("%v, %d, %v, %v", out, n, left, err)
	}
}
