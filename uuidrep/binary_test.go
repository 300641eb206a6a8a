package uuidrep_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/quick"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// The UUID of the specification's test plan and its octets in each order.
var (
	testUUID = uuid.MustParse("00112233-4455-6677-8899-aabbccddeeff")

	octetsStandard = unhex("00112233445566778899AABBCCDDEEFF")
	octetsJava     = unhex("7766554433221100FFEEDDCCBBAA9988")
	octetsCSharp   = unhex("33221100554477668899AABBCCDDEEFF")
)

// The same UUID as ASCII text: 36 characters in lower and upper case, and 32 hexadecimal digits.
var asciiTexts = [][]byte{
	unhex("30303131323233332D343435352D363637372D383839392D616162626363646465656666"),
	unhex("30303131323233332D343435352D363637372D383839392D414142424343444445454646"),
	unhex("3030313132323333343435353636373738383939616162626363646465656666"),
}

// checkTextError checks that err says that a binary value of length bytes is the text of a UUID, as a LengthError only.
func checkTextError(t *testing.T, err error, length int) {
	t.Helper()
	var e *uuidrep.LengthError
	if !errors.As(err, &e) || *e != (uuidrep.LengthError{Length: length, Text: true}) || errors.As(err, new(*uuidrep.SubtypeError)) {
		t.Errorf("got %v, want a LengthError of %d bytes of text", err, length)
		return
	}
	for _, want := range []string{fmt.Sprint(length), "text of a UUID", "no option", "bsonids", "binaryText"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not hold %q", err, want)
		}
	}
}

var stored = []struct {
	rep     uuidrep.Representation
	subtype byte
	octets  []byte
}{
	{uuidrep.Standard, 4, octetsStandard},
	{uuidrep.JavaLegacy, 3, octetsJava},
	{uuidrep.CSharpLegacy, 3, octetsCSharp},
	{uuidrep.PythonLegacy, 3, octetsStandard},
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func checkBinary(t *testing.T, got bson.Binary, subtype byte, octets []byte) {
	t.Helper()
	if got.Subtype != subtype || !bytes.Equal(got.Data, octets) {
		t.Errorf("got subtype %d, %X; want subtype %d, %X", got.Subtype, got.Data, subtype, octets)
	}
}

// TestExplicitEncoding is the specification's test plan, "Explicit encoding".
func TestExplicitEncoding(t *testing.T) {
	t.Run("1a", func(t *testing.T) {
		checkBinary(t, uuidrep.NewBinary(testUUID), 4, octetsStandard)
	})
	for i, tt := range stored {
		t.Run(fmt.Sprintf("%da", i+2), func(t *testing.T) {
			b, err := uuidrep.NewBinaryWithRepresentation(testUUID, tt.rep)
			if err != nil {
				t.Fatal(err)
			}
			checkBinary(t, b, tt.subtype, tt.octets)
		})
	}
	t.Run("6a", func(t *testing.T) {
		b, err := uuidrep.NewBinaryWithRepresentation(testUUID, uuidrep.Unspecified)
		if !errors.Is(err, uuidrep.ErrUnspecified) {
			t.Errorf("got %v, %v; want ErrUnspecified", b, err)
		}
	})
}

// TestExplicitDecoding is the specification's test plan, "Explicit Decoding"; plain stands for
// asUuid without a representation.
func TestExplicitDecoding(t *testing.T) {
	const plain = uuidrep.Representation(255)
	for _, tt := range []struct {
		id      string
		subtype byte
		octets  []byte
		rep     uuidrep.Representation
		ok      bool
	}{
		{"1a", 4, octetsStandard, plain, true},
		{"1b", 4, octetsStandard, uuidrep.Standard, true},
		{"1c", 4, octetsStandard, uuidrep.Unspecified, false},
		{"1d", 4, octetsStandard, uuidrep.JavaLegacy, false},
		{"1e", 4, octetsStandard, uuidrep.CSharpLegacy, false},
		{"1f", 4, octetsStandard, uuidrep.PythonLegacy, false},
		{"2a", 3, octetsJava, plain, false},
		{"2b", 3, octetsJava, uuidrep.Standard, false},
		{"2c", 3, octetsJava, uuidrep.Unspecified, false},
		{"2d", 3, octetsJava, uuidrep.JavaLegacy, true},
		{"3a", 3, octetsCSharp, plain, false},
		{"3b", 3, octetsCSharp, uuidrep.Standard, false},
		{"3c", 3, octetsCSharp, uuidrep.Unspecified, false},
		{"3d", 3, octetsCSharp, uuidrep.CSharpLegacy, true},
		{"4a", 3, octetsStandard, plain, false},
		{"4b", 3, octetsStandard, uuidrep.Standard, false},
		{"4c", 3, octetsStandard, uuidrep.Unspecified, false},
		{"4d", 3, octetsStandard, uuidrep.PythonLegacy, true},
	} {
		t.Run(tt.id, func(t *testing.T) {
			b := bson.Binary{Subtype: tt.subtype, Data: tt.octets}
			var got uuid.UUID
			var err error
			if tt.rep == plain {
				got, err = uuidrep.As[uuid.UUID](b)
			} else {
				got, err = uuidrep.AsWithRepresentation[uuid.UUID](b, tt.rep)
			}
			if tt.ok {
				if err != nil || got != testUUID {
					t.Errorf("got %v, %v; want %v", got, err, testUUID)
				}
				return
			}
			if got != uuid.Nil {
				t.Errorf("got %v beside an error", got)
			}
			var subtypeErr *uuidrep.SubtypeError
			switch {
			case tt.rep == uuidrep.Unspecified:
				if !errors.Is(err, uuidrep.ErrUnspecified) {
					t.Errorf("got %v, want ErrUnspecified", err)
				}
			case !errors.As(err, &subtypeErr) || subtypeErr.Subtype != tt.subtype:
				t.Errorf("got %v, want a SubtypeError with subtype %d", err, tt.subtype)
			}
		})
	}
}

func TestAsUUIDRefuses(t *testing.T) {
	for _, subtype := range []byte{0, 1, 2, 3, 5, 6, 0x80} {
		var e *uuidrep.SubtypeError
		_, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: subtype, Data: octetsStandard})
		if !errors.As(err, &e) || e.Subtype != subtype || e.Representation != uuidrep.Standard {
			t.Errorf("subtype %d: got %v, want a SubtypeError", subtype, err)
		}
	}
	for _, length := range []int{0, 1, 15, 17, 1 << 20} {
		var e *uuidrep.LengthError
		_, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: 4, Data: make([]byte, length)})
		if !errors.As(err, &e) || e.Length != length {
			t.Errorf("length %d: got %v, want a LengthError", length, err)
		}
	}
	for _, r := range []uuidrep.Representation{5, 255} {
		if _, err := uuidrep.AsWithRepresentation[uuid.UUID](bson.Binary{Subtype: 4, Data: octetsStandard}, r); err == nil {
			t.Errorf("%v decoded", r)
		}
		if _, err := uuidrep.NewBinaryWithRepresentation(testUUID, r); err == nil {
			t.Errorf("%v encoded", r)
		}
	}
}

// The text of a UUID in a binary value is refused as such, in every representation.
func TestAsRefusesText(t *testing.T) {
	for _, octets := range asciiTexts {
		for _, subtype := range []byte{0, 2, 3, 4} {
			b := bson.Binary{Subtype: subtype, Data: octets}
			u, err := uuidrep.As[uuid.UUID](b)
			checkTextError(t, err, len(octets))
			if u != uuid.Nil {
				t.Errorf("got %v beside an error", u)
			}
			for _, tt := range stored {
				_, err := uuidrep.AsWithRepresentation[uuid.UUID](b, tt.rep)
				checkTextError(t, err, len(octets))
			}
			if _, err := uuidrep.AsWithRepresentation[uuid.UUID](b, uuidrep.Unspecified); !errors.Is(err, uuidrep.ErrUnspecified) {
				t.Errorf("unspecified: got %v", err)
			}
		}
		// Other subtypes hold no text, and other bytes are no text.
		var subtypeErr *uuidrep.SubtypeError
		if _, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: 5, Data: octets}); !errors.As(err, &subtypeErr) || subtypeErr.Subtype != 5 {
			t.Errorf("subtype 5: got %v", err)
		}
		other := append([]byte{'g'}, octets[1:]...)
		var lengthErr *uuidrep.LengthError
		if _, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: 4, Data: other}); !errors.As(err, &lengthErr) || lengthErr.Text || strings.Contains(err.Error(), "text") {
			t.Errorf("%q: got %v", other, err)
		}
		if _, err := uuidrep.As[uuid.UUID](bson.Binary{Subtype: 3, Data: other}); !errors.As(err, &subtypeErr) || subtypeErr.Subtype != 3 {
			t.Errorf("%q of subtype 3: got %v", other, err)
		}
	}
}

// An error of a value names what came and what was expected.
func TestErrorTexts(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want []string
	}{
		{&uuidrep.SubtypeError{Subtype: 4, Representation: uuidrep.JavaLegacy}, []string{"subtype 4 is not", "javaLegacy", "has subtype 3", "standard writes"}},
		{&uuidrep.SubtypeError{Subtype: 3, Representation: uuidrep.Standard}, []string{"subtype 3 is not", "standard", "has subtype 4", "csharpLegacy, javaLegacy and pythonLegacy write"}},
		{&uuidrep.SubtypeError{Subtype: 0, Representation: uuidrep.Standard}, []string{"subtype 0 is not", "has subtype 4", "without a codec"}},
		{&uuidrep.SubtypeError{Subtype: 0x80, Representation: uuidrep.PythonLegacy}, []string{"subtype 128 is not", "pythonLegacy", "has subtype 3"}},
		{&uuidrep.LengthError{Length: 15}, []string{"16 bytes", "has 15"}},
		{uuidrep.ErrUnspecified, []string{"uuidRepresentation", "standard", "csharpLegacy", "javaLegacy", "pythonLegacy"}},
	} {
		text := tt.err.Error()
		if !strings.HasPrefix(text, "uuidrep: ") {
			t.Errorf("%q does not begin with the package's name", text)
		}
		for _, want := range tt.want {
			if !strings.Contains(text, want) {
				t.Errorf("%q does not hold %q", text, want)
			}
		}
	}
}

// Any defined type of 16 octets converts, and the binary value shares no memory with it.
func TestNewBinaryOfDefinedType(t *testing.T) {
	type orderID [16]byte
	id := orderID(testUUID)
	b := uuidrep.NewBinary(id)
	checkBinary(t, b, 4, octetsStandard)
	b.Data[0] = 0xFF
	if id != orderID(testUUID) {
		t.Error("the binary value shares memory with the UUID")
	}
}

// As gives any defined type of 16 bytes, with the results and the errors of As[uuid.UUID].
func TestAsDefinedType(t *testing.T) {
	type orderID [16]byte
	for _, tt := range stored {
		b := bson.Binary{Subtype: tt.subtype, Data: tt.octets}
		if id, err := uuidrep.AsWithRepresentation[orderID](b, tt.rep); err != nil || id != orderID(testUUID) {
			t.Errorf("%v: got %v, %v", tt.rep, id, err)
		}
		if raw, err := uuidrep.AsWithRepresentation[[16]byte](b, tt.rep); err != nil || raw != testUUID {
			t.Errorf("%v: got %v, %v", tt.rep, raw, err)
		}
		id, err := uuidrep.As[orderID](b)
		want, wantErr := uuidrep.As[uuid.UUID](b)
		if uuid.UUID(id) != want || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%v: got %v, %v, want %v, %v", tt.rep, id, err, want, wantErr)
		}
	}
	var e *uuidrep.LengthError
	if id, err := uuidrep.As[orderID](bson.Binary{Subtype: 4, Data: make([]byte, 15)}); !errors.As(err, &e) || id != (orderID{}) {
		t.Errorf("got %v, %v", id, err)
	}
}

func TestExplicitRoundTrip(t *testing.T) {
	for _, tt := range stored {
		roundTrip := func(u [16]byte) bool {
			b, err := uuidrep.NewBinaryWithRepresentation(u, tt.rep)
			if err != nil {
				return false
			}
			got, err := uuidrep.AsWithRepresentation[uuid.UUID](b, tt.rep)
			return err == nil && got == u
		}
		if err := quick.Check(roundTrip, nil); err != nil {
			t.Errorf("%v: %v", tt.rep, err)
		}
	}
}

// Each order is its own inverse, and a permutation: it moves octets and changes none.
func TestPermuteIsItsOwnInverse(t *testing.T) {
	for _, tt := range stored {
		if got := tt.rep.Permute(testUUID); !bytes.Equal(got[:], tt.octets) {
			t.Errorf("%v: got %X, want %X", tt.rep, got, tt.octets)
		}
		for range 1000 {
			var u [16]byte
			for i := range u {
				u[i] = byte(rand.Uint32())
			}
			if got := tt.rep.Permute(tt.rep.Permute(u)); got != u {
				t.Fatalf("%v twice: got %X, want %X", tt.rep, got, u)
			}
		}
	}
	if got := uuidrep.Unspecified.Permute(testUUID); got != testUUID {
		t.Errorf("unspecified: got %X", got)
	}
}
