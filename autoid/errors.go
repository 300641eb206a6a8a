package autoid

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

var (
	// ErrNotRegistered reports a registry on which [Register] was not called, or a [Document] where the driver does not
	// ask the client's registry: in an update, in a replacement of a bulk write, or in bson.Marshal, which always uses a
	// registry of its own. The document was neither encoded nor sent; only a bulk write with an update or a replacement
	// that is a Document, and a client's bulk write, may have sent other models.
	ErrNotRegistered = errors.New("autoid: a document with a source of ids met a registry without autoid.Register, " +
		"or stands where the driver asks no registry")

	// ErrNilID reports a [Source] whose id is nil or encodes as null.
	ErrNilID = errors.New("autoid: the source gave a nil id")
)

// IDError reports a document that got no id: its [Source] failed or gave nil, or the registry cannot encode the id.
//
// From the methods of a [Collection] it means that no document and no other model of the call was sent. Where a
// [Document] is used elsewhere, the driver wraps it in a [go.mongodb.org/mongo-driver/v2/mongo.MarshalError]. Where
// a source asks MongoDB itself, the driver's error types that it reported are found from the IDError on and not before:
// the driver would take them for the outcome of the write.
//
// An IDError is not changed after it was returned, so it is safe for concurrent use.
type IDError struct {
	// Index is the document's place among the documents of InsertMany or the models of BulkWrite, counted from 0. It is
	// 0 for InsertOne, and -1 where the document is a [Document] that stands alone.
	Index int
	// Document is the document that the caller passed.
	Document any
	// Err is what the source or the registry reported.
	Err error
}

// Error names the document by its index and its type; its values stay out of the text.
func (e *IDError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("autoid: no id for a document of type %T: %v", e.Document, e.Err)
	}
	return fmt.Sprintf("autoid: no id for document %d of type %T: %v", e.Index, e.Document, e.Err)
}

// Unwrap returns Err.
func (e *IDError) Unwrap() error { return e.Err }

// heldError carries an IDError through the driver without its chain. The driver sorts errors by what it finds in their
// chain, and a source that itself asks MongoDB has errors of the driver there, which would be taken for the outcome of
// the insert.
type heldError struct{ err *IDError }

func (e *heldError) Error() string { return e.err.Error() }

// aloneError carries the IDError of a Document that stands alone through the driver, which hands it to the application:
// for the reason of heldError, the error types of the driver, but for those of bson, are not found in its chain.
type aloneError struct{ err *IDError }

func (e *aloneError) Error() string { return e.err.Error() }

func (e *aloneError) Is(target error) bool { return errors.Is(e.err, target) }

func (e *aloneError) As(target any) bool {
	t := reflect.TypeOf(target).Elem()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	const driver = "go.mongodb.org/mongo-driver/v2/"
	if path := t.PkgPath(); strings.HasPrefix(path, driver) && path != driver+"bson" {
		return false
	}
	return errors.As(e.err, target)
}
