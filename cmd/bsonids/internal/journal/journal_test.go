package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
)

const format = "a journal of tests\n"

// memory is a file in memory.
type memory struct{ b []byte }

func (m *memory) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(m.b).ReadAt(p, off) }
func (m *memory) Truncate(n int64) error                  { m.b = m.b[:n]; return nil }
func (m *memory) Sync() error                             { return nil }
func (m *memory) Seek(int64, int) (int64, error)          { return int64(len(m.b)), nil }
func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	m.b = append(m.b[:off], p...)
	return len(p), nil
}

var records = []string{"first", "", "x", string(make([]byte, 300)), "last"}

// written returns a file with the records, and the offset at which each begins, and the end.
func written(t testing.TB, id string, records []string) (*memory, []int64) {
	t.Helper()
	m := new(memory)
	w, err := Create(m, format, id, []byte("id "+id))
	if err != nil {
		t.Fatal(err)
	}
	offsets := []int64{w.Size()}
	for _, r := range records {
		if err := w.Append([]byte(r), []int{len(r)}); err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, w.Size())
	}
	return m, offsets
}

// read returns the whole records of a file.
func read(m *memory, id string) (got []string, end int64, err error) {
	first, at, err := Begin(m, format)
	if err != nil || first == nil {
		return nil, 0, err
	}
	if string(first) != "id "+id {
		return nil, 0, fmt.Errorf("the first record is %q", first)
	}
	end, err = Whole(m, id, at, func(data []byte) error {
		got = append(got, string(data))
		return nil
	})
	return got, end, err
}

func TestReadBack(t *testing.T) {
	m, offsets := written(t, "abc", records)
	got, end, err := read(m, "abc")
	if err != nil || !slices.Equal(got, records) || end != offsets[len(records)] {
		t.Fatalf("%q, %d, %v", got, end, err)
	}
	all := make([]byte, 0)
	var ends []int
	for _, r := range records {
		all = append(all, r...)
		ends = append(ends, len(all))
	}
	together := new(memory)
	w, err := Create(together, format, "abc", []byte("id abc"))
	if err == nil {
		err = w.Append(all, ends)
	}
	if err != nil || !bytes.Equal(together.b, m.b) {
		t.Errorf("records that are appended together differ: %v", err)
	}
	for i, at := range offsets[:len(records)] { // reading may start at any record
		data, offset, err := NewReader(m, "abc", at, end).Next()
		if err != nil || string(data) != records[i] || offset != at {
			t.Errorf("%d: %q at %d, %v", i, data, offset, err)
		}
	}
	long := string(bytes.Repeat([]byte("long"), 1<<17)) // longer than what is read at once
	m, _ = written(t, "abc", []string{"a", long, "b"})
	if got, _, err := read(m, "abc"); err != nil || !slices.Equal(got, []string{"a", long, "b"}) {
		t.Errorf("%d records, %v", len(got), err)
	}
	if err := w.Append(make([]byte, maxRecord+1), []int{maxRecord + 1}); err == nil {
		t.Error("a record that is too long is written")
	}
}

// A file that is cut at any byte has the records before the cut. The rest is torn, and the writer
// cuts it off.
func TestCut(t *testing.T) {
	m, offsets := written(t, "abc", records)
	for n := range len(m.b) {
		cut := &memory{slices.Clone(m.b[:n])}
		got, end, err := read(cut, "abc")
		if err != nil {
			t.Fatalf("cut at %d: %v", n, err)
		}
		want := 0
		for want < len(records) && offsets[want+1] <= int64(n) {
			want++
		}
		if int64(n) < offsets[0] {
			if got != nil || end != 0 {
				t.Errorf("cut at %d: %q", n, got)
			}
			continue
		}
		if !slices.Equal(got, records[:want]) || end != offsets[want] {
			t.Errorf("cut at %d: %q up to %d, want %q", n, got, end, records[:want])
		}
		w, err := NewWriter(cut, "abc", end)
		if err == nil {
			err = w.Append([]byte("more"), []int{4})
		}
		if got, _, e := read(cut, "abc"); err != nil || e != nil || !slices.Equal(got, append(slices.Clone(records[:want]), "more")) {
			t.Errorf("cut at %d and written: %q, %v, %v", n, got, err, e)
		}
	}
}

// A wrong bit is damage, except in the last record, of which it is not known whether it was whole:
// the size that another file has tells.
func TestWrongBit(t *testing.T) {
	m, offsets := written(t, "abc", records)
	last := offsets[len(records)-1]
	for i := range m.b {
		for bit := range 8 {
			bad := &memory{slices.Clone(m.b)}
			bad.b[i] ^= 1 << bit
			got, end, err := read(bad, "abc")
			switch {
			case int64(i) >= last:
				if err != nil || end != last || !slices.Equal(got, records[:len(records)-1]) {
					t.Fatalf("byte %d: %q up to %d, %v", i, got, end, err)
				}
			case i < len(format):
				if !errors.Is(err, ErrFormat) {
					t.Fatalf("byte %d: %v", i, err)
				}
			default:
				if !errors.Is(err, ErrDamaged) {
					t.Fatalf("byte %d: %q, %v", i, got, err)
				}
			}
		}
	}
}

// Records that are missing, exchanged, repeated, or of another journal are damage.
func TestMovedRecords(t *testing.T) {
	m, offsets := written(t, "abc", records)
	other, _ := written(t, "xyz", records)
	record := func(m *memory, i int) []byte { return m.b[offsets[i]:offsets[i+1]] }
	begin := m.b[:offsets[0]]
	for name, order := range map[string][][]byte{
		"missing":   {begin, record(m, 1), record(m, 2), record(m, 3), record(m, 4)},
		"exchanged": {begin, record(m, 0), record(m, 2), record(m, 1), record(m, 3), record(m, 4)},
		"foreign":   {begin, record(m, 0), record(other, 1), record(m, 2), record(m, 3)},
	} {
		got, _, err := read(&memory{bytes.Join(order, nil)}, "abc")
		if name == "missing" { // none has its place any more
			if err != nil || len(got) != 0 {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, _, err := read(&memory{append(slices.Clone(m.b), record(m, 4)...)}, "abc"); err != nil || len(got) != len(records) {
		t.Errorf("repeated: %q, %v", got, err)
	}
	// A whole record may begin at any byte after a damaged one.
	for n := range 70_000 {
		if n > 100 && n < 65_500 || n > 65_600 {
			continue
		}
		b := append(slices.Clone(begin), make([]byte, n)...)
		b = appendRecord(b, "abc", int64(len(b)), []byte("x"))
		_, _, err := read(&memory{b}, "abc")
		if n > 0 && !errors.Is(err, ErrDamaged) || n == 0 && err != nil {
			t.Fatalf("%d bytes before a record: %v", n, err)
		}
	}
}

// A file of another format is not read, and what was torn when it was made is made anew.
func TestBegin(t *testing.T) {
	for _, text := range []string{"a journal of something else\n", "x", format + "xxxxxxxxxxxxxxxxxxxxx"} {
		if first, _, err := Begin(&memory{[]byte(text)}, format); err == nil {
			t.Errorf("%q: %q", text, first)
		}
	}
	for _, text := range []string{"", format[:5], format} {
		if first, _, err := Begin(&memory{[]byte(text)}, format); err != nil || first != nil {
			t.Errorf("%q: %q, %v", text, first, err)
		}
	}
}

// failing is a file whose n-th write or sync fails.
type failing struct {
	memory
	n int
}

var errDisk = errors.New("no space")

func (f *failing) step() error {
	if f.n--; f.n < 0 {
		return errDisk
	}
	return nil
}

func (f *failing) WriteAt(p []byte, off int64) (int, error) {
	if err := f.step(); err != nil {
		return 0, err
	}
	return f.memory.WriteAt(p, off)
}

func (f *failing) Sync() error { return f.step() }
func (f *failing) Truncate(n int64) error {
	if err := f.step(); err != nil {
		return err
	}
	return f.memory.Truncate(n)
}

// After an error nothing is written any more, and the size is that of what is on the disk.
func TestWriterError(t *testing.T) {
	for n := range 7 {
		f := &failing{n: n}
		w, err := Create(f, format, "abc", []byte("id abc"))
		if n < 3 {
			if !errors.Is(err, errDisk) {
				t.Errorf("%d: %v", n, err)
			}
			continue
		}
		size := w.Size()
		one := w.Append([]byte("one"), []int{3})
		if n >= 5 {
			if one != nil {
				t.Fatal(one)
			}
			size = w.Size()
			one = w.Append([]byte("two"), []int{3})
		}
		f.n = 10
		if again := w.Append([]byte("x"), []int{1}); !errors.Is(one, errDisk) || !errors.Is(again, errDisk) || w.Size() != size {
			t.Errorf("%d: %v, then %v, size %d, want %d", n, one, again, w.Size(), size)
		}
	}
	f := &failing{memory: memory{[]byte("0123")}, n: 0}
	if _, err := NewWriter(f, "abc", 2); !errors.Is(err, errDisk) {
		t.Error(err)
	}
	f.n = 1
	if _, err := NewWriter(f, "abc", 2); !errors.Is(err, errDisk) {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	m, _ := written(f, "abc", records)
	f.Add(m.b)
	f.Add([]byte(format))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, end, err := read(&memory{b}, "abc")
		if err != nil || end == 0 {
			return
		}
		r := NewReader(&memory{b}, "abc", end, end)
		if _, _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	})
}
