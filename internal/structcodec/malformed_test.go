package structcodec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	assumed "github.com/bsonids/bsonids/internal/driver"
)

// plainTree has no code of a caller in it, so that its documents are checked while they are decoded.
type plainTree struct {
	A     int32
	Names []string
	Sub   *plainTree
	Each  []struct {
		N int64
		P *float64
	}
	Map  map[string]int32
	Pair [2]int32
	Text string
}

// ringA and ringB hold each other, and a hook is in one of them.
type ringA struct {
	N int32
	B *ringB
	M map[string]ringB
}

type ringB struct {
	N int32
	A *ringA
	S []ringA
	X countingHook
}

// countingHook counts the calls of its hook.
type countingHook int

var hookCalls int

func (h *countingHook) UnmarshalBSONValue(_ byte, data []byte) error {
	hookCalls++
	*h += countingHook(len(data))
	return nil
}

// damaged calls f with doc, with documents that differ from it in any one byte, and with every beginning of it.
func damaged(doc []byte, f func(doc []byte)) {
	f(doc)
	for i := 4; i < len(doc); i++ {
		// Not 0x80 and above: the driver does not come back from some negative lengths.
		for _, b := range []byte{0, 1, 2, 3, 4, 5, 6, 8, 0x0a, 0x10, 0x12, 0x13, 'z', 0x7f, (doc[i] - 1) & 0x7f, (doc[i] + 1) & 0x7f} {
			other := bytes.Clone(doc)
			other[i] = b
			f(other)
		}
		short := append(bytes.Clone(doc[:i]), 0)
		binary.LittleEndian.PutUint32(short, uint32(len(short)))
		f(short)
	}
}

// The error and the target of a malformed document, and the calls of hooks, are those of the driver.
func TestMalformedDocuments(t *testing.T) {
	sub := bson.D{
		{Key: "a", Value: int32(2)}, {Key: "each", Value: bson.A{bson.D{{Key: "n", Value: int64(1)}, {Key: "p", Value: 1.5}}}},
		{Key: "pair", Value: bson.A{int32(1), int32(2)}},
	}
	tree := doc(t, bson.E{Key: "a", Value: int32(1)}, bson.E{Key: "names", Value: bson.A{"x", "yz"}}, bson.E{Key: "sub", Value: sub},
		bson.E{Key: "other", Value: bson.D{{Key: "q", Value: bson.A{"z"}}}}, bson.E{Key: "map", Value: bson.D{{Key: "k", Value: int32(3)}}},
		bson.E{Key: "text", Value: "end"})
	inner := bson.D{{Key: "n", Value: int32(1)}, {Key: "x", Value: int32(2)}, {Key: "a", Value: bson.D{{Key: "n", Value: int32(3)}}}}
	ring := doc(t, bson.E{Key: "n", Value: int32(1)}, bson.E{Key: "b", Value: inner}, bson.E{Key: "a", Value: bson.D{{Key: "b", Value: inner}}},
		bson.E{Key: "s", Value: bson.A{bson.D{{Key: "m", Value: bson.D{{Key: "k", Value: inner}}}}}}, bson.E{Key: "x", Value: int32(4)})
	for _, c := range []struct {
		doc    []byte
		values []any // in the order of their first use
	}{
		{tree, []any{plainTree{}, plainTree{A: 9, Names: []string{"n", "o", "p"}, Sub: &plainTree{Text: "kept"}}}},
		{ring, []any{ringA{}, ringB{}}},
		{ring, []any{ringB{}, ringA{}}},
		{ring, []any{struct{ S []ringA }{}, struct{ B *ringB }{}, ringA{}}},
	} {
		driver, plans := registries(func(*bson.Registry) {})
		for _, v := range c.values {
			damaged(c.doc, func(doc []byte) {
				decode := func(reg *bson.Registry) (target reflect.Value, calls int, err error) {
					target = reflect.New(reflect.TypeOf(v))
					if p, ok := v.(plainTree); ok && p.Sub != nil {
						p.Names = append([]string(nil), p.Names...)
						p.Sub = &plainTree{Text: p.Sub.Text}
						v = p
					}
					target.Elem().Set(reflect.ValueOf(v))
					hookCalls = 0
					err = func() (err error) {
						defer caught(&err)
						return bsoncodec.Unmarshal(reg, doc, target.Interface())
					}()
					return target, hookCalls, err
				}
				want, wantCalls, wantErr := decode(driver)
				got, gotCalls, gotErr := decode(plans)
				if !sameError(wantErr, gotErr) || !same(want, got) || wantCalls != gotCalls {
					t.Errorf("%T from %x:\n got %s, %d calls and error %v\nwant %s, %d calls and error %v",
						v, doc, dump(got), gotCalls, gotErr, dump(want), wantCalls, wantErr)
				}
			})
		}
	}
}

// The document from which the driver reads an _id after an insert, and others with few fields, in memory and in a stream.
func TestMalformedDocumentsOfFewFields(t *testing.T) {
	uuid := bson.Binary{Subtype: 4, Data: make([]byte, 16)}
	nested := bson.D{{Key: "_id", Value: bson.A{"x", bson.D{{Key: "y", Value: int32(1)}}}}, {Key: "b", Value: 1.5}}
	other := bson.E{Key: "other", Value: nested}
	docs := [][]byte{
		doc(t, bson.E{Key: "_id", Value: uuid}, other, bson.E{Key: "text", Value: "end"}),
		doc(t, other, bson.E{Key: "_id", Value: nested}, bson.E{Key: "", Value: "no key"}),
		doc(t, bson.E{Key: "_ID", Value: int32(1)}, other, bson.E{Key: "_id", Value: "twice"}, bson.E{Key: "h", Value: int32(1)}),
		doc(t, bson.E{Key: "h", Value: nested}, bson.E{Key: "_id", Value: int32(1)}, bson.E{Key: "_id", Value: int32(2)},
			bson.E{Key: "_id", Value: int32(3)}, bson.E{Key: "H", Value: int32(4)}, bson.E{Key: "_id", Value: int32(5)}),
	}
	driver, plans := registries(func(*bson.Registry) {})
	for _, v := range []any{
		struct {
			ID any `bson:"_id"`
		}{},
		struct {
			ID any `bson:"_id"`
		}{"before"},
		struct {
			H  countingHook
			ID any `bson:"_id"`
		}{H: 3},
		struct {
			H      countingHook
			ID     *any `bson:"_id"`
			Ärger  any
			Number any `bson:"Text"`
		}{},
	} {
		for name, read := range map[string]func(*bson.Registry, []byte, any) error{
			"Unmarshal": func(reg *bson.Registry, doc []byte, v any) error { return bsoncodec.Unmarshal(reg, doc, v) },
			"a stream": func(reg *bson.Registry, doc []byte, v any) error {
				return streamDecoder(reg, bytes.NewReader(doc)).Decode(v)
			},
			"zeroed": func(reg *bson.Registry, doc []byte, v any) error {
				dec := streamDecoder(reg, bytes.NewBuffer(doc))
				dec.ZeroStructs()
				return dec.Decode(v)
			},
		} {
			for _, raw := range docs {
				damaged(raw, func(doc []byte) {
					if _, beyond := assumed.Skips(bson.TypeEmbeddedDocument, doc); beyond > assumed.MaxBeyond && name != "Unmarshal" {
						return // the driver allocates what a length says
					}
					decode := func(reg *bson.Registry) (target reflect.Value, calls int, err error) {
						target = reflect.New(reflect.TypeOf(v))
						target.Elem().Set(reflect.ValueOf(v))
						hookCalls = 0
						err = func() (err error) {
							defer caught(&err)
							return read(reg, doc, target.Interface())
						}()
						return target, hookCalls, err
					}
					want, wantCalls, wantErr := decode(driver)
					got, gotCalls, gotErr := decode(plans)
					ended := name != "Unmarshal" && errors.Is(wantErr, io.EOF) && errors.Is(gotErr, io.ErrUnexpectedEOF) // which is not the end of a stream
					if !ended && !sameError(wantErr, gotErr) || !same(want, got) || wantCalls != gotCalls {
						t.Errorf("%s, %T from %x:\n got %s, %d calls and error %v\nwant %s, %d calls and error %v",
							name, v, doc, dump(got), gotCalls, gotErr, dump(want), wantCalls, wantErr)
					}
				})
			}
		}
	}
}
