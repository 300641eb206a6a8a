package driver

import (
	"io"
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

var (
	documentWriter = reflect.TypeOf(bson.NewDocumentWriter(io.Discard))
	extJSONWriter  = reflect.TypeOf(bson.NewExtJSONValueWriter(io.Discard, true, false))
)

// CopiesBytes reports whether vw is known to keep none of the byte slices that it is given. The
// driver's writers do not; one of another package may, and only gets memory that is not used again.
// A writer that hands its slices on to another one has a method CopiesBytes.
func CopiesBytes(vw bson.ValueWriter) bool {
	switch t := reflect.TypeOf(vw); t {
	case documentWriter, extJSONWriter:
		return true
	}
	w, ok := vw.(interface{ CopiesBytes() bool })
	return ok && w.CopiesBytes()
}
