package offline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/documents"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/source"
	"github.com/bsonids/bsonids/cmd/bsonids/internal/spill"
)

// identities finds _ids that a conversion makes equal. It sorts 128-bit hashes of them on the disk.
type identities struct {
	*spill.Sorter
	seeds [2]maphash.Seed
	key   []byte
}

func newIdentities(dir string) *identities {
	return &identities{Sorter: spill.New(dir), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// The number of a collection and that of a document share one number.
const documentBits = 44

// add adds the converted _id of the last document of the collection.
func (s *identities) add(c *Collection, id bson.RawValue) error {
	if id.Type == 0 { // views have documents without one
		return nil
	}
	s.key = documents.AppendEqual(binary.BigEndian.AppendUint32(s.key[:0], uint32(c.number)), id)
	return s.Add(spill.Record{maphash.Bytes(s.seeds[0], s.key), maphash.Bytes(s.seeds[1], s.key), uint64(c.number)<<documentBits | uint64(c.Documents)})
}

// distinct returns an error if two documents of a collection have the same converted _id. It names a few of
// them, unless the dump is a pipe.
func (r *run) distinct(ctx context.Context) (err error) {
	const most = 5
	var last spill.Record
	in, more, some := uint64(0), 0, make(map[int64]bool) // the number of the first collection, and of documents in it
	err = r.ids.Each(func(rec spill.Record) error {
		if c := rec[2] >> documentBits; rec[0] == last[0] && rec[1] == last[1] && (more == 0 || c == in) {
			in = c
			if more++; more <= most {
				some[int64(rec[2]&(1<<documentBits-1))] = true
			}
		}
		last = rec
		return nil
	})
	if err != nil || more == 0 {
		return err
	}
	var of *Collection
	for _, c := range r.res.Collections {
		if uint64(c.number) == in {
			of = c
		}
	}
	equal := fmt.Sprintf("the conversion makes _ids equal: %d documents of %s get the _id of another one", more, of.Namespace)
	if r.Input.Pipe {
		return errors.New(equal)
	}
	n, ids := int64(0), []string{}
	d := source.OpenDump(r.Input, func(int) {})
	defer func() { err = errors.Join(err, d.Close()) }()
	err = d.Each(ctx, func(doc bson.Raw) error {
		if d.Item.Collection.String() != of.Namespace {
			return nil
		}
		if n++; some[n] {
			doc, _, _, err := of.rewriter.Document(doc)
			if err != nil {
				return err
			}
			ids = append(ids, bson.Raw(doc).Lookup("_id").String())
		}
		return nil
	})
	return errors.Join(fmt.Errorf("%s, among them %s", equal, strings.Join(ids, ", ")), err)
}
