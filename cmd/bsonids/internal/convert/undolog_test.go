package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

func TestUndoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy")
	l := newLog(t, path)
	if u, err := ReadUndoLog(path); err != nil {
		t.Errorf("not to be read while it is written: %v", err)
	} else if err := u.Close(); err != nil {
		t.Error(err)
	}
	dec, _ := bson.ParseDecimal128("1E+3")
	ids := []any{bson.ObjectID{1}, "text\n", int32(1), int64(1) << 60, 1.5, math.Inf(1), bson.Binary{Subtype: 3, Data: []byte{1}},
		bson.D{{Key: "x", Value: bson.A{1, "y"}}}, true, nil, dec, bson.DateTime(-1), bson.Timestamp{T: 1, I: 2}, bson.MinKey{}, bson.MaxKey{}}
	want := plans(t, c, ids...)
	no := func(Planned) bool { return false }
	start := l.Size()
	if err := l.Append(want, no); err != nil || start == 0 {
		t.Fatalf("%d, %v", start, err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, path)
	for i, p := range want {
		e := got[i]
		if !e.ID.Equal(p.ID) || len(e.Changes) != 1 || e.Changes[0].Path != `a.ü"` || e.Changes[0].Old != p.Changes[0].Old || e.Changes[0].New != p.Changes[0].New || e.Again {
			t.Errorf("%v reads as %+v", p, e)
		}
	}

	// A process that is killed during a write leaves a partial line. Opening the log removes it.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 10, 50} {
		if err := os.WriteFile(path, whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, path); len(got) != len(want)-1 {
			t.Errorf("%d octets cut off: %d entries", cut, len(got))
		}
		l := newLog(t, path)
		if err := l.Append(want[len(want)-1:], func(Planned) bool { return true }); err != nil {
			t.Fatal(err)
		}
		closed(t, l)
		if got := readAll(t, path); len(got) != len(want) || !got[len(got)-1].Again {
			t.Errorf("%d octets cut off and appended: %d entries", cut, len(got))
		}
	}
	other := header()
	other.ID = "fedcba9876543210"
	if _, err := OpenUndoLog(path, other, 0); err == nil {
		t.Error("a log of another conversion is taken")
	}
}

// Lines with "again" void the earlier lines about their document, and no others.
func TestVoid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	c := conversion(t, "javaLegacy")
	l := newLog(t, path)
	p := plans(t, c, "a", "b", "c")
	for _, step := range []struct {
		plan  int
		again bool
	}{{0, false}, {1, false}, {0, true}, {2, false}, {0, true}, {1, false}} {
		if err := l.Append(p[step.plan:step.plan+1], func(Planned) bool { return step.again }); err != nil {
			t.Fatal(err)
		}
	}
	closed(t, l)
	for _, size := range []int{1, 2, 100} {
		u, err := ReadUndoLog(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		err = entries(u, size, func(b []Entry) error {
			if len(b) > size {
				t.Errorf("%d entries at a time, want %d", len(b), size)
			}
			for _, e := range b {
				got = append(got, e.ID.StringValue())
			}
			return nil
		})
		if s := strings.Join(got, ""); err != nil || s != "bcab" {
			t.Errorf("%s, %v", s, err)
		}
		u.Close()
	}
}

// cutOff is a line with an unknown field that has no end. The driver does not return from skipping it.
const cutOff = `{"":{"$numberInt:"1"},"changes":[{"path":"a","old":{"$binary":{"base64":"AA==","subType4:"03`

// A line that is cut off is an error in a skip list.
func TestLineCutOff(t *testing.T) {
	if err := listedLine([]byte(cutOff), "db.c", nil); err == nil {
		t.Error("no error")
	}
}

func FuzzParseEntry(f *testing.F) {
	c := conversion(f, "javaLegacy")
	for i, p := range plans(f, c, "a", 1, bson.ObjectID{1}) {
		f.Add(appendEntry(nil, p, i == 0))
	}
	text := Planned{Plan: rule.Plan{ID: plans(f, c, 1)[0].ID, Changes: []rule.Change{{Path: "a", Old: textOf([16]byte{1}), New: rule.Null}}}}
	f.Add(appendEntry(nil, text, true))
	f.Add(appendEntry(nil, pointerID(f, c), false))
	f.Add([]byte{entryRecord})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := ParseEntry(record)
		if err != nil {
			return
		}
		again, err := ParseEntry(appendEntry(nil, Planned{Plan: rule.Plan{ID: e.ID, Changes: e.Changes}}, e.Again))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v reads as %+v, %v", e, again, err)
		}
		if _, err := json.Marshal(e.text()); err != nil {
			t.Error(err)
		}
	})
}

// pointerID returns a plan for a document whose _id is a DBPointer that the driver does not write as JSON.
func pointerID(t testing.TB, c rule.Conversion) Planned {
	p := plans(t, c, 1)[0]
	p.ID = marshal(t, bson.D{{Key: "v", Value: bson.DBPointer{DB: `a"b`, Pointer: bson.ObjectID{1}}}}).Lookup("v")
	return p
}

// An _id that cannot be written as extended JSON is written as its type and its bytes.
func TestEntryOfPointer(t *testing.T) {
	p := pointerID(t, conversion(t, "javaLegacy"))
	e, err := ParseEntry(appendEntry(nil, p, false))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(e.text().ID)
	if err != nil {
		t.Fatal(err)
	}
	var id struct {
		Type  string
		Bytes []byte
	}
	if err := json.Unmarshal(text, &id); err != nil || id.Type != "dbPointer" || !bytes.Equal(id.Bytes, p.ID.Value) {
		t.Errorf("%s, %v", text, err)
	}
}

// textOf returns the text of a UUID.
func textOf(u [16]byte) rule.Value {
	typ, b, err := bson.MarshalValue(uuid.UUID(u).String())
	if err != nil {
		panic(err)
	}
	return rule.ValueOf(typ, b)
}

// Every part of an entry comes back, whatever its bytes.
func TestEntry(t *testing.T) {
	raw := func(v any) bson.RawValue { return marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v") }
	p := Planned{Plan: rule.Plan{Changes: []rule.Change{
		{Path: "caf\xe9", Old: rule.Value{Subtype: 3, Octets: [16]byte{1}}, New: rule.Value{Subtype: 4, Octets: [16]byte{2}}},
		{Path: strings.Repeat("long", 100), Old: textOf([16]byte{3}), New: rule.Value{Octets: [16]byte{4}}},
		{Path: "\x00", Old: rule.Value{Other: "\x03\x05\x00\x00\x00\x00"}, New: rule.Null},
	}}, kept: []rule.Change{{Path: "kept", New: textOf([16]byte{6})}}}
	for _, id := range []any{int32(1), "\xff\n", bson.ObjectID{1}, nil, bson.D{{Key: "a", Value: bson.A{1, "\xff"}}}, math.NaN(), bson.MinKey{},
		bson.Binary{Subtype: 2, Data: []byte{1}}, bson.Regex{Pattern: "a"}, bson.Undefined{}, strings.Repeat("x", 1000)} {
		p.ID = raw(id)
		for _, again := range []bool{false, true} {
			e, err := ParseEntry(appendEntry(nil, p, again))
			want := Entry{ID: p.ID, Changes: slices.Concat(p.Changes, p.kept), Again: again}
			if err != nil || !e.ID.Equal(want.ID) || !reflect.DeepEqual(e.Changes, want.Changes) || e.Again != again {
				t.Errorf("%v: %+v, %v", id, e, err)
			}
		}
	}
	whole := appendEntry(nil, p, false)
	for n := range whole {
		if _, err := ParseEntry(whole[:n]); err == nil && !slices.Contains(entryEnds(p), n) {
			t.Errorf("%d bytes of %d are an entry", n, len(whole))
		}
	}
}

// entryEnds returns where a record with fewer changes than p ends.
func entryEnds(p Planned) (ends []int) {
	all := slices.Concat(p.Changes, p.kept)
	for n := range all {
		ends = append(ends, len(appendEntry(nil, Planned{Plan: rule.Plan{ID: p.ID, Changes: all[:n+1]}}, false)))
	}
	return ends
}

// An undo log as text has what its entries have, in extended JSON that the driver reads.
func TestUndoLogAsText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "undo")
	writtenLog(t, path)
	var b bytes.Buffer
	if err := WriteText(&b, path); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], `"collection":"c"`) {
		t.Fatalf("%q", lines)
	}
	for i, line := range lines[1:4] {
		var got struct {
			ID      int32 `bson:"_id"`
			Changes []struct {
				Path     string
				Old, New bson.Binary
			}
			Again bool
		}
		if err := bson.UnmarshalExtJSON([]byte(line), true, &got); err != nil {
			t.Fatal(err)
		}
		ch := got.Changes[0]
		if got.ID != int32(i) || len(got.Changes) != 1 || ch.Path != "a.ü\"" || !ch.Old.Equal(kindstest.Value("javaLegacy")) || !ch.New.Equal(kindstest.Value("standard")) || got.Again != (i == 2) {
			t.Errorf("%s", line)
		}
	}
}

// BenchmarkReadUndoLog reads entries of one document with three values each.
func BenchmarkReadUndoLog(b *testing.B) {
	c := conversion(b, "javaLegacy")
	v := kindstest.Value("javaLegacy")
	path := filepath.Join(b.TempDir(), "undo")
	l, err := OpenUndoLog(path, header(), 0)
	if err != nil {
		b.Fatal(err)
	}
	const documents = 100_000
	var all []Planned
	for i := range documents {
		p, err := c.Plan(marshal(b, bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "customer", Value: v}, {Key: "n", Value: i},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: v}}, bson.D{{Key: "sku", Value: v}}}}}))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, Planned{Plan: p})
	}
	if err := errors.Join(l.Append(all, func(Planned) bool { return false }), l.Close()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		u, err := ReadUndoLog(path)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for {
			if _, err := u.Next(); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != documents || u.Close() != nil {
			b.Fatal(n)
		}
	}
	b.ReportMetric(documents*float64(b.N)/b.Elapsed().Seconds(), "documents/s")
}
