package spill

import (
	"bufio"
	"errors"
	"hash/crc32"
	"io"
	"slices"
)

// inBlock is the number of records of a sealed file that are read at a time: 24 KiB.
const inBlock = 1 << 10

// block describes records of a sealed file.
type block struct {
	first [2]uint64 // the value of the first one
	sum   uint32    // the CRC-32C of all
}

// errDamaged is the error of a temporary file that does not have what was written to it.
var errDamaged = errors.New("a temporary file is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Seal sorts the records, so that [Sorter.Find] finds them, and returns their number. The memory has 24 bytes for each 1024
// records then. If more records are added, they must be sealed again. The file is written anew: for some time there are two of them.
func (s *Sorter) Seal() (records int64, err error) {
	if s.file == nil {
		s.sort()
		s.memory, s.spare, s.sealed = slices.Clone(s.memory), nil, true
		return int64(len(s.memory)), nil
	}
	out, err := Temporary(s.dir)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriterSize(out, 1<<16)
	var blocks []block
	b := make([]byte, 0, inBlock*Size)
	flush := func() error {
		if len(b) == 0 {
			return nil
		}
		first := get(b)
		blocks = append(blocks, block{[2]uint64{first[0], first[1]}, crc32.Checksum(b, castagnoli)})
		_, err := w.Write(b)
		b = b[:0]
		return err
	}
	err = s.Each(func(r Record) error {
		records++
		b = b[:len(b)+Size]
		put(b[len(b)-Size:], r)
		if len(b) < cap(b) {
			return nil
		}
		return flush()
	})
	if err = errors.Join(err, flush(), w.Flush()); err != nil {
		return 0, errors.Join(err, Remove(out))
	}
	err = s.Close()
	s.file, s.size, s.end = out, records*Size, records*Size
	s.sealed, s.blocks, s.at, s.levels = true, blocks, -1, [][]run{{{0, s.size}}}
	return records, err
}

// Find returns the numbers of a value, sorted. Values in their order are found without reading a part of the file twice. The
// Sorter must be sealed.
func (s *Sorter) Find(v [16]byte) (numbers []uint64, err error) {
	key := Of(v, 0)
	if !s.sealed {
		return nil, errors.New("spill: the records are not sealed")
	}
	if s.file == nil {
		return numbersOf(numbers, key, len(s.memory), func(i int) Record { return s.memory[i] }), nil
	}
	// Records of the value may be at the end of the block before the first one that begins with it.
	first, _ := slices.BinarySearchFunc(s.blocks, key, func(b block, key Record) int { return compare(Record{b.first[0], b.first[1]}, key) })
	for n := max(first-1, 0); n < len(s.blocks) && compare(Record{s.blocks[n].first[0], s.blocks[n].first[1]}, key) <= 0; n++ {
		b, err := s.block(n)
		if err != nil {
			return nil, err
		}
		numbers = numbersOf(numbers, key, len(b)/Size, func(i int) Record { return get(b[i*Size:]) })
	}
	return numbers, nil
}

// numbersOf appends the numbers of those of n records that have the value of key.
func numbersOf(numbers []uint64, key Record, n int, record func(i int) Record) []uint64 {
	low, high := 0, n
	for low < high {
		if middle := (low + high) / 2; compare(record(middle), key) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	for ; low < n; low++ {
		r := record(low)
		if r[0] != key[0] || r[1] != key[1] {
			break
		}
		numbers = append(numbers, r[2])
	}
	return numbers
}

// block returns a block of the sealed file.
func (s *Sorter) block(n int) ([]byte, error) {
	if s.at == n {
		return s.last, nil
	}
	start := int64(n) * inBlock * Size
	size := min(inBlock*Size, s.size-start)
	if s.last == nil {
		s.last = make([]byte, inBlock*Size)
	}
	s.at, s.last = -1, s.last[:size]
	if _, err := s.file.ReadAt(s.last, start); errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	} else if err != nil {
		return nil, err
	}
	if crc32.Checksum(s.last, castagnoli) != s.blocks[n].sum {
		return nil, errDamaged
	}
	s.at = n
	return s.last, nil
}
