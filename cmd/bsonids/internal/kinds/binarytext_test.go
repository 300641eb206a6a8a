package kinds

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/walk"
)

// The text is the example of RFC 9562, section 4, with hyphens and as digits.
const (
	ofRFC       = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	digitsOfRFC = "f81d4fae7dec11d0a76500a0c91e6bf6"
)

var octetsOfRFC = [16]byte{0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x11, 0xd0, 0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6}

// binaryLeaf returns a binary value as bsonspec.org writes it: a length, the subtype, and the data. Subtype 2 has the length of
// the data once more, which the first length counts.
func binaryLeaf(subtype byte, data string) walk.Leaf {
	if subtype == 2 {
		data = string(binary.LittleEndian.AppendUint32(nil, uint32(len(data)))) + data
	}
	b := append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), subtype)
	return walk.Leaf{Type: bson.TypeBinary, Value: append(b, data...)}
}

func TestBinaryText(t *testing.T) {
	for _, subtype := range []byte{0, 2, 3, 4} {
		for _, text := range []string{ofRFC, digitsOfRFC} {
			for _, s := range []string{text, strings.ToUpper(text)} {
				certain := len(s) == 36 || subtype >= 3
				stored, got, ok := Read(binaryLeaf(subtype, s))
				if !ok || stored != OfBinaryText || got != (Spelled{UUID: octetsOfRFC, Certain: certain}) {
					t.Errorf("subtype %d, %s: %s, %+v, %v", subtype, s, stored, got, ok)
				}
				if IsMalformed(binaryLeaf(subtype, s)) {
					t.Errorf("subtype %d, %s is malformed", subtype, s)
				}
			}
		}
	}
	// Doctrine of PHP wrote these bytes in a field of its type bin_uuid.
	doctrine, err := hex.DecodeString("66383164346661652d376465632d313164302d613736352d303061306339316536626636")
	if _, got, ok := Read(binaryLeaf(3, string(doctrine))); err != nil || !ok || got.UUID != octetsOfRFC {
		t.Errorf("%x, %v", got.UUID, ok)
	}
}

// Other text, other lengths and other subtypes are not the text of a UUID. They are malformed in subtypes 3 and 4, which say that
// a value is a UUID, unless it is one.
func TestNoBinaryText(t *testing.T) {
	for _, data := range []string{"", "x", ofRFC[:35], ofRFC + "0", digitsOfRFC[:31], digitsOfRFC + "0", "{" + ofRFC + "}", "urn:uuid:" + ofRFC,
		strings.Repeat("-", 36), strings.Repeat("\x00", 32), strings.Replace(ofRFC, "-", "_", 1), "g" + ofRFC[1:], strings.Repeat("\xff", 36), string(octetsOfRFC[:15])} {
		for subtype := range 256 {
			l := binaryLeaf(byte(subtype), data)
			if stored, s, ok := Read(l); ok {
				t.Errorf("subtype %d, %q: %s, %+v", subtype, data, stored, s)
			}
			if got, want := IsMalformed(l), subtype == 3 || subtype == 4; got != want {
				t.Errorf("subtype %d, %q: malformed %v", subtype, data, got)
			}
		}
	}
	for subtype := range 256 {
		has := subtype == 0 || subtype >= 2 && subtype <= 4
		if _, ok := ParseBinaryText(binaryLeaf(byte(subtype), ofRFC)); ok != has {
			t.Errorf("subtype %d: %v", subtype, ok)
		}
		if IsMalformed(binaryLeaf(byte(subtype), string(octetsOfRFC[:]))) {
			t.Errorf("16 bytes of subtype %d are malformed", subtype)
		}
	}
	for _, l := range []walk.Leaf{{Type: bson.TypeNull}, {Type: bson.TypeString, Value: append([]byte{37, 0, 0, 0}, ofRFC+"\x00"...)}} {
		if _, ok := ParseBinaryText(l); ok || IsMalformed(l) {
			t.Errorf("%v", l)
		}
	}
	// The driver takes the second length of subtype 2, and the server the first one: a value in which they differ is neither's.
	for _, second := range []string{"\x23\x00\x00\x00", "\x25\x00\x00\x00", "\xff\xff\xff\xff", "\x24\x00\x00\x80", ""} {
		data := second + ofRFC
		l := walk.Leaf{Type: bson.TypeBinary, Value: append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), 2), data...)}
		if _, ok := ParseBinaryText(l); ok {
			t.Errorf("a second length %x", second)
		}
	}
	for n := range 4 {
		if _, _, ok := Octets(walk.Leaf{Type: bson.TypeBinary, Value: append([]byte{byte(n), 0, 0, 0, 2}, make([]byte, n)...)}); ok {
			t.Errorf("%d bytes of subtype 2 have a second length", n)
		}
	}
}

// The data of a binary value are those that the driver reads.
func FuzzBinaryText(f *testing.F) {
	for _, subtype := range []byte{0, 2, 3, 4, 5} {
		f.Add(subtype, []byte(ofRFC))
		f.Add(subtype, []byte(digitsOfRFC))
		f.Add(subtype, []byte("\x24\x00\x00\x00"+ofRFC))
	}
	f.Fuzz(func(t *testing.T, subtype byte, data []byte) {
		typ, value, err := bson.MarshalValue(bson.Binary{Subtype: subtype, Data: data})
		if err != nil {
			t.Skip()
		}
		l := walk.Leaf{Type: typ, Value: value}
		of, octets, ok := Octets(l)
		if !ok || of != subtype || string(octets) != string(data) {
			t.Fatalf("%d, %x, %v", of, octets, ok)
		}
		s, ok := ParseBinaryText(l)
		if want, err := uuid.ParseBytes(data); ok && (err != nil || s.UUID != want || len(data) != 36 && len(data) != 32) {
			t.Errorf("%q is %x, want %x, %v", data, s.UUID, want, err)
		}
		if ok && (IsMalformed(l) || subtype != 0 && subtype != 2 && subtype != 3 && subtype != 4) {
			t.Errorf("%q of subtype %d", data, subtype)
		}
		// Bytes of which the second length of subtype 2 may be another one.
		raw := walk.Leaf{Type: typ, Value: append(append(binary.LittleEndian.AppendUint32(nil, uint32(len(data))), subtype), data...)}
		if s, ok := ParseBinaryText(raw); ok {
			read := bson.RawValue{Type: typ, Value: raw.Value}
			if _, b, ok := read.BinaryOK(); !ok || uuid.MustParse(string(b)) != s.UUID {
				t.Errorf("%x: the driver reads %x", raw.Value, b)
			}
		}
	})
}
