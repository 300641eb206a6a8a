package dump

import (
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ItemKind is the kind of an Item.
type ItemKind int

// The kinds of items. A dump is a sequence of them, and a Writer that gets the same sequence writes
// the same dump.
const (
	Begin    ItemKind = iota // the beginning of a file of a directory
	Document                 // a document of a collection
	Metadata                 // the metadata of a collection
	Raw                      // other bytes
	Closed                   // the end of a collection in an archive, with its checksum
	End                      // the end of a file
)

// Item is a part of a dump.
type Item struct {
	Kind       ItemKind
	Collection *Collection // of a Document, Metadata or Closed; of a Begin if the file has one
	// Bytes is what the dump has. It is valid until the next call of Next. The bytes of a document may
	// be changed until then.
	Bytes  []byte
	Text   []byte      // of Metadata: the JSON
	Path   string      // of Begin: the path, relative to that of a directory
	Mode   os.FileMode // of Begin: the permissions
	Gzip   bool        // of Begin: the documents are compressed
	Offset int64       // of a Document in its file
}

// Reader reads a dump. It is not safe for concurrent use.
type Reader struct {
	in     *Input
	files  []file
	queue  []Item
	file   *os.File
	stream *stream
	state  state
	name   *Collection // of the documents that follow; nil for bytes of another kind

	collections map[[2]string]*Collection // of an archive
	order       []*Collection
}

// state is the position in an archive.
type state int

const (
	atMagic state = iota
	atHeader
	atMetadata
	atBlock
	inBlock
	afterEnd
)

// ErrPipe is returned for the second reading of a pipe.
var ErrPipe = errors.New("a pipe can be read only once")

// Reader returns a Reader of the dump from its beginning. The caller must close it.
func (in *Input) Reader() (*Reader, error) {
	r := &Reader{in: in, collections: make(map[[2]string]*Collection)}
	if in.Pipe {
		if in.open == nil {
			return nil, ErrPipe
		}
		r.stream, in.open = in.open, nil
		c := in.name
		r.name = &c
		return r, nil
	}
	if in.Form != Archive {
		r.files = in.files
		return r, nil
	}
	return r, r.start(in.Path)
}

// start opens a file.
func (r *Reader) start(path string) (err error) {
	if r.file, err = r.in.openFile(path); err != nil {
		return err
	}
	r.stream, err = newStream(path, r.file)
	return err
}

// finish closes the open file.
func (r *Reader) finish() error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.in.unchanged(r.file), r.file.Close())
	r.file, r.stream = nil, nil
	return err
}

// Close closes the open file.
func (r *Reader) Close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

// Next returns the next item. At the end of the dump the error is io.EOF. The error is a *Damage if
// the dump is damaged.
func (r *Reader) Next() (Item, error) {
	switch {
	case len(r.queue) > 0:
		item := r.queue[0]
		r.queue = r.queue[1:]
		return item, nil
	case r.in.Form == Archive:
		item, err := r.archived()
		if errors.Is(err, io.EOF) {
			if e := r.finish(); e != nil {
				return Item{}, e
			}
		}
		return item, err
	case r.stream == nil && len(r.files) == 0:
		return Item{}, io.EOF
	case r.stream == nil:
		f := r.files[0]
		r.files = r.files[1:]
		return r.begin(f)
	case r.name == nil:
		b, err := r.stream.chunk()
		if err != nil {
			return r.end(err)
		}
		return Item{Kind: Raw, Bytes: b}, nil
	}
	at := r.stream.position()
	b, err := r.stream.document()
	if err != nil {
		return r.end(err)
	}
	return Item{Kind: Document, Collection: r.name, Bytes: b, Offset: at}, nil
}

// Damaged returns the error for a document that the reader returned last, with what is wrong in it.
func (r *Reader) Damaged(item *Item, err error) error { return r.stream.damagedAt(item.Offset, err) }

// begin opens a file of a directory and returns its first item.
func (r *Reader) begin(f file) (Item, error) {
	path := r.in.path(f)
	item := Item{Kind: Begin, Path: f.path, Collection: f.collection}
	if f.ext == metadataExt {
		raw, text, mode, err := r.metadata(path)
		if err != nil {
			return Item{}, err
		}
		f.collection.describe(text)
		item.Mode = mode
		r.queue = append(r.queue[:0], Item{Kind: Metadata, Collection: f.collection, Path: path, Bytes: raw, Text: text}, Item{Kind: End})
		return item, nil
	}
	r.name = f.collection
	if f.ext == bsonExt {
		if err := r.start(path); err != nil {
			return Item{}, err
		}
		item.Gzip = r.stream.gzip
	} else {
		file, err := r.in.openFile(path)
		if err != nil {
			return Item{}, err
		}
		r.file, r.stream = file, &stream{path: path, in: file, buf: make([]byte, readSize)}
	}
	item.Mode = r.in.stamps[path].info.Mode().Perm()
	return item, nil
}

// end closes the open file if err is io.EOF.
func (r *Reader) end(err error) (Item, error) {
	if !errors.Is(err, io.EOF) || r.in.Pipe {
		return Item{}, err
	}
	if err := r.finish(); err != nil {
		return Item{}, err
	}
	return Item{Kind: End}, nil
}

// maxMetadata is the maximum size of the metadata of a collection, in bytes.
const maxMetadata = 64 << 20

// metadata returns the bytes of a file, its text, which differs if the file is compressed, and its
// permissions.
func (r *Reader) metadata(path string) (raw, text []byte, mode os.FileMode, err error) {
	f, err := r.in.openFile(path)
	if err != nil {
		return nil, nil, 0, err
	}
	defer func() { _ = f.Close() }()
	if raw, err = io.ReadAll(io.LimitReader(f, maxMetadata+1)); err != nil {
		return nil, nil, 0, err
	}
	mode = r.in.stamps[path].info.Mode().Perm()
	s, err := newStream(path, &bytesReader{raw})
	for err == nil && len(text) <= maxMetadata {
		var b []byte
		b, err = s.chunk()
		text = append(text, b...)
	}
	switch {
	case len(raw) > maxMetadata || len(text) > maxMetadata:
		return nil, nil, 0, fmt.Errorf("%s: metadata of more than %d bytes", path, maxMetadata)
	case !errors.Is(err, io.EOF):
		return nil, nil, 0, err
	}
	return raw, text, mode, nil
}

// crcTable is that of the checksums of an archive.
var crcTable = crc64.MakeTable(crc64.ECMA)

// archived returns the next item of an archive.
func (r *Reader) archived() (Item, error) {
	s := r.stream
	if r.state == atMagic {
		if _, err := s.number(); err != nil {
			return Item{}, err
		}
		r.state = atHeader
		return Item{Kind: Raw, Bytes: s.take(4)}, nil
	}
	at := s.position()
	end, ok, err := s.terminated()
	switch {
	case errors.Is(err, io.EOF) && r.state == atBlock:
		if err := r.complete(); err != nil {
			return Item{}, err
		}
		return Item{}, io.EOF
	case errors.Is(err, io.EOF):
		return Item{}, s.damaged(fmt.Errorf("%w: it ends in the middle of a part", ErrArchive))
	case err != nil:
		return Item{}, err
	case ok && (r.state == atHeader || r.state == atBlock):
		return Item{}, s.damagedAt(at, fmt.Errorf("%w: a part without a header", ErrArchive))
	case ok:
		r.state, r.name = atBlock, nil
		return Item{Kind: Raw, Bytes: end}, nil
	}
	b, err := s.document()
	if err != nil {
		return Item{}, err
	}
	switch r.state {
	case atHeader:
		r.state = atMetadata
		return Item{Kind: Raw, Bytes: b}, nil
	case atMetadata:
		return r.prelude(b, at)
	case atBlock:
		return r.header(b, at)
	case afterEnd:
		return Item{}, s.damagedAt(at, fmt.Errorf("%w: a document after the end of its collection", ErrArchive))
	}
	r.name.crc = crc64.Update(r.name.crc, crcTable, b)
	return Item{Kind: Document, Collection: r.name, Bytes: b, Offset: at}, nil
}

// collection returns the collection of an archive with the name.
func (r *Reader) collection(database, name string) *Collection {
	key := [2]string{database, name}
	c := r.collections[key]
	if c == nil {
		c = &Collection{Database: database, Name: name}
		r.collections[key] = c
		r.order = append(r.order, c)
	}
	return c
}

// prelude returns the item of a collection in the prelude of an archive.
func (r *Reader) prelude(b []byte, at int64) (Item, error) {
	var m struct {
		Database   string `bson:"db"`
		Collection string `bson:"collection"`
		Metadata   string `bson:"metadata"`
		Type       string `bson:"type"`
	}
	if err := bson.Unmarshal(b, &m); err != nil || m.Collection == "" {
		return Item{}, r.stream.damagedAt(at, fmt.Errorf("%w: this is no description of a collection", ErrArchive))
	}
	c := r.collection(m.Database, m.Collection)
	c.describe([]byte(m.Metadata))
	if m.Type != "" {
		c.Type = m.Type
	}
	return Item{Kind: Metadata, Collection: c, Bytes: b, Text: []byte(m.Metadata)}, nil
}

// header returns the item of the header of a part of an archive.
func (r *Reader) header(b []byte, at int64) (Item, error) {
	h, err := parseHeader(b)
	if err != nil {
		return Item{}, r.stream.damagedAt(at, fmt.Errorf("%w: this is no header of a collection", ErrArchive))
	}
	c := r.collection(h.Database, h.Collection)
	if c.closed {
		return Item{}, r.stream.damagedAt(at, fmt.Errorf("%w: %s continues after its end", ErrArchive, c))
	}
	c.read = true
	r.name = c
	if !h.EOF {
		r.state = inBlock
		return Item{Kind: Raw, Bytes: b}, nil
	}
	if uint64(h.CRC) != c.crc {
		return Item{}, r.stream.damagedAt(at, fmt.Errorf("%w: that of the documents of %s is %016x, and the archive says %016x", ErrChecksum, c, c.crc, uint64(h.CRC)))
	}
	c.closed = true
	r.state = afterEnd
	return Item{Kind: Closed, Collection: c, Bytes: b}, nil
}

// complete returns an error if a collection has no end, as in an archive that is cut off between two
// parts.
func (r *Reader) complete() error {
	for _, c := range r.order {
		data := c
		if b := r.collections[[2]string{c.Database, bucketPrefix + c.Name}]; b != nil && c.Type == "timeseries" {
			data = b
		}
		if !data.closed {
			return r.stream.damaged(fmt.Errorf("%w: it ends before the end of %s", ErrArchive, data))
		}
	}
	return nil
}

// header is the header of a part of an archive.
type header struct {
	Database   string `bson:"db"`
	Collection string `bson:"collection"`
	EOF        bool   `bson:"EOF"`
	CRC        int64  `bson:"CRC"`
}

func parseHeader(b []byte) (header, error) {
	var h header
	err := bson.Unmarshal(b, &h)
	if err == nil && h.Collection == "" {
		err = errors.New("no collection")
	}
	return h, err
}
