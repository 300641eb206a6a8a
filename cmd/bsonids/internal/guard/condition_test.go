package guard

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/record"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

func bin(subtype byte, n int, b byte) bson.Binary {
	return bson.Binary{Subtype: subtype, Data: bytes.Repeat([]byte{b}, n)}
}

// text is the number of text in the place of a subtype.
var text = kinds.Where(func(k kinds.Kind) bool { return k.Name == kinds.OfText })[0].Subtype

// refused returns the values of the subtype in the fields.
func refused(subtype byte, paths ...string) (all []record.Refused) {
	for _, p := range paths {
		all = append(all, record.Refused{Path: p, Subtype: subtype})
	}
	return all
}

func TestClause(t *testing.T) {
	old, low, high := bin(3, 16, 'a'), bin(3, 16, 0), bin(3, 16, 0xff)
	is, short, long := bin(4, 16, 'a'), bin(3, 15, 'a'), bin(3, 17, 'a')
	d := func(key string, v any) bson.D { return bson.D{{Key: key, Value: v}} }
	for _, tt := range []struct {
		name string
		doc  bson.D
		want bool
	}{
		{"nothing", bson.D{}, false},
		{"old", d("k", old), true},
		{"the nil UUID", d("k", low), true},
		{"the max UUID", d("k", high), true},
		{"new", d("k", is), false},
		{"other subtypes", d("k", bson.A{bin(0, 16, 'a'), bin(1, 16, 'a'), bin(2, 12, 'a'), bin(2, 16, 'a'), bin(5, 16, 'a'), bin(0x80, 16, 'a')}), false},
		{"other lengths", d("k", bson.A{short, long, bin(3, 0, 0)}), false},
		{"other types", d("k", bson.A{"a", 1, nil, bson.D{}, bson.NewObjectID(), bson.MinKey{}, bson.MaxKey{}}), false},
		{"in an array", d("k", bson.A{is, old}), true},
		{"bounds met by two elements", d("k", bson.A{short, long}), false},
		{"bounds met by two new elements", d("k", bson.A{is, bin(0, 16, 'a')}), false},
		{"an array in an array", d("k", bson.A{bson.A{old}}), false},
		{"another field", d("n", old), false},
		{"below it", d("k", d("k", old)), false},
		{"in a document", d("items", d("sku", old)), true},
		{"in an array in a document", d("items", d("sku", bson.A{is, old})), true},
		{"in a document of an array", d("items", bson.A{bson.D{}, 1, d("sku", old)}), true},
		{"in an array in a document of an array", d("items", bson.A{d("sku", bson.A{is, old})}), true},
		{"bounds met by two documents", d("items", bson.A{d("sku", short), d("sku", long)}), false},
		{"bounds met by two elements below", d("items", bson.A{d("sku", bson.A{short, long})}), false},
		{"new everywhere", d("items", bson.A{d("sku", is), d("sku", bson.A{is, is})}), false},
		{"in an array of arrays", d("items", bson.A{bson.A{d("sku", old)}}), false},
		{"in the array itself", d("items", bson.A{old}), false},
	} {
		if got := !matches(Clause(refused(3, "k", "items.sku")), document(tt.doc)); got != tt.want {
			t.Errorf("%s: refused %v", tt.name, got)
		}
	}
}

// A single condition on the path would also refuse documents without an old value.
func TestClauseIsNotARange(t *testing.T) {
	doc := document(bson.D{{Key: "k", Value: bson.A{bin(4, 16, 'a'), bin(3, 15, 'a')}}})
	if !matches(document(bson.D{{Key: "k", Value: in(3)}}), doc) {
		t.Error("the model does not let two elements meet the two bounds")
	}
	if matches(document(bson.D{{Key: "k", Value: bson.D{{Key: "$elemMatch", Value: in(3)}}}}), doc) {
		t.Error("the model lets two elements meet the conditions of $elemMatch")
	}
}

var names = []string{"a", "b", "c"}

// random is a source of documents that often have values at the same paths.
type random struct{ *rand.Rand }

func (r random) value(depth int) any {
	switch n := r.IntN(14); {
	case n >= 11:
		return spelled(r.Rand)
	case n < 3 && depth > 0:
		return r.document(depth - 1)
	case n < 6 && depth > 0:
		a := bson.A{}
		for range r.IntN(4) {
			a = append(a, r.value(depth-1))
		}
		return a
	case n == 6:
		return []any{nil, "text", int32(1), bson.NewObjectID(), bson.MinKey{}, bson.MaxKey{}}[r.IntN(6)]
	}
	data := make([]byte, []int{0, 12, 15, 16, 16, 16, 16, 16, 17}[r.IntN(9)])
	for i := range data {
		data[i] = []byte{0, 0xff, byte(r.Uint32())}[r.IntN(3)]
	}
	return bson.Binary{Subtype: []byte{0, 2, 3, 3, 3, 4, 4, 4, 5, 0x80}[r.IntN(10)], Data: data}
}

func (r random) document(depth int) bson.D {
	d := bson.D{}
	for _, name := range names {
		if r.IntN(6) > 0 {
			d = append(d, bson.E{Key: name, Value: r.value(depth)})
		}
	}
	if r.IntN(6) == 0 { // a name with a dot, which no condition tests
		d = append(d, bson.E{Key: "a.b", Value: r.value(depth)})
	}
	r.Shuffle(len(d), func(i, j int) { d[i], d[j] = d[j], d[i] })
	return d
}

func (r random) path() string {
	var path []string
	for range 1 + r.IntN(3) {
		path = append(path, names[r.IntN(len(names))])
	}
	return strings.Join(path, ".")
}

// spelled returns text that is a UUID, or nearly one.
func spelled(r *rand.Rand) string {
	const chars = "0123456789abcdefABCDEFg-"
	b := make([]byte, 36)
	for i := range b {
		b[i] = chars[r.IntN(22)]
		if i == 8 || i == 13 || i == 18 || i == 23 {
			b[i] = '-'
		}
	}
	s := string(b)
	switch r.IntN(6) {
	case 0:
		s = "{" + s + "}"
	case 1:
		s = "urn:uuid:" + s
	case 2:
		s = "Urn:UUID:" + s
	case 3:
		s = strings.ReplaceAll(s, "-", "")
	}
	switch i := r.IntN(len(s)); r.IntN(10) {
	case 0:
		return s[:i] + s[i+1:]
	case 1:
		return s[:i] + string(chars[r.IntN(len(chars))]) + s[i+1:]
	case 2:
		return s + []string{"\n", " ", "}", "0"}[r.IntN(4)]
	case 3:
		return []string{"\n", " ", "{", "0"}[r.IntN(4)] + s
	}
	return s
}

// holdsOld reports whether a document has a value of the subtype at the path, by the definition of ParseField.
func holdsOld(v any, path []string, subtype byte) bool {
	is := func(v any) bool {
		if s, ok := v.(string); ok && subtype == text {
			return uuid.Validate(s) == nil
		}
		b, ok := v.(bson.Binary)
		return ok && b.Subtype == subtype && len(b.Data) == 16
	}
	d, ok := v.(bson.D)
	if !ok {
		return false
	}
	for _, e := range d {
		if e.Key != path[0] {
			continue
		}
		a, array := e.Value.(bson.A)
		switch {
		case len(path) > 1 && array:
			return slices.ContainsFunc(a, func(v any) bool { return holdsOld(v, path[1:], subtype) })
		case len(path) > 1:
			return holdsOld(e.Value, path[1:], subtype)
		}
		return is(e.Value) || array && slices.ContainsFunc(a, is)
	}
	return false
}

// The validator refuses a document if and only if it has an old value in a guarded field, and the
// pass counts old values in the same documents.
func TestClauseProperty(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	n := 30_000
	if testing.Short() {
		n = 3_000
	}
	count := make(map[bool]int)
	for range n {
		k := kinds.Where(func(k kinds.Kind) bool { return k.Form != kinds.Struct })[r.IntN(6)]
		var paths []string
		found := Pass{Conversion: rule.Conversion{{From: k, To: kinds.Kind{Subtype: 5}}}}
		for range 1 + r.IntN(3) {
			paths = append(paths, r.path())
			pattern, err := walk.ParsePattern(paths[len(paths)-1])
			if err != nil {
				t.Fatal(err)
			}
			found.Conversion[0].Fields = append(found.Conversion[0].Fields, pattern)
		}
		doc := r.document(4)
		want := slices.ContainsFunc(paths, func(p string) bool { return holdsOld(doc, strings.Split(p, "."), k.Subtype) })
		if got := !matches(Clause(refused(k.Subtype, paths...)), document(doc)); got != want {
			t.Fatalf("%v at %q of %v: refused %v", k, paths, doc, got)
		}
		found.Forget()
		if err := found.Add(document(doc)); err != nil || found.Old > 0 != want || found.Documents > 0 != want {
			t.Fatalf("%v at %q of %v: %+v, %v", k, paths, doc, found, err)
		}
		count[want]++
	}
	if count[true] < n/20 || count[false] < n/20 {
		t.Errorf("the documents do not test both results: %v", count)
	}
}

// The model answers the questions to a server as MongoDB is expected to.
func TestProbes(t *testing.T) {
	for _, subtype := range []byte{0, 3, 4, text} {
		for _, r := range refused(subtype, "k", "items.sku", "a.b.c") {
			for _, p := range probes(r) {
				if got := matches(document(holds(r)), document(p.doc)); got != p.holds {
					t.Errorf("%v: %v: %v", r, p.doc, got)
				}
			}
		}
	}
}

func TestParseField(t *testing.T) {
	for path, want := range map[string]string{
		"k": "k", "items[].sku": "items.sku", "a[].b[]": "a.b", "größe.ß": "größe.ß", "a b": "a b", "12a": "12a",
		"_id": "", "_id.k": "", "a.*": "", "*": "", "a[][]": "", "a[][].b": "", "": "", "a..b": "", "$a": "", "a.$id": "", "a.0": "", "12": "",
		"a.b.c.d.e.f.g.h": "a.b.c.d.e.f.g.h", "a.b.c.d.e.f.g.h.i": "",
	} {
		if got, err := ParseField(path); (err != nil) != (want == "") || got != want {
			t.Errorf("%q: %q, %v", path, got, err)
		}
	}
}

// The condition for the longest path fits into a command, and is not nested deeper than MongoDB
// allows.
func TestClauseSize(t *testing.T) {
	path := strings.TrimSuffix(strings.Repeat("name.", maxNames), ".")
	for _, subtype := range []byte{3, text} {
		if n := len(Clause(refused(subtype, path))); n > 200_000 {
			t.Errorf("%d: %d bytes", subtype, n)
		}
		if depth := strings.Count(fmt.Sprint(holds(refused(subtype, path)[0])), "$elemMatch"); depth > 1<<(maxNames+1) {
			t.Errorf("%d: %d conditions", subtype, depth)
		}
	}
}
