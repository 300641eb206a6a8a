package rule

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// anyValue returns a value of a random type, nested to at most depth levels.
func anyValue(r *rand.Rand, depth int) any {
	if depth > 0 && r.IntN(3) == 0 {
		if r.IntN(2) == 0 {
			return anyFields(r, depth-1)
		}
		list := bson.A{}
		for range r.IntN(4) {
			list = append(list, anyValue(r, depth-1))
		}
		return list
	}
	switch r.IntN(16) {
	case 0:
		return math.NaN()
	case 1:
		return bson.NewDecimal128(r.Uint64(), r.Uint64())
	case 2:
		return bson.Regex{Pattern: "a.b", Options: "i"}
	case 3:
		return "a.0.b"
	case 4:
		return nil
	case 5:
		return bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "u", Value: bson.Binary{Subtype: 3, Data: make([]byte, 16)}}}}
	case 6:
		return r.Int32()
	}
	b := make([]byte, 16)
	if r.IntN(4) == 0 {
		b = make([]byte, r.IntN(40))
	}
	for i := range b {
		b[i] = byte(r.IntN(256))
	}
	return bson.Binary{Subtype: []byte{3, 3, 3, 4, 0, 2, 5, 128}[r.IntN(8)], Data: b}
}

// anyFields returns a document with unusual field names.
func anyFields(r *rand.Rand, depth int) bson.D {
	names := []string{"a", "b", "c", "d", "e", "f", "0", "1", "00", "a.b", "", "$a", "$id", "$ref", "$", "ü", "a$"}
	d := bson.D{}
	for range r.IntN(6) {
		d = append(d, bson.E{Key: names[r.IntN(len(names))], Value: anyValue(r, depth)})
	}
	return d
}

// permuted maps byte positions from javaLegacy to standard and to csharpLegacy, as the
// specification gives the bytes.
var permuted = map[string][16]int{
	"standard":     {7, 6, 5, 4, 3, 2, 1, 0, 15, 14, 13, 12, 11, 10, 9, 8},
	"csharpLegacy": {4, 5, 6, 7, 2, 3, 0, 1, 15, 14, 13, 12, 11, 10, 9, 8},
}

// converted returns the converted value: all values in it if all is set, and otherwise only those
// that the path of an update reaches. If to is empty, it returns a copy.
func converted(v any, to string, all bool) any {
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
				e.Value = converted(e.Value, to, all)
			}
			out = append(out, e)
		}
		return out
	case bson.A:
		out := bson.A{}
		for _, e := range v {
			out = append(out, converted(e, to, all))
		}
		return out
	case bson.Binary:
		if to == "" || v.Subtype != 3 || len(v.Data) != 16 {
			return v
		}
		out := bson.Binary{Subtype: kindstest.Value(to).Subtype, Data: make([]byte, 16)}
		for i, from := range permuted[to] {
			out.Data[i] = v.Data[from]
		}
		return out
	}
	return v
}

// set sets the value at path in v, as $set does. It returns an error if path does not lead to a
// value.
func set(v any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	var err error
	switch v := v.(type) {
	case bson.D:
		for i, e := range v {
			if e.Key == path[0] {
				v[i].Value, err = set(e.Value, path[1:], value)
				return v, err
			}
		}
	case bson.A:
		if i, err := strconv.Atoi(path[0]); err == nil && i < len(v) {
			v[i], err = set(v[i], path[1:], value)
			return v, err
		}
	}
	return nil, fmt.Errorf("%s leads nowhere", strings.Join(path, "."))
}

// Random documents are compared with a model that does not use bytes and offsets. The update and
// the copy make exactly the expected changes, and the old values restore it.
func TestProperty(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	values := 0
	for i := range 20_000 {
		to := []string{"standard", "csharpLegacy"}[i%2]
		c := conversion(t, "javaLegacy", to)
		fields := append(bson.D{{Key: "_id", Value: anyFields(r, 1)}}, anyFields(r, 3)...)
		for j, e := range fields {
			if e.Key == "$id" || e.Key == "$ref" { // these names are used only in nested documents
				fields[j].Key = "$x"
			}
		}
		before := marshal(t, fields)

		copied, _, _, err := c.Rewrite(before, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := marshal(t, converted(fields, to, true)); !bytes.Equal(copied, want) {
			t.Fatalf("%v: copied as %v, want %v", before, copied, want)
		}

		want := converted(fields, to, false).(bson.D)
		want[0] = fields[0]
		p, err := c.Plan(before)
		if err != nil {
			t.Fatal(err)
		}
		values += len(p.Changes)
		after := converted(fields, "", true) // a copy
		sets, err := p.Model(bson.RawValue{}).Update.(bson.Raw).Lookup("$set").Document().Elements()
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range sets {
			subtype, data := e.Value().Binary()
			if after, err = set(after, strings.Split(e.Key(), "."), bson.Binary{Subtype: subtype, Data: data}); err != nil {
				t.Fatalf("%v: %v", before, err)
			}
		}
		if got := marshal(t, after); !bytes.Equal(got, marshal(t, want)) {
			t.Fatalf("%v: updated to %v, want %v", before, got, marshal(t, want))
		}
		if len(p.Changes) == 0 {
			continue
		}

		for _, ch := range p.Changes {
			if !HeldBy(marshal(t, after), 1).HasNew(ch) || ch.New.Subtype != c[0].To.Subtype {
				t.Fatalf("%v: %s does not lead to the converted value", before, ch.Path)
			}
			if after, err = set(after, strings.Split(ch.Path, "."), bson.Binary{Subtype: 3, Data: ch.Old.Octets[:]}); err != nil {
				t.Fatalf("%v: %v", before, err)
			}
		}
		if got := marshal(t, after); !bytes.Equal(got, before) {
			t.Fatalf("%v: back to %v", before, got)
		}
	}
	if values < 5000 {
		t.Errorf("only %d values", values)
	}
}
