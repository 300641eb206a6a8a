package convert

import (
	"bytes"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
)

// Every pair of kinds is converted as the specification gives their bytes. Only values with the
// subtype and the length of --from are converted.
func TestPlanAndRewrite(t *testing.T) {
	for from := range stored {
		for to := range stored {
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
			in := marshal(t, doc(value(t, from)))
			before := bytes.Clone(in)
			fields := make(Tally)
			got, n, err := c.Rewrite(in, fields)
			if err != nil || n != 3 || !maps.Equal(fields, Tally{"a": 1, "deep[].b[]": 2}) {
				t.Fatalf("%s to %s: %d values, %v, %v", from, to, n, fields, err)
			}
			for _, path := range []string{"a", "deep.0.b.0", "deep.0.b.2"} {
				if subtype, octets, ok := valuesOf(got, 1).at(path); !ok || subtype != stored[to].subtype || hex.EncodeToString(octets[:]) != stored[to].octets {
					t.Errorf("%s to %s, %s: %d %x", from, to, path, subtype, octets)
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
				if hex.EncodeToString(ch.Old[:]) != stored[from].octets || hex.EncodeToString(ch.New[:]) != stored[to].octets {
					t.Errorf("%s to %s: %x becomes %x", from, to, ch.Old, ch.New)
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
	v := value(t, "javaLegacy")
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
		from, err1 := kinds.ParseBinary(tt[0])
		to, err2 := kinds.ParseBinary(tt[1])
		if c, err := NewConversion(from, to, nil); errors.Join(err1, err2, err) == nil {
			t.Errorf("%q: got %+v", tt, c)
		}
	}
}

// The update and its filter are decoded as the server reads them.
func TestModel(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	doc := marshal(t, bson.D{{Key: "_id", Value: "x"}, {Key: "a", Value: bson.A{value(t, "javaLegacy")}}})
	p, err := c.Plan(doc)
	if err != nil {
		t.Fatal(err)
	}
	m := p.model(3, 4)
	wantFilter := marshal(t, bson.D{{Key: "_id", Value: bson.D{{Key: "$eq", Value: "x"}}}, {Key: "a.0", Value: bson.D{
		{Key: "$eq", Value: value(t, "javaLegacy")}, {Key: "$not", Value: bson.D{{Key: "$type", Value: "array"}}}}}})
	wantUpdate := marshal(t, bson.D{{Key: "$set", Value: bson.D{{Key: "a.0", Value: value(t, "standard")}}}})
	if !bytes.Equal(m.Filter.(bson.Raw), wantFilter) {
		t.Errorf("filter %v, want %v", m.Filter, wantFilter)
	}
	if !bytes.Equal(m.Update.(bson.Raw), wantUpdate) {
		t.Errorf("update %v, want %v", m.Update, wantUpdate)
	}
}

// An _id may have values of both kinds. Each _id of the copy has the sources that are converted to
// it.
func TestSources(t *testing.T) {
	old, fresh := value(t, "javaLegacy"), value(t, "standard")
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
		{id(old), nil}, // no document of the copy has this _id
		{id(fresh, fresh, fresh, fresh, fresh, fresh, fresh), []bson.RawValue{
			id(fresh, fresh, fresh, fresh, fresh, fresh, fresh), id(old, old, old, old, old, old, old)}},
	} {
		got, err := conversion(t, "javaLegacy", "standard").sources(tt.of)
		if err != nil || !slices.EqualFunc(got, tt.want, bson.RawValue.Equal) {
			t.Errorf("%v: %v, want %v, %v", tt.of, got, tt.want, err)
		}
	}
	// If both kinds have one subtype, a value of the copy has one source.
	got, err := conversion(t, "javaLegacy", "pythonLegacy").sources(id(value(t, "pythonLegacy")))
	if err != nil || len(got) != 1 || !got[0].Equal(id(old)) {
		t.Errorf("%v, %v", got, err)
	}
}

// A document with too many values for one update is skipped and reported. The other documents are
// converted.
func TestTooManyValues(t *testing.T) {
	c := conversion(t, "javaLegacy", "standard")
	small, err := c.Plan(marshal(t, bson.D{{Key: "_id", Value: "small"}, {Key: "a", Value: value(t, "javaLegacy")}}))
	if err != nil {
		t.Fatal(err)
	}
	list := make(bson.A, 200_000)
	for i := range list {
		list[i] = value(t, "javaLegacy")
	}
	doc := marshal(t, bson.D{{Key: "_id", Value: "big"}, {Key: "l", Value: list}})
	big, err := c.Plan(doc)
	if err != nil || len(doc) > 16<<20 || len(big.Changes) != len(list) {
		t.Fatalf("%d octets, %d changes, %v", len(doc), len(big.Changes), err)
	}
	for _, p := range []Plan{small, big} {
		m := p.model(3, 4)
		if n := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); n > p.size() || p.size() > n+100 {
			t.Errorf("%d octets, said to be %d", n, p.size())
		}
	}
	r := &runner{Options: Options{Conversion: c, Progress: func(int) {}, Report: func(Totals) {}}, tracker: newTracker(),
		result: Result{Fields: Tally{}, SkippedFor: Tally{}}}
	r.tracker.begin(0, big.ID)
	r.all(t, batch{plans: []Plan{small, big}, read: 2})
	if r.result.Documents != 1 || r.result.Skipped != 1 || r.result.Skips[0].ID.StringValue() != "big" {
		t.Errorf("%+v", r.result)
	}
}
