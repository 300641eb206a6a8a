package rule

import (
	"bytes"
	"errors"
	"maps"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// Every kind is converted as the specification gives the bytes. Only values with the
// subtype and the length of --from are converted.
func TestPlanAndRewrite(t *testing.T) {
	const to = "standard"
	for _, from := range kindstest.Binary {
		if from == to {
			continue
		}
		c := conversion(t, from)
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

		p, err := c.Edits(in)
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

func TestPlanSkips(t *testing.T) {
	c := conversion(t, "javaLegacy")
	v := kindstest.Value("javaLegacy")
	p, err := c.Edits(marshal(t, bson.D{
		{Key: "_id", Value: bson.D{{Key: "u", Value: v}}}, {Key: "a.b", Value: v}, {Key: "twice", Value: v}, {Key: "twice", Value: 1},
		{Key: "", Value: v}, {Key: "ok", Value: v}, {Key: "ref", Value: bson.D{{Key: "$ref", Value: "x"}, {Key: "$id", Value: v}}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.InID) != 1 || len(p.Skipped) != 3 || len(p.Changes) != 2 || p.Changes[0].Path != "ok" || p.Changes[1].Path != "ref.$id" {
		t.Errorf("%+v", p)
	}
	if _, err := c.Edits([]byte("no document")); err == nil {
		t.Error("garbage is planned")
	}
}

// The update and its filter are decoded as the server reads them.
func TestModel(t *testing.T) {
	c := conversion(t, "javaLegacy")
	doc := marshal(t, bson.D{{Key: "_id", Value: "x"}, {Key: "a", Value: bson.A{kindstest.Value("javaLegacy")}}})
	p, err := c.Edits(doc)
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
	p := Edits{ID: bson.RawValue{Type: bson.TypeInt32, Value: []byte{1, 0, 0, 0}}, Changes: []Change{null}}
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

// A document without an _id cannot be updated, which is said if there is something to update.
func TestPlanWithoutID(t *testing.T) {
	c := conversion(t, "javaLegacy")
	p, err := c.Edits(marshal(t, bson.D{{Key: "a", Value: kindstest.Value("javaLegacy")}}))
	if err != nil || len(p.Changes) > 0 || len(p.Skipped) != 1 || !p.Skipped[0].Document || p.Skipped[0].Reason == "" {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err = c.Edits(marshal(t, bson.D{{Key: "a", Value: 1}})); err != nil || len(p.Changes)+len(p.Skipped)+len(p.InID) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// The paths of a plan are those of all its values.
func TestPaths(t *testing.T) {
	p := Edits{Changes: []Change{{Path: "a"}}, InID: []Change{{Path: "_id"}}, Skipped: []Left{{Path: "b.0"}}}
	if got := p.Paths(); !maps.Equal(got, map[string]bool{"a": true, "_id": true, "b.0": true}) {
		t.Errorf("%v", got)
	}
}

// What is cut off is not rewritten.
func TestRewriteDamaged(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: kindstest.Value("javaLegacy")}})
	if out, n, left, err := conversion(t, "javaLegacy").Rewrite(doc[:len(doc)-1]); !errors.Is(err, walk.ErrCorrupt) || out != nil || n != 0 || left != nil {
		t.Errorf("%v, %d, %v, %v", out, n, left, err)
	}
}
