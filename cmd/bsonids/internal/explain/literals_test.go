package explain

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/bsonids/bsonids/uuidrep"
)

// goForms returns what packages fmt and encoding/json write of b.
func goForms(b bson.Binary) []string {
	inJSON, err := json.Marshal(b)
	if err != nil {
		panic(err)
	}
	return []string{
		fmt.Sprintf("%v", b), fmt.Sprintf("%+v", b), fmt.Sprintf("%#v", b), fmt.Sprintf("%x", b), fmt.Sprintf("% X", b),
		fmt.Sprintf("%v", &b), fmt.Sprintf("%+v", &b), fmt.Sprintf("%#v", &b), string(inJSON),
	}
}

// octetsOf parses hexadecimal digits of a test.
func octetsOf(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParseGo(t *testing.T) {
	for subtype, octets := range map[byte]string{3: j, 4: s, 0: s, 2: j, 255: c} {
		for _, form := range goForms(bson.Binary{Subtype: subtype, Data: octetsOf(t, octets)}) {
			v, err := Parse(form)
			if err != nil || hex.EncodeToString(v.Octets[:]) != octets || v.Subtype == nil || *v.Subtype != subtype || !strings.Contains(v.Form, "Go") {
				t.Errorf("%s: %+v, %v", form, v, err)
			}
		}
	}
	for _, form := range []string{fmt.Sprint([16]byte(octetsOf(t, j))), fmt.Sprintf("%#v", octetsOf(t, j)), fmt.Sprintf("%#v", [16]byte(octetsOf(t, j)))} {
		if v, err := Parse(form); err != nil || hex.EncodeToString(v.Octets[:]) != j || v.Subtype != nil {
			t.Errorf("%s: %+v, %v", form, v, err)
		}
	}
	refused := []string{"{3 []}", "{3 [1 2]}", "{256 [1]}", "{3 [256 1]}", "{3 [1 2", "{3}", "{Subtype:3}", "[]", "[1 2]", "[1 256]", `{"Subtype":3}`, `{"Subtype":256,"Data":"AAAA"}`, `{"Subtype":3,"Data":null}`}
	for _, b := range []bson.Binary{{}, {Subtype: 3}, {Subtype: 3, Data: octetsOf(t, j)[:15]}, {Subtype: 3, Data: make([]byte, 17)}} {
		refused = append(refused, goForms(b)...)
	}
	for _, form := range refused {
		if v, err := Parse(form); err == nil {
			t.Errorf("%s: %+v", form, v)
		}
	}
}

// The forms are what PyMongo 4.20 and Python print: repr of Binary.from_uuid of the document's UUID, of Binary, and of what
// decode returns of subtype 0. The bytes are what they have there.
func TestParsePython(t *testing.T) {
	for _, tt := range []struct {
		form, octets string
		subtype      int
		rep          uuidrep.Representation
	}{
		{`Binary(b'\x00\x11"3DUfw\x88\x99\xaa\xbb\xcc\xdd\xee\xff', 3)`, s, 3, uuidrep.Unspecified},
		{`Binary(b'\x00\x11"3DUfw\x88\x99\xaa\xbb\xcc\xdd\xee\xff', 4)`, s, 4, uuidrep.Standard},
		{`Binary(b'wfUD3"\x11\x00\xff\xee\xdd\xcc\xbb\xaa\x99\x88', 3)`, j, 3, uuidrep.Unspecified},
		{`Binary(b'3"\x11\x00UDwf\x88\x99\xaa\xbb\xcc\xdd\xee\xff', 3)`, c, 3, uuidrep.Unspecified},
		{`Binary(b'\x07\x08\x0c\x0b\t\n\r\\\'\x7f\xff\'"789', 3)`, "07080c0b090a0d5c277fff2722373839", 3, uuidrep.Unspecified},
		{`Binary(b"'23456789abcdef0", 128)`, "27323334353637383961626364656630", 128, uuidrep.Unspecified},
		{`bson.Binary(b"\a\b\f\v\t\n\r\\'\177\377\'\"789")`, "07080c0b090a0d5c277fff2722373839", 0, uuidrep.Unspecified},
		{`Binary(b'\101\7\08\q0123456789', subtype=3)`, "410700385c71" + hex.EncodeToString([]byte("0123456789")), 3, uuidrep.Unspecified},
		{`b'\x00\x11"3DUfw\x88\x99\xaa\xbb\xcc\xdd\xee\xff'`, s, -1, uuidrep.Unspecified},
		{`UUID('` + text + `')`, s, 4, uuidrep.Standard},
		{`uuid.UUID('` + text + `')`, s, 4, uuidrep.Standard},
		{`Binary.from_uuid(UUID('` + text + `'))`, s, 4, uuidrep.Standard},
		{`Binary.from_uuid(UUID('` + text + `'), UuidRepresentation.STANDARD)`, s, 4, uuidrep.Standard},
		{`Binary.from_uuid(UUID('` + text + `'), UuidRepresentation.JAVA_LEGACY)`, j, 3, uuidrep.JavaLegacy},
		{`bson.binary.Binary.from_uuid(uuid.UUID("` + text + `"), CSHARP_LEGACY)`, c, 3, uuidrep.CSharpLegacy},
		{`Binary.from_uuid(UUID('` + text + `'), uuid_representation=3)`, s, 3, uuidrep.PythonLegacy},
		{`UUID('` + text + `', 5)`, j, 3, uuidrep.JavaLegacy},
		{`UUID('` + text + `', PYTHON_LEGACY)`, s, 3, uuidrep.PythonLegacy},
		{`UUID('` + text + `', UuidRepresentation.CSHARP_LEGACY)`, c, 3, uuidrep.CSharpLegacy},
	} {
		v, err := Parse(tt.form)
		subtype := -1
		if v.Subtype != nil {
			subtype = int(*v.Subtype)
		}
		if err != nil || hex.EncodeToString(v.Octets[:]) != tt.octets || subtype != tt.subtype || v.Representation != tt.rep {
			t.Errorf("%s: %+v, %v", tt.form, v, err)
		}
	}
	for _, form := range []string{
		"b''", `b'\x0'`, `b'\xgg'`, `b'\400aaaaaaaaaaaaaaa'`, `b'0123456789abcdeé'`, "b'0123456789abcdef", `b'0123456789abcde\'`, `b'0123456789abcdef"`,
		"Binary(b'0123456789abcde', 3)", "Binary(b'0123456789abcdef', 256)", "Binary(b'0123456789abcdef', )", "Binary(b'0123456789abcdef' 3)",
		"Binary('0123456789abcdef', 3)", "Binary(b'', 3)", "<Binary(REDACTED, 8)>", "UUID('" + text + "', 7)", "UUID('" + text + "', UNSPECIFIED)",
		"UUID('" + text + "', 0)", "UUID('x', 5)", "UUID('" + text + "'), 5)", "Binary.from_uuid(UUID('" + text + "')", "Binary.from_uuid('" + text + "')", "UUID('" + text + "', JAVA)",
	} {
		if v, err := Parse(form); err == nil {
			t.Errorf("%s: %+v", form, v)
		}
	}
}

// Servers write the bytes of a binary value in hexadecimal in their errors. Its 32 digits are also base64, of 24 bytes.
func TestParseHexInBinData(t *testing.T) {
	if b, err := base64.StdEncoding.DecodeString(j); err != nil || len(b) != 24 {
		t.Fatal(b, err)
	}
	for _, form := range []string{
		`BinData(3, ` + strings.ToUpper(j) + `)`, `BinData(3, "` + j + `")`, `Binary.createFromBase64('` + j + `', 3)`,
	} {
		v, err := Parse(form)
		if err != nil || hex.EncodeToString(v.Octets[:]) != j || *v.Subtype != 3 || !strings.Contains(v.Form, "32 hexadecimal digits: as base64 they are 24 bytes") {
			t.Errorf("%s: %+v, %v", form, v, err)
		}
	}
	if v, err := Parse(`BinData(3, "` + j64 + `")`); err != nil || strings.Contains(v.Form, "hexadecimal") {
		t.Errorf("base64: %+v, %v", v, err)
	}
	for _, form := range []string{`BinData(3, ` + j[:30] + `)`, `BinData(3, ` + j + `00)`} {
		if v, err := Parse(form); err == nil {
			t.Errorf("%s: %+v", form, v)
		}
	}
}

// PyMongo's legacy mode of extended JSON writes a UUID so, and reads it as subtype 4.
func TestParseUUIDWithoutHyphens(t *testing.T) {
	for _, form := range []string{`{"$uuid": "` + s + `"}`, `{ "$uuid" : "` + strings.ToUpper(s) + `" }`} {
		if v, err := Parse(form); err != nil || hex.EncodeToString(v.Octets[:]) != s || *v.Subtype != 4 || v.Representation != uuidrep.Standard {
			t.Errorf("%s: %+v, %v", form, v, err)
		}
	}
	for _, form := range []string{`{"$uuid": "` + s[:31] + `"}`, `{"$uuid": "` + s + `", "a": 1}`, `{"$uuid": "` + s[:31] + `g"}`} {
		if v, err := Parse(form); err == nil {
			t.Errorf("%s: %+v", form, v)
		}
	}
}

// The text of a UUID in a binary value is that UUID in each form, whatever the subtype.
func TestParseTextInBinary(t *testing.T) {
	for _, is := range []string{text, strings.ToUpper(text), s} {
		b64 := base64.StdEncoding.EncodeToString([]byte(is))
		for _, subtype := range []byte{0, 2, 3, 4} {
			forms := append(goForms(bson.Binary{Subtype: subtype, Data: []byte(is)}), // PyMongo prints the text as it is
				fmt.Sprintf("Binary(b'%s', %d)", is, subtype), fmt.Sprintf(`BinData(%d, "%s")`, subtype, b64), fmt.Sprintf(`BinData(%d, %X)`, subtype, is),
				fmt.Sprintf(`HexData(%d, "%x")`, subtype, is), fmt.Sprintf(`Binary.createFromBase64('%s', %d)`, b64, subtype),
				fmt.Sprintf(`{"$binary":{"base64":"%s","subType":"%02x"}}`, b64, subtype))
			for _, form := range forms {
				v, err := Parse(form)
				if err != nil || v.Text != is || *v.Subtype != subtype || hex.EncodeToString(v.Octets[:]) != s {
					t.Errorf("%s: %+v, %v", form, v, err)
					continue
				}
				u := Explain(v, Options{}).UUID
				if u.Ambiguous || u.Value.UUID != text || u.Text != is || len(u.Drivers) == 0 {
					t.Errorf("%s: %+v", form, u)
				}
				for _, d := range u.Drivers { // what they print is the value that came
					if again, err := Parse(d.Prints); err != nil || again.Text != is || *again.Subtype != subtype {
						t.Errorf("%s: %s reads as %+v, %v", form, d.Prints, again, err)
					}
				}
			}
		}
	}
	for _, form := range []string{"b'" + text + "'", fmt.Sprint([]byte(text)), fmt.Sprintf("%x", text), base64.StdEncoding.EncodeToString([]byte(text))} {
		if v, err := Parse(form); err != nil || v.Text != text || v.Subtype != nil || hex.EncodeToString(v.Octets[:]) != s {
			t.Errorf("%s: %+v, %v", form, v, err)
		}
	}
	for _, is := range []string{text[:35], text + "0", s[:31] + "g", strings.Replace(text, "-", "0", 1)} {
		if v, err := Parse(fmt.Sprintf("Binary(b'%s', 3)", is)); err == nil {
			t.Errorf("%s: %+v", is, v)
		}
	}
}

// What Go prints of a binary value of 16 bytes is read as that value.
func FuzzParseGo(f *testing.F) {
	f.Add(byte(3), []byte("0123456789abcdef"))
	f.Add(byte(0), []byte(text))
	f.Fuzz(func(t *testing.T, subtype byte, data []byte) {
		_, isText := uuidtext.ParseOctets(data)
		for _, form := range goForms(bson.Binary{Subtype: subtype, Data: data}) {
			v, err := Parse(form)
			switch {
			case len(data) != 16 && !isText:
				if err == nil {
					t.Errorf("%s: %+v", form, v)
				}
			case err != nil || *v.Subtype != subtype || isText && v.Text != string(data) || !isText && !bytes.Equal(v.Octets[:], data):
				t.Errorf("%s: %+v, %v", form, v, err)
			}
		}
	})
}
