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

	"github.com/klauspost/compress/gzip"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/files"
)

// Output is a dump that is being written. It has the form of an Input. Until Commit it is in a directory
// with another name, beside its path. It is not safe for concurrent use.
type Output struct {
	in     *Input
	path   string // empty for a pipe
	temp   string // directory
	unlock func() error
	file   io.WriteCloser // that is written
	pipe   *pipe          // nil for files
	buf    *bufio.Writer  // to the file
	gzip   *gzip.Writer   // nil if the file is not compressed
}

// Create begins to write a dump of the form of in at path. Nothing may be at the path yet. Create reserves
// the path for this process, and removes what processes that were killed have left beside it. The errors about
// the path are usage errors. Close must be called.
func Create(path string, in *Input) (o *Output, err error) {
	path = filepath.Clean(path)
	o = &Output{in: in, path: path, unlock: func() error { return nil }}
	hidden := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".bsonids")
	lock, err := files.Lock(hidden)
	switch {
	case errors.Is(err, files.ErrInUse):
		return nil, failure.Usagef("%s: another process writes it", path)
	case err == nil: // otherwise the file system has no locks
		o.unlock = func() error { return files.Discard(hidden, lock) }
	}
	if err = in.mayWrite(path); err == nil {
		o.temp, err = os.MkdirTemp(filepath.Dir(path), filepath.Base(hidden)+".*.tmp")
	}
	if err != nil {
		return nil, errors.Join(err, o.unlock())
	}
	return o, nil
}

// CreatePipe begins to write a dump of the form of in to w, which is not closed. Unless Commit is called, what
// w gets has no valid end: an archive lacks the end of its last part, and a BSON file ends within a document.
func CreatePipe(w io.Writer, in *Input) (*Output, error) {
	if in.Form == Directory {
		return nil, failure.Usagef("a pipe takes an archive or a BSON file, and the dump is a directory")
	}
	in.LeaveSide()
	return &Output{in: in, pipe: &pipe{w: w}}, nil
}

// pipe writes to w, and keeps the last byte back.
type pipe struct {
	w    io.Writer
	last []byte // one byte, or none at the beginning
}

func (p *pipe) Write(b []byte) (n int, err error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := p.commit(); err != nil {
		return 0, err
	}
	p.last = append(p.last[:0], b[len(b)-1])
	if n, err = p.w.Write(b[:len(b)-1]); err == nil {
		n++
	}
	return n, err
}

// Close does nothing.
func (p *pipe) Close() error { return nil }

// commit writes the last byte.
func (p *pipe) commit() error {
	_, err := p.w.Write(p.last)
	return err
}

// mayWrite returns an error if the output cannot be at path.
func (in *Input) mayWrite(path string) error {
	const exists = "%s: it exists already"
	if _, err := os.Lstat(path); err == nil {
		return failure.Usagef(exists, path)
	}
	if in.Form == Directory {
		within, err := inside(filepath.Dir(path), in.Path)
		if err == nil && within {
			return failure.Usagef("%s: it is in the directory of the input", path)
		}
		return err
	}
	const suffix = "%s: the output has the form of the input, which "
	gz, beside := strings.HasSuffix(path, gzipExt), sibling(path)
	switch {
	case gz && !in.Gzip:
		return failure.Usagef(suffix+"is not compressed", path)
	case !gz && in.Gzip && strings.HasSuffix(in.Path, gzipExt):
		return failure.Usagef(suffix+"is compressed: end the name with .gz", path)
	case !in.Side():
		return nil
	case beside == "":
		return failure.Usagef(suffix+"has metadata beside it: end the name with .bson", path)
	}
	if _, err := os.Lstat(beside); !errors.Is(err, fs.ErrNotExist) {
		return failure.Usagef(exists, beside)
	}
	return nil
}

// inside reports whether path is dir or in it.
func inside(path, dir string) (bool, error) {
	for _, p := range []*string{&path, &dir} {
		real, err := filepath.EvalSymlinks(*p)
		if err == nil {
			*p, err = filepath.Abs(real)
		}
		if err != nil {
			return false, err
		}
	}
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel), nil
}

// Write writes an item, in which it sets the checksum of a collection.
func (o *Output) Write(item *Item) (err error) {
	switch item.Kind {
	case Begin:
		return o.begin(item)
	case End:
		return o.end()
	case Document:
		if o.in.Form == Archive {
			item.Collection.written = crc64.Update(item.Collection.written, crcTable, item.Bytes)
		}
	case Closed:
		crc, err := bson.Raw(item.Bytes).LookupErr("CRC")
		if err != nil || crc.Type != bson.TypeInt64 {
			return fmt.Errorf("not as an archive of mongodump: the end of %s has no checksum", item.Collection)
		}
		binary.LittleEndian.PutUint64(crc.Value, item.Collection.written) // in the item
	}
	if o.gzip != nil {
		_, err = o.gzip.Write(item.Bytes)
	} else {
		_, err = o.buf.Write(item.Bytes)
	}
	return err
}

// begin opens the file that a Begin announces.
func (o *Output) begin(item *Item) error {
	if o.pipe != nil {
		o.file = o.pipe
	} else {
		path := filepath.Join(o.temp, item.Name)
		if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		o.file = f
		if err := f.Chmod(item.Mode); err != nil {
			return err
		}
	}
	o.buf = bufio.NewWriterSize(o.file, readSize)
	if o.gzip = nil; item.Gzip {
		o.gzip = gzip.NewWriter(o.buf)
	}
	return nil
}

// end writes the rest of the file, to the disk if it is one, and closes it.
func (o *Output) end() (err error) {
	if o.gzip != nil {
		err = o.gzip.Close()
	}
	if err == nil {
		err = o.buf.Flush()
	}
	if f, ok := o.file.(*os.File); ok && err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, o.file.Close())
	o.file = nil
	return err
}

// Commit writes the dump to the disk and gives it its name. If it returns an error, the dump does
// not have its name.
func (o *Output) Commit() error {
	switch {
	case o.pipe != nil:
		return o.pipe.commit()
	case o.in.Form == Directory:
		if err := o.sync(""); err != nil {
			return err
		}
		if err := publish(o.temp, o.path); err != nil {
			return err
		}
		return files.SyncDir(filepath.Dir(o.path))
	}
	beside := sibling(o.path)
	if o.in.Side() {
		if err := publish(filepath.Join(o.temp, side), beside); err != nil {
			return err
		}
	}
	if err := publish(filepath.Join(o.temp, main), o.path); err != nil {
		if o.in.Side() {
			err = errors.Join(err, os.Remove(beside))
		}
		return err
	}
	return errors.Join(os.Remove(o.temp), files.SyncDir(filepath.Dir(o.path)))
}

// sync writes the names in a directory of the output to the disk, and in those below it, and gives them the
// permissions of those of the input.
func (o *Output) sync(dir string) error {
	path := filepath.Join(o.temp, dir)
	below, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range below {
		if e.IsDir() {
			if err := o.sync(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	if info, err := os.Stat(filepath.Join(o.in.Path, dir)); err == nil {
		if err := os.Chmod(path, info.Mode().Perm()|0o700); err != nil {
			return err
		}
	}
	return files.SyncDir(path)
}

// publish gives a file or a directory its name on the same file system, unless the name is taken.
func publish(temp, path string) error {
	err := os.Link(temp, path)
	if err == nil {
		return os.Remove(temp)
	}
	// A directory, or a file system without hard links.
	if _, e := os.Lstat(path); e == nil || errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s: it exists already", path)
	}
	return os.Rename(temp, path)
}

// Close removes what was written, unless Commit gave it its name, and ends the reservation of the path.
func (o *Output) Close() (err error) {
	if o.pipe != nil {
		if o.file != nil { // a BSON file of which nothing was written would be a valid one
			_ = o.buf.Flush()
		}
		return nil
	}
	if o.file != nil {
		err = o.file.Close()
	}
	return errors.Join(err, os.RemoveAll(o.temp), o.unlock())
}
