package dump

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
)

// ErrPiped is the error of CreatePipe for a directory.
var ErrPiped = errors.New("a pipe takes an archive or a BSON file, and the dump is a directory")

// CreatePipe begins to write a dump of the form of in to w, which is not closed. Unless Commit is called, what
// w gets has no valid end: an archive lacks the end of its last part, and a BSON file ends within a document.
func CreatePipe(w io.Writer, in *Input) (*Output, error) {
	if in.Form == Directory {
		return nil, ErrPiped
	}
	in.LeaveSide()
	o := &Output{in: in, crc: make(map[*Collection]uint64), pipe: &pipe{w: w}}
	o.buf = bufio.NewWriterSize(o.pipe, readSize)
	o.out = o.buf
	if in.Gzip {
		o.gzip = gzip.NewWriter(o.buf)
		o.out = o.gzip
	}
	return o, nil
}

// pipe writes to w, and keeps the last byte back.
type pipe struct {
	w    io.Writer
	last []byte // one byte, or none at the beginning
}

func (p *pipe) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if _, err := p.w.Write(p.last); err != nil {
		return 0, err
	}
	p.last = append(p.last[:0], b[len(b)-1])
	n, err := p.w.Write(b[:len(b)-1])
	if err == nil {
		n++
	}
	return n, err
}

func (o *Output) commitPipe() (err error) {
	if o.gzip != nil {
		err = o.gzip.Close()
	}
	if err == nil {
		err = o.buf.Flush()
	}
	if err == nil {
		_, err = o.pipe.w.Write(o.pipe.last)
	}
	o.pipe = nil
	return err
}
