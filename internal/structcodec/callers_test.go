package structcodec_test

import (
	"reflect"

	"go.mongodb.org/mongo-driver/v2/bson"
)

// topTypes are types of whole documents that are not structs.
var topTypes = []reflect.Type{
	reflect.TypeFor[bson.D](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[bson.M](),
	reflect.TypeFor[map[string]any](), reflect.TypeFor[any](), reflect.TypeFor[any](), reflect.TypeFor[namedM](),
	reflect.TypeFor[namedD](), reflect.TypeFor[map[string]string](), reflect.TypeFor[map[string]bson.M](),
	reflect.TypeFor[map[namedText]any](), reflect.TypeFor[map[string]*tree](), reflect.TypeFor[map[string][]ids](),
	reflect.TypeFor[directory](), reflect.TypeFor[zeroMap](), reflect.TypeFor[hookMap](), reflect.TypeFor[hookMapValue](),
	reflect.TypeFor[*bson.D](), reflect.TypeFor[*bson.M](), reflect.TypeFor[*any](), reflect.TypeFor[[]bson.E](),
	reflect.TypeFor[map[string]hookValue](), reflect.TypeFor[map[string]called](), reflect.TypeFor[bson.Raw](),
	reflect.TypeFor[bson.A](), reflect.TypeFor[calledM](),
}

// topType returns the type of a whole document.
func (g *generator) topType() reflect.Type {
	switch g.rng.IntN(8) {
	case 0, 1:
		return corpus[g.rng.IntN(len(corpus))]
	case 2, 3:
		return topTypes[g.rng.IntN(len(topTypes))]
	case 4:
		if g.rng.IntN(3) == 0 {
			return reflect.MapOf(mapKeys[g.rng.IntN(len(mapKeys))], g.typ(3))
		}
	}
	return g.structType(3)
}

// callers returns a function that registers the codecs of a caller, and now and then entries of the type map and codecs
// for documents.
func (g *generator) callers() func(*bson.Registry) {
	register := []func(*bson.Registry){registerCallers}
	if g.rng.IntN(3) == 0 {
		entry := typeMapEntries[g.rng.IntN(len(typeMapEntries))]
		register = append(register, func(reg *bson.Registry) { reg.RegisterTypeMapEntry(entry.t, entry.goType) })
		if g.rng.IntN(4) == 0 {
			other := typeMapEntries[g.rng.IntN(len(typeMapEntries))]
			register = append(register, func(reg *bson.Registry) { reg.RegisterTypeMapEntry(other.t, other.goType) })
		}
	}
	if g.rng.IntN(6) == 0 {
		t := calledDocuments[g.rng.IntN(len(calledDocuments))]
		decodes := g.rng.IntN(3) != 0
		encodes := g.rng.IntN(3) != 0
		register = append(register, func(reg *bson.Registry) {
			if encodes {
				reg.RegisterTypeEncoder(t, bson.ValueEncoderFunc(encodeCalledDocument))
			}
			if decodes {
				reg.RegisterTypeDecoder(t, bson.ValueDecoderFunc(decodeCalledDocument))
			}
		})
	}
	return func(reg *bson.Registry) {
		for _, f := range register {
			f(reg)
		}
	}
}

var typeMapEntries = []struct {
	t      bson.Type
	goType reflect.Type
}{
	{bson.TypeEmbeddedDocument, reflect.TypeFor[bson.M]()},
	{bson.TypeEmbeddedDocument, reflect.TypeFor[map[string]any]()},
	{bson.TypeEmbeddedDocument, reflect.TypeFor[address]()},
	{bson.TypeEmbeddedDocument, reflect.TypeFor[namedM]()},
	{bson.TypeEmbeddedDocument, reflect.TypeFor[bson.Raw]()},
	{bson.TypeEmbeddedDocument, reflect.TypeFor[hookDocument]()},
	{0, reflect.TypeFor[bson.M]()},
	{0, reflect.TypeFor[map[string]any]()},
	{bson.TypeArray, reflect.TypeFor[[]any]()},
	{bson.TypeArray, reflect.TypeFor[[]int32]()},
	{bson.TypeInt32, reflect.TypeFor[int64]()},
	{bson.TypeInt64, reflect.TypeFor[called]()},
	{bson.TypeString, reflect.TypeFor[namedText]()},
	{bson.TypeString, reflect.TypeFor[hookValue]()},
	{bson.TypeDateTime, reflect.TypeFor[namedTime]()},
	{bson.TypeBinary, reflect.TypeFor[octets]()},
	{bson.TypeBinary, reflect.TypeFor[[]byte]()},
	{bson.TypeNull, reflect.TypeFor[bson.Null]()},
	{bson.TypeBoolean, reflect.TypeFor[anything]()},
}

// calledDocuments are the types of documents, and of what they hold, that get codecs of the caller's.
var calledDocuments = []reflect.Type{
	reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[map[string]any](), reflect.TypeFor[any](),
	reflect.TypeFor[bson.A](), reflect.TypeFor[string](), reflect.TypeFor[bson.E](), reflect.TypeFor[*bson.D](),
	reflect.TypeFor[*bson.M](),
}

// encodeCalledDocument writes a document of one element, whatever the value is.
func encodeCalledDocument(_ bson.EncodeContext, vw bson.ValueWriter, _ reflect.Value) error {
	hooks++
	dw, err := vw.WriteDocument()
	if err != nil {
		return err
	}
	vw, err = dw.WriteDocumentElement("called")
	if err != nil {
		return err
	}
	if err := vw.WriteBoolean(true); err != nil {
		return err
	}
	return dw.WriteDocumentEnd()
}

// decodeCalledDocument skips the value. Only an int32 is an error.
func decodeCalledDocument(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	hooks++
	if vr.Type() == bson.TypeInt32 {
		return errCalled
	}
	if val.CanSet() {
		val.SetZero()
	}
	return vr.Skip()
}

// hookMap and hookMapValue are maps with hooks.
type (
	hookMap      map[string]any
	hookMapValue map[string]any
	calledM      bson.M
)

func (m hookMap) MarshalBSON() ([]byte, error) {
	hooks++
	return bson.Marshal(bson.D{{Key: "n", Value: len(m)}})
}

func (m *hookMap) UnmarshalBSON(data []byte) error {
	hooks++
	*m = hookMap{"n": len(data)}
	return nil
}

func (m hookMapValue) MarshalBSONValue() (byte, []byte, error) {
	hooks++
	return byte(bson.TypeEmbeddedDocument), []byte{5, 0, 0, 0, 0}, nil
}

func (m *hookMapValue) UnmarshalBSONValue(t byte, data []byte) error {
	hooks++
	*m = hookMapValue{"t": t}
	return nil
}
