package uuidrep

import (
	"errors"
	"fmt"
)

// ErrUnspecified is the error of every attempt to convert a UUID while the representation is [Unspecified]. Match it
// with [errors.Is]; it reaches the caller through the driver's own errors.
var ErrUnspecified = errors.New("uuidrep: the UUID representation is unspecified: choose one, with the option " +
	"uuidRepresentation of the connection string (standard for new data; csharpLegacy, javaLegacy or pythonLegacy " +
	"for data that those drivers wrote) or by naming it where the registry or the value is made")

// SubtypeError is the error of reading a binary value whose subtype is not the one that the representation uses:
// 4 for [Standard], 3 for the legacy ones. Match it with [errors.As] and a variable of type *SubtypeError.
type SubtypeError struct {
	Subtype        byte           // what the value has
	Representation Representation // what it was read as
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
		msg += "; subtype 3 is what csharpLegacy, javaLegacy and pythonLegacy write"
	case 4:
		msg += "; subtype 4 is what standard writes"
	}
	return msg
}

// LengthError is the error of reading a binary value that has not the 16 octets of a UUID. Match it with [errors.As]
// and a variable of type *LengthError.
type LengthError struct {
	Length int // what the value has, in octets
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("uuidrep: a UUID has 16 octets, the binary value has %d", e.Length)
}
