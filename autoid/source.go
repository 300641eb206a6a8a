package autoid

import "errors"

// A Source makes the values of _id.
//
// NewID returns one id: any value that the collection's registry encodes, such as a [bson.ObjectID], a UUID, a string
// or a number. It must be safe for concurrent use, and no two ids for one collection may be equal. A nil id, or one
// that encodes as null, is refused with [ErrNilID]; an error reaches the caller inside an [*IDError].
type Source interface {
	NewID() (any, error)
}

// SourceFunc is a function used as a [Source]. It is safe for concurrent use where the function is.
type SourceFunc func() (any, error)

// NewID calls f. A nil function is an error.
func (f SourceFunc) NewID() (any, error) {
	if f == nil {
		return nil, errNilSource
	}
	return f()
}

var errNilSource = errors.New("autoid: the source is nil")

// draw asks src for an id and accepts anything but nil. An id that only encodes as null is caught by the writer.
func draw(src Source) (any, error) {
	if src == nil {
		return nil, errNilSource
	}
	id, err := src.NewID()
	if err != nil {
		return nil, err
	}
	if id == nil {
		return nil, ErrNilID
	}
	return id, nil
}
