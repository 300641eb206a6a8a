package explain

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

// The byte strings of 00112233-4455-6677-8899-aabbccddeeff in the document on UUIDs of the driver
// specifications.
const (
	text = "00112233-4455-6677-8899-aabbccddeeff"
	s    = "00112233445566778899aabbccddeeff"
	j    = "7766554433221100ffeeddccbbaa9988"
	c    = "33221100554477668899aabbccddeeff"

	s64 = "ABEiM0RVZneImaq7zN3u/w=="
	j64 = "d2ZVRDMiEQD/7t3Mu6qZiA=="
	c64 = "MyIRAFVEd2aImaq7zN3u/w=="
)

// explained returns what a form is.
func explained(t *testing.T, form string, o Options) Explanation {
	t.Helper()
	v, err := Parse(form)
	if err != nil {
		t.Fatalf("%s: %v", form, err)
	}
	return Explain(v, o)
}

func TestParse(t *testing.T) {
	const noSubtype = -1
	for _, tt := range []struct {
		form    string
		octets  string
		subtype int
		rep     uuidrep.Representation
	}{
		{text, s, noSubtype, uuidrep.Unspecified},
		{strings.ToUpper(text), s, noSubtype, uuidrep.Unspecified},
		{"{" + text + "}", s, noSubtype, uuidrep.Unspecified},
		{"urn:uuid:" + text, s, noSubtype, uuidrep.Unspecified},
		{`"` + text + `"`, s, noSubtype, uuidrep.Unspecified},
		{" " + s + "\n", s, noSubtype, uuidrep.Unspecified},
		{"0x" + strings.ToUpper(j), j, noSubtype, uuidrep.Unspecified},
		{"77 66 55 44 33 22 11 00 ff ee dd cc bb aa 99 88", j, noSubtype, uuidrep.Unspecified},
		{"77:66:55:44:33:22:11:00:ff:ee:dd:cc:bb:aa:99:88", j, noSubtype, uuidrep.Unspecified},
		{`\x77\x66\x55\x44\x33\x22\x11\x00\xff\xee\xdd\xcc\xbb\xaa\x99\x88`, j, noSubtype, uuidrep.Unspecified},
		{j64, j, noSubtype, uuidrep.Unspecified},
		{strings.TrimRight(j64, "="), j, noSubtype, uuidrep.Unspecified},
		{strings.ReplaceAll(j64, "/", "_"), j, noSubtype, uuidrep.Unspecified},
		{strings.Repeat("A", 22), strings.Repeat("0", 32), noSubtype, uuidrep.Unspecified}, // base64 of the nil UUID
		{`UUID("` + text + `")`, s, 4, uuidrep.Standard},
		{`UUID('` + text + `')`, s, 4, uuidrep.Standard},
		{`new UUID("` + text + `")`, s, 4, uuidrep.Standard},
		{`BinData(3,"` + j64 + `")`, j, 3, uuidrep.Unspecified},
		{`BinData( 4 , '` + s64 + `' )`, s, 4, uuidrep.Standard},
		{`BinData(0,"` + s64 + `")`, s, 0, uuidrep.Unspecified},
		{`HexData(4, "` + s + `")`, s, 4, uuidrep.Standard},
		{`HexData(3, "` + c + `")`, c, 3, uuidrep.Unspecified},
		{`Binary.createFromBase64('` + c64 + `', 3)`, c, 3, uuidrep.Unspecified},
		{`Binary.createFromBase64("` + c64 + `")`, c, 0, uuidrep.Unspecified},
		{`Binary.createFromHexString('` + j + `', 3)`, j, 3, uuidrep.Unspecified},
		{`Binary(Buffer.from("` + j + `", "hex"), 3)`, j, 3, uuidrep.Unspecified},
		{`new Binary(Buffer.from('` + j64 + `', 'base64'), 0x03)`, j, 3, uuidrep.Unspecified},
		{`LUUID("` + text + `")`, s, 3, uuidrep.Unspecified},
		{`JUUID("` + text + `")`, j, 3, uuidrep.JavaLegacy},
		{`LegacyJavaUUID('` + text + `')`, j, 3, uuidrep.JavaLegacy},
		{`CSUUID("{` + text + `}")`, c, 3, uuidrep.CSharpLegacy},
		{`NUUID("` + text + `")`, c, 3, uuidrep.CSharpLegacy},
		{`LegacyCSharpUUID("` + text + `")`, c, 3, uuidrep.CSharpLegacy},
		{`PYUUID("` + text + `")`, s, 3, uuidrep.PythonLegacy},
		{`LegacyPythonUUID("` + text + `")`, s, 3, uuidrep.PythonLegacy},
		{`{"$uuid": "` + text + `"}`, s, 4, uuidrep.Standard},
		{`{"$binary": {"base64": "` + j64 + `", "subType": "03"}}`, j, 3, uuidrep.Unspecified},
		{`{"$binary": {"base64": "` + s64 + `", "subType": "4"}}`, s, 4, uuidrep.Standard},
		{`{"$binary": "` + c64 + `", "$type": "03"}`, c, 3, uuidrep.Unspecified},
	} {
		v, err := Parse(tt.form)
		subtype := noSubtype
		if v.Subtype != nil {
			subtype = int(*v.Subtype)
		}
		if err != nil || v.ObjectID != nil || hex.EncodeToString(v.Octets[:]) != tt.octets || subtype != tt.subtype || v.Representation != tt.rep {
			t.Errorf("%s: got %+v, %v, want octets %s, subtype %d, %v", tt.form, v, err, tt.octets, tt.subtype, tt.rep)
		}
	}
}

func TestParseObjectID(t *testing.T) {
	const id24 = "699dfad90ca573f85c0eec1c" // created at 2026-02-24T19:24:09Z, according to the specification of ObjectID
	for _, form := range []string{id24, `ObjectId("` + id24 + `")`, `new ObjectId('` + id24 + `')`, `{"$oid": "` + id24 + `"}`, "0x" + id24} {
		id := explained(t, form, Options{}).ObjectID
		if id == nil || id.Hex != id24 || !id.Time.Equal(time.Date(2026, 2, 24, 19, 24, 9, 0, time.UTC)) ||
			id.Process != "0ca573f85c" || id.Counter != 0x0eec1c {
			t.Errorf("%s: %+v", form, id)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, form := range []string{
		"", " ", "nope", "{", "{}", `{"$uuid": 1}`, `{"$uuid": "x"}`, `{"$oid": "12"}`, `{"$date": 1}`,
		`{"$binary": {"base64": "AAAA", "subType": "03"}}`, `{"$binary": {"base64": "` + s64 + `"}}`, `{"$binary": "` + s64 + `"}`,
		`{"$binary": {"base64": "` + s64 + `", "subType": "103"}}`, `{"$binary": {"base64": "*", "subType": "03"}}`,
		"0011223344556677", "00112233445566778899aabbccddeeff00", s[:31], "00112233-4455-6677-8899-aabbccddeefg",
		"UUID()", "UUID(1)", `BinData(3)`, `BinData(256, "` + s64 + `")`, `BinData(-1, "` + s64 + `")`, `BinData(3, "!")`,
		`BinData(3, "AAAA")`, `HexData(3, "` + s64 + `")`, `ObjectId("` + s + `")`, `ObjectId()`, `Binary("x", 3)`, `Foo("` + text + `")`,
		`UUID("x` + text + `y")`, `JUUID("(` + text + `)")`, `{"$uuid": "x` + text + `y"}`,
	} {
		if v, err := Parse(form); err == nil {
			t.Errorf("%q: got %+v", form, v)
		}
	}
	if _, err := Parse("nope"); !errors.Is(err, ErrForm) {
		t.Errorf("got %v, want ErrForm", err)
	}
}

func TestStored(t *testing.T) {
	for _, form := range []string{text, `UUID("` + text + `")`, `JUUID("` + text + `")`, `CSUUID("` + text + `")`, `PYUUID("` + text + `")`} {
		u := explained(t, form, Options{}).UUID
		if u.Value.UUID != text || u.Ambiguous {
			t.Errorf("%s: %+v", form, u.Value)
		}
		for i, want := range []Stored{
			{"standard", 4, s, s64, `UUID("` + text + `")`, "", `{"$binary":{"base64":"` + s64 + `","subType":"04"}}`},
			{"pythonLegacy", 3, s, s64, `BinData(3, "` + s64 + `")`, `LegacyPythonUUID("` + text + `")`,
				`{"$binary":{"base64":"` + s64 + `","subType":"03"}}`},
			{"csharpLegacy", 3, c, c64, `BinData(3, "` + c64 + `")`, `LegacyCSharpUUID("` + text + `")`,
				`{"$binary":{"base64":"` + c64 + `","subType":"03"}}`},
			{"javaLegacy", 3, j, j64, `BinData(3, "` + j64 + `")`, `LegacyJavaUUID("` + text + `")`,
				`{"$binary":{"base64":"` + j64 + `","subType":"03"}}`},
		} {
			if u.Stored[i] != want {
				t.Errorf("%s: got %+v, want %+v", form, u.Stored[i], want)
			}
			// Parsing the expressions to paste returns the same value.
			for _, expression := range []string{want.Legacy, want.ExtJSON, want.Paste} {
				if expression == "" {
					continue
				}
				if again := explained(t, expression, Options{}).UUID; again.Octets != want.Octets || *again.Subtype != want.Subtype {
					t.Errorf("%s: %+v, want octets %s", expression, again, want.Octets)
				}
			}
		}
	}
}

// What subtype 3 has is read in each order.
func TestRead(t *testing.T) {
	for i, form := range []string{`BinData(3, "` + s64 + `")`, `BinData(3, "` + c64 + `")`, `BinData(3, "` + j64 + `")`} {
		u := explained(t, form, Options{}).UUID
		if got, order := u.Read[i], []string{"network", "csharpLegacy", "javaLegacy"}[i]; !u.Ambiguous || !strings.HasPrefix(got.Order, order) || got.UUID != text {
			t.Errorf("%s: ambiguous %v, got %+v", form, u.Ambiguous, got)
		}
	}
}

// The test vectors of RFC 9562, appendices A and B. All were made at 2022-02-22T19:22:22Z.
func TestVersions(t *testing.T) {
	at := time.Date(2022, 2, 22, 19, 22, 22, 0, time.UTC)
	for _, tt := range []struct {
		uuid, version string
		time          bool
	}{
		{"C232AB00-9414-11EC-B3C8-9F6BDECED846", "1", true},
		{"5df41881-3aed-3515-88a7-2f4a814cf09e", "3", false},
		{"919108f7-52d1-4320-9bac-f847db4148a8", "4", false},
		{"2ed6657d-e927-568b-95e1-2665a8aea6a2", "5", false},
		{"1EC9414C-232A-6B00-B3C8-9F6BDECED846", "6", true},
		{"017F22E2-79B0-7CC3-98C4-DC0C0C07398F", "7", true},
		{"2489E9AD-2EE2-8E00-8EC9-32D5F69181C0", "8", false},
	} {
		r := explained(t, tt.uuid, Options{}).UUID.Value
		if !r.Fits || !strings.HasPrefix(r.Version, tt.version+",") || (r.Time != nil) != tt.time || tt.time && !r.Time.Equal(at) {
			t.Errorf("%s: %+v", tt.uuid, r)
		}
	}
	for form, variant := range map[string]string{
		"00000000-0000-0000-0000-000000000000": "nil", "ffffffff-ffff-ffff-ffff-ffffffffffff": "max",
		"919108f7-52d1-4320-7bac-f847db4148a8": "NCS", "919108f7-52d1-4320-cbac-f847db4148a8": "Microsoft",
		"919108f7-52d1-4320-ebac-f847db4148a8": "future",
	} {
		if r := explained(t, form, Options{}).UUID.Value; r.Fits || !strings.Contains(r.Variant, variant) {
			t.Errorf("%s: %+v", form, r)
		}
	}
}

// A count of milliseconds in 48 bits reaches the year 10889. RFC 3339, and therefore JSON, ends at
// the year 9999.
func TestTimeBeyondJSON(t *testing.T) {
	for form, want := range map[string]string{
		"e677d21f-dbff-7000-8000-000000000000": "9999-12-31T23:59:59.999Z", "e677d21f-dc00-7000-8000-000000000000": "",
		"ffffffff-ffff-7fff-bfff-fffffffffffe": "",
	} {
		b, err := json.Marshal(explained(t, form, Options{}))
		if err != nil {
			t.Errorf("%s: %v", form, err)
			continue
		}
		var e struct {
			UUID struct {
				Value struct{ Time, Version string }
			}
		}
		if err := json.Unmarshal(b, &e); err != nil || e.UUID.Value.Time != want || !strings.HasPrefix(e.UUID.Value.Version, "7,") {
			t.Errorf("%s: %v, %s", form, err, b)
		}
	}
}

// According to the table of the specification, only the setting of the same subtype returns a UUID.
func TestDrivers(t *testing.T) {
	for form, want := range map[string]map[string]string{
		`UUID("` + text + `")`: {
			"with standard": text, "csharpLegacy": "subtype 4", "javaLegacy": "subtype 4", "pythonLegacy": "subtype 4", "unspecified": "subtype 4",
			"mongosh": "UUID('" + text + "')",
		},
		`BinData(3, "` + j64 + `")`: {
			"with standard": "subtype 3", "javaLegacy": text, "unspecified": "subtype 3", "mongosh": "Binary.createFromBase64('" + j64 + "', 3)",
		},
		`BinData(3, "` + c64 + `")`: {"csharpLegacy": text},
		`BinData(3, "` + s64 + `")`: {"pythonLegacy": text},
		`BinData(0, "` + s64 + `")`: {"with standard": "subtype 0", "pythonLegacy": "subtype 0"},
	} {
		drivers := explained(t, form, Options{}).UUID.Drivers
		for setting, print := range want {
			i := slices.IndexFunc(drivers, func(d DriverReading) bool { return strings.Contains(d.Driver, setting) })
			if i < 0 || !strings.Contains(drivers[i].Prints, print) {
				t.Errorf("%s, %s: want %s of %+v", form, setting, print, drivers)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, form := range []string{
		text, s, j64, `BinData(3,"` + j64 + `")`, `HexData(4, "` + s + `")`, `Binary.createFromBase64('` + c64 + `', 3)`,
		`Binary(Buffer.from("` + j + `", "hex"), 3)`, `JUUID("` + text + `")`, `{"$uuid": "` + text + `"}`,
		`{"$binary": {"base64": "` + j64 + `", "subType": "03"}}`, `{"$binary": "` + c64 + `", "$type": "03"}`,
		`ObjectId("699dfad90ca573f85c0eec1c")`, `{"$oid": "699dfad90ca573f85c0eec1c"}`, "UUID()",
		"{3 [119 102 85 68 51 34 17 0 255 238 221 204 187 170 153 136]}", `{"Subtype":3,"Data":"` + j64 + `"}`, `{"$uuid": "` + s + `"}`,
		`Binary(b'wfUD3"\x11\x00\xff\xee\xdd\xcc\xbb\xaa\x99\x88', 3)`, `UUID('` + text + `', 5)`, `BinData(3, ` + j + `)`, `Binary(b'` + text + `', 3)`, "{$", ")(",
	} {
		f.Add(form)
	}
	f.Fuzz(func(t *testing.T, form string) {
		v, err := Parse(form)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Errorf("%q: an error of more than one line: %v", form, err)
			}
			return
		}
		e := Explain(v, Options{})
		if _, err := json.Marshal(e); err != nil {
			t.Fatal(err)
		}
		if e.ObjectID != nil {
			if again, err := Parse(e.ObjectID.Paste); err != nil || *again.ObjectID != *v.ObjectID {
				t.Fatalf("%q: %s reads as %+v, %v", form, e.ObjectID.Paste, again, err)
			}
			return
		}
		for _, stored := range e.UUID.Stored {
			b, err := base64.StdEncoding.DecodeString(stored.Base64)
			rep, perr := uuidrep.Parse(stored.Representation)
			if err != nil || perr != nil {
				t.Fatal(err, perr)
			}
			u, err := uuidrep.AsWithRepresentation[uuid.UUID](bson.Binary{Subtype: stored.Subtype, Data: b}, rep)
			if err != nil || u.String() != e.UUID.Value.UUID {
				t.Fatalf("%q: %+v reads as %v, %v, want %s", form, stored, u, err, e.UUID.Value.UUID)
			}
		}
	})
}
