package autoid

import "errors"

// A Source makes the values of _id.
//
// NewID returns one id: any value that the collection's registry encodes, such as a
// [bson.ObjectID], a UUID, a string or a number. It must be safe for concurrent use, and no two ids
// for one collection may be equal. An id that is nil or encodes as null is refused, another
// zero id with [ErrZeroID], and 16 octets of binary subtype 0 without [WithGenericIDs].
// An error of NewID reaches the caller inside an [*IDError].
type Source interface {
	NewID() (any, error)
}

// SourceFunc is a function used as a [Source]. It is safe for concurrent use if the function is.
type SourceFunc func() (any, error)

// NewID calls f. A nil function is an error.
func (f SourceFunc) NewID() (any, error) {
	if f == nil {
		return nil, errNilSource
	}
	return f()
}

var errNilSource = errors.New("autoid: the source is nil")

func isNilSource(src Source) bool {
	f, ok := src.(SourceFunc)
	return src == nil || ok && f == nil
}

// draw returns an id of src, which is not nil. The writer detects an id that only encodes as null.
func draw(src Source) (any, error) {
	if src == nil {
		return nil, errNilSource
	}
	id, err := src.NewID()
	if err != nil {
		return nil, err
	}
	if id == nil {
		return nil, errNilID
	}
	return id, nil
}
