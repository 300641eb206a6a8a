package scan

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/uuidrep"
)

func TestCounts(t *testing.T) {
	s := newScan(t)
	c := s.collector(t, "c")
	u := uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")
	for _, doc := range []bson.D{
		{{Key: "id", Value: stored(u, 4, uuidrep.Standard)}, {Key: "n", Value: 1}},
		{{Key: "id", Value: stored(u, 3, uuidrep.JavaLegacy)}, {Key: "tags", Value: bson.A{stored(u, 4, uuidrep.Standard), u.String(), "x"}}},
		{{Key: "id", Value: stored(u, 0, uuidrep.Standard)}, {Key: "by", Value: bson.D{{Key: u.String(), Value: stored(u, 4, uuidrep.Standard)}}}},
		{{Key: "id", Value: u.String()}}, {{Key: "id", Value: "{" + u.String() + "}"}}, {{Key: "id", Value: u.URN()}},
		{{Key: "id", Value: "00112233445566778899aabbccddeeff"}}, {{Key: "id", Value: nil}},
		{{Key: "id", Value: bson.Binary{Subtype: 4, Data: u[:15]}}}, {{Key: "id", Value: bson.Binary{Subtype: 3}}},
		{{Key: "id", Value: bson.Binary{Subtype: 5, Data: u[:]}}}, {{Key: "id", Value: bson.Binary{Subtype: 2, Data: u[:]}}},
		{{Key: "id", Value: bson.Binary{Subtype: 0, Data: u[:8]}}},
	} {
		collect(t, c, doc)
	}
	got := s.judged(t)[0]
	want := map[string]Counts{
		"id":     {Standard: 1, Legacy: 1, Generic: 1, Text: 3, Malformed: 2, Other: 5},
		"tags[]": {Standard: 1, Text: 1, Other: 1},
		"by.*":   {Standard: 1},
	}
	if got.Scanned != 13 || len(got.Fields) != len(want) {
		t.Errorf("%+v", got)
	}
	for _, f := range got.Fields {
		if f.Counts != want[f.Path] {
			t.Errorf("%s: got %+v, want %+v", f.Path, f.Counts, want[f.Path])
		}
	}
	if err := c.Add([]byte("garbage")); err == nil {
		t.Error("garbage is no document")
	}
}

// The guide describes every key of the JSON report.
func TestReportIsDocumented(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/command.md")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("the guide is not part of the module")
	} else if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## The report of `scan` as JSON\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, part := range []any{Report{}, Collection{}, Field{}, Counts{}, Evidence{}, decide.Found{}, decide.Reading{}, decide.Conversion{}, FormEvidence{}} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(part)) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" && key != "-" && !strings.Contains(section, "`"+key+"`") {
				t.Errorf("%T: nothing is said of %s", part, key)
			}
		}
	}
	for _, w := range ways {
		if !strings.Contains(section, "`"+w.key+"`") {
			t.Errorf("nothing is said of %s", w.key)
		}
	}
}

func TestFieldNamesAsData(t *testing.T) {
	s := newScan(t)
	c := s.collector(t, "c")
	r := rand.New(rand.NewPCG(10, 10))
	name := make([]byte, 12)
	for range maxFields + 100 {
		for i := range name {
			name[i] = byte('g' + r.IntN(20))
		}
		collect(t, c, bson.D{{Key: string(name), Value: 1}})
	}
	// Names that are data and have no UUIDs do not displace fields with UUIDs.
	for i := range maxFields/2 + 1 {
		collect(t, c, bson.D{{Key: "x" + strings.Repeat("y", i), Value: uuid.Nil.String()}, {Key: "id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}})
	}
	got := s.judged(t)[0]
	if !got.Overflow || len(c.fields) != maxFields {
		t.Errorf("%d fields, overflow %v", len(c.fields), got.Overflow)
	}
	if i := slices.IndexFunc(got.Fields, func(f Field) bool { return f.Path == "id" }); i < 0 || got.Fields[i].Counts.Legacy != maxFields/2+1 {
		t.Error("the field id is not counted")
	}
	if f := got.Decisions["text"].Fields; f[0].Path != decide.Others || len(f) != maxFields/2 {
		t.Errorf("%d fields with text, the first of them %s", len(f), f[0].Path)
	}
}

// Names may be as long as documents. Fields are left out if the names together are too long, as
// they are if there are too many fields.
func TestLongFieldNames(t *testing.T) {
	s := newScan(t)
	c := s.collector(t, "c")
	for i := range 32 {
		name := strings.Repeat(string(rune('g'+i%20)), 1<<20+i)
		collect(t, c, bson.D{{Key: name, Value: uuid.Nil.String()}, {Key: "id", Value: uuid.Nil.String()}})
	}
	octets := 0
	for name := range c.fields {
		octets += len(name)
	}
	got := s.judged(t)[0]
	if octets > 4<<20 || !got.Overflow {
		t.Errorf("names of %d octets are held, overflow %v", octets, got.Overflow)
	}
	if i := slices.IndexFunc(got.Fields, func(f Field) bool { return f.Path == "id" }); i < 0 || got.Fields[i].Counts.Text != 32 {
		t.Error("the field id is not counted")
	}
}

// The memory of a collector does not grow with the number of documents.
func TestFlatMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	s := newScan(t)
	c := s.collector(t, "c")
	heap := func() uint64 {
		runtime.GC()
		runtime.GC() // a pool keeps what it has for one collection
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}, {Key: "ref", Value: stored(v4(r, 0), 4, uuidrep.Standard)},
	})
	if err != nil {
		t.Fatal(err)
	}
	id, ref := bytes.Index(doc, []byte{16, 0, 0, 0, 3})+5, bytes.Index(doc, []byte{16, 0, 0, 0, 4})+5
	fill := func(n int) {
		for range n {
			a, b := v4(r, 0), v4(r, 0)
			copy(doc[id:], a[:])
			copy(doc[ref:], b[:])
			if err := c.Add(doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill(20_000)
	before := heap()
	fill(300_000)
	// The values alone are 9.6 MB.
	if after := heap(); after > before+1<<20 {
		t.Errorf("%d KiB after 20,000 documents, %d KiB after 320,000", before>>10, after>>10)
	}
	runtime.KeepAlive(c)
}

func BenchmarkAdd(b *testing.B) {
	r := rand.New(rand.NewPCG(12, 12))
	doc, err := bson.Marshal(bson.D{
		{Key: "_id", Value: stored(v4(r, 0), 3, uuidrep.JavaLegacy)}, {Key: "name", Value: "somebody"}, {Key: "n", Value: 1},
		{Key: "items", Value: bson.A{bson.D{{Key: "id", Value: stored(v4(r, 0), 4, uuidrep.Standard)}}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	s := newScan(b)
	c := s.collector(b, "c")
	id := bytes.Index(doc, []byte{16, 0, 0, 0, 3}) + 5
	b.ReportAllocs()
	for b.Loop() {
		v := v4(r, 0)
		copy(doc[id:], v[:])
		if err := c.Add(doc); err != nil {
			b.Fatal(err)
		}
	}
}

// Values whose names an update or a pattern cannot use are counted.
func TestOddNames(t *testing.T) {
	u := bson.Binary{Data: make([]byte, 16)}
	for name, v := range map[string]any{"binary": bson.Binary{Subtype: 3, Data: u.Data}, "text": uuid.Nil.String(), "goStruct": bson.D{{Key: "uuid", Value: u}}} {
		s := newScan(t)
		c := s.collector(t, "c")
		for _, d := range []bson.D{{{Key: "a.b", Value: v}}, {{Key: "a", Value: bson.D{{Key: "b", Value: v}}}}, {{Key: "$c", Value: v}}, {{Key: "", Value: v}}, {{Key: "c..d", Value: v}}, {{Key: "r", Value: bson.D{{Key: "$id", Value: v}}}}} {
			collect(t, c, d)
		}
		want := map[string][2]int64{"a.b": {1, 0}, "$c": {1, 0}, "*": {1, 0}, "c..d": {1, 1}, "r.$id": {0, 0}}
		for _, f := range s.judged(t)[0].Fields {
			if name == "goStruct" && len(f.Forms) == 0 {
				continue // the value in the document
			}
			odd := f.Odd
			if name != "binary" {
				odd = f.Forms[0].Odd
			}
			if got := [2]int64{odd.Unaddressable, odd.Unnamable}; got != want[f.Path] || (odd.Reason != nil) != (got[0] > 0) {
				t.Errorf("%s: %q: %v, want %v; %v", name, f.Path, got, want[f.Path], odd.Reason)
			}
			delete(want, f.Path)
		}
		if len(want) > 0 {
			t.Errorf("%s: not found: %v", name, want)
		}
	}
}

// Empty documents are counted where other documents of the collection have ids: Go programs store {} for a struct with a
// private UUID that has no codec.
func TestEmptyDocuments(t *testing.T) {
	u := bson.Binary{Subtype: 4, Data: uuid.New().NodeID()}
	u.Data = append(make([]byte, 10), u.Data...)
	stored, err := bson.Marshal(struct{ ID struct{ id uuid.UUID } }{})
	if err != nil || bson.Raw(stored).Lookup("id").Type != bson.TypeEmbeddedDocument || len(bson.Raw(stored).Lookup("id").Value) != 5 {
		t.Fatalf("the driver stores %s, %v", bson.Raw(stored), err)
	}
	s := newScan(t)
	c := s.collector(t, "c")
	none := bson.D{}
	for _, d := range []bson.D{
		{{Key: "_id", Value: bson.NewObjectID()}, {Key: "room", Value: u}, {Key: "text", Value: uuid.NewString()}, {Key: "n", Value: 1}, {Key: "all", Value: none}, {Key: "many", Value: bson.A{u, none, none}}, {Key: "in", Value: bson.D{{Key: "id", Value: u}}}},
		{{Key: "_id", Value: none}, {Key: "room", Value: none}, {Key: "text", Value: none}, {Key: "n", Value: none}, {Key: "all", Value: none}, {Key: "many", Value: bson.A{}}, {Key: "in", Value: none}},
		{{Key: "_id", Value: 1}, {Key: "room", Value: none}, {Key: "in", Value: bson.D{{Key: "id", Value: none}, {Key: "other", Value: 1}}}},
	} {
		collect(t, c, d)
	}
	got := make(map[string]int64)
	for _, f := range s.judged(t)[0].Fields {
		got[f.Path] = f.Counts.Empty
		if f.Path == "_id" && f.Counts.Other != 2 {
			t.Errorf("_id: %+v", f.Counts)
		}
	}
	if want := map[string]int64{"_id": 1, "room": 2, "text": 1, "many[]": 2, "in.id": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
