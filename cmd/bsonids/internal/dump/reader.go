package dump

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// ItemKind is the kind of an Item.
type ItemKind int

// The kinds of items. A dump is a sequence of them, and an Output that gets the same sequence writes
// the same dump.
const (
	Begin    ItemKind = iota // the beginning of a file
	Document                 // a document of a collection
	Metadata                 // the metadata of a collection
	Raw                      // other bytes
	Closed                   // the end of a collection in an archive, with its checksum
	End                      // the end of a file
)

// Item is a part of a dump.
type Item struct {
	Kind       ItemKind
	Collection *Collection // of a Document, Metadata or Closed
	// Bytes is what the dump has. It is valid until the next call of Next. The bytes of a document may
	// be changed until then.
	Bytes []byte
	Text  []byte      // of Metadata: the JSON
	Name  string      // of Begin: the path, relative to that of a directory
	Mode  os.FileMode // of Begin: the permissions
	Gzip  bool        // of Begin: the documents are compressed
}

// Reader reads a dump. It is not safe for concurrent use.
type Reader struct {
	Collections []*Collection // so far, also those without a document

	pipe   *stream
	files  []file
	at     file // that is read
	file   *os.File
	info   os.FileInfo // of file, as it was opened
	stream *stream     // nil between two files
	state  state
	part   *Collection // of the documents that follow
	named  map[[2]string]*Collection
}

// Reader returns a Reader of the dump from its beginning. The caller must close it.
func (in *Input) Reader() *Reader {
	r := &Reader{pipe: in.open, files: in.files, named: make(map[[2]string]*Collection)}
	in.open = nil
	return r
}

// Next returns the next item. At the end of the dump the error is io.EOF.
func (r *Reader) Next() (item Item, err error) {
	switch {
	case r.stream == nil && len(r.files) == 0:
		return Item{}, io.EOF
	case r.stream == nil:
		r.at, r.files = r.files[0], r.files[1:]
		return r.begin()
	}
	switch r.at.ext {
	case archiveExt:
		item, err = r.archived()
	case metadataExt:
		item, err = r.metadata()
	case bsonExt:
		item.Kind, item.Collection = Document, r.part
		item.Bytes, err = r.stream.document()
	default:
		item.Kind = Raw
		item.Bytes, err = r.stream.chunk()
	}
	if !errors.Is(err, io.EOF) {
		return item, err
	}
	if r.file != nil {
		info, err := r.file.Stat()
		if err == nil && (info.Size() != r.info.Size() || !info.ModTime().Equal(r.info.ModTime())) {
			err = fmt.Errorf("%s: it changed while it was read", r.at.path)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return Item{}, err
		}
	}
	r.stream = nil
	return Item{Kind: End}, nil
}

// begin opens a file and returns its first item.
func (r *Reader) begin() (Item, error) {
	item := Item{Kind: Begin, Name: r.at.name, Mode: 0o600}
	if r.at.coll != "" {
		r.part = r.collection(r.at.database, r.at.coll)
	}
	if r.stream = r.pipe; r.stream == nil {
		var err error
		if r.file, err = os.Open(r.at.path); err != nil {
			return Item{}, err
		}
		if r.info, err = r.file.Stat(); err != nil {
			return Item{}, err
		}
		item.Mode = r.info.Mode().Perm()
		if r.at.ext == bsonExt || r.at.ext == archiveExt {
			r.stream, err = newStream(r.at.path, r.file)
		} else { // copied as it is
			r.stream = &stream{path: r.at.path, in: bufio.NewReaderSize(r.file, readSize)}
		}
		if err != nil {
			return Item{}, err
		}
	}
	item.Gzip = r.stream.gzip
	return item, nil
}

// Close closes the open file.
func (r *Reader) Close() (err error) {
	if r.file != nil {
		err = r.file.Close()
		r.file = nil
	}
	return err
}

// Damaged returns the error for the document that the reader returned last, with what is wrong in it.
func (r *Reader) Damaged(err error) error { return r.stream.damaged(r.stream.last, "%w", err) }

// collection returns the collection with the name.
func (r *Reader) collection(database, name string) *Collection {
	key := [2]string{database, name}
	c := r.named[key]
	if c == nil {
		c = &Collection{Database: database, Name: name}
		r.named[key] = c
		r.Collections = append(r.Collections, c)
	}
	return c
}

// maxMetadata is the maximum size of the metadata of a collection, in bytes.
const maxMetadata = 64 << 20

// whole reads the rest of the stream, which has metadata. The error is io.EOF if there is none.
func (s *stream) whole() ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(s.in, maxMetadata+1))
	switch {
	case err != nil:
		return nil, s.failed(len(b), err)
	case len(b) > maxMetadata:
		return nil, fmt.Errorf("%s: metadata of more than %d bytes", s.path, maxMetadata)
	case len(b) == 0:
		return nil, io.EOF
	}
	return b, nil
}

// metadata returns the item of a file with metadata.
func (r *Reader) metadata() (Item, error) {
	raw, err := r.stream.whole()
	if err != nil {
		return Item{}, err
	}
	s, err := newStream(r.at.path, bytes.NewReader(raw))
	if err != nil {
		return Item{}, err
	}
	text, err := s.whole()
	if err != nil && !errors.Is(err, io.EOF) {
		return Item{}, err
	}
	r.part.describe(text)
	return Item{Kind: Metadata, Collection: r.part, Bytes: raw, Text: text}, nil
}

// state is the position in an archive.
type state int

const (
	atMagic state = iota
	atHeader
	atMetadata
	atPart
	inPart
	afterEnd
)

// crcTable is that of the checksums of an archive.
var crcTable = crc64.MakeTable(crc64.ECMA)

// archived returns the next item of an archive: its beginning, the metadata of the collections, and parts of
// them, each with a header.
func (r *Reader) archived() (Item, error) {
	s := r.stream
	at := s.offset
	n, err := s.number()
	switch {
	case errors.Is(err, io.EOF) && r.state == atPart:
		return Item{}, cmp.Or(r.incomplete(), io.EOF)
	case errors.Is(err, io.EOF):
		return Item{}, r.not(at, "it ends in the middle of a part")
	case err != nil:
		return Item{}, err
	case r.state == atMagic:
		r.state = atHeader
		return Item{Kind: Raw, Bytes: s.take(4)}, nil
	case n == terminator && (r.state == atHeader || r.state == atPart):
		return Item{}, r.not(at, "a part without a header")
	case n == terminator:
		r.state = atPart
		return Item{Kind: Raw, Bytes: s.take(4)}, nil
	}
	b, err := s.document()
	if err != nil {
		return Item{}, err
	}
	switch r.state {
	case atHeader:
		r.state = atMetadata
		return Item{Kind: Raw, Bytes: b}, nil
	case afterEnd:
		return Item{}, r.not(at, "a document after the end of its collection")
	case inPart:
		r.part.crc = crc64.Update(r.part.crc, crcTable, b)
		return Item{Kind: Document, Collection: r.part, Bytes: b}, nil
	}
	return r.header(b, at)
}

// not returns the error for what mongodump does not write to an archive.
func (r *Reader) not(at int64, format string, args ...any) error {
	return r.stream.damaged(at, "not as an archive of mongodump: "+format, args...)
}

// header returns the item of the metadata of a collection in an archive, or of the header of a part.
func (r *Reader) header(b []byte, at int64) (Item, error) {
	var h struct {
		Database   string `bson:"db"`
		Collection string `bson:"collection"`
		Metadata   string `bson:"metadata"`
		Type       string `bson:"type"`
		EOF        bool   `bson:"EOF"`
		CRC        int64  `bson:"CRC"`
	}
	if err := bson.Unmarshal(b, &h); err != nil || h.Collection == "" {
		return Item{}, r.not(at, "this describes no collection")
	}
	c := r.collection(h.Database, h.Collection)
	switch {
	case r.state == atMetadata:
		c.describe([]byte(h.Metadata))
		c.Type = cmp.Or(h.Type, c.Type)
		return Item{Kind: Metadata, Collection: c, Bytes: b, Text: []byte(h.Metadata)}, nil
	case c.closed:
		return Item{}, r.not(at, "%s continues after its end", c)
	case !h.EOF:
		r.state, r.part = inPart, c
		return Item{Kind: Raw, Bytes: b}, nil
	case uint64(h.CRC) != c.crc:
		return Item{}, r.stream.damaged(at, "the checksum is wrong: that of the documents of %s is %016x, and the archive says %016x", c, c.crc, uint64(h.CRC))
	}
	r.state, c.closed = afterEnd, true
	return Item{Kind: Closed, Collection: c, Bytes: b}, nil
}

// incomplete returns an error if a collection has no end, as in an archive that is cut off between two
// parts.
func (r *Reader) incomplete() error {
	for _, c := range r.Collections {
		if buckets := r.named[[2]string{c.Database, bucketPrefix + c.Name}]; buckets != nil && c.Type == "timeseries" {
			c = buckets
		}
		if !c.closed {
			return r.not(r.stream.offset, "it ends before the end of %s", c)
		}
	}
	return nil
}
