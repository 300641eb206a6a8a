package autoid

import "errors"

// An Option changes how [Wrap] and [Document] treat the ids of documents. It may be used any number
// of times and by several goroutines.
type Option func(*settings)

type settings struct {
	zeroIsMissing bool
	zeroIsID      bool
	genericIsID   bool
	misfits       bool
	writeBack     bool
}

// WithZeroIDAsMissing makes an _id that is zero count as missing, so that an id of the source replaces
// it. Zero is the zero value of the Go type, what its method IsZero reports as zero, nil, a pointer
// to any of these, and what is encoded as null, the zero ObjectID or a binary value of 16 zero
// octets. In a document that is encoded already, zero is null, undefined, an empty string, a number
// that is zero, false, and an ObjectID or a binary value in which every byte is zero.
//
// Without this option, only a struct field whose tag has omitempty counts as missing when it is
// zero, see [Document].
func WithZeroIDAsMissing() Option {
	return func(s *settings) { s.zeroIsMissing = true }
}

// WithZeroIDs makes an _id that is null, the zero ObjectID or a binary value of 16 zero octets an id
// like any other. Without this option it is an error that wraps [ErrZeroID]: it is hardly ever
// meant, and a second document with it is a duplicate key. It does not change what counts as
// missing. An id of the source that is null stays an error.
func WithZeroIDs() Option {
	return func(s *settings) { s.zeroIsID = true }
}

// WithGenericIDs allows ids of the source that are encoded as 16 octets of binary subtype 0. Without
// this option they are an error.
func WithGenericIDs() Option {
	return func(s *settings) { s.genericIsID = true }
}

// WithMisfitIDs allows ids of the source that cannot be read into the field of the struct, or the
// element of the map, that they are inserted for. Without this option they are an error, see
// [Document].
func WithMisfitIDs() Option {
	return func(s *settings) { s.misfits = true }
}

// WithWriteBack makes the inserts of a [Collection] put the id into the caller's document, as [Assign]
// does, before they encode it. The document keeps the id when the insert fails, so that inserting
// it again is the same insert. A document that Assign cannot fill, such as a struct that was not
// passed as a pointer, is an error and nothing is sent. The elements of a slice that is passed to
// InsertMany can be structs. If one of several documents is refused, those before it keep the ids that
// were put into them, and none is inserted.
//
// An id that is put into a field is stored as the codec of the field's type writes it. A field of kind
// [16]byte takes a UUID only if its type can read what the registry writes for the UUID. That is so
// without WithWriteBack, too.
//
// WithWriteBack implies [WithZeroIDAsMissing]. A Document with this option is an error when it is encoded:
// call Assign instead.
func WithWriteBack() Option {
	return func(s *settings) { s.writeBack, s.zeroIsMissing = true, true }
}

// newSettings applies opts.
func newSettings(opts []Option) (settings, error) {
	var s settings
	for _, o := range opts {
		if o == nil {
			return settings{}, errors.New("autoid: an Option is nil")
		}
		o(&s)
	}
	return s, nil
}
