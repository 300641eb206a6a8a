package autoid

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
)

var (
	// ErrNotRegistered reports a registry without [Register], or a [Document] where the driver does
	// not ask the client's registry: in an update, in a replacement of a bulk write, and in
	// bson.Marshal. The document was not sent. Other models of the same bulk write may have been
	// sent.
	ErrNotRegistered = errors.New("autoid: the registry lacks autoid.Register, which clientopt.Connect calls, " +
		"or the driver asks no registry here")

	// errNilID reports a [Source] whose id is nil or encodes as null.
	errNilID = errors.New("autoid: the source gave a nil id")

	// ErrZeroID reports an _id, of a document or of a [Source], that is null, the zero ObjectID or a
	// binary value of 16 zero octets, without the option [WithZeroIDs].
	ErrZeroID = errors.New("autoid: the _id is null or zero")

	// errGenericID reports a [Source] whose id is encoded as 16 octets of binary subtype 0, without
	// the option [WithGenericIDs]. The driver encodes a UUID in this way if no codec is registered
	// for it.
	errGenericID = errors.New("autoid: the source gave 16 octets of binary subtype 0, as which the driver writes a UUID without a codec: " +
		"clientopt.Connect and bsoncodec.NewRegistry have codecs for UUIDs; WithGenericIDs inserts it")

	// ErrUpsert reports an upsert that cannot get an id of the source, see [Collection].
	ErrUpsert = errors.New("autoid: the upsert can get no id of the source")

	// ErrNotAssignable reports a document into which [Assign] and [WithWriteBack] cannot put an id.
	ErrNotAssignable = errors.New("autoid: the document has no place for an _id")
)

// IDError reports a document that got no id, because its [Source] failed or gave nil, the registry
// cannot encode the id, or [Assign] cannot put it into the document; and a document whose own _id is
// refused.
//
// From a method of a [Collection] it means that nothing of the call was sent. If a [Document] is
// used elsewhere, the driver wraps the IDError in a
// [go.mongodb.org/mongo-driver/v2/mongo.MarshalError]. If the source asks MongoDB itself, errors.As
// finds the driver's errors of the source in the IDError only, not in the error around it: the
// driver would take them for the outcome of the write.
//
// An IDError is not changed after it was returned, so it is safe for concurrent use.
type IDError struct {
	// Index is the document's place among the documents of InsertMany or the models of BulkWrite,
	// counted from 0. It is 0 for InsertOne and the other methods of one document, and -1 for [Assign]
	// and for a [Document] outside these methods.
	Index int
	// Document is the document, the update or the replacement that the caller passed.
	Document any
	// Err is the error of the source, the registry or Assign.
	Err error

	single bool // no other document was passed
}

// Error names the document by its type, and by its index if there can be others, and shows none of its values.
func (e *IDError) Error() string {
	which := "a document"
	if e.Index >= 0 && !e.single {
		which = fmt.Sprintf("document %d", e.Index)
	}
	return fmt.Sprintf("autoid: no id for %s of type %T: %s", which, e.Document, strings.TrimPrefix(fmt.Sprint(e.Err), "autoid: "))
}

// Unwrap returns Err.
func (e *IDError) Unwrap() error { return e.Err }

// heldError carries an IDError through the driver without its chain. The driver classifies errors
// by what is in their chain, and would take the driver's errors of a source that asks MongoDB for
// the outcome of the insert.
type heldError struct{ err *IDError }

func (e *heldError) Error() string { return e.err.Error() }

// aloneError carries the IDError of a Document outside a Collection through the driver to the
// application. For the reason of heldError, errors.As does not find the error types of the driver
// in its chain, except those of bson.
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
