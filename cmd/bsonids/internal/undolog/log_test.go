package undolog

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
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds/kindstest"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/rule"
)

// Entries come back as they were written, whatever the _id is, and a torn end is left out.
func TestUndoLog(t *testing.T) {
	dec, _ := bson.ParseDecimal128("1E+3")
	want := entriesOf(t, bson.ObjectID{1}, "text\n", int32(1), int64(1)<<60, 1.5, math.Inf(1), bson.Binary{Subtype: 3, Data: []byte{1}},
		bson.D{{Key: "x", Value: bson.A{1, "y"}}}, true, nil, dec, bson.DateTime(-1), bson.Timestamp{T: 1, I: 2}, bson.MinKey{}, bson.MaxKey{})
	l := New(t.TempDir(), header())
	if err := l.Append(want); err != nil {
		t.Fatal(err)
	}
	got := readAll(t, l.Path()) // while it is written
	closed(t, l)
	for i, p := range want {
		if e := got[i]; !e.ID.Equal(p.ID) || !reflect.DeepEqual(e.Changes, p.Changes) || e.Again {
			t.Errorf("%v reads as %+v", p, e)
		}
	}
	whole, err := os.ReadFile(l.Path())
	if err != nil {
		t.Fatal(err)
	}
	for _, cut := range []int{1, 10, 50} {
		if err := os.WriteFile(l.Path(), whole[:len(whole)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, l.Path()); len(got) != len(want)-1 {
			t.Errorf("%d octets cut off: %d entries", cut, len(got))
		}
	}
}

// The file is made with the first entries, is private, has its header, and takes the place of no other file.
func TestNewUndoLog(t *testing.T) {
	dir := t.TempDir()
	l := New(dir, header())
	if err := l.Close(); err != nil || l.Extent() != (Extent{}) || (*Log)(nil).Extent() != (Extent{}) {
		t.Error(err, l.Extent())
	}
	if _, err := os.Stat(l.Path()); !errors.Is(err, os.ErrNotExist) || filepath.Dir(l.Path()) != dir {
		t.Errorf("a log without entries: %v", err)
	}
	l = New(dir, header())
	if err := l.Append(entriesOf(t, "a")); err != nil {
		t.Fatal(err)
	}
	one := l.Extent()
	info, err := os.Stat(l.Path())
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() != one.Size {
		t.Errorf("%v, %v, %v", info, err, one)
	}
	if err := l.Append(entriesOf(t, "b")); err != nil || l.Extent().Size <= one.Size {
		t.Error(l.Extent(), err)
	}
	u := opened(t, l.Path())
	if !reflect.DeepEqual(u.Header, header()) || u.Size() != l.Extent().Size || u.Path() != l.Path() {
		t.Errorf("%+v reads as %+v", header(), u.Header)
	}
	for _, e := range []Extent{{}, one, l.Extent()} {
		if err := u.Covers(e); err != nil {
			t.Error(err)
		}
	}
	other := New(dir, header())
	var of *files.Error
	if err := other.Append(entriesOf(t, "c")); !errors.Is(err, os.ErrExist) || !errors.As(err, &of) || of.Path != l.Path() {
		t.Errorf("a log of the same run: %v", err)
	}
	if n := len(readAll(t, l.Path())); n != 2 {
		t.Errorf("%d entries", n)
	}
	closed(t, l)
	if err := l.Append(entriesOf(t, "c")); !errors.As(err, &of) || of.Path != l.Path() {
		t.Errorf("a log that is closed: %v", err)
	}
	l = New(filepath.Join(dir, "none"), header())
	if err := l.Append(entriesOf(t, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A log that lost its end, or has another one, does not cover what was written. One that has more does.
func TestCovers(t *testing.T) {
	path := writtenLog(t)
	u := opened(t, path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := Extent{int64(len(b)), 0}
	for _, tt := range []struct {
		is Extent
		ok bool
	}{{Extent{}, true}, {Extent{u.Size() + 1, 0}, false}, {sum, false}} {
		if err := u.Covers(tt.is); (err == nil) != tt.ok {
			t.Errorf("%+v: %v", tt.is, err)
		}
	}
}

// An undo notes at the end that it has restored the values, once, and the entries stay.
func TestMarkUndone(t *testing.T) {
	path := writtenLog(t)
	if u := opened(t, path); u.Undone != nil {
		t.Errorf("%+v", u.Undone)
	}
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(b, "torn"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	first := Undone{By: "fedcba9876543210", At: time.UnixMilli(1700000000000).UTC()}
	for _, u := range []Undone{first, {By: "0", At: first.At.Add(1)}} {
		if err := MarkUndone(path, u); err != nil {
			t.Fatal(err)
		}
		if r := opened(t, path); r.Undone == nil || *r.Undone != first {
			t.Errorf("%+v", r.Undone)
		}
	}
	if n := len(readAll(t, path)); n != 3 {
		t.Errorf("%d entries", n)
	}
	var text bytes.Buffer
	if err := WriteText(&text, path); err != nil || !strings.HasSuffix(text.String(), `{"undoneBy":"fedcba9876543210","at":"2023-11-14T22:13:20Z"}`+"\n") {
		t.Errorf("%s, %v", text.String(), err)
	}
	if err := MarkUndone(filepath.Join(t.TempDir(), "none"), first); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// Several logs are one sequence: the order is that in which their runs began, and what is void is void in its own log.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	for i, run := range []string{"c", "a", "b"} {
		h := header()
		h.Run, h.Started = run, h.Started.Add(time.Duration(i/2)*time.Second)
		l := New(dir, h)
		for _, id := range []string{"1", "2", "1"} {
			e := entriesOf(t, run+id)
			e[0].Again = run == "a"
			if err := l.Append(e); err != nil {
				t.Fatal(err)
			}
		}
		closed(t, l)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("killed.undo", format[:7])
	write("other", "a file of another name")
	write("broken.undo", "text of another program, which is long enough\n")
	all, broken, err := In(dir)
	if err != nil || len(all) != 3 || len(broken) != 2 || !errors.Is(broken["broken"], ErrFormat) || broken["killed"] == nil {
		t.Fatalf("%d logs, %v, %v", len(all), broken, err)
	}
	logs := Of(all...)
	defer logs.Close()
	var got []string
	last := Place{Log: len(logs)}
	read := func(e Entry) error { got = append(got, e.ID.StringValue()); return nil }
	if err := logs.Each(read); err != nil || strings.Join(got, " ") != "b1 b2 b1 c1 c2 c1 a2 a1" {
		t.Errorf("%q, %v", got, err)
	}
	got, last = nil, Place{}
	err = logs.All(func(e Entry) error {
		if !last.Before(e.At) || e.At.Before(last) {
			t.Errorf("%v is not before %v", last, e.At)
		}
		last = e.At
		return read(e)
	})
	if err != nil || strings.Join(got, " ") != "a1 a2 a1 c1 c2 c1 b1 b2 b1" {
		t.Errorf("%q, %v", got, err)
	}
	for _, f := range []func(func(Entry) error) error{logs.Each, logs.All} {
		if err := f(func(Entry) error { return io.ErrClosedPipe }); err != io.ErrClosedPipe {
			t.Error(err)
		}
	}
	if _, _, err := In(filepath.Join(dir, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func FuzzParseEntry(f *testing.F) {
	for i, e := range entriesOf(f, "a", 1, bson.ObjectID{1}) {
		e.Again = i == 0
		f.Add(appendEntry(nil, e))
	}
	text := Entry{ID: entriesOf(f, 1)[0].ID, Changes: []rule.Change{{Path: "a", Old: textOf([16]byte{1}), New: rule.Null}}, Again: true}
	f.Add(appendEntry(nil, text))
	f.Add(appendEntry(nil, pointerID(f)))
	f.Add([]byte{entryRecord})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, record []byte) {
		e, err := ParseEntry(record)
		if err != nil {
			return
		}
		again, err := ParseEntry(appendEntry(nil, e))
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Errorf("%+v reads as %+v, %v", e, again, err)
		}
		if _, err := json.Marshal(e.text()); err != nil {
			t.Error(err)
		}
	})
}

// pointerID returns an entry for a document whose _id is a DBPointer that the driver does not write as JSON.
func pointerID(t testing.TB) Entry {
	p := entriesOf(t, 1)[0]
	p.ID = kindstest.Marshal(t, bson.D{{Key: "v", Value: bson.DBPointer{DB: `a"b`, Pointer: bson.ObjectID{1}}}}).Lookup("v")
	return p
}

// An _id that cannot be written as extended JSON is written as its type and its bytes.
func TestEntryOfPointer(t *testing.T) {
	p := pointerID(t)
	e, err := ParseEntry(appendEntry(nil, p))
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
	raw := func(v any) bson.RawValue { return kindstest.Marshal(t, bson.D{{Key: "v", Value: v}}).Lookup("v") }
	want := Entry{Changes: []rule.Change{
		{Path: "caf\xe9", Old: rule.Value{Subtype: 3, Octets: [16]byte{1}}, New: rule.Value{Subtype: 4, Octets: [16]byte{2}}},
		{Path: strings.Repeat("long", 100), Old: textOf([16]byte{3}), New: rule.Value{Octets: [16]byte{4}}},
		{Path: "\x00", Old: rule.Value{Other: "\x03\x05\x00\x00\x00\x00"}, New: rule.Null},
	}}
	for _, id := range []any{int32(1), "\xff\n", bson.ObjectID{1}, nil, bson.D{{Key: "a", Value: bson.A{1, "\xff"}}}, math.NaN(), bson.MinKey{},
		bson.Binary{Subtype: 2, Data: []byte{1}}, bson.Regex{Pattern: "a"}, bson.Undefined{}, strings.Repeat("x", 1000)} {
		want.ID = raw(id)
		for _, want.Again = range []bool{false, true} {
			e, err := ParseEntry(appendEntry(nil, want))
			if err != nil || !e.ID.Equal(want.ID) || !reflect.DeepEqual(e.Changes, want.Changes) || e.Again != want.Again {
				t.Errorf("%v: %+v, %v", id, e, err)
			}
		}
	}
	whole := appendEntry(nil, want)
	for n := range whole {
		if _, err := ParseEntry(whole[:n]); err == nil && !slices.Contains(entryEnds(want), n) {
			t.Errorf("%d bytes of %d are an entry", n, len(whole))
		}
	}
}

// entryEnds returns where a record with fewer changes than e ends.
func entryEnds(e Entry) (ends []int) {
	for n := range e.Changes {
		ends = append(ends, len(appendEntry(nil, Entry{ID: e.ID, Changes: e.Changes[:n+1]})))
	}
	return ends
}

// An undo log as text has what its entries have, in extended JSON that the driver reads.
func TestUndoLogAsText(t *testing.T) {
	path := writtenLog(t)
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
	c := kindstest.Conversion(b, rule.NewConversion, "javaLegacy")
	v := kindstest.Value("javaLegacy")
	l := New(b.TempDir(), header())
	const documents = 100_000
	var all []Entry
	for i := range documents {
		p, err := c.Edits(kindstest.Marshal(b, bson.D{{Key: "_id", Value: bson.NewObjectID()}, {Key: "customer", Value: v}, {Key: "n", Value: i},
			{Key: "items", Value: bson.A{bson.D{{Key: "sku", Value: v}}, bson.D{{Key: "sku", Value: v}}}}}))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, Entry{ID: p.ID, Changes: p.Changes})
	}
	if err := errors.Join(l.Append(all), l.Close()); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		u, err := Open(l.Path())
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
