package structcodec_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"runtime"
	"testing"
	"testing/iotest"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/internal/structcodec"
)

type streamed struct {
	A int32
	S string
}

func streamDecoder(reg *bson.Registry, r io.Reader) *bson.Decoder {
	dec := bson.NewDecoder(bson.NewDocumentReader(r))
	dec.SetRegistry(reg)
	return dec
}

// Whatever the reader, two documents and one that is cut are decoded as by the driver. A stream that ends within a
// document, and is not in memory, is exempt from the rule for the last error.
func TestStreams(t *testing.T) {
	var stream bytes.Buffer
	for i, s := range []string{"one", "two", string(make([]byte, 5000)), string(make([]byte, 100_000)), "end"} {
		stream.Write(doc(t, bson.E{Key: "a", Value: i + 1}, bson.E{Key: "s", Value: s}))
	}
	octets := stream.Bytes()
	driver, plans := registries(registerCallers)
	readers := map[string]func([]byte) io.Reader{
		"bytes.Reader": func(b []byte) io.Reader { return bytes.NewReader(b) },
		"bytes.Buffer": func(b []byte) io.Reader { return bytes.NewBuffer(b) },
		"io.Reader":    func(b []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(b)} },
		"one byte":     func(b []byte) io.Reader { return iotest.OneByteReader(bytes.NewReader(b)) },
		"half":         func(b []byte) io.Reader { return iotest.HalfReader(bytes.NewReader(b)) },
		"last error":   func(b []byte) io.Reader { return iotest.DataErrReader(bytes.NewReader(b)) },
	}
	types := []reflect.Type{reflect.TypeFor[streamed](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M](), reflect.TypeFor[any]()}
	for name, reader := range readers {
		for _, cut := range []int{0, 1, 2, 6, 11, 12, 13, 14, 15, 500, 100_020} {
			for _, typ := range types {
				input := octets[:len(octets)-cut]
				want, got := streamDecoder(driver, reader(input)), streamDecoder(plans, reader(input))
				for i := 0; ; i++ {
					a, b := reflect.New(typ), reflect.New(typ)
					wantErr, gotErr := want.Decode(a.Interface()), got.Decode(b.Interface())
					if errors.Is(gotErr, io.ErrUnexpectedEOF) && wantErr != nil && name != "bytes.Reader" && name != "bytes.Buffer" {
						break
					}
					if !same(a, b) || !sameError(wantErr, gotErr) {
						t.Errorf("%s without %d bytes, document %d, %v: got %.100s and error %v, want %.100s and %v",
							name, cut, i, typ, dump(b), gotErr, dump(a), wantErr)
					}
					if wantErr != nil {
						break
					}
				}
			}
		}
	}
}

// A document with a string that starts at its end is not the end of the stream, because another document follows. The
// driver would take that for the string.
func TestStreamGoesOnAfterMalformedDocument(t *testing.T) {
	malformed := []byte("\x0b\x00\x00\x00\x02s\x00\x01\x02\x00\x00")
	input := append(malformed, doc(t, bson.E{Key: "a", Value: 1})...)
	driver, plans := registries(registerCallers)
	for _, typ := range []reflect.Type{reflect.TypeFor[streamed](), reflect.TypeFor[bson.D](), reflect.TypeFor[bson.M]()} {
		for name, r := range map[string]func() io.Reader{
			"bytes.Reader": func() io.Reader { return bytes.NewReader(input) },
			"bytes.Buffer": func() io.Reader { return bytes.NewBuffer(input) },
			"io.Reader":    func() io.Reader { return struct{ io.Reader }{bytes.NewReader(input)} },
		} {
			for of, reg := range map[string]*bson.Registry{"driver": driver, "plans": plans} {
				if err := streamDecoder(reg, r()).Decode(reflect.New(typ).Interface()); !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%s, %s, %v: error %v, want ErrUnexpectedEOF", of, name, typ, err)
				}
			}
		}
	}
}

// A stream cannot make a plan allocate what it claims and does not have.
func TestStreamOfLargeClaim(t *testing.T) {
	claim := func(n uint32) []byte {
		raw := doc(t, bson.E{Key: "a", Value: 1})
		binary.LittleEndian.PutUint32(raw, n)
		return raw
	}
	small := doc(t, bson.E{Key: "a", Value: 1})
	_, plans := registries(registerCallers)
	for name, r := range map[string]io.Reader{
		"in memory":        bytes.NewReader(claim(1<<31 - 1)),
		"a stream":         struct{ io.Reader }{bytes.NewReader(claim(1<<31 - 1))},
		"a second":         struct{ io.Reader }{bytes.NewReader(append(append([]byte{}, small...), claim(1<<31-1)...))},
		"negative":         bytes.NewReader(claim(1 << 31)),
		"100 MB, a second": struct{ io.Reader }{bytes.NewReader(append(append([]byte{}, small...), claim(100<<20)...))},
	} {
		dec := streamDecoder(plans, r)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var err error
		for range 3 {
			var v streamed
			if err = dec.Decode(&v); err != nil {
				break
			}
		}
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 4<<20 {
			t.Errorf("%s: %d octets were allocated", name, n)
		}
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The plans see the length of a document in the memory of the driver's reader. If a version of the driver keeps it
// elsewhere, every stream goes to the fallback, which this test finds.
func TestDriverReaderShowsItsBuffer(t *testing.T) {
	reg := bson.NewRegistry()
	calls := 0
	counted := bson.ValueDecoderFunc(func(bson.DecodeContext, bson.ValueReader, reflect.Value) error {
		calls++
		return errors.New("the fallback")
	})
	enc, err := reg.LookupEncoder(reflect.TypeFor[struct{}]())
	if err != nil {
		t.Fatal(err)
	}
	reg.RegisterKindDecoder(reflect.Struct, structcodec.New(reg, enc, counted, bsoncodec.ErrNotPlain))
	raw := doc(t, bson.E{Key: "a", Value: 1})
	for _, r := range []io.Reader{bytes.NewReader(raw), bytes.NewBuffer(raw)} {
		var v streamed
		if err := streamDecoder(reg, r).Decode(&v); err != nil || v.A != 1 || calls != 0 {
			t.Errorf("%T: got %+v, %v and %d calls of the fallback", r, v, err, calls)
		}
	}
}

// What was decoded keeps nothing of the memory of a stream, whether that is the caller's or a buffer that is used again.
func TestStreamsShareNoMemory(t *testing.T) {
	type target struct {
		S    string
		B    []byte
		Bin  bson.Binary
		Raw  bson.Raw
		RV   bson.RawValue
		Any  any
		D    bson.D
		M    map[string]any
		Re   bson.Regex
		Hook keptBytes
	}
	var octets []byte
	text := bytes.Repeat([]byte("text"), 40)
	inner := bson.D{{Key: "key", Value: string(text)}, {Key: "b", Value: bson.Binary{Subtype: 9, Data: text}}}
	const n = 50
	for i := range n {
		octets = append(octets, doc(t, bson.E{Key: "s", Value: string(text) + string(rune('a'+i))}, bson.E{Key: "b", Value: text},
			bson.E{Key: "bin", Value: bson.Binary{Subtype: 5, Data: text}}, bson.E{Key: "raw", Value: inner}, bson.E{Key: "rv", Value: inner},
			bson.E{Key: "any", Value: inner}, bson.E{Key: "d", Value: inner}, bson.E{Key: "m", Value: inner},
			bson.E{Key: "re", Value: bson.Regex{Pattern: string(text), Options: "i"}}, bson.E{Key: "hook", Value: inner})...)
	}
	_, plans := registries(func(*bson.Registry) {})
	for name, reader := range map[string]func([]byte) io.Reader{
		"bytes.Reader": func(b []byte) io.Reader { return bytes.NewReader(b) },
		"bytes.Buffer": func(b []byte) io.Reader { return bytes.NewBuffer(b) },
		"io.Reader":    func(b []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(b)} },
	} {
		memory := bytes.Clone(octets)
		dec := streamDecoder(plans, reader(memory))
		var got, want [n]target
		for i := range got {
			if err := dec.Decode(&got[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range memory {
			memory[i] = 0xff
		}
		rest := octets
		for i := range want {
			size := binary.LittleEndian.Uint32(rest)
			if err := bsoncodec.Unmarshal(plans, rest[:size], &want[i]); err != nil {
				t.Fatal(err)
			}
			rest = rest[size:]
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: what was decoded has changed", name)
		}
	}
}

// keptBytes keeps what its hook is given.
type keptBytes []byte

func (k *keptBytes) UnmarshalBSONValue(_ byte, data []byte) error {
	*k = data
	return nil
}
