package convert

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Part is one of the parts that a collection is divided into. The zero value is the whole
// collection.
type Part struct{ index, count uint64 }

// mostParts is the maximum number of parts of a collection.
const mostParts = 1000

// ParsePart parses a part such as 2/8. The empty string is the whole collection.
func ParsePart(s string) (Part, error) {
	if s == "" {
		return Part{}, nil
	}
	i, n, _ := strings.Cut(s, "/")
	index, err1 := strconv.ParseUint(i, 10, 32)
	count, err2 := strconv.ParseUint(n, 10, 32)
	if err1 != nil || err2 != nil || index < 1 || index > count || count > mostParts {
		return Part{}, fmt.Errorf("invalid part %q: must be like 2/8, the second of eight parts, of which there are at most %d", s, mostParts)
	}
	if count == 1 {
		return Part{}, nil
	}
	return Part{index - 1, count}, nil
}

// Whole reports whether p is the whole collection.
func (p Part) Whole() bool { return p.count == 0 }

// First reports whether p is the whole collection or its first part.
func (p Part) First() bool { return p.index == 0 }

// Count returns about how many of n documents of the collection are in p. The counts of all parts add up to n.
func (p Part) Count(n int64) int64 {
	if p.count == 0 {
		return n
	}
	whole, rest := n/int64(p.count), n%int64(p.count)
	if int64(p.index) < rest {
		whole++
	}
	return whole
}

// Has reports whether the document with the _id is in p. It uses a hash of the type and the bytes
// of the _id. The parts therefore have about the same size for any _ids, and are the same on every
// machine and in every run.
func (p Part) Has(id bson.RawValue) bool {
	if p.count == 0 {
		return true
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte{byte(id.Type)})
	_, _ = h.Write(id.Value)
	sum := h.Sum64()
	sum ^= sum >> 32 // the low bits of an FNV hash of short input are the weakest
	return sum*0x9e3779b97f4a7c15>>32%p.count == p.index
}

func (p Part) String() string {
	if p.count == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", p.index+1, p.count)
}
