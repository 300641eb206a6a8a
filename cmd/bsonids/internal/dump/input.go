package dump

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
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
	Pipe bool       // it can be read only once
	Gzip bool       // it is compressed; not set for a directory
	Only Collection // of one BSON file

	files []file
	open  *stream // the beginning of a pipe
}

// file is a file of a dump.
type file struct {
	path     string
	name     string // in the dump: the path relative to that of a directory, or main, or side
	ext      string // bsonExt, metadataExt, archiveExt, or empty for a file that mongodump does not write
	database string // empty for the oplog
	coll     string
}

// The names of the files of a dump that is no directory.
const (
	main = "main"
	side = "side" // the metadata beside a BSON file
)

// Open opens the dump at path, or stdin if path is "-". If the dump is one BSON file, only names its
// database and collection; what it leaves empty is taken from the path. The error is a usage error if the path is
// wrong.
func Open(path string, stdin io.Reader, only Collection) (in *Input, err error) {
	in = &Input{Path: path, Only: only}
	defer func() {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			err = failure.Usagef("the dump: %v", err)
		}
	}()
	if path == "-" {
		in.Path, in.Pipe = "standard input", true
		return in, in.begin(stdin)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	in.Pipe = info.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) != 0
	switch {
	case info.IsDir():
		in.Form = Directory
		return in, in.directory()
	case !in.Pipe && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a file, a directory or a pipe", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if !in.Pipe {
		defer func() { _ = f.Close() }()
	}
	return in, in.begin(f)
}

// begin finds the form of a file from its first bytes, and lists it and the metadata beside it.
func (in *Input) begin(r io.Reader) error {
	s, err := newStream(in.Path, r)
	if err != nil {
		return err
	}
	in.Gzip = s.gzip
	base := filepath.Base(in.Path)
	name, ext := split(base)
	f := file{path: in.Path, name: main, ext: bsonExt}
	switch n, err := s.number(); {
	case errors.Is(err, io.EOF) && (in.Pipe || ext != bsonExt):
		return failure.Usagef("the dump: %s: it is empty", in.Path)
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case err == nil && n == Magic:
		in.Form, f.ext = Archive, archiveExt
	case in.Pipe && (in.Only.Database == "" || in.Only.Name == ""):
		return failure.Usagef("the dump: nothing in a BSON file says the database and the collection: give --db and --collection")
	}
	if in.Pipe {
		in.open = s
	}
	if in.Form == File {
		abs, err := filepath.Abs(in.Path)
		if err != nil {
			return err
		}
		in.Only.Name, in.Only.Database = cmp.Or(in.Only.Name, name, base), cmp.Or(in.Only.Database, filepath.Base(filepath.Dir(abs)))
		f.database, f.coll = in.Only.Database, in.Only.Name
		path := sibling(in.Path)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && !in.Pipe {
			in.files = append(in.files, file{path, side, metadataExt, f.database, f.coll})
		}
	}
	in.files = append(in.files, f)
	return nil
}

// directory lists the files of a directory: of one database, or of several in a directory each.
func (in *Input) directory() error {
	abs, err := filepath.Abs(in.Path)
	if err == nil {
		err = in.list("", filepath.Base(abs))
	}
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(in.files, func(f file) bool { return f.ext != "" }) {
		return fmt.Errorf("%s: no BSON file or metadata of mongodump is in it", in.Path)
	}
	// The metadata is read before the documents, because it says what they are, and the oplog before others,
	// because most commands refuse it.
	rank := func(f file) int {
		switch {
		case f.ext == metadataExt:
			return 0
		case f.ext == "":
			return 1
		case f.database == "":
			return 2
		}
		return 3
	}
	slices.SortFunc(in.files, func(a, b file) int { return cmp.Or(rank(a)-rank(b), strings.Compare(a.name, b.name)) })
	return nil
}

// list lists the files in dir, which are of the database, and of the directories in it.
func (in *Input) list(dir, database string) error {
	entries, err := os.ReadDir(filepath.Join(in.Path, dir))
	if err != nil {
		return err
	}
	described := func(e os.DirEntry) bool { return strings.TrimSuffix(e.Name(), gzipExt) == "oplog"+metadataExt } // a collection of the name
	for _, e := range entries {
		f := file{name: filepath.Join(dir, e.Name()), database: database}
		f.path = filepath.Join(in.Path, f.name)
		info, err := os.Stat(f.path)
		switch {
		case err != nil:
			return err
		case info.IsDir() && dir == "":
			if err := in.list(e.Name(), e.Name()); err != nil {
				return err
			}
			continue
		case !info.Mode().IsRegular():
			return fmt.Errorf("%s is not a file of mongodump", f.path)
		}
		if f.coll, f.ext = split(e.Name()); dir == "" && f.coll == "oplog" && f.ext == bsonExt && !slices.ContainsFunc(entries, described) {
			f.database = ""
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
		if base := strings.TrimSuffix(filepath.Base(f.name), gzipExt); f.ext == "" && base != "prelude.json" {
			out = append(out, f.name)
		}
	}
	return out
}

// Side reports whether a BSON file has its metadata beside it.
func (in *Input) Side() bool { return in.files[0].name == side }

// LeaveSide makes readers leave out the metadata beside a BSON file.
func (in *Input) LeaveSide() {
	if in.Side() {
		in.files = in.files[1:]
	}
}
