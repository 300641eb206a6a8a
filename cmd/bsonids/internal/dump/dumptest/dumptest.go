// Package dumptest writes dumps for tests, straight from the description of their formats and without
// the code of package dump.
package dumptest

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"hash/crc64"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	end := []byte("\xff\xff\xff\xff")
	b := binary.LittleEndian.AppendUint32(nil, 0x8199e26d)
	b = append(b, BSON(t, bson.D{{Key: "concurrent_collections", Value: int32(4)}, {Key: "version", Value: "0.1"}, {Key: "server_version", Value: "8.0.4"}, {Key: "tool_version", Value: "100.10.0"}})...)
	for _, c := range collections {
		b = append(b, BSON(t, bson.D{{Key: "db", Value: c.Database}, {Key: "collection", Value: c.Name}, {Key: "metadata", Value: c.Metadata}, {Key: "size", Value: int32(0)}, {Key: "type", Value: cmp.Or(c.Type, "collection")}})...)
	}
	b = append(b, end...)
	part := func(c Collection, eof bool, crc uint64, docs []byte) {
		header := BSON(t, bson.D{{Key: "db", Value: c.Database}, {Key: "collection", Value: c.Name}, {Key: "EOF", Value: eof}, {Key: "CRC", Value: int64(crc)}})
		b = slices.Concat(b, header, docs, end)
	}
	left := slices.DeleteFunc(slices.Clone(collections), func(c Collection) bool { return c.Type == "timeseries" })
	whole := make(map[string][]any)
	for _, c := range left {
		whole[c.Database+"."+c.Name] = c.Documents
	}
	for len(left) > 0 {
		c := left[0]
		n := min(block, len(c.Documents))
		part(c, false, 0, BSON(t, c.Documents[:n]...))
		c.Documents = c.Documents[n:]
		if left = left[1:]; len(c.Documents) > 0 {
			left = append(left, c)
			continue
		}
		part(c, true, crc64.Checksum(BSON(t, whole[c.Database+"."+c.Name]...), crc64.MakeTable(crc64.ECMA)), nil)
	}
	return b
}

// Forms writes a dump in every form, each in a directory of its own, and returns the paths by the names of the forms.
// A dump of one collection is also a BSON file.
func Forms(t testing.TB, collections ...Collection) map[string]string {
	t.Helper()
	dir, paths := t.TempDir(), make(map[string]string)
	for _, ext := range []string{"", ".gz"} {
		put := func(form, name string, b []byte) {
			if paths[form+ext] = filepath.Join(dir, form+ext, name+ext); ext != "" {
				b = Gzip(t, b)
			}
			Write(t, paths[form+ext], b)
		}
		paths["directory"+ext] = filepath.Join(dir, "directory"+ext, "dump")
		Directory(t, paths["directory"+ext], ext != "", collections...)
		put("archive", "dump.archive", Archive(t, 1e6, collections...))
		put("interleaved", "dump.archive", Archive(t, 2, collections...))
		if c := collections[0]; len(collections) == 1 {
			put("file", filepath.Join(c.Database, c.Name+".bson"), BSON(t, c.Documents...))
		}
	}
	return paths
}

// Tree returns the contents of the files in a directory, or of a file, by their relative paths. Those of compressed
// files are uncompressed.
func Tree(t testing.TB, root string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if z, e := gzip.NewReader(bytes.NewReader(b)); e == nil && err == nil {
			b, err = io.ReadAll(z)
		}
		out[strings.TrimPrefix(path, root)] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
