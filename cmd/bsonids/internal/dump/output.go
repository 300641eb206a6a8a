package dump

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/klauspost/compress/gzip"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// Output is a dump that is being written. It has the form of an Input. Until Commit it is under
// another name, in the same directory. It is not safe for concurrent use.
type Output struct {
	in    *Input
	path  string
	temp  string // file or directory
	side  *side  // the metadata beside a BSON file
	crc   map[*Collection]uint64
	file  *os.File
	pipe  *pipe // instead of files
	buf   *bufio.Writer
	gzip  *gzip.Writer
	out   io.Writer
	raise error // the first error
}

// side is a second file beside the output.
type side struct{ temp, path string }

// The errors of Create.
var (
	ErrExists = errors.New("it exists already")
	ErrSame   = errors.New("it is the input itself")
	ErrInside = errors.New("it is in the directory of the input")
	ErrSuffix = errors.New("the output has the form of the input")
)

// Create begins to write a dump of the form of in at path. Nothing may be at the path yet.
func Create(path string, in *Input) (*Output, error) {
	path = filepath.Clean(path)
	if err := in.mayWrite(path); err != nil {
		return nil, err
	}
	o := &Output{in: in, path: path, crc: make(map[*Collection]uint64)}
	if in.Form == Directory {
		var err error
		if o.temp, err = os.MkdirTemp(filepath.Dir(path), temporary(path)); err != nil {
			return nil, err
		}
		return o, nil
	}
	f, err := CreateTemp(path)
	if err != nil {
		return nil, err
	}
	o.temp = f.Name()
	if in.Form == Archive || in.Pipe {
		err = o.begin(f, in.mode, in.Gzip)
	} else { // the items have the beginning of the file
		err = f.Close()
	}
	if err != nil {
		return nil, errors.Join(err, o.Abort())
	}
	return o, nil
}

// mayWrite returns an error if the output cannot be at path.
func (in *Input) mayWrite(path string) error {
	if info, err := os.Lstat(path); err == nil {
		if was, err := os.Stat(in.Path); err == nil && !in.Pipe {
			if now, err := os.Stat(path); err == nil && os.SameFile(was, now) || os.SameFile(was, info) {
				return fmt.Errorf("%s: %w", path, ErrSame)
			}
		}
		return fmt.Errorf("%s: %w", path, ErrExists)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil {
		return err
	} else if !info.IsDir() {
		return &os.PathError{Op: "create", Path: path, Err: syscall.ENOTDIR}
	}
	switch {
	case in.Form == Directory:
		within, err := inside(filepath.Dir(path), in.Path)
		if err == nil && within {
			err = fmt.Errorf("%s: %w", path, ErrInside)
		}
		return err
	case strings.HasSuffix(path, gzipExt) && !in.Gzip:
		return fmt.Errorf("%s: %w, which is not compressed", path, ErrSuffix)
	case !strings.HasSuffix(path, gzipExt) && in.Gzip && strings.HasSuffix(in.Path, gzipExt):
		return fmt.Errorf("%s: %w, which is compressed: end the name with .gz", path, ErrSuffix)
	}
	if in.Side() {
		path := sibling(path)
		if path == "" {
			return fmt.Errorf("%s: %w, which has metadata beside it: end the name with .bson", path, ErrSuffix)
		}
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, ErrExists)
		}
	}
	return nil
}

// inside reports whether path is dir or in it.
func inside(path, dir string) (bool, error) {
	var real [2]string
	for i, p := range []string{path, dir} {
		p, err := filepath.EvalSymlinks(p)
		if err == nil {
			p, err = filepath.Abs(p)
		}
		if err != nil {
			return false, err
		}
		real[i] = p
	}
	rel, err := filepath.Rel(real[1], real[0])
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)), nil
}

// begin makes f the file that is written.
func (o *Output) begin(f *os.File, mode os.FileMode, compressed bool) error {
	o.file, o.buf = f, bufio.NewWriterSize(f, readSize)
	o.out = o.buf
	if compressed {
		o.gzip = gzip.NewWriter(o.buf)
		o.out = o.gzip
	}
	return f.Chmod(mode)
}

// end writes the rest of the file to the disk and closes it.
func (o *Output) end() error {
	if o.file == nil {
		return nil
	}
	var err error
	if o.gzip != nil {
		err = o.gzip.Close()
	}
	if err == nil {
		err = o.buf.Flush()
	}
	if err == nil {
		err = o.file.Sync()
	}
	err = errors.Join(err, o.file.Close())
	o.file, o.buf, o.gzip, o.out = nil, nil, nil, nil
	return err
}

// Write writes an item. After an error it returns the same error again.
func (o *Output) Write(item *Item) error {
	if o.raise == nil {
		o.raise = o.write(item)
	}
	return o.raise
}

func (o *Output) write(item *Item) error {
	var err error
	switch item.Kind {
	case Begin:
		if o.pipe != nil { // of the only file
			return nil
		}
		return o.open(item)
	case End:
		if o.pipe != nil {
			return nil
		}
		return o.end()
	case Document:
		if o.in.Form == Archive {
			o.crc[item.Collection] = crc64.Update(o.crc[item.Collection], crcTable, item.Bytes)
		}
		_, err = o.out.Write(item.Bytes)
	case Closed:
		var b []byte
		if b, err = withChecksum(item.Bytes, o.crc[item.Collection]); err == nil {
			_, err = o.out.Write(b)
		}
	default:
		_, err = o.out.Write(item.Bytes)
	}
	return err
}

// open opens the file that a Begin announces.
func (o *Output) open(item *Item) error {
	path := o.temp
	switch {
	case o.in.Form == Directory:
		path = filepath.Join(o.temp, item.Path)
		if dir := filepath.Dir(path); dir != o.temp {
			if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
	case item.Path != o.in.Path: // the metadata of a BSON file
		f, err := CreateTemp(o.path)
		if err != nil {
			return err
		}
		o.side = &side{f.Name(), sibling(o.path)}
		return o.begin(f, item.Mode, false)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return o.begin(f, item.Mode, item.Gzip)
}

// withChecksum returns a copy of the header at the end of a collection, with another checksum.
func withChecksum(b []byte, crc uint64) ([]byte, error) {
	b = append([]byte(nil), b...)
	elements, err := bson.Raw(b).Elements()
	if err != nil {
		return nil, err
	}
	at := 4
	for _, e := range elements {
		if at += len(e); e.Key() == "CRC" && e.Value().Type == bson.TypeInt64 {
			binary.LittleEndian.PutUint64(b[at-8:], crc)
			return b, nil
		}
	}
	return nil, fmt.Errorf("%w: the end of a collection has no checksum", ErrArchive)
}

// Commit writes the dump to the disk and gives it its name. If it returns an error, the dump does
// not have its name, and Abort must be called.
func (o *Output) Commit() error {
	if o.raise == nil {
		o.raise = o.commit()
	}
	return o.raise
}

func (o *Output) commit() error {
	if o.pipe != nil {
		return o.commitPipe()
	}
	if err := o.end(); err != nil {
		return err
	}
	if o.in.Form == Directory {
		return o.commitDirectory()
	}
	side := o.side
	if side != nil {
		if err := Publish(side.temp, side.path); err != nil {
			return err
		}
		o.side = nil
	}
	if err := Publish(o.temp, o.path); err != nil {
		if side != nil {
			err = errors.Join(err, os.Remove(side.path))
		}
		return err
	}
	o.temp = ""
	return files.SyncDir(filepath.Dir(o.path))
}

func (o *Output) commitDirectory() error {
	below, err := os.ReadDir(o.temp)
	if err != nil {
		return err
	}
	for _, e := range below {
		if !e.IsDir() {
			continue
		}
		dir := filepath.Join(o.temp, e.Name())
		if err := files.SyncDir(dir); err != nil {
			return err
		}
		if info, err := os.Stat(filepath.Join(o.in.Path, e.Name())); err == nil {
			if err := os.Chmod(dir, info.Mode().Perm()|0o700); err != nil {
				return err
			}
		}
	}
	if err := os.Chmod(o.temp, o.in.mode|0o700); err != nil {
		return err
	}
	if err := files.SyncDir(o.temp); err != nil {
		return err
	}
	if _, err := os.Lstat(o.path); err == nil {
		return fmt.Errorf("%s: %w", o.path, ErrExists)
	}
	if err := os.Rename(o.temp, o.path); err != nil {
		return err
	}
	o.temp = ""
	return files.SyncDir(filepath.Dir(o.path))
}

// Publish gives a file in the same directory its name, unless the name is taken: then the error wraps
// ErrExists.
func Publish(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case err == nil:
		return os.Remove(temp)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w", path, ErrExists)
	}
	// The file system has no hard links.
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%s: %w", path, ErrExists)
	}
	return os.Rename(temp, path)
}

// Abort removes what was written, unless Commit gave it its name.
func (o *Output) Abort() error {
	var err error
	if o.pipe != nil && o.raise == nil { // a BSON file of which nothing was written would be a valid one
		err = o.buf.Flush()
		o.pipe = nil
	}
	if o.file != nil {
		err = o.file.Close()
		o.file = nil
	}
	if o.side != nil {
		err = errors.Join(err, os.Remove(o.side.temp))
		o.side = nil
	}
	if o.temp != "" {
		err = errors.Join(err, os.RemoveAll(o.temp))
		o.temp = ""
	}
	return err
}
