package dump

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/dump/dumptest"
)

// shop is a dump with what mongodump can write.
func shop() []dumptest.Collection {
	var orders []any
	for i := range 7 {
		orders = append(orders, bson.D{{Key: "_id", Value: int32(i)}, {Key: "s", Value: strings.Repeat("x", 100*i)}})
	}
	return []dumptest.Collection{
		{Database: "shop", Name: "orders", Metadata: `{"options":{},"indexes":[],"uuid":"b1","collectionName":"orders","type":"collection"}`, Documents: orders},
		{Database: "shop", Name: "a/b %c", Metadata: `{"collectionName":"a/b %c","type":"collection"}`, Documents: []any{bson.D{{Key: "_id", Value: "x"}}}},
		{Database: "shop", Name: "empty", Metadata: `{"collectionName":"empty","type":"collection"}`},
		{Database: "shop", Name: "recent", Type: "view", Metadata: `{"options":{"viewOn":"orders","pipeline":[]},"type":"view"}`},
		{Database: "shop", Name: "weather", Type: "timeseries", Metadata: `{"type":"timeseries"}`},
		{Database: "shop", Name: "system.buckets.weather", Documents: []any{bson.D{{Key: "_id", Value: int32(1)}}}},
		{Database: "admin", Name: "system.version", Documents: []any{bson.D{{Key: "_id", Value: "authSchema"}}}},
		{Database: "", Name: "oplog", Documents: []any{bson.D{{Key: "op", Value: "n"}}}},
	}
}

func open(t *testing.T, path string) *Input {
	t.Helper()
	in, err := Open(path, nil, Collection{})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// documents reads a dump and returns the documents by collection.
func documents(in *Input) (map[string]string, error) {
	r, out := in.Reader(), make(map[string]string)
	defer func() { _ = r.Close() }()
	for {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			for _, c := range r.Collections {
				out[c.String()] += ""
			}
			return out, nil
		}
		if err != nil {
			return out, err
		}
		if item.Kind == Document {
			out[item.Collection.String()] += string(item.Bytes)
		}
	}
}

// A dump in any form is read, and what is written is what was read, with the permissions.
func TestCopy(t *testing.T) {
	whole := shop()
	for _, collections := range [][]dumptest.Collection{whole, whole[:1]} {
		want := make(map[string]string)
		for _, c := range collections {
			want[(&Collection{Database: c.Database, Name: c.Name}).String()] = string(dumptest.BSON(t, c.Documents...))
		}
		for form, path := range dumptest.Forms(t, collections...) {
			if got, err := documents(open(t, path)); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s: %d collections, want %d, %v", form, len(got), len(want), err)
			}
			from, to := filepath.Dir(path), t.TempDir()
			switch form {
			case "directory":
				dumptest.Write(t, filepath.Join(path, "shop", "note.txt"), []byte("not of mongodump"))
				dumptest.Write(t, filepath.Join(path, "prelude.json"), []byte("{}"))
				if others := open(t, path).Others(); len(others) != 1 || others[0] != filepath.Join("shop", "note.txt") {
					t.Errorf("%s: others %q", form, others)
				}
			case "file":
				dumptest.Write(t, filepath.Join(from, "orders.metadata.json"), []byte(`{"collectionName":"orders"}`))
			case "file.gz":
				dumptest.Write(t, filepath.Join(from, "orders.metadata.json.gz"), dumptest.Gzip(t, []byte("{}")))
			}
			if err := os.Chmod(path, 0o740); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(to, filepath.Base(path))
			o := written(t, open(t, path), out)
			if _, err := os.Lstat(out); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s has its name before it is whole", form)
			}
			if err := errors.Join(o.Commit(), o.Close()); err != nil {
				t.Fatal(err)
			}
			if got, want := dumptest.Tree(t, to), dumptest.Tree(t, from); !maps.Equal(got, want) {
				t.Errorf("%s: the copy has %q, want %q", form, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
			}
			if info, err := os.Stat(out); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o740 {
				t.Errorf("%s: %v, %v", form, info, err)
			}
			if again := open(t, out); again.Form != open(t, path).Form || again.Gzip != open(t, path).Gzip {
				t.Errorf("%s: the copy has another form", form)
			}
		}
	}
}

// written returns an output with all items of the input, not committed.
func written(t *testing.T, in *Input, to string) *Output {
	t.Helper()
	o, err := Create(to, in)
	if err != nil {
		t.Fatal(err)
	}
	for r := in.Reader(); ; {
		item, err := r.Next()
		if errors.Is(err, io.EOF) {
			return o
		}
		if err == nil {
			err = o.Write(&item)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// An archive that is cut off anywhere is an error, and one with any changed byte too, unless the
// byte is one of a text that nothing checks.
func TestDamagedArchive(t *testing.T) {
	whole := dumptest.Archive(t, 2, shop()...)
	path := filepath.Join(t.TempDir(), "a")
	read := func(b []byte) error {
		s, err := newStream(path, bytes.NewReader(b))
		if err != nil {
			return err
		}
		_, err = documents(&Input{Form: Archive, open: s, files: []file{{path: path, ext: archiveExt}}})
		return err
	}
	if err := read(whole); err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) {
		at := -1
		err := read(whole[:n])
		if _, e := fmt.Sscanf(fmt.Sprint(err), path+" is damaged at byte %d:", &at); e != nil || at > n {
			t.Fatalf("cut off after %d of %d bytes: %v", n, len(whole), err)
		}
	}
	for _, tail := range []string{"\x00", "x", "\xff\xff\xff\xff", "garbage after the end"} {
		if err := read(append(bytes.Clone(whole), tail...)); err == nil {
			t.Errorf("%q follows it, and that is no error", tail)
		}
	}
	// A changed byte of a document changes the checksum.
	at := bytes.Index(whole, []byte("xxxxxxxx"))
	broken := bytes.Clone(whole)
	broken[at] ^= 1
	if err := read(broken); err == nil || !strings.Contains(err.Error(), "the checksum is wrong") {
		t.Errorf("a changed byte: %v", err)
	}
}

func TestDamagedFile(t *testing.T) {
	docs := dumptest.BSON(t, bson.D{{Key: "a", Value: 1.5}}, bson.D{{Key: "b", Value: "text"}})
	first := int64(len(dumptest.BSON(t, bson.D{{Key: "a", Value: 1.5}})))
	length := func(n uint32) []byte {
		return append(bytes.Clone(docs[:first]), byte(n), byte(n>>8), byte(n>>16), byte(n>>24), 0, 0)
	}
	noEnd := bytes.Clone(docs)
	noEnd[len(noEnd)-1] = 1
	gz := dumptest.Gzip(t, docs)
	trailer := bytes.Clone(gz)
	trailer[len(trailer)-5] ^= 1
	const truncated, tooLong, end, zipped = "it ends in the middle of a document", "no BSON document has this length", "the document has no NUL at its end", "the compressed data is wrong"
	for _, tt := range []struct {
		name string
		b    []byte
		at   int64
		want string
	}{
		{"cut off in the length", docs[:first+2], first, truncated},
		{"cut off", docs[:len(docs)-1], first, truncated},
		{"a length of 4", length(4), first, tooLong},
		{"a negative length", length(1 << 31), first, tooLong},
		{"a length above the limit", length(MaxDocument + 1), first, tooLong},
		{"no NUL at the end", noEnd, first, end},
		{"garbage", append(bytes.Clone(docs), "garbage"...), int64(len(docs)), tooLong},
		{"compressed, cut off", gz[:len(gz)-4], int64(len(docs)), zipped},
		{"compressed, a wrong trailer", trailer, int64(len(docs)), zipped},
		{"compressed, garbage", append(bytes.Clone(gz), "garbage that is long enough"...), int64(len(docs)), zipped},
		{"compressed, zeros", append(bytes.Clone(gz), make([]byte, 20)...), int64(len(docs)), zipped},
		{"compressed, a wrong header", append([]byte{0x1f, 0x8b, 9}, gz[3:]...), 0, zipped},
		{"compressed garbage", dumptest.Gzip(t, []byte("garbage")), 0, tooLong},
	} {
		path := filepath.Join(t.TempDir(), "c.bson")
		dumptest.Write(t, path, tt.b)
		in, err := Open(path, nil, Collection{})
		if err == nil {
			_, err = documents(in)
		}
		if want := fmt.Sprintf("is damaged at byte %d", tt.at); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %v at byte %d", tt.name, err, tt.want, tt.at)
		}
	}
}

// A document of the maximum size is read, whatever the buffer holds.
func TestLargeDocument(t *testing.T) {
	small := bson.D{{Key: "s", Value: strings.Repeat("s", 1000)}}
	overhead := len(dumptest.BSON(t, bson.D{{Key: "l", Value: ""}}))
	large := bson.D{{Key: "l", Value: strings.Repeat("l", MaxDocument-overhead)}}
	want := dumptest.BSON(t, small, large, small, large, small)
	path := filepath.Join(t.TempDir(), "shop", "c.bson")
	dumptest.Write(t, path, want)
	got, err := documents(open(t, path))
	if err != nil || got["shop.c"] != string(want) {
		t.Errorf("%d bytes, want %d: %v", len(got["shop.c"]), len(want), err)
	}
}

// mongodump shortens the name of the file of a collection with a long name: 208 bytes of the escaped
// name, a dollar sign and a hash. The metadata has the whole name.
func TestShortenedName(t *testing.T) {
	for _, char := range []string{"long", "ü", "aü", "aaü", "€", "100 %", "%%%€x"} {
		dir := t.TempDir()
		name := strings.Repeat(char, 60)
		stem := url.PathEscape(name)[:208] + "%24" + "AAAAAAAAAAAAAAAAAAAAAAAAAAA"
		dumptest.Write(t, filepath.Join(dir, "shop", stem+".bson"), dumptest.BSON(t, bson.D{}))
		dumptest.Write(t, filepath.Join(dir, "shop", stem+".metadata.json"), []byte(`{"collectionName":"`+name+`","type":"collection"}`))
		got, err := documents(open(t, dir))
		if err != nil || len(got) != 1 || len(got["shop."+name]) != 5 {
			t.Errorf("%v, %v", got, err)
		}
	}
}

// In the directory of one database, a file without metadata has the oplog, and one with metadata a collection of this name.
func TestCollectionOplog(t *testing.T) {
	for _, metadata := range []string{"", "{}"} {
		dir, want := t.TempDir(), "oplog"
		dumptest.Directory(t, dir, false, dumptest.Collection{Database: "shop", Name: "oplog", Metadata: metadata, Documents: []any{bson.D{}}})
		if metadata != "" {
			want = "shop.oplog"
		}
		if got, err := documents(open(t, filepath.Join(dir, "shop"))); err != nil || len(got) != 1 || len(got[want]) != 5 {
			t.Errorf("%v, %v", got, err)
		}
	}
}
