package scan

import (
	"crypto/md5"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/bsonids/bsonids/uuidrep"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

var now = time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

// maker returns the i-th UUID of one kind. The UUIDs are reproducible.
type maker func(r *rand.Rand, i int) [16]byte

func randomOctets(r *rand.Rand) (u [16]byte) {
	binary.BigEndian.PutUint64(u[:8], r.Uint64())
	binary.BigEndian.PutUint64(u[8:], r.Uint64())
	return u
}

func version(u [16]byte, v byte) [16]byte {
	u[6], u[8] = u[6]&0x0f|v<<4, u[8]&0x3f|0x80
	return u
}

func v4(r *rand.Rand, _ int) [16]byte { return version(randomOctets(r), 4) }

// v1 returns UUIDs as one machine makes them: a timestamp in units of 100 ns since 1582 (RFC 9562,
// section 5.1), one clock sequence and one node.
func v1(r *rand.Rand, i int) (u [16]byte) {
	ts := uint64(0x01B21DD213814000) + uint64(now.AddDate(0, -3, 0).UnixMicro()+int64(i)*1_000_003+r.Int64N(1000))*10
	binary.BigEndian.PutUint32(u[:4], uint32(ts))
	binary.BigEndian.PutUint16(u[4:], uint16(ts>>32))
	binary.BigEndian.PutUint16(u[6:], uint16(ts>>48)|1<<12)
	copy(u[8:], []byte{0xb3, 0xc8, 0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46})
	return u
}

func v7(r *rand.Rand, i int) [16]byte {
	u := randomOctets(r)
	ms := uint64(now.AddDate(0, -3, 0).UnixMilli() + int64(i)*1007)
	binary.BigEndian.PutUint64(u[:8], ms<<16|uint64(u[6])<<8|uint64(u[7]))
	return version(u, 7)
}

func v3(_ *rand.Rand, i int) [16]byte {
	return uuid.NewMD5(uuid.NameSpaceDNS, binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func v5(_ *rand.Rand, i int) [16]byte {
	return uuid.NewSHA1(uuid.NameSpaceDNS, binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func noBits(r *rand.Rand, _ int) [16]byte { return randomOctets(r) }

func md5Sum(_ *rand.Rand, i int) [16]byte {
	return md5.Sum(binary.BigEndian.AppendUint32(nil, uint32(i)))
}

func counter(_ *rand.Rand, i int) (u [16]byte) {
	binary.BigEndian.PutUint64(u[8:], uint64(i+1))
	return u
}

// prefixed returns keys with a fixed beginning that looks like version 4 by accident.
func prefixed(_ *rand.Rand, i int) (u [16]byte) {
	u = [16]byte{0xa1, 0xb2, 0xc3, 0xd4, 0xe5, 0xf6, 0x47, 0x11, 0x99, 0x10, 0x32, 0x54}
	binary.BigEndian.PutUint32(u[12:], uint32(i))
	return u
}

// coordinates returns two little-endian doubles. Read in C# order, all of them have version 4, and
// a quarter have the variant.
func coordinates(r *rand.Rand, _ int) (u [16]byte) {
	binary.LittleEndian.PutUint64(u[:], math.Float64bits(2+170*r.Float64()))
	binary.LittleEndian.PutUint64(u[8:], math.Float64bits(2+80*r.Float64()))
	return u
}

// address returns IPv6 addresses in subnet 4012. In network order, all of them have version 4, and
// a quarter have the variant.
func address(r *rand.Rand, _ int) [16]byte {
	u := randomOctets(r)
	copy(u[:], []byte{0x20, 0x01, 0x0d, 0xb8, 0x00, 0x01, 0x40, 0x12})
	return u
}

// ofVersion returns values that are random except for the version and the variant. Their time is
// therefore random, too.
func ofVersion(v byte) maker {
	return func(r *rand.Rand, _ int) [16]byte { return version(randomOctets(r), v) }
}

func collect(t testing.TB, c *Collector, doc any) {
	t.Helper()
	b, err := bson.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Add(b); err != nil {
		t.Fatal(err)
	}
}

func stored(u [16]byte, subtype byte, rep uuidrep.Representation) bson.Binary {
	p := rep.Permute(u)
	return bson.Binary{Subtype: subtype, Data: p[:]}
}

// newScan returns a Scan that is closed after the test.
func newScan(t testing.TB) *Scan {
	s := New(t.TempDir(), now, true)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// collector returns the Collector for the collection with the name in the database db.
func (s *Scan) collector(t testing.TB, name string) *Collector {
	t.Helper()
	c, err := s.Collection("db", name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *Scan) judged(t testing.TB) []Collection {
	t.Helper()
	colls, err := s.Judge()
	if err != nil {
		t.Fatal(err)
	}
	return colls
}

func evidence(t testing.TB, s *Scan, namespace, path string, subtype byte) Evidence {
	t.Helper()
	for _, c := range s.judged(t) {
		for _, f := range c.Fields {
			if c.Namespace != namespace || f.Path != path {
				continue
			}
			for _, e := range f.Evidence {
				if e.Subtype == subtype {
					return e
				}
			}
		}
	}
	t.Fatalf("no evidence for %s %s", namespace, path)
	return Evidence{}
}
