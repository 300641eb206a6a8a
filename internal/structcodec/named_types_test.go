package structcodec_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"time"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// Types that hold themselves.
type (
	list       []list
	directory  map[string]directory
	nested     []map[string][1]*nested
	endless    *endlessToo
	endlessToo *endless
)

type (
	namedM     bson.M
	namedA     bson.A
	anything   any
	namedBool  bool
	namedByte  byte
	namedTime  time.Time
	namedUUIDs []uuid.UUID
	box[T any] struct {
		V  T
		Vs []T `bson:",omitempty"`
		M  map[string]T
	}
	inlined[T any] struct {
		Name int
		ID   *string      `bson:"_id,omitempty"`
		M    map[string]T `bson:",inline"`
	}
	inlinedTwice struct {
		In   inlined[int] `bson:",inline"` // its map is ignored
		X    string
		Else map[string]inlined[*tree] `bson:"ignored,inline"`
	}
	zeroMap    map[string]int
	zeroSlice  []int
	keyOwnText string
	keyStruct  struct{ N int }
	keyPointer int
)

func (m zeroMap) IsZero() bool                     { return len(m) < 2 }
func (s *zeroSlice) IsZero() bool                  { return true }
func (k keyOwnText) MarshalKey() (string, error)   { return "own" + string(k), nil }
func (k *keyOwnText) UnmarshalText(b []byte) error { *k = keyOwnText("text" + string(b)); return nil }
func (k keyStruct) MarshalText() ([]byte, error)   { return fmt.Append(nil, k.N), nil }
func (k *keyStruct) UnmarshalText(b []byte) error {
	if len(b) == 1 {
		return errCalled
	}
	k.N += len(b)
	return nil
}
func (k *keyPointer) MarshalText() ([]byte, error) { return fmt.Append(nil, "p", int(*k)), nil }
func (k *keyPointer) UnmarshalKey(b string) error  { *k += keyPointer(len(b)); return nil }

// sizedBytes has a codec that takes part in plans and obeys minsize.
type sizedOctets int64

type sizedCodec struct{}

func (sizedCodec) EncodeValue(ec bson.EncodeContext, vw bson.ValueWriter, val reflect.Value) error {
	enc, err := ec.LookupEncoder(reflect.TypeFor[int64]())
	if err != nil {
		return err
	}
	return enc.EncodeValue(ec, vw, reflect.ValueOf(val.Int()))
}

func (sizedCodec) AppendValue(dst []byte, v reflect.Value) (bson.Type, []byte, error) {
	return bson.TypeInt64, binary.LittleEndian.AppendUint64(dst, uint64(v.Int())), nil
}

func (sizedCodec) ReadValue(t bson.Type, data []byte, v reflect.Value) error {
	return bsoncodec.ErrNotPlain
}
