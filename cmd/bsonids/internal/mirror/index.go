package mirror

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// An Index has, for each converted _id, the _ids of the documents that the conversion gives it. It says which document
// of the old collection belongs to one of the new collection, which the new _id alone does not tell.
//
// The old _ids are in a temporary file, and so are the new ones, in their order, with the places of the old ones. While these
// are sorted, the memory has at most sortedAtOnce of them, 24 octets twice for each, and then the last maxChanges that were added.
// A UUID is its own key, so that the new collection is read in the order of the file; of other _ids, it is a hash.
//
// An Index is made whole from a collection, and what changes there is added. What is deleted stays. It is not safe for
// concurrent use. The zero Index is empty. The caller must close it.
type Index struct {
	// Dir is the directory of the files; that of the system for temporary files if empty.
	Dir string

	whole   bool // it has all documents of the collection
	ids     spill.Values
	keys    *spill.Sorter // with the places of the _ids
	entries int64         // in keys
	changes map[[16]byte][]uint64
	changed int // entries in changes
}

// Variables for tests: with these, the memory is 48 MiB, and then about 100 MiB at most.
var (
	sortedAtOnce = 1 << 20
	maxChanges   = 1 << 19
)

// forget makes the index empty.
func (x *Index) forget() error {
	err := x.Close()
	*x = Index{Dir: x.Dir, keys: spill.NewSize(x.Dir, sortedAtOnce)}
	x.ids.Dir = x.Dir
	return err
}

// Close removes the files.
func (x *Index) Close() error {
	x.whole = false
	if x.keys == nil {
		return nil
	}
	return errors.Join(x.ids.Close(), x.keys.Close())
}

// keyOf returns the key of a new _id. kind keeps UUIDs and hashes apart.
func keyOf(id bson.RawValue) (key [16]byte, kind uint64) {
	if subtype, data, ok := id.BinaryOK(); ok && subtype == bson.TypeBinaryUUID && len(data) == len(key) {
		return [16]byte(data), 0
	}
	sum := sha256.Sum256([]byte(documents.Key(id)))
	return [16]byte(sum[:]), 1
}

// numberOf returns the number that the key of an entry has: where the old _id is, and the kind of the key.
func numberOf(place int64, kind uint64) uint64 { return uint64(place)<<1 | kind }

// add adds the _id of a document, and the one that it gets.
func (x *Index) add(fresh, old bson.RawValue) error {
	if x.keys == nil {
		if err := x.forget(); err != nil {
			return err
		}
	}
	place, err := x.ids.Add(byte(old.Type), old.Value)
	if err != nil {
		return err
	}
	key, kind := keyOf(fresh)
	if !x.whole {
		x.entries++
		return x.keys.Add(spill.Of(key, numberOf(place, kind)))
	}
	if x.changes == nil {
		x.changes = make(map[[16]byte][]uint64)
	}
	x.changes[key] = append(x.changes[key], numberOf(place, kind))
	if x.changed++; x.changed < maxChanges {
		return nil
	}
	return x.seal()
}

// seal makes the index whole, or sorts what was added since it is.
func (x *Index) seal() error {
	x.whole = false
	for key, numbers := range x.changes {
		for _, n := range numbers {
			if err := x.keys.Add(spill.Of(key, n)); err != nil {
				return err
			}
		}
	}
	x.entries += int64(x.changed)
	x.changes, x.changed = nil, 0
	n, err := x.keys.Seal()
	if err == nil && n != x.entries {
		err = fmt.Errorf("a temporary file has %d of %d _ids", n, x.entries)
	}
	x.whole = err == nil
	return err
}

// numbers returns the numbers of the entries of a new _id, in the order in which they were added.
func (x *Index) numbers(fresh bson.RawValue) ([]uint64, error) {
	if !x.whole {
		return nil, errors.New("the index of _ids is not made")
	}
	key, kind := keyOf(fresh)
	numbers, err := x.keys.Find(key)
	numbers = append(numbers, x.changes[key]...)
	return slices.DeleteFunc(numbers, func(n uint64) bool { return n&1 != kind }), err
}

// has reports whether a document with such a new _id was added.
func (x *Index) has(fresh bson.RawValue) (bool, error) {
	numbers, err := x.numbers(fresh)
	return len(numbers) > 0, err
}

// of returns the old _ids of a new one, in the order in which they were added.
func (x *Index) of(fresh bson.RawValue) (ids []bson.RawValue, err error) {
	numbers, err := x.numbers(fresh)
	if err != nil {
		return nil, err
	}
	return x.old(numbers)
}

// old returns the old _ids of entries.
func (x *Index) old(numbers []uint64) (ids []bson.RawValue, err error) {
	for _, n := range numbers {
		kind, value, err := x.ids.At(int64(n >> 1))
		if err != nil {
			return nil, err
		}
		ids = append(ids, bson.RawValue{Type: bson.Type(kind), Value: value})
	}
	return ids, nil
}

// twins calls visit for the old _ids of each new one that has several. The index must be whole, and nothing added since.
func (x *Index) twins(visit func(ids []bson.RawValue) error) (err error) {
	failed := x.keys.Groups(func(_ [16]byte, numbers []uint64) {
		for kind := range uint64(2) {
			same := slices.DeleteFunc(slices.Clone(numbers), func(n uint64) bool { return n&1 != kind })
			if len(same) < 2 || err != nil {
				continue
			}
			var ids []bson.RawValue
			if ids, err = x.old(same); err == nil {
				err = visit(ids)
			}
		}
	})
	return errors.Join(failed, err)
}
