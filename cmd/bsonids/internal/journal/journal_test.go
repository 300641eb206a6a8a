package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

const format = "a journal of tests\n"

// memory is a file in memory. If fail is not 0, the call with this number fails.
type memory struct {
	b, synced []byte
	fail      int
}

var errDisk = errors.New("no space")

func (m *memory) call() error {
	if m.fail == 0 {
		return nil
	}
	if m.fail--; m.fail == 0 {
		return errDisk
	}
	return nil
}

func (m *memory) ReadAt(p []byte, off int64) (int, error) {
	if err := m.call(); err != nil {
		return 0, err
	}
	return bytes.NewReader(m.b).ReadAt(p, off)
}

func (m *memory) WriteAt(p []byte, off int64) (int, error) {
	if err := m.call(); err != nil {
		return 0, err
	}
	if end := int(off) + len(p); end > len(m.b) {
		m.b = append(m.b, make([]byte, end-len(m.b))...)
	}
	return copy(m.b[off:], p), nil
}

func (m *memory) Truncate(n int64) error {
	if err := m.call(); err != nil {
		return err
	}
	m.b = m.b[:n]
	return nil
}

func (m *memory) Sync() error {
	m.synced = slices.Clone(m.b)
	return m.call()
}

func (m *memory) Seek(off int64, whence int) (int64, error) {
	if whence != io.SeekEnd {
		panic(whence)
	}
	return int64(len(m.b)) + off, m.call()
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
	end, err = Whole(m, id, at, func(data []byte, _ int64) error {
		got = append(got, string(data))
		return nil
	})
	return got, end, err
}

// The bytes are those of another implementation.
func TestFormat(t *testing.T) {
	m, _ := written(t, "abc", []string{"x"})
	if got, want := fmt.Sprintf("%x", m.b[len(format):]), "06000000e5ab5a1ee77d360269642061626301000000935f3ca95f2efb3778"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
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
	if _, _, err := NewReader(m, "abc", offsets[3], offsets[3]+headSize-1).Next(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a record before whose end reading ends: %v", err)
	}
	long := string(bytes.Repeat([]byte("long"), 1<<17)) // longer than what is read at once
	m, _ = written(t, "abc", []string{"a", long, "b"})
	if got, _, err := read(m, "abc"); err != nil || !slices.Equal(got, []string{"a", long, "b"}) {
		t.Errorf("%d records, %v", len(got), err)
	}
}

// A file that is cut at any byte has the records before the cut. The rest is torn, and the writer
// cuts it off.
func TestCut(t *testing.T) {
	m, offsets := written(t, "abc", records)
	for n := range len(m.b) {
		cut := &memory{b: slices.Clone(m.b[:n])}
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
// the size that another file has tells. A writer does not cut it off.
func TestWrongBit(t *testing.T) {
	m, offsets := written(t, "abc", records)
	last := offsets[len(records)-1]
	for i := range m.b {
		for bit := range 8 {
			bad := &memory{b: slices.Clone(m.b)}
			bad.b[i] ^= 1 << bit
			got, end, err := read(bad, "abc")
			switch {
			case int64(i) >= last:
				if err != nil || end != last || !slices.Equal(got, records[:len(records)-1]) {
					t.Fatalf("byte %d: %q up to %d, %v", i, got, end, err)
				}
				was := slices.Clone(bad.b)
				if _, err := NewWriter(bad, "abc", end); !errors.Is(err, ErrDamaged) || !bytes.Equal(bad.b, was) {
					t.Fatalf("byte %d: a writer is made, %v, or cuts what is damaged", i, err)
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
		got, _, err := read(&memory{b: bytes.Join(order, nil)}, "abc")
		if name == "missing" { // none has its place any more
			if err != nil || len(got) != 0 {
				t.Errorf("%s: %q, %v", name, got, err)
			}
		} else if !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, _, err := read(&memory{b: append(slices.Clone(m.b), record(m, 4)...)}, "abc"); err != nil || len(got) != len(records) {
		t.Errorf("repeated: %q, %v", got, err)
	}
	// A whole record may begin at any byte after a damaged one.
	for n := range 70_000 {
		if n > 100 && n < 65_500 || n > 65_600 {
			continue
		}
		b := append(slices.Clone(begin), make([]byte, n)...)
		b = appendRecord(b, "abc", int64(len(b)), nil)
		_, _, err := read(&memory{b: b}, "abc")
		if n > 0 && !errors.Is(err, ErrDamaged) || n == 0 && err != nil {
			t.Fatalf("%d bytes before a record: %v", n, err)
		}
	}
}

// A file of another format is not read, nor one whose first record is damaged. What was torn when it was made is made anew.
func TestBegin(t *testing.T) {
	m, _ := written(t, "abc", nil)
	last := slices.Clone(m.b)
	last[len(last)-1] ^= 1
	for _, text := range []string{"a journal of something else\n", "x", format + "xxxxxxxxxxxxxxxxxxxxx", string(last)} {
		if first, at, err := Begin(&memory{b: []byte(text)}, format); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrDamaged) || first != nil || at != 0 && at != int64(len(format)) {
			t.Errorf("%q: %q up to %d, %v", text, first, at, err)
		}
	}
	for n := range len(m.b) {
		if first, at, err := Begin(&memory{b: m.b[:n]}, format); err != nil || first != nil || at != 0 {
			t.Errorf("%q: %q up to %d, %v", m.b[:n], first, at, err)
		}
	}
}

// A record has at most maxRecord bytes.
func TestLength(t *testing.T) {
	for _, n := range []uint32{maxRecord, maxRecord + 1} {
		b := binary.LittleEndian.AppendUint64(nil, uint64(n))
		b = binary.LittleEndian.AppendUint32(b, headSum("abc", 7, b))
		if length, _, ok := head(b, "abc", 7); ok != (n == maxRecord) || ok && length != maxRecord {
			t.Errorf("%d: %d, %v", n, length, ok)
		}
	}
	w, err := NewWriter(new(sink), "abc", 0)
	if err == nil {
		err = w.Append(make([]byte, 1+maxRecord), []int{1, 1 + maxRecord})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Append(make([]byte, maxRecord+3), []int{2, maxRecord + 3}); err == nil || !strings.Contains(err.Error(), fmt.Sprint("of ", maxRecord+1, " bytes")) {
		t.Error(err)
	}
}

// sink is a file that takes what is written.
type sink struct{ memory }

func (*sink) WriteAt(p []byte, _ int64) (int, error) { return len(p), nil }

// An error of the file is the error of the call in which it occurs, whichever call that is. After one nothing is written
// any more, and the size is that of what is on the disk.
func TestErrors(t *testing.T) {
	long := string(bytes.Repeat([]byte("long"), 1<<15)) // longer than what is read at once
	for n := 1; ; n++ {
		m := &memory{fail: n}
		var w *Writer
		var at, end int64
		add := func(data string) error {
			size := w.Size()
			err := w.Append([]byte(data), []int{len(data)})
			if err != nil && (!errors.Is(w.Append([]byte("x"), []int{1}), errDisk) || w.Size() != size) {
				t.Errorf("call %d: it goes on, with size %d, want %d", n, w.Size(), size)
			}
			return err
		}
		whole := func() (err error) {
			if end, err = Whole(m, "abc", at, func([]byte, int64) error { return nil }); end != 0 && end < at {
				t.Errorf("call %d: it ends at %d, before %d", n, end, at)
			}
			return err
		}
		for i, step := range []func() error{
			func() (err error) { w, err = Create(m, format, "abc", []byte("id abc")); return err },
			func() error { return add("one") },
			func() error { return add(long) },
			func() (err error) {
				m.b = append(m.b, "torn tail"...)
				m.synced = m.b
				if _, at, err = Begin(m, format); err != nil && at != 0 && at != int64(len(format)) {
					t.Errorf("call %d: it begins at %d", n, at)
				}
				return err
			},
			whole,
			func() (err error) {
				if w, err = NewWriter(m, "abc", end); err == nil && int64(len(m.b)) != end {
					t.Errorf("call %d: the torn tail is left", n)
				}
				return err
			},
			func() error {
				m.b[at+headSize] ^= 1
				if err := whole(); !errors.Is(err, ErrDamaged) {
					return err
				}
				return nil
			},
		} {
			err := step()
			if errors.Is(err, errDisk) && m.fail == 0 {
				break
			}
			if err != nil || m.fail == 0 || slices.Contains([]int{0, 1, 2, 5}, i) && !bytes.Equal(m.b, m.synced) {
				t.Fatalf("call %d fails in step %d, or not all is on the disk: %v", n, i, err)
			}
			if i == 6 {
				return
			}
		}
	}
}

// What is done with a record may fail, too.
func TestWholeFails(t *testing.T) {
	m, offsets := written(t, "abc", records)
	if end, err := Whole(m, "abc", offsets[0], func([]byte, int64) error { return errDisk }); !errors.Is(err, errDisk) || end != offsets[0] {
		t.Errorf("%d, %v", end, err)
	}
}

func FuzzRead(f *testing.F) {
	m, _ := written(f, "abc", records)
	f.Add(m.b)
	f.Add([]byte(format))
	f.Fuzz(func(t *testing.T, b []byte) {
		_, end, err := read(&memory{b: b}, "abc")
		if err != nil || end == 0 {
			return
		}
		r := NewReader(&memory{b: b}, "abc", end, end)
		if _, _, err := r.Next(); err != io.EOF {
			t.Error(err)
		}
	})
}
