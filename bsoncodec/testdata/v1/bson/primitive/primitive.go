// Package primitive has the names and the forms of some types of driver version 1.
package primitive

type (
	ObjectID [12]byte
	Binary   struct {
		Subtype byte
		Data    []byte
	}
	E struct {
		Key   string
		Value any
	}
	D          []E
	M          map[string]any
	A          []any
	DateTime   int64
	Symbol     string
	JavaScript string
	Timestamp  struct{ T, I uint32 }
	MinKey     struct{}
)

// MarshalText makes an ObjectID the text of a key.
func (id ObjectID) MarshalText() ([]byte, error) { return []byte("an ObjectID"), nil }
