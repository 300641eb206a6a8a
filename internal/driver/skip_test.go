package driver_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/driver"
)

// skipped has fields for the keys a and d, so that others are skipped.
type skipped struct {
	A any
	D *skipped
	L []skipped
}

// decodeWithin decodes doc from memory if Skips says that this comes to an end, and from a stream if not. It fails if
// that takes long.
func decodeWithin(t *testing.T, doc []byte) (v skipped, back bool, err error) {
	t.Helper()
	back, beyond := driver.Skips(bson.TypeEmbeddedDocument, doc)
	if back && beyond > 0 {
		return v, true, errors.New("malformed")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // of the driver, for some malformed documents
		if back {
			err = bson.NewDecoder(bson.NewDocumentReader(bytes.NewReader(doc))).Decode(&v)
			return
		}
		err = bson.Unmarshal(doc, &v)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("the driver does not come back from %x", doc)
	}
	return v, back, err
}

func finish(doc []byte) []byte {
	doc = append(doc, 0)
	binary.LittleEndian.PutUint32(doc, uint32(len(doc)))
	return doc
}

// negative is the shortest document that the driver does not come back from: the string that is skipped has such a
// length that the element is read again.
func negative() []byte {
	return finish([]byte("\x00\x00\x00\x00\x02xyzzy\x00\xf5\xff\xff\xff\x00\x00\x00"))
}

// If this fails, the driver's reader from memory does not go back any more, and Skips is not needed.
func TestDriverSkipsBack(t *testing.T) {
	vr := bson.RawValue{Type: bson.TypeEmbeddedDocument, Value: negative()}
	reg := bson.NewRegistry()
	type probe struct{}
	calls := 0
	reg.RegisterTypeDecoder(reflect.TypeFor[probe](), bson.ValueDecoderFunc(
		func(_ bson.DecodeContext, vr bson.ValueReader, _ reflect.Value) error {
			dr, err := vr.ReadDocument()
			for ; err == nil && calls < 100; calls++ {
				if _, vr, err = dr.ReadElement(); err == nil {
					err = vr.Skip()
				}
			}
			return err
		}))
	if err := vr.UnmarshalWithRegistry(reg, new(probe)); err != nil || calls < 100 {
		t.Errorf("the reader comes to an end after %d elements, %v", calls, err)
	}
}

func TestSkips(t *testing.T) {
	element := func(bt bson.Type, key string, value ...byte) []byte {
		return append(append(append([]byte{byte(bt)}, key...), 0), value...)
	}
	length := func(n int32, rest ...byte) []byte {
		return append(binary.LittleEndian.AppendUint32(nil, uint32(n)), rest...)
	}
	document := func(elements ...[]byte) []byte {
		return finish(append([]byte{0, 0, 0, 0}, bytes.Join(elements, nil)...))
	}
	last := element(bson.TypeInt32, "a", 7, 0, 0, 0)
	for name, c := range map[string]struct {
		doc []byte
		ok  bool // the driver decodes a
	}{
		"valid":                      {document(element(bson.TypeString, "x", length(2, 'y', 0)...), last), true},
		"negative string":            {document(element(bson.TypeString, "x", length(-11)...), last), false},
		"string that overflows":      {document(element(bson.TypeString, "x", length(1<<31-1)...), last), false},
		"binary that overflows":      {document(element(bson.TypeBinary, "x", length(1<<31-2)...), last), false},
		"pointer that overflows":     {document(element(bson.TypeDBPointer, "x", length(1<<31-14)...), last), false},
		"negative document":          {document(element(bson.TypeEmbeddedDocument, "x", length(-8)...), last), false},
		"negative array":             {document(element(bson.TypeArray, "x", length(-8)...), last), false},
		"negative scope":             {document(element(bson.TypeCodeWithScope, "x", length(-8)...), last), false},
		"within a document":          {document(element(bson.TypeEmbeddedDocument, "d", document(element(bson.TypeString, "x", length(-11)...))...), last), false},
		"within an array":            {document(element(bson.TypeArray, "l", document(element(bson.TypeEmbeddedDocument, "0", document(element(bson.TypeSymbol, "x", length(-11)...))...))...), last), false},
		"within what is skipped":     {document(element(bson.TypeEmbeddedDocument, "x", document(element(bson.TypeString, "x", length(-11)...))...), last), true},
		"an unknown type is skipped": {document(element(0x55, "x"), last), false},
		"longer than the data":       {document(element(bson.TypeString, "x", length(1000)...), last), false},
		"behind a document that is too short": {document(append(element(bson.TypeEmbeddedDocument, "d", length(5)...),
			element(bson.TypeString, "x", length(-11)...)...), last), false},
	} {
		v, back, err := decodeWithin(t, c.doc)
		if want := strings.Contains(name, "negative") || strings.Contains(name, "overflows") || strings.Contains(name, "within") || strings.Contains(name, "behind"); back != want {
			t.Errorf("%s: the driver goes back: %t", name, back)
		}
		if (err == nil) != c.ok || c.ok && v.A != int32(7) {
			t.Errorf("%s: got %v and error %v", name, v, err)
		}
	}
}

// Whatever bytes of a document are changed, the driver comes back from it as Skips says.
func TestSkipsOfRandomBytes(t *testing.T) {
	seed, err := bson.Marshal(bson.D{
		{Key: "x", Value: "text"}, {Key: "d", Value: bson.D{{Key: "x", Value: bson.A{"y", bson.Binary{Data: []byte{1, 2, 3}}}}, {Key: "a", Value: 1.5}}},
		{Key: "l", Value: bson.A{bson.D{{Key: "z", Value: bson.JavaScript("code")}}, bson.D{{Key: "a", Value: bson.CodeWithScope{Code: "x", Scope: bson.D{{Key: "q", Value: "r"}}}}}}},
		{Key: "y", Value: bson.DBPointer{DB: "db"}}, {Key: "a", Value: bson.D{{Key: "r", Value: bson.Regex{Pattern: "p"}}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	spoilt := 0
	for range 30_000 {
		doc := bytes.Clone(seed)
		for range rng.IntN(4) + 1 {
			i := 4 + rng.IntN(len(doc)-5)
			switch rng.IntN(3) {
			case 0:
				doc[i] = byte(rng.Uint32())
			case 1:
				doc[i] = 0xff
			default:
				copy(doc[i:len(doc)-1], binary.LittleEndian.AppendUint32(nil, uint32(-rng.IntN(40))))
			}
		}
		if _, back, _ := decodeWithin(t, doc); back {
			spoilt++
		}
	}
	if spoilt < 1000 {
		t.Errorf("only %d documents make the driver go back", spoilt)
	}
}

func TestSkipsOfValues(t *testing.T) {
	doc := negative()
	for _, bt := range []bson.Type{bson.TypeEmbeddedDocument, bson.TypeArray} {
		if back, _ := driver.Skips(bt, doc); !back {
			t.Errorf("%v is not found", bt)
		}
	}
	scope := append(binary.LittleEndian.AppendUint32(nil, uint32(len(doc)+4+4+2)), 2, 0, 0, 0, 'c', 0)
	scope = append(scope, doc...)
	if back, _ := driver.Skips(bson.TypeCodeWithScope, scope); !back {
		t.Error("code with scope is not found")
	}
}
