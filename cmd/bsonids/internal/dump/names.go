package dump

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path/filepath"
	"strings"
)

// Collection is a collection of a dump.
type Collection struct {
	Database string // empty for the oplog
	Name     string
	// Type is the type that the metadata has: collection, view or timeseries. It is empty if it is not
	// known.
	Type string

	read, closed bool   // an archive has a header for it, and its end
	crc          uint64 // of the documents that were read
}

func (c *Collection) String() string {
	if c.Database == "" {
		return c.Name
	}
	return c.Database + "." + c.Name
}

// Oplog reports whether c has the operations that mongodump --oplog adds.
func (c *Collection) Oplog() bool { return c.Database == "" && c.Name == "oplog" }

// ServerDatabase reports whether c is in a database of the server.
func (c *Collection) ServerDatabase() bool {
	return c.Database == "admin" || c.Database == "config" || c.Database == "local"
}

// Reserved reports whether c has a name that is reserved for the server: its users and roles, its
// stored functions. The buckets of a time series count as TimeSeries.
func (c *Collection) Reserved() bool {
	return !c.TimeSeries() && (strings.HasPrefix(c.Name, "system.") || strings.HasPrefix(c.Name, "$admin."))
}

// System reports whether c belongs to the server.
func (c *Collection) System() bool { return c.ServerDatabase() || c.Reserved() }

// Visible returns the name that users see: for buckets, that of the time series.
func (c *Collection) Visible() string { return strings.TrimPrefix(c.Name, bucketPrefix) }

const bucketPrefix = "system.buckets."

// TimeSeries reports whether c has the buckets of a time series.
func (c *Collection) TimeSeries() bool {
	return c.Type == "timeseries" || strings.HasPrefix(c.Name, bucketPrefix)
}

// The extensions of the files of a directory.
const (
	bsonExt     = ".bson"
	metadataExt = ".metadata.json"
	gzipExt     = ".gz"
)

// split splits the name of a file into the name of the collection and the extension, without that of
// gzip. ok is false if mongodump gives no file such a name.
func split(file string) (collection, ext string, ok bool) {
	file = strings.TrimSuffix(file, gzipExt)
	for _, ext := range []string{bsonExt, metadataExt} {
		if stem, ok := strings.CutSuffix(file, ext); ok && stem != "" {
			return unescape(stem), ext, true
		}
	}
	return "", "", false
}

// unescape returns the name of a collection from the name of its file, in which mongodump escapes
// characters like those of a URL. Names of older versions are not escaped.
func unescape(stem string) string {
	if name, err := url.PathUnescape(stem); err == nil {
		return name
	}
	return stem
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

// sibling returns the path of the metadata that mongodump writes beside a BSON file, with the same
// compression, or "" if the file does not have the name of a BSON file.
func sibling(path string) string {
	stem, gz := strings.CutSuffix(path, gzipExt)
	stem, ok := strings.CutSuffix(stem, bsonExt)
	if !ok || filepath.Base(stem) == "" {
		return ""
	}
	if gz {
		return stem + metadataExt + gzipExt
	}
	return stem + metadataExt
}
