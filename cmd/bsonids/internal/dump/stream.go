package dump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

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
	file   io.Reader
	in     io.Reader // file, or its uncompressed data
	gzip   bool
	buf    []byte
	at     int   // position in buf of the first byte that is not read
	end    int   // end of the bytes in buf
	offset int64 // offset of buf[0] in the uncompressed data
	failed error // of in
}

// stamp is what distinguishes a file from another one, or from an older state of it.
type stamp struct {
	info os.FileInfo
	size int64
	time time.Time
}

// newStream returns a stream of r, whose name for messages is path. It uncompresses the data if it is
// compressed.
func newStream(path string, r io.Reader) (*stream, error) {
	s := &stream{path: path, file: r, in: r, buf: make([]byte, readSize)}
	if !s.fill(2) || s.buf[0] != 0x1f || s.buf[1] != 0x8b {
		return s, s.readError()
	}
	head := append([]byte(nil), s.buf[:s.end]...)
	s.at, s.end, s.gzip = 0, 0, true
	z, err := gzip.NewReader(io.MultiReader(&bytesReader{head}, r))
	if err != nil {
		return s, s.damaged(fmt.Errorf("%w: %w", ErrGzip, err))
	}
	s.in = z
	s.failed = nil
	return s, nil
}

type bytesReader struct{ b []byte }

func (r *bytesReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b)
	r.b = r.b[n:]
	return n, nil
}

// position returns the offset of the first byte that is not read.
func (s *stream) position() int64 { return s.offset + int64(s.at) }

func (s *stream) damaged(err error) error { return s.damagedAt(s.position(), err) }

func (s *stream) damagedAt(offset int64, err error) error {
	return &Damage{s.path, offset, s.gzip, err}
}

// readError returns the error that ended the input, or nil at its proper end.
func (s *stream) readError() error {
	var pe *os.PathError
	switch {
	case s.failed == nil || errors.Is(s.failed, io.EOF):
		return nil
	case errors.As(s.failed, &pe):
		return s.failed
	case s.gzip:
		return s.damagedAt(s.offset+int64(s.end), fmt.Errorf("%w: %w", ErrGzip, s.failed))
	}
	return fmt.Errorf("%s: %w", s.path, s.failed)
}

// fill reads until n bytes are in the buffer, and reports whether they are.
func (s *stream) fill(n int) bool {
	if s.end-s.at >= n {
		return true
	}
	if s.at > 0 {
		s.offset += int64(s.at)
		s.end = copy(s.buf, s.buf[s.at:s.end])
		s.at = 0
	}
	if n > len(s.buf) {
		s.buf = append(make([]byte, 0, n+readSize), s.buf[:s.end]...)
		s.buf = s.buf[:cap(s.buf)]
	}
	for idle := 0; s.end < n && s.failed == nil; {
		var k int
		k, s.failed = s.in.Read(s.buf[s.end:])
		s.end += k
		if idle++; k > 0 {
			idle = 0
		} else if idle > 100 && s.failed == nil {
			s.failed = io.ErrNoProgress
		}
	}
	return s.end >= n
}

// number returns the next four bytes without reading them. At the end of the input the error is
// io.EOF.
func (s *stream) number() (uint32, error) {
	if !s.fill(4) {
		if err := s.readError(); err != nil {
			return 0, err
		}
		if s.at == s.end {
			return 0, io.EOF
		}
		return 0, s.damaged(ErrTruncated)
	}
	return binary.LittleEndian.Uint32(s.buf[s.at:]), nil
}

// take reads n bytes, which are in the buffer. They are valid until the next call.
func (s *stream) take(n int) []byte {
	b := s.buf[s.at : s.at+n : s.at+n]
	s.at += n
	return b
}

// document reads a document. It is valid until the next call, and may be changed. At the end of the
// input the error is io.EOF.
func (s *stream) document() ([]byte, error) {
	n, err := s.number()
	if err != nil {
		return nil, err
	}
	if n < minDocument || n > MaxDocument {
		err := fmt.Errorf("%w: %d", ErrLength, n)
		if s.position() == 0 {
			err = fmt.Errorf("it is not a BSON file or an archive of mongodump: %w", err)
		}
		return nil, s.damaged(err)
	}
	if !s.fill(int(n)) {
		if err := s.readError(); err != nil {
			return nil, err
		}
		return nil, s.damaged(fmt.Errorf("%w: of its %d bytes, %d are there", ErrTruncated, n, s.end-s.at))
	}
	if s.buf[s.at+int(n)-1] != 0 {
		return nil, s.damaged(ErrEnd)
	}
	return s.take(int(n)), nil
}

// terminated reads a terminator if it is next, and reports whether it is.
func (s *stream) terminated() (b []byte, ok bool, err error) {
	n, err := s.number()
	if err != nil || n != terminator {
		return nil, false, err
	}
	return s.take(4), true, nil
}

// chunk reads bytes of any kind. At the end of the input the error is io.EOF.
func (s *stream) chunk() ([]byte, error) {
	if !s.fill(readSize) && s.at == s.end {
		if err := s.readError(); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	return s.take(s.end - s.at), nil
}
