// Package spill sorts more records than fit in memory, by means of a temporary file, and finds them there.
package spill

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"slices"
)

// Record is a record of 24 bytes. Records are compared as three big-endian numbers.
type Record [3]uint64

// Size is the size of a record on disk, in bytes.
const Size = 24

const (
	inMemory = 1 << 13 // records that are sorted in memory at a time: 192 KiB, and as much to sort them
	minFan   = 128     // runs that are merged at a time, at least
	readSize = 1 << 10 // bytes that are read of a run at a time
)

// Sorter sorts records and removes duplicates. Its memory does not grow with the number of records.
// It is not safe for concurrent use.
type Sorter struct {
	dir    string
	limit  int // of records in memory
	fan    int // runs that are merged at a time
	memory []Record
	spare  []Record
	file   *os.File
	end    int64
	out    *bufio.Writer   // of the run that is written
	in     []*bufio.Reader // of the runs that are merged
	levels [][]run         // runs by the number of merges that made them
	sealed bool            // Find may be called
	blocks []block         // of the file, if it is sealed
	size   int64           // of these, in bytes
	last   []byte          // the block that was read last, whose number is at
	at     int
}

// run is a sorted part of the file.
type run struct{ start, end int64 }

// New returns a Sorter whose file, if it needs one, is in the directory dir. The caller must close
// it.
func New(dir string) *Sorter { return NewSize(dir, inMemory) }

// NewSize is like [New], for a Sorter that sorts a number of records in memory at a time, which takes twice their size. The
// larger the number, the fewer times the records are written.
func NewSize(dir string, records int) *Sorter {
	return &Sorter{dir: dir, limit: records, fan: max(minFan, records/1024)}
}

// Add adds a record. An error is one of the file.
func (s *Sorter) Add(r Record) error {
	s.sealed = false
	if len(s.memory) == s.limit {
		if err := s.spill(); err != nil {
			return err
		}
	}
	if s.memory == nil {
		s.memory = make([]Record, 0, s.limit)
	}
	s.memory = append(s.memory, r)
	return nil
}

func compare(a, b Record) int {
	if a[0] != b[0] {
		return cmp.Compare(a[0], b[0])
	}
	if a[1] != b[1] {
		return cmp.Compare(a[1], b[1])
	}
	return cmp.Compare(a[2], b[2])
}

// sort sorts the records in memory and removes duplicates. It distributes them by their first bits,
// which are random in most identifiers, and sorts the rest of each share by comparison.
func (s *Sorter) sort() {
	const bits = 12
	if len(s.memory) < 1<<bits {
		slices.SortFunc(s.memory, compare)
		s.memory = slices.Compact(s.memory)
		return
	}
	if len(s.spare) < len(s.memory) {
		s.spare = make([]Record, s.limit)
	}
	var ends [1 << bits]int
	for i := range s.memory {
		ends[s.memory[i][0]>>(64-bits)]++
	}
	sum := 0
	for i, n := range ends {
		ends[i], sum = sum, sum+n
	}
	out := s.spare[:len(s.memory)]
	for i := range s.memory {
		share := s.memory[i][0] >> (64 - bits)
		out[ends[share]] = s.memory[i]
		ends[share]++
	}
	start := 0
	for _, end := range ends {
		slices.SortFunc(out[start:end], compare)
		start = end
	}
	s.memory, s.spare = slices.Compact(out), s.memory[:cap(s.memory)]
}

// spill writes the records in memory to the file as a run.
func (s *Sorter) spill() error {
	s.sort()
	if len(s.memory) <= s.limit/2 { // mostly duplicates
		return nil
	}
	err := s.write(0, func(emit func(Record) error) error {
		for _, r := range s.memory {
			if err := emit(r); err != nil {
				return err
			}
		}
		return nil
	})
	s.memory = s.memory[:0]
	return err
}

// write appends a run of the level to the file, and merges runs if there are too many of the level.
func (s *Sorter) write(level int, fill func(emit func(Record) error) error) error {
	if s.file == nil {
		f, err := Temporary(s.dir)
		if err != nil {
			return err
		}
		s.file = f
	}
	start := s.end
	if s.out == nil {
		s.out = bufio.NewWriterSize(&appender{s}, readSize)
	}
	w := s.out
	var b [Size]byte
	err := fill(func(r Record) error {
		put(b[:], r)
		_, err := w.Write(b[:])
		return err
	})
	if err == nil {
		err = w.Flush()
	}
	if err != nil {
		return err
	}
	for len(s.levels) <= level {
		s.levels = append(s.levels, nil)
	}
	s.levels[level] = append(s.levels[level], run{start, s.end})
	if len(s.levels[level]) < s.fan {
		return nil
	}
	runs := s.levels[level]
	s.levels[level] = nil
	return s.write(level+1, func(emit func(Record) error) error { return s.merge(runs, emit) })
}

func put(b []byte, r Record) {
	for i, n := range r {
		binary.BigEndian.PutUint64(b[8*i:], n)
	}
}

func get(b []byte) (r Record) {
	for i := range r {
		r[i] = binary.BigEndian.Uint64(b[8*i:])
	}
	return r
}

// appender writes at the end of the file.
type appender struct{ s *Sorter }

func (a *appender) Write(b []byte) (int, error) {
	n, err := a.s.file.WriteAt(b, a.s.end)
	a.s.end += int64(n)
	return n, err
}

// Each calls visit for each distinct record, in order. It can be called several times, also between
// calls of Add. It returns the error of visit or of the file.
func (s *Sorter) Each(visit func(Record) error) error {
	s.sort()
	var runs []run
	for _, l := range s.levels {
		runs = append(runs, l...)
	}
	if len(runs) == 0 {
		for _, r := range s.memory {
			if err := visit(r); err != nil {
				return err
			}
		}
		return nil
	}
	return s.merge(runs, visit, s.memory)
}

// Of returns the record of a value of 16 bytes, with a number.
func Of(v [16]byte, number uint64) Record {
	return Record{binary.BigEndian.Uint64(v[:8]), binary.BigEndian.Uint64(v[8:]), number}
}

// Groups is like Each, for each value of the records that [Of] made. The numbers of all of these are sorted,
// and valid until visit returns.
func (s *Sorter) Groups(visit func(v [16]byte, numbers []uint64)) error {
	var last Record
	var numbers []uint64
	done := func() {
		if len(numbers) > 0 {
			visit([16]byte(binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, last[0]), last[1])), numbers)
		}
	}
	err := s.Each(func(r Record) error {
		if r[0] != last[0] || r[1] != last[1] {
			done()
			numbers = numbers[:0]
		}
		numbers, last = append(numbers, r[2]), r
		return nil
	})
	done()
	return err
}

// merge calls visit for each distinct record of the runs and of the sorted records in memory.
func (s *Sorter) merge(runs []run, visit func(Record) error, memory ...[]Record) error {
	var heads []*head
	for i, r := range runs {
		if i == len(s.in) {
			s.in = append(s.in, bufio.NewReaderSize(nil, readSize))
		}
		s.in[i].Reset(io.NewSectionReader(s.file, r.start, r.end-r.start))
		heads = append(heads, &head{in: s.in[i]})
	}
	for _, m := range memory {
		heads = append(heads, &head{memory: m})
	}
	for i := len(heads) - 1; i >= 0; i-- {
		if err := heads[i].next(); errors.Is(err, io.EOF) {
			heads = slices.Delete(heads, i, i+1)
		} else if err != nil {
			return err
		}
	}
	for i := len(heads)/2 - 1; i >= 0; i-- {
		down(heads, i)
	}
	var last Record
	for first := true; len(heads) > 0; {
		switch r := heads[0].record; {
		case first || compare(last, r) < 0:
			if err := visit(r); err != nil {
				return err
			}
			first, last = false, r
		case r != last:
			return errDamaged
		}
		if err := heads[0].next(); errors.Is(err, io.EOF) {
			heads[0] = heads[len(heads)-1]
			heads = heads[:len(heads)-1]
		} else if err != nil {
			return err
		}
		down(heads, 0)
	}
	return nil
}

// head is the first record of a run that is not yet merged.
type head struct {
	in     *bufio.Reader // nil for records in memory
	memory []Record
	record Record
}

// next returns io.EOF after the last record.
func (h *head) next() error {
	if h.in == nil {
		if len(h.memory) == 0 {
			return io.EOF
		}
		h.record, h.memory = h.memory[0], h.memory[1:]
		return nil
	}
	b, err := h.in.Peek(Size)
	if err != nil {
		if len(b) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	h.record = get(b)
	_, err = h.in.Discard(Size)
	return err
}

// down restores the heap below i, whose least record is at 0.
func down(heads []*head, i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heads); child++ {
			if compare(heads[child].record, heads[least].record) < 0 {
				least = child
			}
		}
		if least == i {
			return
		}
		heads[i], heads[least] = heads[least], heads[i]
		i = least
	}
}

// Close removes the file.
func (s *Sorter) Close() error {
	s.memory, s.spare, s.levels, s.out, s.in, s.blocks, s.last = nil, nil, nil, nil, nil, nil, nil
	s.sealed, s.end = false, 0
	if s.file == nil {
		return nil
	}
	err := Remove(s.file)
	s.file = nil
	return err
}
