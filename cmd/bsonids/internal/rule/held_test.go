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
		s1, o1, ok1 := plain.at(path)
		s2, o2, ok2 := index.at(path)
		if s1 != s2 || o1 != o2 || ok1 != ok2 {
			t.Errorf("%q: %d %x %v by index, %d %x %v without", path, s2, o2, ok2, s1, o1, ok1)
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
			path    string
			subtype byte
			octets  [16]byte
			value   Value
			want    bool
		}{
			{"u", 3, u, "", true}, {"u", 4, u, "", false}, {"u", 3, [16]byte{}, "", false}, {"u", 3, u, text, false}, {"u", 3, u, Null, false},
			{"short", 0, [16]byte{}, "", false}, {"none", 0, [16]byte{}, "", false}, {"text", 0, [16]byte{}, "", false}, {"text", 0, u, text, true},
			{"text", 0, u, Null, false}, {"null", 0, u, Null, true}, {"null", 0, [16]byte{}, "", false}, {"none", 0, u, Null, false}, {"none", 0, u, "\x00", false},
		} {
			if got := h.Holds(tt.path, tt.subtype, tt.octets, tt.value); got != tt.want {
				t.Errorf("%s, %d, %x, %q: %v", tt.path, tt.subtype, tt.octets, tt.value, got)
			}
			ch := Change{Path: tt.path, Old: tt.octets, New: [16]byte{1}, OldValue: tt.value, NewValue: "\x01"}
			if h.HasOld(ch, tt.subtype) != tt.want || h.HasNew(Change{Path: tt.path, Old: [16]byte{1}, New: tt.octets, OldValue: "\x01", NewValue: tt.value}, tt.subtype) != tt.want {
				t.Errorf("%s: the old or the new value", tt.path)
			}
		}
	}
}

// The time for a document with many values grows with their number and not with its square, which
// would be minutes.
func BenchmarkManyValues(b *testing.B) {
	for _, n := range []int{5_000, 50_000} {
		var l bson.A
		var made []Change
		for i := range n {
			v := make([]byte, 16)
			v[0], v[1], v[2] = byte(i), byte(i>>8), 0x80
			l = append(l, bson.Binary{Subtype: 4, Data: v})
			made = append(made, Change{Path: fmt.Sprintf("l.%d", i), New: [16]byte(v)})
		}
		doc, err := bson.Marshal(bson.D{{Key: "_id", Value: 1}, {Key: "l", Value: l}})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if back, lost, err := WayBack(doc, made, 3, 4); err != nil || lost != nil || len(back) != n {
					b.Fatalf("%d changes, lost %v, %v", len(back), lost, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}

// A document with a byte changed is looked up without a panic, and a value that is found is one that the document has.
func TestHoldsOfDamage(t *testing.T) {
	value := kindstest.Value("standard")
	doc := marshal(t, bson.D{{Key: "_id", Value: 1}, {Key: "a", Value: value}, {Key: "list", Value: bson.A{value, bson.D{{Key: "b", Value: value}}}}})
	octets := [16]byte(value.Data)
	var made []Change
	for _, path := range []string{"a", "list.0", "list.1.b"} {
		made = append(made, Change{Path: path, New: octets})
	}
	for i := range doc {
		for _, b := range []byte{0, 1, 0x7f, 0x80, 0xff, doc[i] - 1, doc[i] + 1} {
			bad := bytes.Clone(doc)
			bad[i] = b
			held := HeldBy(bad, 1)
			for _, ch := range made {
				if held.HasNew(ch, 4) && !bytes.Contains(bad, value.Data) {
					t.Errorf("byte %d is %d: %s is found", i, b, ch.Path)
				}
			}
			if back, lost, err := WayBack(bad, made, 3, 4); err == nil && len(back)+len(lost) > len(made) {
				t.Errorf("byte %d is %d: %v, %v", i, b, back, lost)
			}
		}
	}
}
