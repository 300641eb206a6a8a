package dump

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// FuzzRead reads any bytes as a dump. What is read without an error are the bytes of the dump, in
// order and without a gap, and each collection of an archive has its checksum.
func FuzzRead(f *testing.F) {
	whole := dumptest.Archive(f, 2, shop()[:2]...)
	f.Add(whole)
	f.Add(whole[:len(whole)-4])
	f.Add(dumptest.Gzip(f, whole))
	f.Add(dumptest.BSON(f, bson.D{{Key: "a", Value: "b"}}, bson.D{}))
	f.Add(dumptest.Gzip(f, dumptest.BSON(f, bson.D{{Key: "a", Value: "b"}})))
	f.Add([]byte{0x6d, 0xe2, 0x99, 0x81})
	f.Add([]byte{0x1f, 0x8b, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		in := &Input{Path: "standard input", Pipe: true, Only: Collection{Database: "d", Name: "c"}}
		if err := in.begin(bytes.NewReader(b)); err != nil {
			return
		}
		o, err := CreatePipe(io.Discard, in)
		if err != nil {
			t.Fatal(err)
		}
		var read []byte
		for r := in.Reader(); ; {
			item, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return
			}
			read = append(read, item.Bytes...)
			// An archive without a checksum, of an empty collection, cannot be written.
			again := item
			again.Bytes = bytes.Clone(item.Bytes)
			if err := o.Write(&again); err == nil && !bytes.Equal(again.Bytes, item.Bytes) {
				t.Fatalf("%x became %x", item.Bytes, again.Bytes)
			}
		}
		if !in.Gzip && !bytes.Equal(read, b) {
			t.Fatalf("%d bytes were read, want %d", len(read), len(b))
		}
	})
}
