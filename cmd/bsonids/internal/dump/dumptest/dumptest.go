// Package dumptest writes dumps for tests, straight from the description of their formats and without
// the code of package dump.
package dumptest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"hash/crc64"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// Collection is a collection of a dump.
type Collection struct {
	Database, Name string
	Type           string // of the metadata; "collection" if empty
	Metadata       string // "" for none
	Documents      []any
}

// BSON returns the documents one after the other.
func BSON(t testing.TB, docs ...any) []byte {
	t.Helper()
	var b []byte
	for _, d := range docs {
		raw, err := bson.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		b = append(b, raw...)
	}
	return b
}

// Gzip compresses b.
func Gzip(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Write writes a file.
func Write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Directory writes a dump to dir, one directory for each database.
func Directory(t testing.TB, dir string, compressed bool, collections ...Collection) {
	t.Helper()
	put := func(path string, b []byte) {
		if compressed {
			path, b = path+".gz", Gzip(t, b)
		}
		Write(t, filepath.Join(dir, path), b)
	}
	for _, c := range collections {
		stem := filepath.Join(c.Database, url.PathEscape(c.Name))
		if c.Metadata != "" {
			put(stem+".metadata.json", []byte(c.Metadata))
		}
		if c.Type != "view" && c.Type != "timeseries" {
			put(stem+".bson", BSON(t, c.Documents...))
		}
	}
}

// Archive returns an archive. Its parts have at most block documents each, and those of the
// collections take turns, as mongodump writes them for several collections at once.
func Archive(t testing.TB, block int, collections ...Collection) []byte {
	t.Helper()
	const terminator = "\xff\xff\xff\xff"
	b := binary.LittleEndian.AppendUint32(nil, 0x8199e26d)
	b = append(b, BSON(t, bson.D{{Key: "concurrent_collections", Value: int32(4)}, {Key: "version", Value: "0.1"}, {Key: "server_version", Value: "8.0.4"}, {Key: "tool_version", Value: "100.10.0"}})...)
	for _, c := range collections {
		typ := c.Type
		if typ == "" {
			typ = "collection"
		}
		b = append(b, BSON(t, bson.D{{Key: "db", Value: c.Database}, {Key: "collection", Value: c.Name}, {Key: "metadata", Value: c.Metadata}, {Key: "size", Value: int32(0)}, {Key: "type", Value: typ}})...)
	}
	b = append(b, terminator...)
	header := func(c Collection, eof bool, crc uint64) []byte {
		return BSON(t, bson.D{{Key: "db", Value: c.Database}, {Key: "collection", Value: c.Name}, {Key: "EOF", Value: eof}, {Key: "CRC", Value: int64(crc)}})
	}
	all := make([][]byte, len(collections))
	left := make([][]any, len(collections))
	for i, c := range collections {
		left[i] = c.Documents
	}
	for done := 0; done < len(collections); {
		for i, c := range collections {
			if left[i] == nil && all[i] == nil && c.Type == "timeseries" {
				all[i] = []byte{}
				done++
				continue
			}
			if all[i] != nil && len(left[i]) == 0 {
				continue
			}
			n := min(block, len(left[i]))
			docs := BSON(t, left[i][:n]...)
			left[i] = left[i][n:]
			all[i] = append(append(all[i], docs...), []byte{}...)
			b = append(append(append(b, header(c, false, 0)...), docs...), terminator...)
			if len(left[i]) == 0 {
				if all[i] == nil {
					all[i] = []byte{}
				}
				b = append(append(b, header(c, true, crc64.Checksum(all[i], crc64.MakeTable(crc64.ECMA)))...), terminator...)
				done++
			}
		}
	}
	return b
}
