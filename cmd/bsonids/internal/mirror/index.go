package mirror

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"os"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
)

// An Index has, for each converted _id, the _ids of the documents that the conversion gives it. It says which document
// of the old collection belongs to one of the new collection, which the new _id alone does not tell.
//
// The old _ids are in a temporary file, except for the last ones, and the memory has where each is: 10.7 to 21.4 octets for
// each document. It is not safe for concurrent use. The zero Index is empty. The caller must close it.
type Index struct {
	// Dir is the directory of the file; that of the system for temporary files if empty.
	Dir string

	whole  bool // it has all documents of the collection
	seed   maphash.Seed
	table  []uint64 // the offset of an entry plus 1, and some bits of the hash of its new _id; 0 is an empty slot
	len    int
	file   *os.File
	stored int64  // octets in the file
	tail   []byte // the entries behind these
}

const (
	tagBits   = 24
	entryHead = 8 + 4 // the hash of the new _id, and the length of the rest: the type of the old _id, and its octets
	maxTail   = 1 << 20
	maxEntry  = 1<<(64-tagBits) - 2 // the last offset
)

// forget makes the index empty.
func (x *Index) forget() error {
	err := x.Close()
	*x = Index{Dir: x.Dir, seed: maphash.MakeSeed(), table: make([]uint64, 1<<10)}
	return err
}

// Close removes the file.
func (x *Index) Close() error {
	if x.file == nil {
		return nil
	}
	err := x.file.Close()
	if e := os.Remove(x.file.Name()); err == nil && !errors.Is(e, os.ErrNotExist) {
		err = e
	}
	x.file = nil
	return err
}

func (x *Index) hash(id bson.RawValue) uint64 { return maphash.String(x.seed, documents.Key(id)) }

// slot returns the slot of the table in which to look first.
func (x *Index) slot(hash uint64) uint64 { return hash & uint64(len(x.table)-1) }

// tag returns the bits of a hash that its slot has.
func tag(hash uint64) uint64 { return hash >> (64 - tagBits) }

// of returns the old _ids whose new one has the hash of this one, in the order in which they were added. Nearly always, these
// are the ones that the conversion turns into it.
func (x *Index) of(fresh bson.RawValue) (ids []bson.RawValue, err error) {
	if x.len == 0 {
		return nil, nil
	}
	hash := x.hash(fresh)
	for i := x.slot(hash); x.table[i] != 0; i = (i + 1) & uint64(len(x.table)-1) {
		if x.table[i]&(1<<tagBits-1) != tag(hash) {
			continue
		}
		is, id, err := x.entry(int64(x.table[i]>>tagBits) - 1)
		if err != nil {
			return nil, err
		}
		if is == hash {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// add adds the _id of a document, and the one that it gets, unless it is there. It returns those that were added before and
// whose new one may be the same.
func (x *Index) add(fresh, old bson.RawValue) (others []bson.RawValue, err error) {
	if x.table == nil {
		if err := x.forget(); err != nil {
			return nil, err
		}
	}
	if others, err = x.of(fresh); err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(others, old.Equal); i >= 0 {
		return others[:i], nil
	}
	at, hash := x.stored+int64(len(x.tail)), x.hash(fresh)
	if at > maxEntry {
		return nil, fmt.Errorf("the _ids of the collection have more than %d octets", int64(maxEntry))
	}
	x.tail = binary.BigEndian.AppendUint64(x.tail, hash)
	x.tail = binary.BigEndian.AppendUint32(x.tail, uint32(1+len(old.Value)))
	x.tail = append(append(x.tail, byte(old.Type)), old.Value...)
	x.put(hash, at)
	if x.len++; x.len > len(x.table)/4*3 {
		if err := x.grow(); err != nil {
			return nil, err
		}
	}
	if len(x.tail) >= maxTail {
		err = x.flush()
	}
	return others, err
}

// put adds the position of an entry to the table.
func (x *Index) put(hash uint64, at int64) {
	i := x.slot(hash)
	for x.table[i] != 0 {
		i = (i + 1) & uint64(len(x.table)-1)
	}
	x.table[i] = uint64(at+1)<<tagBits | tag(hash)
}

// grow makes the table twice as large. The hashes are in the entries.
func (x *Index) grow() error {
	x.table = make([]uint64, 2*len(x.table))
	readers := []io.Reader{bytes.NewReader(x.tail)}
	if x.file != nil {
		readers = slices.Insert(readers, 0, io.Reader(io.NewSectionReader(x.file, 0, x.stored)))
	}
	in, at := bufio.NewReaderSize(io.MultiReader(readers...), 1<<16), int64(0)
	for at < x.stored+int64(len(x.tail)) {
		var head [entryHead]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := int(binary.BigEndian.Uint32(head[8:]))
		if _, err := in.Discard(n); err != nil {
			return err
		}
		x.put(binary.BigEndian.Uint64(head[:]), at)
		at += int64(entryHead + n)
	}
	return nil
}

// flush writes the last entries to the file.
func (x *Index) flush() error {
	if x.file == nil {
		f, err := os.CreateTemp(x.Dir, ".bsonids-ids-*.tmp")
		if err != nil {
			return err
		}
		// A file without a name disappears with the process. Some systems cannot remove an open file; Close does there.
		_ = os.Remove(f.Name())
		x.file = f
	}
	n, err := x.file.WriteAt(x.tail, x.stored)
	if err != nil {
		return err
	}
	x.stored, x.tail = x.stored+int64(n), x.tail[:0]
	return nil
}

// entry returns the hash and the old _id of the entry at the offset.
func (x *Index) entry(at int64) (hash uint64, id bson.RawValue, err error) {
	if at >= x.stored {
		return parseEntry(x.tail[at-x.stored:])
	}
	b := make([]byte, min(64, x.stored-at)) // most entries have 29 octets
	if _, err := x.file.ReadAt(b, at); err != nil {
		return 0, id, err
	}
	if n := entryHead + int(binary.BigEndian.Uint32(b[8:])); n > len(b) {
		b = make([]byte, n)
		if _, err := x.file.ReadAt(b, at); err != nil {
			return 0, id, err
		}
	}
	return parseEntry(b)
}

func parseEntry(b []byte) (hash uint64, id bson.RawValue, err error) {
	n := binary.BigEndian.Uint32(b[8:])
	if n == 0 || int(n) > len(b)-entryHead {
		return 0, id, errors.New("the index of _ids is damaged")
	}
	rest := b[entryHead : entryHead+int(n)]
	return binary.BigEndian.Uint64(b), bson.RawValue{Type: bson.Type(rest[0]), Value: bytes.Clone(rest[1:])}, nil
}
