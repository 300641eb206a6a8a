package uuidrep

import (
	"errors"
	"fmt"
)

// ErrUnspecified is the error of every attempt to convert a UUID while the representation is
// [Unspecified]. Match it with [errors.Is], through the driver's own errors too.
var ErrUnspecified = errors.New("uuidrep: the UUID representation is unspecified: choose one with the option " +
	"uuidRepresentation of the connection string (standard for new data; csharpLegacy, javaLegacy or pythonLegacy " +
	"for data that those drivers wrote) or in the call that makes the registry or the value")

// SubtypeError is the error of reading a binary value whose subtype is not that of the
// representation: 4 for [Standard], 3 for the legacy ones. Match it with [errors.As] and a variable
// of type *SubtypeError.
type SubtypeError struct {
	Subtype        byte           // of the value
	Representation Representation // that the value was read in
}

func (e *SubtypeError) Error() string {
	msg := fmt.Sprintf("uuidrep: binary subtype %d is not a UUID in the representation %v", e.Subtype, e.Representation)
	if want, err := e.Representation.Subtype(); err == nil {
		msg += fmt.Sprintf(", which has subtype %d", want)
	}
	switch e.Subtype {
	case 0:
		msg += "; Go programs without a codec write UUIDs as subtype 0"
	case 3:
		msg += "; csharpLegacy, javaLegacy and pythonLegacy write subtype 3"
	case 4:
		msg += "; standard writes subtype 4, and so does the server itself: a field of type StandardUUID reads it"
	}
	return msg
}

// LengthError is the error of reading a binary value that does not have the 16 bytes of a UUID.
// Match it with [errors.As] and a variable of type *LengthError.
type LengthError struct {
	Length int // of the value, in bytes

	// Text says that the value is of subtype 0, 2, 3 or 4 and that its bytes are the text of a UUID, the
	// 36 characters or the 32 hexadecimal digits, which a program wrote without parsing it. Nothing reads it as
	// a UUID; the command bsonids converts it, and calls it binaryText.
	Text bool
}

func (e *LengthError) Error() string {
	msg := fmt.Sprintf("uuidrep: a UUID has 16 bytes, the binary value has %d", e.Length)
	if e.Text {
		msg += ": they are the text of a UUID, which no option reads; the command bsonids converts such values (binaryText)"
	}
	return msg
}
