package offline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump"
)

// digest tells a dump from others, by the documents of each collection in their order. The form of the
// dump, its compression, and the order of the collections do not matter, because mongodump writes several
// collections at once.
type digest map[*dump.Collection]*checksum

// checksum is that of the documents of a collection. It finds mistakes: nobody gains from another dump with
// the same one. Two checksums that the processor computes cost a quarter of a cryptographic one, which would
// take a tenth of the time of a conversion.
type checksum struct {
	documents, bytes int64
	castagnoli, ieee uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// add adds a document of the collection.
func (d digest) add(c *dump.Collection, doc []byte) {
	s := d[c]
	if s == nil {
		s = &checksum{}
		d[c] = s
	}
	s.documents++
	s.bytes += int64(len(doc))
	s.castagnoli = crc32.Update(s.castagnoli, castagnoli, doc)
	s.ieee = crc32.Update(s.ieee, crc32.IEEETable, doc)
}

// sum returns the digest in hexadecimal digits.
func (d digest) sum() string {
	var lines []string
	for c, s := range d {
		lines = append(lines, fmt.Sprintf("%x %d %d %08x %08x\n", c.String(), s.documents, s.bytes, s.castagnoli, s.ieee))
	}
	slices.Sort(lines)
	all := sha256.Sum256([]byte(strings.Join(lines, "")))
	return hex.EncodeToString(all[:])
}
