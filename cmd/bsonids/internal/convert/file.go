package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// wholeLines returns the size in bytes of the complete lines of f.
func wholeLines(f *os.File) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for size > 0 {
		n := min(size, int64(len(buf)))
		if _, err := f.ReadAt(buf[:n], size-n); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(buf[:n], '\n'); i >= 0 {
			return size - n + int64(i) + 1, nil
		}
		size -= n
	}
	return 0, nil
}

// unmarshalLine decodes a line of canonical extended JSON into a struct. A line that is cut off is
// found first, because the driver does not return from skipping an unknown field that has no end.
func unmarshalLine(line []byte, v any) error {
	if !json.Valid(line) {
		return errors.New("it is not JSON")
	}
	return bson.UnmarshalExtJSON(line, true, v)
}
