package duplicates

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// scratch is a temporary file that is appended to. Its zero value is empty.
type scratch struct {
	file *os.File
	w    *bufio.Writer
	size int64
}

// append appends b to the file and returns the offset of its first byte.
func (s *scratch) append(b []byte) (at int64, err error) {
	if s.file == nil {
		if s.file, err = spill.Temporary(os.TempDir()); err != nil {
			return 0, err
		}
		s.w = bufio.NewWriter(s.file)
	}
	at = s.size
	n, err := s.w.Write(b)
	s.size += int64(n)
	return at, err
}

// read returns a reader of what was appended from the offset at on.
func (s *scratch) read(at int64) (io.Reader, error) {
	if s.file == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return io.NewSectionReader(s.file, at, s.size-at), s.w.Flush()
}

// close removes the file.
func (s *scratch) close() error {
	if s.file == nil {
		return nil
	}
	return spill.Remove(s.file)
}

// ids are _ids in a temporary file.
type ids struct {
	scratch
	b []byte
}

// add adds an _id, and returns its place.
func (s *ids) add(id bson.RawValue) (int64, error) {
	s.b = binary.BigEndian.AppendUint32(s.b[:0], uint32(len(id.Value)))
	return s.append(append(append(s.b, byte(id.Type)), id.Value...))
}

// at returns the _id at the place.
func (s *ids) at(place int64) (id bson.RawValue, err error) {
	r, err := s.read(place)
	if err != nil {
		return id, err
	}
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return id, err
	}
	id = bson.RawValue{Type: bson.Type(head[4]), Value: make([]byte, binary.BigEndian.Uint32(head[:]))}
	_, err = io.ReadFull(r, id.Value)
	return id, err
}
