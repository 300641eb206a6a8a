package rule

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/scan"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// awkward returns documents with values in _id, dotted and repeated names, arrays in arrays, values that
// are the same in both orders, text and documents of Go structs.
func awkward(r *rand.Rand, random func() bson.Binary) []bson.Raw {
	names := []string{"a", "a.b", "", "$x", "a", "list", "deep"}
	var docs []bson.Raw
	for i := range 60 {
		one := func() any {
			b := random()
			switch r.IntN(9) {
			case 0:
				return bson.Binary{Subtype: b.Subtype, Data: make([]byte, 16)}
			case 1:
				return "9f2c8a52-6d1e-4b60-9a57-0f6a1d2e3c4b"
			case 2:
				return bson.D{{Key: "uuid", Value: bson.Binary{Data: b.Data}}, {Key: "valid", Value: true}}
			case 3:
				return bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}
			case 4:
				return "9F2c8a526d1e4b609a570f6a1d2e3c4b"
			}
			return b
		}
		d := bson.D{{Key: "_id", Value: []any{i, one(), bson.D{{Key: "u", Value: one()}}}[i%3]}}
		for range 5 {
			v := one()
			switch r.IntN(4) {
			case 0:
				v = bson.A{v, bson.A{one(), bson.D{{Key: "a.b", Value: one()}}}}
			case 1:
				v = bson.D{{Key: "b", Value: v}, {Key: "b", Value: one()}}
			}
			d = append(d, bson.E{Key: names[r.IntN(len(names))], Value: v})
		}
		b, err := bson.Marshal(d)
		if err != nil {
			panic(err)
		}
		docs = append(docs, b)
	}
	return docs
}

// A document is converted in place, in a copy and in a dump by the same rule: the same values are
// converted and left for the same reasons, except those that only a copy can change.
func TestEveryWay(t *testing.T) {
	for _, from := range []string{"csharpLegacy", "javaLegacy", "text", "goStruct"} {
		r := rand.New(rand.NewPCG(26, 1))
		c := conversion(t, from)
		docs := awkward(r, func() bson.Binary {
			b := bson.Binary{Subtype: 3, Data: make([]byte, 16)}
			for i := range b.Data {
				b.Data[i] = byte(r.Uint32())
			}
			if r.IntN(4) > 0 { // version 4 in the byte order of the kind, or any other one
				order := []kinds.Kind{c[0].From, kindstest.Kind(t, "javaLegacy"), kindstest.Kind(t, "csharpLegacy")}[r.IntN(2)].Order
				u := order.Permute([16]byte(b.Data))
				u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
				v := order.Permute(u)
				copy(b.Data, v[:])
			}
			return b
		})
		s := scan.New(t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), false)
		of, err := s.Collection("d", "c")
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range docs {
			if err := of.Add(doc); err != nil {
				t.Fatal(err)
			}
		}
		found, err := s.Decide()
		if err := errors.Join(err, s.Close()); err != nil {
			t.Fatal(err)
		}
		d := found[0].Decisions[c[0].From.Name]
		d.Trust([]string{"list"})
		c[0].Judge = d.Judge(c[0].From.Order)
		type one struct {
			path   string
			old    Value
			reason string
		}
		total := map[string]int{}
		editor := NewEditor(c)
		var all []Edits
		for _, doc := range docs {
			p, err := editor.Edits(doc)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
			var inPlace, copied []one
			onlyCopied := func(reason string) bool {
				return strings.Contains(reason, "occurs twice in the document") || strings.Contains(reason, walk.ErrUnaddressable.Error())
			}
			for _, ch := range slices.Concat(p.Changes, p.InID) {
				inPlace = append(inPlace, one{ch.Path, ch.Old, ""})
			}
			for _, l := range p.Skipped {
				if onlyCopied(l.Reason) {
					total["only copied"]++
					l.Reason = ""
				}
				inPlace = append(inPlace, one{l.Path, l.Value, l.Reason})
			}
			rewriter := NewRewriter(c)
			err = c.each(doc, new(Ruling), func(r *Ruling) error {
				if ch := r.change(); r.Reason == "" {
					copied = append(copied, one{ch.Path, ch.Old, ""})
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			out, n, left, err := rewriter.Document(slices.Clone(doc))
			if err != nil || n != len(copied) {
				t.Fatal(n, err)
			}
			for _, l := range left {
				copied = append(copied, one{l.Path, l.Value, l.Reason})
				total["left"]++
			}
			total["converted"] += n
			order := func(a, b one) int {
				return strings.Compare(a.path+string(a.old.Raw().Value)+a.reason, b.path+string(b.old.Raw().Value)+b.reason)
			}
			slices.SortFunc(inPlace, order)
			slices.SortFunc(copied, order)
			if !slices.Equal(inPlace, copied) {
				t.Fatalf("from %s: %v\nin place %q\ncopied   %q", from, doc, inPlace, copied)
			}
			again, m, _, err := c.Rewrite(doc)
			if err != nil || m != n || !slices.Equal(again, out) {
				t.Fatalf("from %s: %v and %v, %v", from, again, bson.Raw(out), err)
			}
		}
		for i, doc := range docs { // edits do not change with those of the next document
			if p, err := c.Edits(doc); err != nil || !reflect.DeepEqual(p, all[i]) {
				t.Errorf("from %s: %+v and %+v, %v", from, all[i], p, err)
			}
		}
		if total["converted"] == 0 || total["left"] == 0 || total["only copied"] == 0 {
			t.Errorf("from %s: %v", from, total)
		}
	}
}

// A document that is too large already is converted if it does not grow: the driver and a dump allow it
// some KiB more than 16 MiB.
func TestLargeThatShrinks(t *testing.T) {
	c := conversion(t, "text")
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "u", Value: "9f2c8a52-6d1e-4b60-9a57-0f6a1d2e3c4b"}, {Key: "pad", Value: make([]byte, 16<<20)}})
	if p, err := c.Edits(doc); err != nil || len(p.Changes) != 1 || len(p.Skipped) > 0 {
		t.Errorf("%d changes, %+v, %v", len(p.Changes), p.Skipped, err)
	}
	if out, n, left, err := NewRewriter(c).Document(doc); err != nil || n != 1 || len(left) > 0 || len(out) >= len(doc) {
		t.Errorf("%d values, %+v, %v", n, left, err)
	}
}

// The rule tells apart the values that a conversion does not apply to, those that
// are left and those that are converted, whatever it said before.
func TestRule(t *testing.T) {
	java, same, odd := kindstest.Value("javaLegacy"), bson.Binary{Subtype: 3, Data: make([]byte, 16)}, bson.Binary{Subtype: 3, Data: []byte("0123456789abcdef")}
	c := conversion(t, "javaLegacy", "a", "l")
	c[0].Judge = (&decide.Decision{From: "javaLegacy", Subtype: 3, Fields: []decide.Field{{Path: "a", Basis: decide.Evidence, Versions: []int{4}}}}).Judge(c[0].From.Order)
	doc := marshal(t, bson.D{{Key: "a", Value: java}, {Key: "l", Value: bson.A{java, same}}, {Key: "a", Value: bson.A{odd, same, "x", kindstest.Value("standard"), java}}, {Key: "b", Value: java}})
	// 00112233-4455-6677-8899-aabbccddeeff is version 6, of which the field does not show values.
	var got []string
	var r Ruling
	err := c.Walk(doc, func(p *walk.Path, l walk.Leaf) error {
		what := "not"
		if c.Rule(&r, p, l) {
			_, data, _, _ := l.Binary()
			if r.Octets != [16]byte(data) || string(r.Field) != string(p.AppendField(nil)) {
				t.Errorf("%s: %x, %q", p.Dotted(), r.Octets, r.Field)
			}
			if what = "converted"; r.Reason != "" {
				what = "left"
			}
		}
		got = append(got, p.Dotted()+" "+what)
		return nil
	})
	want := "a left, l.0 left, l.1 left, a.0 left, a.1 converted, a.2 not, a.3 not, a.4 left, b not"
	if s := strings.Join(got, ", "); s != want || err != nil {
		t.Errorf("%s, want %s, %v", s, want, err)
	}
}

// What a conversion makes of a value that a list or a log names is what it makes of it in a document.
func TestMakes(t *testing.T) {
	java, standard := kindstest.Value("javaLegacy"), kindstest.Value("standard")
	binary := func(b bson.Binary) Value { return Value{Subtype: b.Subtype, Octets: [16]byte(b.Data)} }
	text := func(s string) Value {
		return ValueOf(bson.TypeString, append(append([]byte{byte(len(s) + 1), 0, 0, 0}, s...), 0))
	}
	doc := func(d bson.D) Value { return ValueOf(bson.TypeEmbeddedDocument, marshal(t, d)) }
	u := bson.E{Key: "uuid", Value: bson.Binary{Data: standard.Data}}
	const hyphens = "00112233-4455-6677-8899-aabbccddeeff"
	tests := []struct {
		from      string
		old, want Value
	}{
		{"javaLegacy", binary(java), binary(standard)},
		{"pythonLegacy", binary(kindstest.Value("pythonLegacy")), binary(standard)},
		{"text", text("{" + strings.ToUpper(hyphens) + "}"), binary(standard)},
		{"text", text(strings.ReplaceAll(hyphens, "-", "")), binary(standard)},
		{"goStruct", doc(bson.D{u}), binary(standard)},
		{"goStruct", doc(bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}), Null},
	}
	wants := []Value{binary(standard), Null, binary(java), text(hyphens), binary(bson.Binary{Subtype: 3, Data: standard.Data})}
	for _, tt := range tests {
		c := conversion(t, tt.from, "a.b")
		for _, want := range wants {
			ch := Change{Path: "a.0.b.7", Old: tt.old, New: want}
			if got := c.Makes(ch); got != (want == tt.want) {
				t.Errorf("from %s: %+v: %v", tt.from, ch, got)
			}
		}
		if c.Makes(Change{Path: "a", Old: tt.old, New: tt.want}) || c.Makes(Change{Path: "a.b", Old: binary(bson.Binary{Subtype: 9, Data: java.Data}), New: tt.want}) {
			t.Errorf("from %s: another field, or another kind", tt.from)
		}
	}
}

// A conversion of several kinds converts each value by its own, in one pass, in place and in a copy; what it made is
// told by each kind, and restored.
func TestSeveralKinds(t *testing.T) {
	c, err := Compile([]kinds.Pair{{From: "csharpLegacy", Fields: []string{"c", "_id"}}, {From: "javaLegacy", Fields: []string{"j"}},
		{From: "generic", Fields: []string{"g"}}, {From: "text", Fields: []string{"t", "g"}}, {From: "goStruct", Fields: []string{"s"}}})
	if err != nil {
		t.Fatal(err)
	}
	const text = "00112233-4455-6677-8899-aabbccddeeff"
	doc := func(in func(kind string) any) bson.Raw {
		return marshal(t, bson.D{{Key: "_id", Value: in("csharpLegacy")}, {Key: "c", Value: bson.A{in("csharpLegacy"), "x"}}, {Key: "j", Value: in("javaLegacy")},
			{Key: "g", Value: bson.A{in("generic"), in("text")}}, {Key: "t", Value: in("text")}, {Key: "s", Value: in("goStruct")}, {Key: "other", Value: kindstest.Value("javaLegacy")}})
	}
	old := doc(func(kind string) any {
		switch kind {
		case "text":
			return text
		case "goStruct":
			return bson.D{{Key: "uuid", Value: kindstest.Value("generic")}}
		}
		return kindstest.Value(kind)
	})
	want := doc(func(string) any { return kindstest.Value("standard") })
	got, n, left, err := c.Rewrite(old)
	if err != nil || n != 7 || len(left) > 0 || !bytes.Equal(got, want) {
		t.Fatalf("%d values, %v, %v\n%v\nwant %v", n, left, err, got, want)
	}
	p, err := c.Edits(old)
	if err != nil || len(p.Changes) != 6 || len(p.InID) != 1 || len(p.Skipped) > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	for _, ch := range p.Changes {
		if !c.Makes(ch) || ch.New != (Value{Subtype: 4, Octets: [16]byte(kindstest.Value("standard").Data)}) {
			t.Errorf("%+v", ch)
		}
	}
	if back, lost, err := WayBack(want, p.Changes); err != nil || len(back) != 6 || len(lost) > 0 {
		t.Errorf("%+v, %v, %v", back, lost, err)
	}
	if c.Projection() == nil || !c.ReachesID() {
		t.Errorf("%v, %v", c.Projection(), c.ReachesID())
	}
}
