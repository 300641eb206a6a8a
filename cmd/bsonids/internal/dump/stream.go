package dump

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/gzip"
)

// MaxDocument is the maximum size of a document in bytes: 16 MiB, and 16 KiB for what a server adds.
const MaxDocument = 16<<20 + 16<<10

const (
	minDocument = 5
	terminator  = 0xffffffff
	readSize    = 256 << 10
)

// stream reads documents from a file. It is not safe for concurrent use.
type stream struct {
	path   string
	in     *bufio.Reader // of the uncompressed data
	gzip   bool
	offset int64        // of what is not read, in the uncompressed data
	last   int64        // offset of the last document
	large  bytes.Buffer // a document that is larger than the buffer of in
}

// newStream returns a stream of r, whose name for messages is path. It uncompresses the data if it is
// compressed.
func newStream(path string, r io.Reader) (*stream, error) {
	s := &stream{path: path, in: bufio.NewReaderSize(r, readSize)}
	head, err := s.in.Peek(2)
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, s.failed(0, err)
	case string(head) != "\x1f\x8b":
		return s, nil
	}
	s.gzip = true
	z, err := gzip.NewReader(s.in)
	if err != nil {
		return nil, s.failed(0, err)
	}
	s.in = bufio.NewReaderSize(z, readSize)
	return s, nil
}

// damaged returns the error of a file that is truncated or otherwise not what mongodump writes.
func (s *stream) damaged(offset int64, format string, args ...any) error {
	of := ""
	if s.gzip {
		of = " of the uncompressed data"
	}
	return fmt.Errorf("%s is damaged at byte %d%s: %w", s.path, offset, of, fmt.Errorf(format, args...))
}

// failed returns the error for one of the input, which is not its end, behind n bytes that can be read.
func (s *stream) failed(n int, err error) error {
	var pe *os.PathError
	switch {
	case errors.As(err, &pe):
		return err
	case s.gzip && errors.Is(err, io.EOF): // within its header
		err = io.ErrUnexpectedEOF
		fallthrough
	case s.gzip:
		return s.damaged(s.offset+int64(n), "the compressed data is wrong: %w", err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}

// number returns the next four bytes without reading them. At the end of the input the error is
// io.EOF.
func (s *stream) number() (uint32, error) {
	b, err := s.in.Peek(4)
	switch {
	case err == nil:
		return binary.LittleEndian.Uint32(b), nil
	case !errors.Is(err, io.EOF):
		return 0, s.failed(len(b), err)
	case len(b) > 0:
		return 0, s.damaged(s.offset, "it ends in the middle of a document")
	}
	return 0, io.EOF
}

// take reads n bytes, which are in the buffer. They are valid until the next call.
func (s *stream) take(n int) []byte {
	b, _ := s.in.Peek(n)
	_, _ = s.in.Discard(n)
	s.offset += int64(n)
	return b
}

// document reads a document. It is valid until the next call, and may be changed. At the end of the
// input the error is io.EOF.
func (s *stream) document() (b []byte, err error) {
	size, err := s.number()
	if err != nil {
		return nil, err
	}
	n := int(size)
	if size < minDocument || size > MaxDocument {
		what := ""
		if s.offset == 0 {
			what = "it is not a BSON file or an archive of mongodump: "
		}
		return nil, s.damaged(s.offset, "%sno BSON document has this length: %d", what, size)
	}
	if n <= readSize {
		b, err = s.in.Peek(n)
	} else {
		s.large.Reset()
		s.large.Grow(n + bytes.MinRead)
		_, err = io.CopyN(&s.large, s.in, int64(n))
		b = s.large.Bytes()
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil, s.damaged(s.offset, "it ends in the middle of a document: of its %d bytes, %d are there", n, len(b))
	case err != nil:
		return nil, s.failed(len(b), err)
	case b[n-1] != 0:
		return nil, s.damaged(s.offset, "the document has no NUL at its end")
	}
	if n <= readSize {
		_, _ = s.in.Discard(n)
	}
	s.last = s.offset
	s.offset += int64(n)
	return b, nil
}

// chunk reads bytes of any kind. At the end of the input the error is io.EOF.
func (s *stream) chunk() ([]byte, error) {
	b, err := s.in.Peek(readSize)
	switch {
	case len(b) > 0:
		return s.take(len(b)), nil
	case errors.Is(err, io.EOF):
		return nil, io.EOF
	}
	return nil, s.failed(0, err)
}
