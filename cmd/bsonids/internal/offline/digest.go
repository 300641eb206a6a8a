package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
)

// digest tells a dump from others, by the documents of each collection in their order. The form of the
// dump, its compression, and the order of the collections do not matter, because mongodump writes several
// collections at once. A nil digest does nothing.
type digest struct {
	of   map[*dump.Collection]*checksum
	last *dump.Collection
	to   *checksum // of last
}

// checksum is that of the documents of a collection. It finds mistakes: nobody gains from another dump with
// the same one. Two checksums that the processor computes cost a quarter of a cryptographic one, which would
// take a tenth of the time of a conversion.
type checksum struct {
	documents, bytes int64
	castagnoli, ieee uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func newDigest() *digest { return &digest{of: make(map[*dump.Collection]*checksum)} }

// add adds a document.
func (d *digest) add(item *dump.Item) {
	if d == nil {
		return
	}
	if c := item.Collection; c != d.last {
		if d.of[c] == nil {
			d.of[c] = &checksum{}
		}
		d.last, d.to = c, d.of[c]
	}
	s := d.to
	s.documents++
	s.bytes += int64(len(item.Bytes))
	s.castagnoli = crc32.Update(s.castagnoli, castagnoli, item.Bytes)
	s.ieee = crc32.Update(s.ieee, crc32.IEEETable, item.Bytes)
}

// sum returns the digest in hexadecimal digits.
func (d *digest) sum() string {
	var lines []string
	for c, s := range d.of {
		lines = append(lines, fmt.Sprintf("%x %d %d %08x %08x\n", c.String(), s.documents, s.bytes, s.castagnoli, s.ieee))
	}
	slices.Sort(lines)
	all := sha256.New()
	for _, l := range lines {
		_, _ = all.Write([]byte(l)) // a hash does not fail
	}
	return hex.EncodeToString(all.Sum(nil))
}
