package scan

import (
	"crypto/md5"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/decide"
	"github.com/bsonids/bsonids/uuidrep"
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
	colls, err := s.Decide()
	if err != nil {
		t.Fatal(err)
	}
	return colls
}

// evidence returns the evidence for subtype 3 in the only field of a collection that has any.
func evidence(t testing.TB, s *Scan) Evidence {
	t.Helper()
	for _, c := range s.judged(t) {
		for _, f := range c.Fields {
			if len(f.Evidence) > 0 {
				return f.Evidence[0]
			}
		}
	}
	t.Fatal("no evidence")
	return Evidence{}
}

// order returns what is said about one order.
func order(e Evidence, name string) decide.Reading {
	return e.Orders[slices.IndexFunc(e.Orders, func(o decide.Reading) bool { return o.Order == name })]
}
