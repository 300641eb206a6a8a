// Package built holds what this module knows of a registry that package bsoncodec built, and that the registry does not
// tell: one [Note] for each.
package built

import (
	"reflect"
	"sync/atomic"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/structcodec"
)

// A Note is what a registry of package bsoncodec knows. It is registered as the encoder of its own type, since a registry
// keeps nothing but codecs. What a Note says does not change once the registry is in use.
type Note struct {
	Rules Rules              // what becomes of types
	Plans *structcodec.Codec // nil if the registry has none
	Stage Stage

	// OwnFilters says that the registry is that of a collection whose filters are rewritten before the driver encodes
	// them. A wrapper of the driver's collection of such a collection would lose that.
	OwnFilters bool
}

// A Stage says how far a registry is built.
type Stage uint8

// The functions of With run at Building. Nested says that one of them applied another builder.
const (
	Done Stage = iota
	Building
	Nested
)

// Rules say what becomes of a value whose method the driver calls without asking the registry.
type Rules interface {
	MarshalDocument(bson.EncodeContext, bson.Marshaler) ([]byte, error)
	MarshalValue(bson.EncodeContext, bson.ValueMarshaler) (byte, []byte, error)
}

var tNote = reflect.TypeFor[Note]()

// EncodeValue makes a Note a ValueEncoder. There are no values of its type to encode.
func (*Note) EncodeValue(_ bson.EncodeContext, _ bson.ValueWriter, val reflect.Value) error {
	return bson.ValueEncoderError{Name: "NoteEncodeValue", Received: val}
}

// AddTo makes n the Note of reg.
func (n *Note) AddTo(reg *bson.Registry) {
	reg.RegisterTypeEncoder(tNote, n)
	for i := range recent {
		if k := recent[i].Load(); k != nil && k.reg == reg {
			recent[i].CompareAndSwap(k, nil)
		}
	}
}

// known has the Note of a registry, or nil, and the plans of the Note. The look-up in the registry takes as long as encoding a
// few fields, and following the Note to its plans takes a part of that.
type known struct {
	reg   *bson.Registry
	note  *Note
	plans *structcodec.Codec
}

// recent holds the registries whose Notes were last asked for. Most programs have one or two.
var (
	recent [4]atomic.Pointer[known]
	oldest atomic.Uint32 // counts what was stored in recent
)

// Of returns the Note of reg, nil if package bsoncodec did not build it.
func Of(reg *bson.Registry) *Note { return of(reg).note }

// PlansOf returns the Plans of the Note of reg, nil if there are none.
func PlansOf(reg *bson.Registry) *structcodec.Codec { return of(reg).plans }

func of(reg *bson.Registry) *known {
	for i := range recent {
		if k := recent[i].Load(); k != nil && k.reg == reg {
			return k
		}
	}
	k := &known{reg: reg}
	enc, _ := reg.LookupEncoder(tNote) // that of structs if there is no Note
	k.note, _ = enc.(*Note)
	if k.note != nil {
		k.plans = k.note.Plans
		if k.note.Stage != Done { // its Plans may come later
			return k
		}
	}
	recent[oldest.Add(1)%uint32(len(recent))].Store(k)
	return k
}

// MarshalDocument returns what the method MarshalBSON of m returns. The driver calls it for a whole document without asking
// the registry of ec, which can refuse what the method loses.
func MarshalDocument(ec bson.EncodeContext, m bson.Marshaler) ([]byte, error) {
	if r := rulesIn(ec); r != nil {
		return r.MarshalDocument(ec, m)
	}
	return m.MarshalBSON()
}

// MarshalValue does for the method MarshalBSONValue, which the driver calls for an update, what [MarshalDocument] does.
func MarshalValue(ec bson.EncodeContext, m bson.ValueMarshaler) (byte, []byte, error) {
	if r := rulesIn(ec); r != nil {
		return r.MarshalValue(ec, m)
	}
	return m.MarshalBSONValue()
}

// rulesIn returns the Rules of the registry of ec, nil if it has none.
func rulesIn(ec bson.EncodeContext) Rules {
	if ec.Registry == nil {
		return nil
	}
	n := Of(ec.Registry)
	if n == nil {
		return nil
	}
	return n.Rules
}
