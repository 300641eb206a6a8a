package rule

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// spellings writes the digits of a UUID in every usual spelling.
func spellings(digits string) []string {
	hyphens := strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
	out := []string{hyphens, digits, "{" + hyphens + "}", "urn:uuid:" + hyphens}
	for _, s := range slices.Clone(out) {
		out = append(out, strings.ToUpper(s))
	}
	mixed := []byte(hyphens)
	for i := range mixed {
		if i%3 == 0 {
			mixed[i] = bytes.ToUpper(mixed[i : i+1])[0]
		}
	}
	return append(out, string(mixed))
}

// anyText returns text that is a UUID, nearly one, or something else.
func anyText(r *rand.Rand) string {
	all := spellings(hex.EncodeToString(kindstest.Octets(r)))
	s := all[r.IntN(len(all))]
	switch r.IntN(12) {
	case 0:
		return s[1:]
	case 1:
		return s + " "
	case 2:
		return strings.Replace(s, "-", "", 1) + "x"
	case 3:
		return ""
	case 4:
		return "words \xff"
	}
	return s
}

func anyTexts(r *rand.Rand, depth int) any {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		list := bson.A{}
		for range r.IntN(4) {
			list = append(list, anyTexts(r, depth-1))
		}
		return list
	case n <= 2 && depth > 0:
		if r.IntN(2) == 0 {
			return anyStruct(r)
		}
		return anyTextFields(r, depth-1)
	case n == 3:
		return r.Int32()
	case n <= 5:
		return bson.Binary{Subtype: []byte{0, 3, 4}[r.IntN(3)], Data: kindstest.Octets(r)}
	}
	return anyText(r)
}

// anyStruct returns a document of a Go struct, or nearly one.
func anyStruct(r *rand.Rand) bson.D {
	u := bson.Binary{Subtype: []byte{0, 0, 4}[r.IntN(3)], Data: kindstest.Octets(r)}
	d := bson.D{{Key: "uuid", Value: u}}
	switch r.IntN(12) {
	case 0:
		return append(d, bson.E{Key: "valid", Value: false})
	case 1:
		return append(d, bson.E{Key: "c", Value: true})
	case 2:
		return append(d, bson.E{Key: "valid", Value: int32(1)})
	case 3:
		return bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 3, Data: u.Data}}}
	case 4:
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: u.Data[1:]}}}
	case 5:
		return bson.D{{Key: "valid", Value: true}}
	case 6:
		return bson.D{d[0], d[0]}
	case 7, 8:
		return bson.D{{Key: "uuid", Value: bson.Binary{Data: make([]byte, 16)}}, {Key: "valid", Value: false}}
	case 9, 10:
		return append(d, bson.E{Key: "valid", Value: true})
	}
	return d
}

// ofStruct returns the bytes of the UUID in a document of a Go struct, and whether it is valid. It is
// written without the parser of the command.
func ofStruct(v any) (b []byte, valid, ok bool) {
	d, _ := v.(bson.D)
	if len(d) == 0 || d[0].Key != "uuid" {
		return nil, false, false
	}
	u, _ := d[0].Value.(bson.Binary)
	if len(u.Data) != 16 || u.Subtype == 3 {
		return nil, false, false
	}
	if len(d) == 1 {
		return u.Data, true, true
	}
	valid, ok = d[1].Value.(bool)
	return u.Data, valid, ok && d[1].Key == "valid" && len(d) == 2 && (valid || bytes.Equal(u.Data, make([]byte, 16)))
}

func anyTextFields(r *rand.Rand, depth int) bson.D {
	names := []string{"a", "b", "c", "0", "a.b", "", "$a", "ü"}
	d := bson.D{}
	for range r.IntN(6) {
		d = append(d, bson.E{Key: names[r.IntN(len(names))], Value: anyTexts(r, depth)})
	}
	return d
}

// ofText returns the bytes of a UUID in a usual spelling. It is written without the parser of the
// command.
func ofText(s string) (b []byte, ok bool) {
	low := strings.ToLower(s)
	if len(low) == 38 && low[0] == '{' && low[37] == '}' {
		low = low[1:37]
	} else {
		low = strings.TrimPrefix(low, "urn:uuid:")
		if len(s) != 45 && len(low) != len(s) {
			return nil, false
		}
	}
	if parts := strings.Split(low, "-"); len(parts) == 5 && len(parts[0]) == 8 && len(parts[1]) == 4 && len(parts[2]) == 4 && len(parts[3]) == 4 {
		low = strings.Join(parts, "")
	} else if len(s) != 32 {
		return nil, false
	}
	b, err := hex.DecodeString(low)
	return b, err == nil && len(b) == 16
}

// formed returns the converted value: all values in it that change converts if all is set, and otherwise only
// those that the path of an update reaches. names are those of the path, without array positions.
func formed(v any, names []string, all bool, change func(v any, names []string) (any, bool)) any {
	if fresh, ok := change(v, names); ok {
		return fresh
	}
	switch v := v.(type) {
	case bson.D:
		out := bson.D{}
		for _, e := range v {
			named := 0
			for _, other := range v {
				if other.Key == e.Key {
					named++
				}
			}
			dollar := strings.HasPrefix(e.Key, "$") && e.Key != "$id" && e.Key != "$ref"
			if all || named == 1 && e.Key != "" && !strings.Contains(e.Key, ".") && !dollar {
				e.Value = formed(e.Value, append(slices.Clone(names), e.Key), all, change)
			}
			out = append(out, e)
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			out = append(out, formed(e, names, all, change))
		}
		return out
	}
	return v
}

// anyForms returns a document with text and with documents of Go structs.
func anyForms(r *rand.Rand) bson.D {
	doc := append(bson.D{{Key: "_id", Value: anyTexts(r, 1)}}, anyTextFields(r, 3)...)
	if _, ok := doc[0].Value.(bson.A); ok {
		return anyForms(r) // a server stores no array in _id
	}
	return doc
}

// anyBinaryForms is like anyForms, with most of the text in binary values.
func anyBinaryForms(r *rand.Rand) bson.D {
	return formed(anyForms(r), nil, true, func(v any, _ []string) (any, bool) {
		s, ok := v.(string)
		return bson.Binary{Subtype: []byte{0, 2, 3, 4, 5}[r.IntN(5)], Data: []byte(s)}, ok && r.IntN(4) > 0
	}).(bson.D)
}

// Random documents are converted and restored, and compared with a model that does not use bytes and offsets. The copy has exactly the expected values, and so has the document after the update. The
// changes restore each value as it was.
func TestProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	standard := func(b []byte) any { return bson.Binary{Subtype: 4, Data: b} }
	for _, tt := range []struct {
		from     string
		document func(*rand.Rand) bson.D
		least    int // values
		change   func(v any) (any, bool)
	}{
		{"javaLegacy", anyDocument, 2500, fromJava},
		{"text", anyForms, 300, func(v any) (any, bool) {
			s, _ := v.(string)
			b, ok := ofText(s)
			return standard(b), ok
		}},
		{"goStruct", anyForms, 300, func(v any) (any, bool) {
			b, valid, ok := ofStruct(v)
			if ok && !valid {
				return nil, true
			}
			return standard(b), ok
		}},
		{"binaryText", anyBinaryForms, 300, func(v any) (any, bool) {
			is, _ := v.(bson.Binary)
			b, ok := ofText(string(is.Data))
			return standard(b), ok && is.Subtype <= 4 && (len(is.Data) == 36 || len(is.Data) == 32)
		}},
	} {
		t.Run(tt.from, func(t *testing.T) {
			values := 0
			for range 10_000 {
				fields := []string{"_id", "_id.a", "b.a", "c.*", "*.ü", "a.b.c", "b", "a"}[r.IntN(8):]
				if tt.least > 300 {
					fields = nil // all are converted
				}
				c := conversion(t, tt.from, fields...)
				selected := func(names []string) bool {
					return len(fields) == 0 || slices.ContainsFunc(fields, func(f string) bool {
						// * is one name, and a name with a dot is also two.
						equal := func(names []string) bool {
							return slices.EqualFunc(strings.Split(f, "."), names, func(w, n string) bool { return w == "*" || w == n })
						}
						return equal(names) || equal(strings.Split(strings.Join(names, "."), "."))
					})
				}
				change := func(v any, names []string) (any, bool) {
					fresh, ok := tt.change(v)
					return fresh, ok && selected(names)
				}
				doc := tt.document(r)
				before := marshal(t, doc)

				copied, n, _, err := c.Rewrite(before)
				if want := marshal(t, formed(doc, nil, true, change)); err != nil || !bytes.Equal(copied, want) {
					t.Fatalf("%v: copied as %v, want %v, %v", before, copied, want, err)
				}
				if len(copied) > len(before) { // so a server that stores the one stores the other
					t.Fatalf("%v: %d bytes become %d", before, len(before), len(copied))
				}

				want := formed(doc, nil, false, change).(bson.D)
				want[0] = doc[0]
				p, err := c.Edits(before)
				if err != nil {
					t.Fatal(err)
				}
				values += n
				m := p.Model(bson.RawValue{})
				if size := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); size != p.Size() {
					t.Fatalf("an update of %d bytes is said to have %d", size, p.Size())
				}
				after := formed(doc, nil, true, func(any, []string) (any, bool) { return nil, false }) // a copy
				sets, err := m.Update.(bson.Raw).Lookup("$set").Document().Elements()
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range sets {
					if after, err = set(after, strings.Split(e.Key(), "."), e.Value()); err != nil {
						t.Fatalf("%v: %v", before, err)
					}
				}
				converted := marshal(t, after)
				if !bytes.Equal(converted, marshal(t, want)) {
					t.Fatalf("%v: updated to %v, want %v", before, converted, marshal(t, want))
				}
				if len(p.Changes) == 0 {
					continue
				}
				was, is := HeldBy(before, len(p.Changes)), HeldBy(converted, len(p.Changes))
				for _, ch := range p.Changes {
					if !was.HasOld(ch) || was.HasNew(ch) || is.HasOld(ch) || !is.HasNew(ch) {
						t.Fatalf("%v: %+v", before, ch)
					}
				}
				changes, lost, err := WayBack(converted, p.Changes)
				if err != nil || lost != nil || len(changes) != len(p.Changes) {
					t.Fatalf("%v: %+v, %v, %v", before, changes, lost, err)
				}
				back := Edits{ID: p.ID, Changes: changes}
				m = back.Model(bson.RawValue{})
				if size := len(m.Filter.(bson.Raw)) + len(m.Update.(bson.Raw)); size != back.Size() {
					t.Fatalf("an update of %d bytes is said to have %d", size, back.Size())
				}
				sets, err = m.Update.(bson.Raw).Lookup("$set").Document().Elements()
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range sets {
					if after, err = set(after, strings.Split(e.Key(), "."), e.Value()); err != nil {
						t.Fatal(err)
					}
				}
				if got := marshal(t, after); !bytes.Equal(got, before) {
					t.Fatalf("%v: back to %v", before, got)
				}
			}
			if values < tt.least {
				t.Errorf("only %d values", values)
			}
		})
	}
}

// Two texts of one UUID in an array have their own spellings again, also if another program has
// moved them.
func TestTextMoved(t *testing.T) {
	s := spellings("00112233445566778899aabbccddeeff")
	c := conversion(t, "text", "l")
	p, err := c.Edits(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{s[0], s[4], "x"}}}))
	if err != nil || len(p.Changes) != 2 || len(p.Skipped) != 1 {
		t.Fatalf("%+v, %v", p, err)
	}
	u := kindstest.Value("standard")
	for _, tt := range []struct {
		list bson.A
		want string // the changes, or lost
	}{
		{bson.A{u, u, "x"}, fmt.Sprintf("l.0 %s, l.1 %s", s[0], s[4])},
		{bson.A{"x", u, u}, fmt.Sprintf("l.1 %s, l.2 %s", s[4], s[0])}, // l.1 is still where it was
		{bson.A{"x", s[4], s[0]}, ""},
		{bson.A{"x", s[0], s[0]}, "lost"},
		{bson.A{"x", u}, "lost"},
		{bson.A{u, u, u}, fmt.Sprintf("l.0 %s, l.1 %s", s[0], s[4])},
	} {
		back, lost, err := WayBack(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: tt.list}}), p.Changes)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, ch := range back {
			got = append(got, ch.Path+" "+ch.New.Raw().StringValue())
		}
		slices.Sort(got)
		if lost != nil {
			got = append(got, "lost")
		}
		if s := strings.Join(got, ", "); s != tt.want {
			t.Errorf("%v: %q, want %q", tt.list, s, tt.want)
		}
	}
}

// A binary value that has the text of a UUID becomes the UUID, whatever its subtype, and its bytes and its subtype are restored.
func TestBinaryText(t *testing.T) {
	const hyphens, digits = "00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899AABBCCDDEEFF" // the UUID of kindstest
	c := conversion(t, "binaryText", "l")
	for _, subtype := range []byte{0, 2, 3, 4} {
		doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{bson.Binary{Subtype: subtype, Data: []byte(hyphens)}, bson.Binary{Subtype: subtype, Data: []byte(digits)},
			bson.Binary{Subtype: subtype, Data: []byte(hyphens + "x")}, bson.Binary{Subtype: subtype, Data: []byte(digits[1:] + "-")}, hyphens, bson.Binary{Subtype: 5, Data: []byte(hyphens)}}}})
		p, err := c.Edits(doc)
		if err != nil || len(p.Changes) != 2 || len(p.Skipped) != 0 {
			t.Fatalf("subtype %d: %+v, %v", subtype, p, err)
		}
		u := kindstest.Value("standard")
		for i, text := range []string{hyphens, digits} {
			ch := p.Changes[i]
			of, b := ch.Old.Raw().Binary()
			if ch.New != (Value{Subtype: 4, Octets: [16]byte(u.Data)}) || of != subtype || string(b) != text || !c.Makes(ch) {
				t.Errorf("subtype %d: %+v", subtype, ch)
			}
		}
		back, lost, err := WayBack(marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: bson.A{u, u}}}), p.Changes)
		if err != nil || len(lost) > 0 || len(back) != 2 || back[0].New != p.Changes[0].Old || back[1].New != p.Changes[1].Old {
			t.Errorf("subtype %d: %+v, %+v, %v", subtype, back, lost, err)
		}
	}
}
