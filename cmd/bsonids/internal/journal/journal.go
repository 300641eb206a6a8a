// Package journal keeps records in a file to which they are only appended. Each record has checksums
// of the id of the journal, its offset in the file, and its bytes, so that a wrong bit, a moved record
// and a record of another journal are found.
//
// A file begins with a line of text that names its format. Records follow it:
//
//	 0               4               8              12
//	+---------------+---------------+---------------+---------- - -
//	| length        | sum of bytes  | sum of head   | bytes
//	+---------------+---------------+---------------+---------- - -
//
// The numbers are little-endian, and the sums are CRC-32C. The sum of the head covers the id, the
// offset, the length and the other sum. The first record has no id in its sum: it tells the id.
//
// A process that is killed leaves a part of its last write. Whole records of it count, and the rest is
// a torn tail: bytes after which no whole record begins. A record that is not whole, and that a whole
// one follows, is damaged.
package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
)

// File is a file of a journal: an [os.File]. It is only sought to find its size.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Seeker
	Truncate(size int64) error
	Sync() error
}

// The errors of journals, which say what is wrong with a file.
var (
	ErrFormat  = errors.New("it does not begin as a file of this format and version")
	ErrDamaged = errors.New("it is damaged")
	errTorn    = fmt.Errorf("%w", ErrDamaged) // the file ends before a record does
)

const (
	headSize = 12
	// maxRecord is the maximum length of the bytes of a record. A document, and three times what is
	// changed in it, is shorter.
	maxRecord = 1 << 26
	readSize  = 1 << 16 // bytes that are read at once
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// headSum returns the sum of a head, of which b is the length and the sum of the bytes.
func headSum(id string, offset int64, b []byte) uint32 {
	place := binary.LittleEndian.AppendUint64([]byte(id), uint64(offset))
	return crc32.Checksum(append(place, b...), castagnoli)
}

// appendRecord appends a record that begins at the offset of the file.
func appendRecord(b []byte, id string, offset int64, data []byte) []byte {
	at := len(b)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(data)))
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(data, castagnoli))
	b = binary.LittleEndian.AppendUint32(b, headSum(id, offset, b[at:]))
	return append(b, data...)
}

// head returns the length and the sum of the bytes of a record, if its head is whole.
func head(b []byte, id string, offset int64) (length int, sum uint32, ok bool) {
	n, sum := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	return int(n), sum, n <= maxRecord && headSum(id, offset, b[:8]) == binary.LittleEndian.Uint32(b[8:])
}

// Reader reads the records of a file. It is not safe for concurrent use.
type Reader struct {
	r      *bufio.Reader
	id     string
	at     int64 // offset of the next record
	end    int64 // of the records that are read
	record []byte
}

// NewReader returns a reader of the records of the file from offset up to end.
func NewReader(f io.ReaderAt, id string, offset, end int64) *Reader {
	return &Reader{r: bufio.NewReaderSize(io.NewSectionReader(f, offset, end-offset), readSize), id: id, at: offset, end: end}
}

// Next returns the bytes of the next record and the offset at which it begins, or io.EOF at the end.
// The bytes are valid until the next call. The error wraps [ErrDamaged] if the record is not whole.
func (r *Reader) Next() (data []byte, offset int64, err error) {
	offset = r.at
	if offset == r.end {
		return nil, offset, io.EOF
	}
	var b [headSize]byte
	if _, err := io.ReadFull(r.r, b[:]); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, offset, broken(errTorn, offset)
	} else if err != nil {
		return nil, offset, err
	}
	length, sum, ok := head(b[:], r.id, offset)
	switch {
	case !ok:
		return nil, offset, broken(ErrDamaged, offset)
	case int64(length) > r.end-offset-headSize:
		return nil, offset, broken(errTorn, offset)
	}
	r.record = slices.Grow(r.record[:0], length)[:length]
	if _, err := io.ReadFull(r.r, r.record); err != nil {
		return nil, offset, err
	}
	if crc32.Checksum(r.record, castagnoli) != sum {
		return nil, offset, broken(ErrDamaged, offset)
	}
	r.at = offset + headSize + int64(length)
	return r.record, offset, nil
}

func broken(err error, offset int64) error {
	return fmt.Errorf("%w: the record at byte %d is not whole", err, offset)
}

// Begin returns the bytes of the first record of a file that begins with the line format, and the
// offset after it. The first record of a file that was torn when it was made is nil.
func Begin(f File, format string) (first []byte, offset int64, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, err
	}
	b := make([]byte, min(size, int64(len(format))))
	if _, err := f.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, 0, err
	}
	switch {
	case string(b) != format[:len(b)]:
		return nil, 0, ErrFormat
	case len(b) < len(format):
		return nil, 0, nil
	}
	r := NewReader(f, "", int64(len(format)), size)
	first, _, err = r.Next()
	if err == io.EOF || errors.Is(err, errTorn) {
		return nil, 0, nil
	}
	return first, r.at, err
}

// Whole calls f for each whole record from offset on, with the offset at which it begins, and returns the
// offset after the last one. What follows it is torn. The error wraps [ErrDamaged] if a record is damaged.
func Whole(file File, id string, offset int64, f func(data []byte, at int64) error) (end int64, err error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	r := NewReader(file, id, offset, size)
	for {
		data, at, err := r.Next()
		if err == nil {
			if err = f(data, at); err == nil {
				continue
			}
		} else if errors.Is(err, ErrDamaged) {
			if follows, other := anyWhole(file, id, at, size); !follows {
				err = other
			}
		} else if err == io.EOF {
			err = nil
		}
		return at, err
	}
}

// anyWhole reports whether a whole record begins at the offset or later.
func anyWhole(file io.ReaderAt, id string, offset, size int64) (bool, error) {
	b := make([]byte, readSize)
	for ; offset+headSize <= size; offset += int64(len(b)) - headSize + 1 {
		b = b[:min(int64(len(b)), size-offset)]
		if _, err := file.ReadAt(b, offset); err != nil {
			return false, err
		}
		for i := range len(b) - headSize + 1 {
			if _, _, ok := head(b[i:i+headSize], id, offset+int64(i)); !ok {
				continue
			}
			_, _, err := NewReader(file, id, offset+int64(i), size).Next()
			if !errors.Is(err, ErrDamaged) {
				return err == nil, err
			}
		}
	}
	return false, nil
}

// Writer appends records to a file. It is not safe for concurrent use.
type Writer struct {
	file File
	id   string
	end  int64
	sum  uint32 // of all bytes of the file, if the writer has made it
	b    []byte
	err  error // the first error; what the file has after it is not known
}

// NewWriter returns a writer that appends at the offset end, which is after the last whole record. It cuts a record off that
// the file ends before, and nothing else: the error wraps [ErrDamaged] if the file has something else there.
func NewWriter(f File, id string, end int64) (*Writer, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	switch _, _, err := NewReader(f, id, end, size).Next(); {
	case err == io.EOF:
	case errors.Is(err, errTorn):
		if err = errors.Join(f.Truncate(end), f.Sync()); err != nil {
			return nil, err
		}
	case err == nil:
		return nil, broken(ErrDamaged, end)
	default:
		return nil, err
	}
	return &Writer{file: f, id: id, end: end}, nil
}

// First returns the content of a file that begins with the line format and has a first record.
func First(format string, first []byte) []byte {
	return appendRecord([]byte(format), "", int64(len(format)), first)
}

// Create makes f a file that begins with the line format and a first record, which has the id. What f
// had is gone.
func Create(f File, format, id string, first []byte) (*Writer, error) {
	if err := f.Truncate(0); err != nil {
		return nil, err
	}
	w := &Writer{file: f, id: id, b: First(format, first)}
	if _, err := f.WriteAt(w.b, 0); err != nil {
		return nil, err
	}
	w.end, w.sum = int64(len(w.b)), crc32.Checksum(w.b, castagnoli)
	return w, f.Sync()
}

// Append appends records, whose bytes are in data from the end of one to the next, and brings them to
// the disk. After an error, every call returns it.
func (w *Writer) Append(data []byte, ends []int) error {
	if w.err != nil {
		return w.err
	}
	w.b = w.b[:0]
	at := 0
	for _, end := range ends {
		if end-at > maxRecord {
			return fmt.Errorf("a record of %d bytes is too long", end-at)
		}
		w.b = appendRecord(w.b, w.id, w.end+int64(len(w.b)), data[at:end])
		at = end
	}
	if _, w.err = w.file.WriteAt(w.b, w.end); w.err == nil {
		w.err = w.file.Sync()
	}
	if w.err == nil {
		w.end, w.sum = w.end+int64(len(w.b)), crc32.Update(w.sum, castagnoli, w.b)
	}
	return w.err
}

// Size returns the size in bytes of what is on the disk.
func (w *Writer) Size() int64 { return w.end }

// Sum returns the CRC-32C of what is on the disk, of a file that the writer has made.
func (w *Writer) Sum() uint32 { return w.sum }

// Sum returns the CRC-32C of the first bytes of a file.
func Sum(f io.ReaderAt, size int64) (uint32, error) {
	h := crc32.New(castagnoli)
	_, err := io.CopyN(h, io.NewSectionReader(f, 0, size), size)
	return h.Sum32(), err
}
