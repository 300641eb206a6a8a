package dump

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Form is the form of a dump.
type Form int

// The forms.
const (
	File      Form = iota // one BSON file
	Directory             // of one database or of several
	Archive
)

// Magic is the number at the beginning of an archive, in little-endian order.
const Magic = 0x8199e26d

// Input is a dump that can be read, several times if it is not a pipe. It is not safe for concurrent
// use.
type Input struct {
	Path string
	Form Form
	Pipe bool // it can be read only once
	Gzip bool // it is compressed; not set for a directory

	name   Collection // of the only collection of a file
	files  []file     // of a directory or a file
	stamps map[string]stamp
	open   *stream // the beginning of a pipe
	size   int64
	mode   os.FileMode // permissions
}

// file is a file of a dump. Its path is relative to that of the dump.
type file struct {
	path       string
	ext        string // bsonExt, metadataExt, or empty for a file that mongodump does not write
	collection *Collection
}

// ErrEmpty is the error of a pipe or an archive without a byte.
var ErrEmpty = errors.New("it is empty")

// Open opens the dump at path, or stdin if path is "-". If the dump is one BSON file, as names its
// database and collection; what as leaves empty is taken from the path.
func Open(path string, stdin io.Reader, as Collection) (*Input, error) {
	in := &Input{Path: path, name: as, mode: 0o600, stamps: make(map[string]stamp)}
	if path == "-" {
		in.Path, in.Pipe = "standard input", true
		return in, in.begin(stdin)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		in.Form, in.mode = Directory, info.Mode().Perm()
		return in, in.list()
	case info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0:
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		in.Pipe = true
		return in, in.begin(f)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file, a directory or a pipe", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	in.size, in.mode = info.Size(), info.Mode().Perm()
	if err := in.begin(f); err != nil {
		return nil, err
	}
	in.open = nil
	if in.Form == File {
		in.single()
	}
	return in, nil
}

// Size returns the size of the files with documents in bytes, or -1 if it is not known.
func (in *Input) Size() int64 {
	if in.Pipe {
		return -1
	}
	return in.size
}

// begin finds the form of a file from its first bytes.
func (in *Input) begin(r io.Reader) error {
	s, err := newStream(in.Path, r)
	if err != nil {
		return err
	}
	in.open, in.Gzip = s, s.gzip
	switch n, err := s.number(); {
	case errors.Is(err, io.EOF):
		if _, ext, _ := split(filepath.Base(in.Path)); in.Pipe || ext != bsonExt {
			return fmt.Errorf("%s: %w", in.Path, ErrEmpty)
		}
	case err != nil:
		return err
	case n == Magic:
		in.Form = Archive
	}
	if in.Form == File && in.Pipe && (in.name.Database == "" || in.name.Name == "") {
		return ErrUnnamed
	}
	return nil
}

// ErrUnnamed is returned for a BSON file in a pipe if its database and collection are not given.
var ErrUnnamed = errors.New("nothing in a BSON file says the database and the collection")

// single sets the files and the names of a dump that is one BSON file.
func (in *Input) single() {
	c := in.Named()
	coll := &c
	if side := sibling(in.Path); side != "" {
		if info, err := os.Stat(side); err == nil && info.Mode().IsRegular() {
			in.files = append(in.files, file{path: side, ext: metadataExt, collection: coll})
		}
	}
	in.files = append(in.files, file{path: in.Path, ext: bsonExt, collection: coll})
}

// Named returns the collection of a dump that is one BSON file, as Open was told or as the path says.
func (in *Input) Named() Collection {
	c := in.name
	if c.Name == "" {
		base := filepath.Base(in.Path)
		var ok bool
		if c.Name, _, ok = split(base); !ok {
			c.Name = base
		}
	}
	if c.Database == "" {
		if abs, err := filepath.Abs(in.Path); err == nil {
			c.Database = filepath.Base(filepath.Dir(abs))
		}
	}
	return c
}

// list lists the files of a directory: of one database, or of several in a directory each.
func (in *Input) list() error {
	top, err := os.ReadDir(in.Path)
	if err != nil {
		return err
	}
	one := ""
	for _, e := range top {
		if name, ext, ok := split(e.Name()); ok && !e.IsDir() && (ext == metadataExt || name != "oplog") {
			abs, err := filepath.Abs(in.Path)
			if err != nil {
				return err
			}
			one = filepath.Base(abs)
		}
	}
	collections := make(map[string]*Collection)
	if err := in.listIn("", one, top, collections); err != nil {
		return err
	}
	if !slices.ContainsFunc(in.files, func(f file) bool { return f.ext != "" }) {
		return fmt.Errorf("%s: no BSON file or metadata of mongodump is in it", in.Path)
	}
	// The metadata is read before the documents, because it says what they are.
	slices.SortStableFunc(in.files, func(a, b file) int {
		rank := func(f file) int {
			switch {
			case f.ext == metadataExt:
				return 0
			case f.ext == "":
				return 1
			case f.collection.Oplog(): // before the documents, because most commands refuse it
				return 2
			}
			return 3
		}
		if d := rank(a) - rank(b); d != 0 {
			return d
		}
		return strings.Compare(a.path, b.path)
	})
	return nil
}

func (in *Input) listIn(dir, database string, entries []fs.DirEntry, collections map[string]*Collection) error {
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(filepath.Join(in.Path, path))
		switch {
		case err != nil:
			return err
		case info.IsDir() && dir == "":
			below, err := os.ReadDir(filepath.Join(in.Path, path))
			if err != nil {
				return err
			}
			if err := in.listIn(path, e.Name(), below, collections); err != nil {
				return err
			}
			continue
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file of mongodump", filepath.Join(in.Path, path))
		}
		f := file{path: path}
		if name, ext, ok := split(e.Name()); ok {
			if dir == "" && name == "oplog" && ext == bsonExt {
				database = ""
			}
			key := database + "/" + name
			if collections[key] == nil {
				collections[key] = &Collection{Database: database, Name: name}
			}
			f.ext, f.collection = ext, collections[key]
			if ext == bsonExt {
				in.size += info.Size()
			}
		}
		in.files = append(in.files, f)
	}
	return nil
}

// Others returns the files of a directory that mongodump does not write, except for the file
// prelude.json of newer versions.
func (in *Input) Others() []string {
	var out []string
	for _, f := range in.files {
		if base := strings.TrimSuffix(filepath.Base(f.path), gzipExt); f.ext == "" && base != "prelude.json" {
			out = append(out, f.path)
		}
	}
	return out
}

// openFile opens a file of the dump. It returns ErrChanged if the file changed since an earlier
// opening.
func (in *Input) openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	now := stamp{info, info.Size(), info.ModTime()}
	if was, ok := in.stamps[path]; ok && (!os.SameFile(was.info, info) || was.size != now.size || !was.time.Equal(now.time)) {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, ErrChanged)
	}
	in.stamps[path] = now
	return f, nil
}

// unchanged returns ErrChanged if a file changed since it was opened.
func (in *Input) unchanged(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if was := in.stamps[f.Name()]; was.size != info.Size() || !was.time.Equal(info.ModTime()) {
		return fmt.Errorf("%s: %w", f.Name(), ErrChanged)
	}
	return nil
}

// path returns the path of a file of the dump.
func (in *Input) path(f file) string {
	if in.Form == Directory {
		return filepath.Join(in.Path, f.path)
	}
	return f.path
}

// Side reports whether a BSON file has its metadata beside it.
func (in *Input) Side() bool { return in.Form == File && len(in.files) > 1 }

// LeaveSide makes readers leave out the metadata beside a BSON file.
func (in *Input) LeaveSide() {
	if in.Side() {
		in.files = in.files[1:]
	}
}
