package spill

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// maxTail is the number of bytes of a [Scratch] that stay in memory.
const maxTail = 1 << 16

// Scratch is what is appended to a temporary file, of which the end is in memory. It is not safe for concurrent use. The
// zero Scratch is empty. The caller must close it.
type Scratch struct {
	Dir string // of the file; that of the system for temporary files if empty

	file   *os.File
	stored int64  // bytes in the file
	tail   []byte // the bytes behind these
}

// Size returns the number of bytes.
func (s *Scratch) Size() int64 { return s.stored + int64(len(s.tail)) }

// Append appends b, and returns the offset of its first byte.
func (s *Scratch) Append(b []byte) (at int64, err error) {
	at = s.Size()
	if s.tail = append(s.tail, b...); len(s.tail) < maxTail {
		return at, nil
	}
	if s.file == nil {
		if s.file, err = Temporary(s.Dir); err != nil {
			return at, err
		}
	}
	if _, err := s.file.WriteAt(s.tail, s.stored); err != nil {
		return at, err
	}
	s.stored, s.tail = s.Size(), s.tail[:0]
	return at, nil
}

// ReadAt implements [io.ReaderAt].
func (s *Scratch) ReadAt(b []byte, at int64) (n int, err error) {
	if at < s.stored {
		want := int(min(int64(len(b)), s.stored-at))
		if n, err = s.file.ReadAt(b[:want], at); n < want {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return n, err
		}
	}
	if n < len(b) {
		n += copy(b[n:], s.tail[min(at+int64(n)-s.stored, int64(len(s.tail))):])
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// Close removes the file.
func (s *Scratch) Close() error {
	file := s.file
	s.file, s.stored, s.tail = nil, 0, nil
	if file == nil {
		return nil
	}
	return Remove(file)
}

// Values are values of any length, each with a type, in a temporary file. Like a [Scratch], it must be closed.
type Values struct {
	Scratch
	b []byte
}

// valueHead is the size of what is before a value: its length, and its type.
const valueHead = 4 + 1

// Add adds a value, and returns its place.
func (v *Values) Add(kind byte, value []byte) (place int64, err error) {
	v.b = append(binary.BigEndian.AppendUint32(v.b[:0], uint32(len(value))), kind)
	return v.Append(append(v.b, value...))
}

// At returns the value at a place.
func (v *Values) At(place int64) (kind byte, value []byte, err error) {
	b := make([]byte, 64) // most values are shorter
	n, err := v.ReadAt(b, place)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	if n < valueHead {
		return 0, nil, errDamaged
	}
	size := int64(binary.BigEndian.Uint32(b))
	if size > v.Size()-place-valueHead {
		return 0, nil, errDamaged
	}
	if size <= int64(n-valueHead) {
		return b[4], b[valueHead : valueHead+size : valueHead+size], nil
	}
	kind, value = b[4], make([]byte, size)
	_, err = v.ReadAt(value, place+valueHead)
	return kind, value, err
}

// Temporary returns a new file in the directory dir. The caller must give it to [Remove].
func Temporary(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, ".bsonids-sort-*.tmp")
	if err != nil {
		return nil, err
	}
	// A file without a name disappears with the process, also if the process is killed. Some
	// systems cannot remove an open file; Remove removes it there.
	_ = os.Remove(f.Name())
	return f, nil
}

// Remove closes a file that [Temporary] made, and removes it.
func Remove(f *os.File) error {
	err := f.Close()
	if e := os.Remove(f.Name()); err == nil && !errors.Is(e, os.ErrNotExist) {
		err = e
	}
	return err
}
