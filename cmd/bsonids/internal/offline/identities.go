package offline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// identities finds _ids that a conversion makes equal. It sorts 128-bit hashes of them on the disk.
type identities struct {
	sorter *spill.Sorter
	seeds  [2]maphash.Seed
	key    []byte
}

func newIdentities(dir string) *identities {
	return &identities{sorter: spill.New(dir), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// The number of a collection and that of a document share one number.
const documentBits = 44

// add adds the converted _id of a document of the collection with the number.
func (s *identities) add(collection int, document int64, id bson.RawValue) error {
	if id.Type == 0 { // views have documents without one
		return nil
	}
	s.key = binary.BigEndian.AppendUint32(s.key[:0], uint32(collection))
	s.key = appendIdentity(s.key, id)
	return s.sorter.Add(spill.Record{maphash.Bytes(s.seeds[0], s.key), maphash.Bytes(s.seeds[1], s.key), uint64(collection)<<documentBits | uint64(document)})
}

// appendIdentity appends a key that is the same for values that a server takes for equal. Numbers of
// different types are equal if their values are. Decimals are equal only if their bytes are.
func appendIdentity(b []byte, v bson.RawValue) []byte {
	number := func(f float64) []byte {
		return binary.BigEndian.AppendUint64(append(b, byte(bson.TypeDouble)), math.Float64bits(f))
	}
	switch v.Type {
	case bson.TypeInt32:
		return number(float64(v.Int32()))
	case bson.TypeInt64:
		if n := v.Int64(); n == int64(float64(n)) && n < 1<<62 {
			return number(float64(n))
		}
	case bson.TypeDouble:
		return number(v.Double() + 0) // -0 is 0
	case bson.TypeEmbeddedDocument, bson.TypeArray:
		elements, err := bson.Raw(v.Value).Elements()
		if err != nil {
			break
		}
		b = append(b, byte(v.Type))
		for _, e := range elements {
			b = append(append(append(b, 1), e.Key()...), 0)
			b = appendIdentity(b, e.Value())
		}
		return append(b, 0)
	}
	b = binary.BigEndian.AppendUint32(append(b, byte(v.Type)), uint32(len(v.Value)))
	return append(b, v.Value...)
}

// close removes the temporary file.
func (s *identities) close() error { return s.sorter.Close() }

// EqualIDs is the error of a conversion that makes _ids of a collection equal.
type EqualIDs struct {
	Namespace string
	IDs       []string // a few of them, after the conversion
	Documents int64    // how many documents have the _id of an earlier one
}

func (e *EqualIDs) Error() string {
	some := ""
	if len(e.IDs) > 0 {
		some = ", among them " + strings.Join(e.IDs, ", ")
	}
	return fmt.Sprintf("the conversion makes _ids equal: %d documents of %s get the _id of another one%s", e.Documents, e.Namespace, some)
}

// distinct returns an *EqualIDs if two documents of a collection have the same _id.
func (s *identities) distinct(ctx context.Context, r *run) error {
	const most = 5
	found := make(map[uint64]int64) // documents, by collection
	some := make(map[uint64]map[int64]bool)
	var last spill.Record
	first := true
	err := s.sorter.Each(func(rec spill.Record) error {
		if !first && rec[0] == last[0] && rec[1] == last[1] {
			c, d := rec[2]>>documentBits, int64(rec[2]&(1<<documentBits-1))
			if some[c] == nil {
				some[c] = make(map[int64]bool)
			}
			if found[c]++; len(some[c]) < most {
				some[c][d] = true
			}
		}
		first, last = false, rec
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range r.res.Collections {
		if n := found[uint64(c.number)]; n > 0 {
			ids, err := r.named(ctx, c, some[uint64(c.number)])
			return errors.Join(&EqualIDs{c.Namespace, ids, n}, err)
		}
	}
	return nil
}

// named returns the _ids that documents of a collection, by number, have after the conversion.
func (r *run) named(ctx context.Context, c *Collection, documents map[int64]bool) (ids []string, err error) {
	if r.Input.Pipe {
		return nil, nil
	}
	n := int64(0)
	d, err := source.OpenDump(r.Input, func(int) {})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	err = source.Each(ctx, d, func(b bson.Raw) error {
		if d.Item.Collection.String() != c.Namespace {
			return nil
		}
		if documents[n] {
			doc := []byte(b)
			for _, w := range c.rewriters {
				var err error
				if doc, _, _, err = w.Document(doc); err != nil {
					return err
				}
			}
			ids = append(ids, bson.Raw(doc).Lookup("_id").String())
		}
		n++
		return nil
	})
	return ids, err
}
