package scan

import (
	"github.com/bsonids/bsonids/cmd/bsonids/internal/kinds"
	"github.com/bsonids/bsonids/uuidrep"
)

// Order is a byte order of stored values.
type Order int

const (
	Network Order = iota // of standard and pythonLegacy, and of Go programs without a codec
	CSharp
	Java
	orders
)

var representations = [orders]uuidrep.Representation{uuidrep.PythonLegacy, uuidrep.CSharpLegacy, uuidrep.JavaLegacy}

// Name returns the name of the order for values of the subtype. It is the one that bsonids convert
// --from accepts, if it accepts the order.
func (o Order) Name(subtype byte) string { return kinds.NameOf(subtype, representations[o]) }
