package rule

import (
	"bytes"
	"fmt"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
)

// The index finds what a search of the document finds, also in unusual documents.
func TestValuesIndex(t *testing.T) {
	bin := func(i int) bson.Binary {
		b := make([]byte, 16)
		b[0], b[1] = byte(i), byte(i>>8)
		return bson.Binary{Subtype: byte(3 + i%2), Data: b}
	}
	doc := bson.Raw(marshal(t, bson.D{{Key: "_id", Value: bin(1)}, {Key: "a", Value: bson.D{{Key: "b", Value: bin(2)}, {Key: "0", Value: bin(3)}}},
		{Key: "l", Value: bson.A{bin(4), bson.D{{Key: "x", Value: bin(5)}}, bson.A{bin(6)}, "text"}}, {Key: "a.b", Value: bin(7)}, {Key: "a", Value: bin(8)},
		{Key: "$d", Value: bin(9)}, {Key: "short", Value: bson.Binary{Subtype: 3, Data: []byte("x")}}, {Key: "", Value: bin(10)}}))
	plain, index := HeldBy(doc, 1), HeldBy(doc, manyLookups)
	for _, path := range []string{"_id", "a", "a.b", "a.0", "l.0", "l.1.x", "l.2.0", "l.3", "l.4", "l", "$d", "short", "", "none", "a.b.c"} {
		v1, ok1 := plain.At(path)
		v2, ok2 := index.At(path)
		if v1 != v2 || ok1 != ok2 {
			t.Errorf("%q: %+v %v by index, %+v %v without", path, v2, ok2, v1, ok1)
		}
	}
}

// Without unusual names, the index finds all values that a conversion converts, lists or writes, and no other.
func TestValuesIndexAlone(t *testing.T) {
	doc := marshal(t, bson.D{{Key: "u", Value: kindstest.Value("standard")}, {Key: "text", Value: "no UUID"}, {Key: "null", Value: nil}, {Key: "number", Value: 5},
		{Key: "struct", Value: bson.D{{Key: "uuid", Value: kindstest.Value("standard")}}}, {Key: "unfit", Value: bson.A{bson.D{{Key: "uuid", Value: 5}}}},
		{Key: "binaryText", Value: bson.Binary{Subtype: 2, Data: []byte("00112233-4455-6677-8899-aabbccddeeff")}},
		{Key: "malformed", Value: bson.Binary{Subtype: 3, Data: []byte("00112233-4455-6677-8899-aabbccddeef-")}}, {Key: "data", Value: bson.Binary{Data: make([]byte, 36)}}})
	plain, index := HeldBy(doc, 1), HeldBy(doc, manyLookups)
	for _, path := range []string{"u", "text", "null", "struct", "struct.uuid", "unfit.0", "binaryText", "malformed"} {
		v1, ok1 := plain.At(path)
		if v2, ok2 := index.At(path); v1 != v2 || !ok1 || !ok2 {
			t.Errorf("%q: %+v %v by index, %+v %v without", path, v2, ok2, v1, ok1)
		}
	}
	for _, path := range []string{"number", "none", "unfit.1", "u.x", "data"} {
		if v, ok := index.At(path); ok {
			t.Errorf("%q: %+v", path, v)
		}
	}
}

// A value is held if the one at the path has its type, its subtype and its bytes.
func TestHolds(t *testing.T) {
	u := [16]byte{6: 0x40}
	doc := marshal(t, bson.D{{Key: "u", Value: bson.Binary{Subtype: 3, Data: u[:]}}, {Key: "short", Value: bson.Binary{Data: make([]byte, 15)}}, {Key: "text", Value: "x"}, {Key: "null", Value: nil}})
	text := ValueOf(bson.TypeString, []byte("\x02\x00\x00\x00x\x00"))
	for _, n := range []int{1, manyLookups} {
		h := HeldBy(doc, n)
		for _, tt := range []struct {
			path  string
			value Value
			want  bool
		}{
			{"u", Value{Subtype: 3, Octets: u}, true}, {"u", Value{Subtype: 4, Octets: u}, false}, {"u", Value{Subtype: 3}, false}, {"u", text, false}, {"u", Null, false},
			{"short", Value{}, false}, {"none", Value{}, false}, {"text", Value{}, false}, {"text", text, true},
			{"text", Null, false}, {"null", Null, true}, {"null", Value{}, false}, {"none", Null, false}, {"none", Value{Other: "\x00"}, false},
		} {
			other := Value{Other: "\x01"}
			if h.HasOld(Change{Path: tt.path, Old: tt.value, New: other}) != tt.want || h.HasNew(Change{Path: tt.path, Old: other, New: tt.value}) != tt.want {
				t.Errorf("%s, %+v: the old or the new value", tt.path, tt.value)
			}
		}
	}
}

// The time for a document with many values grows with their number and not with its square, which
// would be minutes, also if another program has removed half of them.
func BenchmarkManyValues(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		var l bson.A
		var made []Change
		for i := range n {
			v := make([]byte, 16)
			v[0], v[1], v[2] = byte(i), byte(i>>8), 0x80
			l = append(l, bson.Binary{Subtype: 4, Data: v})
			made = append(made, Change{Path: fmt.Sprintf("l.%d", i), New: Value{Subtype: 4, Octets: [16]byte(v)}})
		}
		for _, left := range []int{n, n / 2} {
			doc := marshal(b, bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: l[:left]}})
			b.Run(fmt.Sprintf("%d of %d", left, n), func(b *testing.B) {
				for b.Loop() {
					if back, lost, err := WayBack(doc, made); err != nil || len(lost) != n-left || len(back) != left {
						b.Fatalf("%d changes, lost %v, %v", len(back), lost, err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
			})
		}
	}
}

// A document with a byte changed is looked up without a panic, and a value that is found is one that the document has.
func TestHoldsOfDamage(t *testing.T) {
	value := kindstest.Value("standard")
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value}, {Key: "list", Value: bson.A{value, bson.D{{Key: "b", Value: value}}}}})
	octets := [16]byte(value.Data)
	var made []Change
	for _, path := range []string{"a", "list.0", "list.1.b"} {
		made = append(made, Change{Path: path, New: Value{Subtype: 4, Octets: octets}})
	}
	for i := range doc {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, doc[i] - 1, doc[i] + 1} {
			bad := bytes.Clone(doc)
			bad[i] = b
			held := HeldBy(bad, 1)
			for _, ch := range made {
				if held.HasNew(ch) && !bytes.Contains(bad, value.Data) {
					t.Errorf("byte %d is %d: %s is found", i, b, ch.Path)
				}
			}
			if back, lost, err := WayBack(bad, made); err == nil && len(back)+len(lost) > len(made) {
				t.Errorf("byte %d is %d: %v, %v", i, b, back, lost)
			}
		}
	}
}
