package structcodec_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

var scalars = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](),
	reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](),
	reflect.TypeFor[uint16](), reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[float32](),
	reflect.TypeFor[float64](), reflect.TypeFor[string](), reflect.TypeFor[[]byte](), reflect.TypeFor[time.Time](),
	reflect.TypeFor[any](), reflect.TypeFor[any](), reflect.TypeFor[bson.ObjectID](), reflect.TypeFor[bson.Decimal128](),
	reflect.TypeFor[bson.Binary](), reflect.TypeFor[bson.DateTime](), reflect.TypeFor[bson.Null](),
	reflect.TypeFor[bson.Undefined](), reflect.TypeFor[bson.MinKey](), reflect.TypeFor[bson.MaxKey](),
	reflect.TypeFor[bson.Timestamp](), reflect.TypeFor[bson.JavaScript](), reflect.TypeFor[bson.Symbol](),
	reflect.TypeFor[bson.Regex](), reflect.TypeFor[bson.DBPointer](), reflect.TypeFor[bson.CodeWithScope](),
	reflect.TypeFor[bson.Raw](), reflect.TypeFor[bson.RawValue](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](),
	reflect.TypeFor[bson.A](), reflect.TypeFor[bson.Vector](), reflect.TypeFor[url.URL](), reflect.TypeFor[json.Number](),
	reflect.TypeFor[named](), reflect.TypeFor[namedText](), reflect.TypeFor[namedBytes](), reflect.TypeFor[namedFloat](),
	reflect.TypeFor[hookValue](), reflect.TypeFor[hookPointer](), reflect.TypeFor[hookDocument](),
	reflect.TypeFor[zeroer](), reflect.TypeFor[zeroerPointer](), reflect.TypeFor[called](), reflect.TypeFor[failing](),
	reflect.TypeFor[octets](), reflect.TypeFor[[16]byte](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[namedD](),
	reflect.TypeFor[noCodec](), reflect.TypeFor[uuid.UUID](), reflect.TypeFor[uuid.UUID](), reflect.TypeFor[namedUUID](),
	reflect.TypeFor[uuid.NullUUID](), reflect.TypeFor[[]uuid.UUID](), reflect.TypeFor[*uuid.UUID](),
	reflect.TypeFor[uuidrep.JavaLegacyUUID](),
	reflect.TypeFor[list](), reflect.TypeFor[directory](), reflect.TypeFor[nested](),
	reflect.TypeFor[bson.E](), reflect.TypeFor[[]bson.E](), reflect.TypeFor[[2]bson.E](), reflect.TypeFor[[3]byte](),
	reflect.TypeFor[[0]byte](), reflect.TypeFor[[]named](), reflect.TypeFor[namedM](), reflect.TypeFor[namedA](),
	reflect.TypeFor[anything](), reflect.TypeFor[uintptr](), reflect.TypeFor[json.RawMessage](),
	reflect.TypeFor[zeroMap](), reflect.TypeFor[zeroSlice](), reflect.TypeFor[*zeroMap](), reflect.TypeFor[namedBool](),
	reflect.TypeFor[bson.ValueMarshaler](), reflect.TypeFor[namedByte](), reflect.TypeFor[[]namedByte](),
	reflect.TypeFor[[16]namedByte](), reflect.TypeFor[keyOwnText](), reflect.TypeFor[**int](), reflect.TypeFor[**uuid.UUID](),
	reflect.TypeFor[[][2]uuid.UUID](), reflect.TypeFor[namedTime](), reflect.TypeFor[box[any]](), reflect.TypeFor[box[uuid.UUID]](),
	reflect.TypeFor[box[*box[int]]](), reflect.TypeFor[sizedOctets](), reflect.TypeFor[error](), reflect.TypeFor[*any](),
	reflect.TypeFor[*fmt.Stringer](), reflect.TypeFor[[]any](), reflect.TypeFor[[2]any](), reflect.TypeFor[[]fmt.Stringer](),
	reflect.TypeFor[map[string]fmt.Stringer](), reflect.TypeFor[time.Duration](), reflect.TypeFor[namedUUIDs](),
	reflect.TypeFor[small](), reflect.TypeFor[struct{ F small }](), reflect.TypeFor[map[string]struct{ F small }](),
	reflect.TypeFor[funcUUID](), reflect.TypeFor[privateUUID](), reflect.TypeFor[maybeUUID](), reflect.TypeFor[[]maybeUUID](), reflect.TypeFor[lostUUID](),
}

var mapKeys = []reflect.Type{
	reflect.TypeFor[string](), reflect.TypeFor[string](), reflect.TypeFor[namedText](), reflect.TypeFor[int](),
	reflect.TypeFor[uint8](), reflect.TypeFor[keyText](), reflect.TypeFor[keyOwn](), reflect.TypeFor[bool](),
	reflect.TypeFor[uuid.UUID](), reflect.TypeFor[namedUUID](), reflect.TypeFor[funcUUID](), reflect.TypeFor[privateUUID](),
	reflect.TypeFor[keyOwnText](), reflect.TypeFor[int8](), reflect.TypeFor[uint64](), reflect.TypeFor[float64](),
	reflect.TypeFor[any](), reflect.TypeFor[fmt.Stringer](), reflect.TypeFor[*keyText](), reflect.TypeFor[keyStruct](),
	reflect.TypeFor[[16]byte](), reflect.TypeFor[named](), reflect.TypeFor[uintptr](), reflect.TypeFor[keyPointer](),
}

type (
	named      int32
	namedText  string
	namedBytes []byte
	namedFloat float32
	namedD     bson.D
	namedUUID  [16]byte
	funcUUID   struct {
		prefix string
		id     uuid.UUID
	}
	privateUUID struct {
		id   uuid.UUID
		Note string `bson:"-"`
	}
	maybeUUID struct {
		Known bool
		id    uuid.UUID
	}
	lostUUID struct{ ids []uuid.UUID }
	noCodec  *struct{ C complex128 } // nothing encodes its field
)

func (named) String() string { return "named" }

// hooks counts the calls of hooks. They are called once more if one of them returns bytes that are not a value.
var (
	hooks       int
	brokenHooks bool
)

// hookValue has hooks by value.
type hookValue struct{ N int32 }

func (h hookValue) MarshalBSONValue() (byte, []byte, error) {
	hooks++
	switch h.N {
	case 255:
		return 0, nil, errors.New("hookValue: 255")
	case 256:
		brokenHooks = true
		return byte(bson.TypeString), []byte("not a string"), nil
	}
	t, data, err := bson.MarshalValue(h.N)
	return byte(t), data, err
}

func (h *hookValue) UnmarshalBSONValue(t byte, data []byte) error {
	hooks++
	return bson.UnmarshalValue(bson.Type(t), data, &h.N)
}

// hookPointer has hooks by pointer: only an addressable value is encoded by them.
type hookPointer struct{ N int64 }

func (h *hookPointer) MarshalBSONValue() (byte, []byte, error) {
	hooks++
	if h == nil {
		return byte(bson.TypeNull), nil, nil
	}
	t, data, err := bson.MarshalValue(fmt.Sprint(h.N))
	return byte(t), data, err
}

func (h *hookPointer) UnmarshalBSONValue(t byte, data []byte) error {
	hooks++
	h.N = int64(len(data))
	return nil
}

// hookDocument has the hooks of documents.
type hookDocument struct{ Text string }

func (h hookDocument) MarshalBSON() ([]byte, error) {
	hooks++
	if h.Text == "name" {
		return nil, errors.New("hookDocument: name")
	}
	return bson.Marshal(bson.D{{Key: "t", Value: h.Text}})
}

func (h *hookDocument) UnmarshalBSON(data []byte) error {
	hooks++
	h.Text = fmt.Sprint(len(data))
	return nil
}

type zeroer struct{ N int }

func (z zeroer) IsZero() bool { return z.N == 1 }

type zeroerPointer struct{ N int }

func (z *zeroerPointer) IsZero() bool { return z.N == 1 }

// called has a codec of the caller's. It is wrong for some values.
type called int

var errCalled = errors.New("called: minus one")

func encodeCalled(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	hooks++
	switch val.Int() {
	case -1:
		return errCalled
	}
	return vw.WriteString(fmt.Sprint(val.Int()))
}

func decodeCalled(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	hooks++
	switch vr.Type() {
	case bson.TypeString:
		s, err := vr.ReadString()
		if err != nil {
			return err
		}
		val.SetInt(int64(len(s)))
		return nil
	case bson.TypeInt32:
		return errCalled
	}
	val.SetInt(99)
	return vr.Skip()
}

// failing has an encoder that fails, and no decoder of its own.
type failing int8

// bytes has a codec that takes part in plans.
type octets [4]byte

type octetsCodec struct{}

var _ bsoncodec.ValueCodec = octetsCodec{}

func (octetsCodec) EncodeValue(_ bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	o := val.Interface().(octets)
	if o[0] == 5 {
		return errors.New("octets: five")
	}
	return vw.WriteBinaryWithSubtype(o[:], 0x80)
}

func (octetsCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	o := v.Interface().(octets)
	if o[0] == 5 {
		return 0, dst, bsoncodec.ErrNotPlain
	}
	return bson.TypeBinary, append(append(dst, 4, 0, 0, 0, 0x80), o[:]...), nil
}

func (octetsCodec) DecodeValue(_ bson.DecodeContext, vr bson.ValueReader, val reflect.Value) error {
	if vr.Type() == bson.TypeNull {
		val.SetZero()
		return vr.ReadNull()
	}
	data, subtype, err := vr.ReadBinary()
	if err != nil {
		return err
	}
	if len(data) != 4 || subtype != 0x80 {
		return fmt.Errorf("octets: %d of subtype %d", len(data), subtype)
	}
	val.Set(reflect.ValueOf(octets(data)))
	return nil
}

func (octetsCodec) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	if t != bson.TypeBinary || len(data) != 9 || data[4] != 0x80 {
		return bsoncodec.ErrNotPlain
	}
	v.Set(reflect.ValueOf(octets(data[5:])))
	return nil
}

type keyText int16

func (k keyText) MarshalText() ([]byte, error) {
	if k == 255 {
		return nil, errors.New("keyText: 255")
	}
	return fmt.Append(nil, int(k)), nil
}

func (k *keyText) UnmarshalText(text []byte) error {
	_, err := fmt.Sscan(string(text), (*int16)(k))
	return err
}

type keyOwn int16

func (k keyOwn) MarshalKey() (string, error) { return fmt.Sprint("k", int(k)), nil }

func (k *keyOwn) UnmarshalKey(key string) error {
	*k = keyOwn(len(key))
	return nil
}

func registerCallers(reg *bson.Registry) {
	reg.RegisterTypeEncoder(reflect.TypeFor[called](), bson.ValueEncoderFunc(encodeCalled))
	reg.RegisterTypeDecoder(reflect.TypeFor[called](), bson.ValueDecoderFunc(decodeCalled))
	reg.RegisterTypeEncoder(reflect.TypeFor[failing](), bson.ValueEncoderFunc(
		func(bson.EncodeContext, bson.ValueWriter, reflect.Value) error { return errCalled }))
	reg.RegisterTypeEncoder(reflect.TypeFor[octets](), octetsCodec{})
	reg.RegisterTypeEncoder(reflect.TypeFor[sizedOctets](), sizedCodec{})
	reg.RegisterTypeDecoder(reflect.TypeFor[octets](), octetsCodec{})
}

type (
	scalarsOnly struct {
		A int32
		B string `bson:"b,omitempty"`
		C float64
		D bool
		E time.Time `bson:",omitempty"`
	}
	address struct {
		Street, City string
		Zip          *string `bson:"zip,omitempty"`
	}
	Embedded struct {
		A int64 `bson:"a,minsize"`
		X string
	}
	embeds struct {
		Embedded `bson:",inline"`
		A        string
	}
	embedsPointer struct {
		*Embedded `bson:",inline"`
		Deep      *struct {
			Deeper *struct{ Deepest int } `bson:",inline"`
		} `bson:",inline"`
	}
	embedsNamed struct {
		Embedded
		Y int
	}
	pointerThenStruct struct {
		P *struct {
			S struct{ Z int } `bson:",inline"`
		} `bson:",inline"`
	}
	duplicated struct {
		A int `bson:"a"`
		B int `bson:"a"`
	}
	duplicatedInline struct {
		P struct{ X int } `bson:",inline"`
		Q struct{ X int } `bson:",inline"`
	}
	inlineMap struct {
		A int
		M map[string]any `bson:",inline"`
	}
	inlineMapAny struct {
		A any
		M map[string]int `bson:",inline"`
	}
	tree struct {
		Value    int
		Left     *tree `bson:"left,omitempty"`
		Right    *tree
		Children []tree
		ByName   map[string]*tree
	}
	mutualA struct {
		B  *mutualB
		N  int8
		Is []mutualB
	}
	mutualB struct {
		A mutualA2
		S string
	}
	mutualA2 struct{ B *mutualB }
	ids      struct {
		ID    uuid.UUID `bson:"_id,omitempty"`
		P     *uuid.UUID
		S     []uuid.UUID
		N     uuid.NullUUID
		M     map[string]uuid.UUID
		K     map[uuid.UUID]int
		A     [2]uuid.UUID
		J     uuidrep.JavaLegacyUUID
		Named namedUUID
		Any   any
		D     bson.D
		PS    []*uuid.UUID
	}
	mixed struct {
		Any    any
		Nested address
		List   []address
		Ptrs   []*address
		Map    map[string]address
		D      bson.D
		M      bson.M `bson:"m,omitempty"`
		A      bson.A
		Hook   hookValue
		HookP  *hookPointer
		HookPV hookPointer
		Doc    *hookDocument
		Call   called
		Calls  []called
		O      octets
		Os     []octets
		OM     map[string]octets
		OP     *octets
	}
	withTags struct {
		I64   int64   `bson:"i64,minsize,omitempty"`
		U64   uint64  `bson:",minsize"`
		U32   *uint32 `bson:",minsize"`
		In    []int64 `bson:",minsize"`
		F32   float32 `bson:",truncate"`
		I     int     `bson:",truncate"`
		Is    []int   `bson:",truncate"`
		Any   any     `bson:",minsize,truncate"`
		S     address `bson:",minsize,truncate"`
		Z     zeroer  `bson:",omitempty"`
		ZP    zeroerPointer
		ZPP   *zeroerPointer `bson:",omitempty"`
		Arr   [0]int         `bson:",omitempty"`
		Iface fmt.Stringer   `bson:",omitempty"`
		Time  *time.Time     `bson:",omitempty"`
		//lint:ignore U1000 not exported
		hidden int
	}
	noEncoder struct {
		A int
		C chan int
	}
	aroundUUID struct{ uuid.UUID }
	wrappers   struct {
		A string
		V *aroundUUID
		S []aroundUUID
		N *sql.Null[uuid.UUID]
		X any
	}
)

var corpus = []reflect.Type{
	reflect.TypeFor[scalarsOnly](), reflect.TypeFor[address](), reflect.TypeFor[embeds](), reflect.TypeFor[embedsPointer](),
	reflect.TypeFor[embedsNamed](), reflect.TypeFor[duplicated](), reflect.TypeFor[duplicatedInline](),
	reflect.TypeFor[inlineMap](), reflect.TypeFor[inlineMapAny](), reflect.TypeFor[tree](), reflect.TypeFor[ids](), reflect.TypeFor[ids](), reflect.TypeFor[mutualA](),
	reflect.TypeFor[mixed](), reflect.TypeFor[mixed](), reflect.TypeFor[withTags](), reflect.TypeFor[noEncoder](),
	reflect.TypeFor[pointerThenStruct](), reflect.TypeFor[hookDocument](), reflect.TypeFor[struct{}](),
	reflect.TypeFor[inlined[any]](), reflect.TypeFor[inlined[*tree]](), reflect.TypeFor[inlined[hookValue]](), reflect.TypeFor[inlined[called]](),
	reflect.TypeFor[inlined[uuid.UUID]](), reflect.TypeFor[inlined[fmt.Stringer]](), reflect.TypeFor[inlined[*hookPointer]](),
	reflect.TypeFor[wrappers](), reflect.TypeFor[aroundUUID](), reflect.TypeFor[sql.Null[uuid.UUID]](),
	reflect.TypeFor[inlined[[]int8]](), reflect.TypeFor[inlinedTwice](), reflect.TypeFor[inlined[noEncoder]](),
}
