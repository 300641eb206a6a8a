// Package dump reads and writes what mongodump writes: BSON files, directories of them, and
// archives, each also compressed with gzip.
package dump

import (
	"errors"
	"fmt"
)

// Damage is the error of a file that is truncated or otherwise not what mongodump writes.
type Damage struct {
	Path   string
	Offset int64 // in bytes, of the uncompressed data
	Gzip   bool  // the file is compressed
	Err    error
}

func (e *Damage) Error() string {
	of := ""
	if e.Gzip {
		of = " of the uncompressed data"
	}
	return fmt.Sprintf("%s is damaged at byte %d%s: %v", e.Path, e.Offset, of, e.Err)
}

// Unwrap returns the underlying error.
func (e *Damage) Unwrap() error { return e.Err }

// The kinds of damage.
var (
	ErrTruncated = errors.New("it ends in the middle of a document")
	ErrLength    = errors.New("no BSON document has this length")
	ErrEnd       = errors.New("the document has no NUL at its end")
	ErrChecksum  = errors.New("the checksum is wrong")
	ErrArchive   = errors.New("not as an archive of mongodump")
	ErrGzip      = errors.New("the compressed data is wrong")
)

// ErrChanged is wrapped by the error of a file that changed between two readings.
var ErrChanged = errors.New("it changed while it was read")
