package bsoncodec

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/built"
	"github.com/bsonids/bsonids/internal/driver"
)

// Marshal returns v as a BSON document, encoded with reg. It is [bson.Marshal] with a registry, and
// with the options of a client if opts has them; more than one Options is an error. A codec that is
// registered for a struct type after its first use has no effect.
//
// Marshal returns the errors of the codecs, and an error that wraps [bson.ErrNilRegistry] if reg is nil. It
// is an error if an encoder of the caller's does not write exactly one document. If reg does not have the
// codecs of this package, and writes a value of kind [16]byte as binary subtype 0 because it has no codec
// for its type, the error is an [*UnregisteredTypeError].
func Marshal(reg *bson.Registry, v any, opts ...Options) ([]byte, error) {
	ec := bson.EncodeContext{Registry: reg}
	if reg == nil || len(opts) > 0 { // the context of no options is not worth a call
		with, err := encodeContextOf(reg, opts)
		if err != nil {
			return nil, err
		}
		ec = with
	}
	if c := built.PlansOf(reg); c != nil {
		if doc, planned, err := marshalPlanned(c, &ec, v); planned {
			return doc, err
		}
	}
	b, doc, err := driver.WriteDocument(func(vw bson.ValueWriter) error { return encodeDocument(ec, vw, v) })
	if err != nil {
		return nil, encodeError(v, err)
	}
	defer b.Release()
	if err := errForeign(reg, v, doc); err != nil {
		return nil, err
	}
	return bytes.Clone(doc), nil
}

// errForeign returns the error of a registry without the codecs of this package that wrote a value of
// kind [16]byte in v as subtype 0 into what it encoded, or nil.
func errForeign(reg *bson.Registry, v any, encoded []byte) error {
	if !bytes.Contains(encoded, octetsOfSubtype0) {
		return nil
	}
	if rulesOf(reg) != nil {
		return nil
	}
	var t reflect.Type
	s := search{reg: reg, values: maxSearched, match: func(v reflect.Value) bool {
		if t = v.Type(); !isOctets(t) {
			return false
		}
		return driver.HasOwnEncoder(reg, t)
	}}
	path, found := s.find(reflect.ValueOf(v))
	if !found {
		return nil
	}
	return &UnregisteredTypeError{Type: t, Path: strings.Join(path, "."), reason: "the registry has no codecs for UUIDs and " +
		"writes binary subtype 0: make it with NewRegistry, with a RegistryBuilder or with clientopt.NewClientRegistry"}
}

// encodeDocument does what the Encode method of the driver's Encoder does.
func encodeDocument(ec bson.EncodeContext, vw bson.ValueWriter, v any) error {
	if m, ok := v.(bson.Marshaler); ok {
		doc, err := built.MarshalDocument(ec, m)
		if err != nil {
			return err
		}
		return driver.Encoder(tRaw).EncodeValue(ec, vw, reflect.ValueOf(bson.Raw(doc)))
	}
	enc, err := ec.LookupEncoder(reflect.TypeOf(v))
	if err != nil {
		return err
	}
	return enc.EncodeValue(ec, vw, reflect.ValueOf(v))
}

func encodeError(v any, err error) error {
	if err == driver.ErrNotOneDocument {
		return fmt.Errorf("bsoncodec: cannot encode %T: %w", v, err)
	}
	return err
}

// Unmarshal decodes the BSON document data with reg into v, a non-nil pointer or map. It is
// [bson.Unmarshal] with a registry, and with the options of a client if opts has them; more than
// one Options is an error. A codec that is registered for a struct type after its first use has no
// effect.
//
// Unmarshal of Cursor.Current is faster than the Decode and All methods of a mongo.Cursor, which read
// from a stream. Pass it the BSONOptions of the client, if it has any.
//
// Unmarshal returns the errors of the codecs, one that wraps [bson.ErrNilRegistry] if reg is nil, one that
// wraps [bson.ErrDecodeToNil] if v is nil, and one if the first four bytes of data are not its length.
// Malformed data is an error, unless the malformed part is in a value that v has no place for. (The
// driver's function, of version 2.9.3, does not return if it skips a value of negative length.) After an
// error v can hold values of the part of data before it.
func Unmarshal(reg *bson.Registry, data []byte, v any, opts ...Options) error {
	var dc *bson.DecodeContext
	if reg == nil || len(opts) > 0 { // the context of no options is not worth a call
		with, err := decodeContextOf(reg, opts)
		if err != nil {
			return err
		}
		dc = &with
	}
	if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) != uint64(len(data)) {
		return fmt.Errorf("bsoncodec: invalid document length: the document has %d bytes and says otherwise", len(data))
	}
	if planned, err := readPlanned(reg, dc, data, v); planned {
		if err != nil {
			err = withWayOut(err)
		}
		return err
	}
	o, _ := optionsOf(opts) // decodeContextOf returned its error
	v, err := pastUnmarshaler(reg, v)
	if err != nil {
		return err
	}
	switch target := v.(type) {
	case bson.Unmarshaler: // comes before the registry, as in the driver's Decoder
		if p := reflect.ValueOf(v); p.Kind() != reflect.Pointer || !p.IsNil() {
			if err := errUnmarshaler(reg, target, o); err != nil {
				return err
			}
			return target.UnmarshalBSON(bytes.Clone(data))
		}
	case *any:
		if target != nil && !sameAtTheTop(reg) {
			return o.decodeAtTheTop(reg, data, v)
		}
	default:
		if v != nil && seesTheTop(reflect.TypeOf(v)) {
			return o.decodeAtTheTop(reg, data, v)
		}
	}
	if refusedInside(reg, v) { // a RawValue is inside a document
		return withWayOut(o.decodeAtTheTop(reg, data, v))
	}
	if dc == nil {
		dc = &bson.DecodeContext{Registry: reg}
	}
	return decodeValue(*dc, bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: data}, v)
}

// pastUnmarshaler returns v, or a pointer to it if its method UnmarshalBSON is not to be called because reg has its type as
// a document: the driver calls the method of what it is given, and a pointer to a pointer has none.
func pastUnmarshaler(reg *bson.Registry, v any) (any, error) {
	if _, ok := v.(bson.Unmarshaler); !ok {
		return v, nil
	}
	rules := rulesOf(reg)
	if rules == nil {
		return v, nil
	}
	target := reflect.ValueOf(v)
	switch _, ok := rules.document(target); {
	case !ok:
		return v, nil
	case target.Kind() != reflect.Pointer:
		return nil, errNoPointer(v)
	}
	p := reflect.New(target.Type())
	p.Elem().Set(target)
	return p.Interface(), nil
}

// errUnmarshaler returns the error of decoding a whole document into v, whose method UnmarshalBSON the driver calls without
// asking the registry reg, nil if there is none.
func errUnmarshaler(reg *bson.Registry, v bson.Unmarshaler, o Options) error {
	rules, t := rulesOf(reg), methodTypeOf(reflect.ValueOf(v))
	if rules == nil || t == nil {
		return nil
	}
	return rules.method(t, method{decode: true, whole: true}).of(func() bool { return o.UseJSONStructTags })
}

// refusedInside reports whether reg refuses to decode into what v points to inside a document, and not as a whole one.
func refusedInside(reg *bson.Registry, v any) bool {
	t := reflect.TypeOf(v)
	for depth := 0; t != nil && t.Kind() == reflect.Pointer && depth < maxPointers; depth++ {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return false
	}
	rules := rulesOf(reg)
	return rules != nil && rules.of(t, true).refused
}

// A registry has one [built.Note], of which the rules are the typeRules.

// rulesOf returns the rules of reg, nil if no builder was applied to it.
func rulesOf(reg *bson.Registry) *typeRules {
	n := built.Of(reg)
	if n == nil {
		return nil
	}
	r, _ := n.Rules.(*typeRules)
	return r
}

// decodeAtTheTop decodes data into v from a stream, in which a document has no BSON type.
func (o Options) decodeAtTheTop(reg *bson.Registry, data []byte, v any) error {
	if _, beyond := driver.Skips(bson.TypeEmbeddedDocument, data); beyond > driver.MaxBeyond {
		return errMalformed // the driver allocates what a length in a stream says
	}
	return driver.Options(o).NewDecoder(reg, bson.NewDocumentReader(bytes.NewReader(data))).Decode(v)
}

// seesTheTop reports whether a target of type t, or the error for it, shows the BSON type of what is decoded: the driver
// gives a whole document none, and the reader that is made from a RawValue gives it that of an embedded document.
func seesTheTop(t reflect.Type) bool {
	for ; t.Kind() == reflect.Pointer; t = t.Elem() {
		if t.Implements(tValueUnmarshaler) {
			return true
		}
	}
	switch t.Kind() {
	case reflect.Struct:
		return t.PkgPath() == tRawValue.PkgPath() || t == tTime || t.Implements(tValueUnmarshaler)
	case reflect.Map, reflect.Interface:
		return t.Implements(tValueUnmarshaler)
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8 && t != tRaw || t.Implements(tValueUnmarshaler)
	default:
		return true
	}
}

// MarshalExtJSON returns v as an Extended JSON document, encoded with reg. It is
// [bson.MarshalExtJSON] with a registry, and with the options of a client if opts has them. Errors
// are those of [Marshal].
func MarshalExtJSON(reg *bson.Registry, v any, canonical, escapeHTML bool, opts ...Options) ([]byte, error) {
	ec, err := encodeContextOf(reg, opts)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	vw := bson.NewExtJSONValueWriter(&buf, canonical, escapeHTML)
	if err := encodeDocument(ec, vw, v); err != nil {
		return nil, err
	}
	if bytes.Contains(buf.Bytes(), []byte(`"subType":"00"`)) {
		if err := errForeign(reg, v, octetsOfSubtype0); err != nil {
			return nil, err
		}
	}
	doc := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(doc) == 0 {
		return nil, encodeError(v, driver.ErrNotOneDocument)
	}
	return doc, nil
}

// UnmarshalExtJSON decodes the Extended JSON document data with reg into v, a non-nil pointer or
// map. A UUID may be written as $uuid or as $binary. It is [bson.UnmarshalExtJSON] with a registry,
// and with the options of a client if opts has them; more than one Options is an error.
//
// UnmarshalExtJSON returns the errors of the parser and of the codecs, one that wraps [bson.ErrNilRegistry]
// if reg is nil, and one that wraps [bson.ErrDecodeToNil] if v is nil. Malformed text is always an error.
// (The driver's function, of version 2.9.3, does not return if it skips an object or an array that is
// malformed or does not end.)
func UnmarshalExtJSON(reg *bson.Registry, data []byte, canonical bool, v any, opts ...Options) error {
	o, err := optionsOf(opts)
	if err != nil {
		return err
	}
	if reg == nil {
		return errNilRegistry("decode")
	}
	vr, err := bson.NewExtJSONValueReader(bytes.NewReader(data), canonical)
	if err != nil {
		return err
	}
	if !json.Valid(data) {
		// The driver's parser accepts some of it, such as text behind the document. A Raw has every
		// field, so that nothing is skipped.
		if err := bson.UnmarshalExtJSON(data, canonical, new(bson.Raw)); err != nil {
			return err
		}
	}
	if v, err = pastUnmarshaler(reg, v); err != nil {
		return err
	}
	if u, ok := v.(bson.Unmarshaler); ok {
		if err := errUnmarshaler(reg, u, o); err != nil {
			return err
		}
	}
	return withWayOut(driver.Options(o).NewDecoder(reg, vr).Decode(v))
}

// MarshalValue returns v as one BSON value, encoded with reg, for client-side encryption and
// hand-made commands. A nil v is null. It is [bson.MarshalValue] with a registry, and with the
// options of a client if opts has them. Errors are those of [Marshal].
func MarshalValue(reg *bson.Registry, v any, opts ...Options) (bson.RawValue, error) {
	ec, err := encodeContextOf(reg, opts)
	if err != nil {
		return bson.RawValue{}, err
	}
	if c := built.PlansOf(reg); c != nil {
		if rv, planned, err := marshalPlannedValue(c, ec, v); planned {
			return rv, err
		}
	}
	b, doc, err := driver.WriteDocument(func(vw bson.ValueWriter) error {
		// The registry may have another encoder for bson.D.
		return driver.Encoder(tD).EncodeValue(ec, vw, reflect.ValueOf(bson.D{{Value: v}}))
	})
	if err != nil {
		return bson.RawValue{}, withPath(ec, reflect.ValueOf(v), encodeError(v, err))
	}
	defer b.Release()
	if err := errForeign(reg, v, doc); err != nil {
		return bson.RawValue{}, err
	}
	// int32 length, type, empty key, value, end
	return bson.RawValue{Type: bson.Type(doc[4]), Value: bytes.Clone(doc[6 : len(doc)-1])}, nil
}

// UnmarshalValue decodes the BSON value rv with reg into v, a non-nil pointer or map. It is
// [bson.UnmarshalValue] with a registry, and with the options of a client if opts has them; more
// than one Options is an error. It returns the errors of the codecs, one that wraps [bson.ErrNilRegistry]
// if reg is nil, and one that wraps [bson.ErrDecodeToNil] if v is nil.
func UnmarshalValue(reg *bson.Registry, rv bson.RawValue, v any, opts ...Options) error {
	dc, err := decodeContextOf(reg, opts)
	if err != nil {
		return err
	}
	if p := reflect.ValueOf(v); p.Kind() == reflect.Pointer && !p.IsNil() {
		if c := built.PlansOf(reg); c != nil {
			if planned, err := c.ReadValue(&dc, rv.Type, rv.Value, v); planned {
				return withWayOut(err)
			}
		}
	}
	return decodeValue(dc, rv, v)
}

func decodeValue(dc bson.DecodeContext, rv bson.RawValue, v any) error {
	target := reflect.ValueOf(v)
	switch target.Kind() {
	case reflect.Pointer:
		if target.IsNil() {
			return errDecodeToNil
		}
	case reflect.Map:
		if target.IsNil() {
			return errDecodeToNil
		}
		p := reflect.New(target.Type())
		p.Elem().Set(target)
		v = p.Interface()
	case reflect.Invalid:
		return errDecodeToNil
	default:
		return errNoPointer(v)
	}
	if back, beyond := driver.Skips(rv.Type, rv.Value); back {
		if beyond > 0 {
			return errMalformed
		}
		return withWayOut(decodeStream(dc, rv, v))
	}
	return withWayOut(rv.UnmarshalWithContext(&dc, v))
}

// decodeStream decodes rv into v, a pointer, from a stream: the driver's reader of streams does not go back in it.
func decodeStream(dc bson.DecodeContext, rv bson.RawValue, v any) error {
	doc := append(make([]byte, 4), byte(rv.Type), 0)
	doc = append(append(doc, rv.Value...), 0)
	putLength(doc, 0)
	// The document and its element are there.
	dr, _ := bson.NewDocumentReader(bytes.NewReader(doc)).ReadDocument()
	_, vr, _ := dr.ReadElement()
	target := reflect.ValueOf(v).Elem()
	dec, err := dc.LookupDecoder(target.Type())
	if err != nil {
		return err
	}
	return dec.DecodeValue(dc, vr, target)
}

var errMalformed = errors.New("bsoncodec: the document is malformed: a length in it is beyond its end")

// DecodeNative encodes v with reg and decodes the result into an any, which it returns. A [bson.Binary]
// that is a UUID in the representation of reg becomes a native UUID. It is for the UpsertedID of an
// update, which the driver returns as a bson.Binary whatever the registry is: DecodeNative(reg,
// result.UpsertedID) is of the type that InsertedID has. Errors are those of [Marshal] and [Unmarshal].
func DecodeNative(reg *bson.Registry, v any, opts ...Options) (any, error) {
	rv, err := MarshalValue(reg, v, opts...)
	if err != nil {
		return nil, err
	}
	var native any
	if err := UnmarshalValue(reg, rv, &native, opts...); err != nil {
		return nil, err
	}
	return native, nil
}

func errNoPointer(v any) error {
	return fmt.Errorf("bsoncodec: cannot decode into a %T: it must be a pointer or a map", v)
}

var errDecodeToNil = fmt.Errorf("bsoncodec: %w", bson.ErrDecodeToNil)
