// Package dump reads and writes what mongodump writes: BSON files, directories of them, and
// archives, each also compressed with gzip.
package dump

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
)

// Collection is a collection of a dump.
type Collection struct {
	Database string // empty for the oplog
	Name     string
	// Type is the type that the metadata has: collection, view or timeseries. It is empty if it is not
	// known.
	Type string

	closed       bool   // an archive has its end
	crc, written uint64 // of the documents that were read from an archive, and of those that were written
}

func (c *Collection) String() string {
	if c.Database == "" {
		return c.Name
	}
	return c.Database + "." + c.Name
}

// Oplog reports whether c has the operations that mongodump --oplog adds.
func (c *Collection) Oplog() bool { return c.Database == "" && c.Name == "oplog" }

// Visible returns the name that users see: for buckets, that of the time series.
func (c *Collection) Visible() string { return strings.TrimPrefix(c.Name, bucketPrefix) }

const bucketPrefix = "system.buckets."

// TimeSeries reports whether c has the buckets of a time series.
func (c *Collection) TimeSeries() bool {
	return c.Type == "timeseries" || strings.HasPrefix(c.Name, bucketPrefix)
}

// The extensions of the files of a dump.
const (
	bsonExt     = ".bson"
	metadataExt = ".metadata.json"
	archiveExt  = ".archive" // of any file that is an archive
	gzipExt     = ".gz"
)

// split splits the name of a file into the name of the collection and the extension, without that of
// gzip. They are empty if mongodump gives no file such a name. The name of the collection is escaped like
// a part of a URL, except by older versions.
func split(file string) (collection, ext string) {
	file = strings.TrimSuffix(file, gzipExt)
	for _, ext := range []string{bsonExt, metadataExt} {
		if stem, ok := strings.CutSuffix(file, ext); ok && stem != "" {
			if name, err := url.PathUnescape(whole(stem)); err == nil {
				stem = name
			}
			return stem, ext
		}
	}
	return "", ""
}

// whole returns the shortened name of a file without an escape that mongodump has cut off before the dollar sign.
func whole(stem string) string {
	i := strings.LastIndex(stem, "%24")
	if cut := strings.LastIndexByte(stem[:max(i, 0)], '%'); cut >= 0 && cut > i-3 {
		return stem[:cut] + stem[i:]
	}
	return stem
}

// sibling returns the path of the metadata that mongodump writes beside a BSON file, with the same
// compression, or "" if the file does not have the name of a BSON file.
func sibling(path string) string {
	stem, gz := strings.CutSuffix(path, gzipExt)
	stem, ok := strings.CutSuffix(stem, bsonExt)
	switch {
	case !ok:
		return ""
	case gz:
		return stem + metadataExt + gzipExt
	}
	return stem + metadataExt
}

// describe sets what the metadata of a collection says about it. mongodump shortens the name of a
// file if the name of the collection is long; the metadata has the whole name.
func (c *Collection) describe(text []byte) {
	var m struct {
		Type string `json:"type"`
		Name string `json:"collectionName"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &m) != nil {
		return // the text is copied as it is
	}
	c.Type = m.Type
	if m.Name != "" && strings.Contains(c.Name, "$") && len(m.Name) > len(c.Name)-hashLen {
		c.Name = m.Name
	}
}

// hashLen is the length of what mongodump appends to a shortened name: a dollar sign and a hash.
const hashLen = 28
