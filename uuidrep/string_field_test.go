package uuidrep_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/bsonids/bsonids/uuidrep"
)

func TestStringUUID(t *testing.T) {
	type doc struct {
		V    uuidrep.StringUUID
		P    *uuidrep.StringUUID
		Nil  *uuidrep.StringUUID
		S    []uuidrep.StringUUID
		M    map[string]uuidrep.StringUUID
		K    map[uuidrep.StringUUID]int32
		Zero uuidrep.StringUUID
		Omit uuidrep.StringUUID `bson:",omitempty"`
	}
	u := uuidrep.StringUUID{UUID: testUUID}
	in := doc{V: u, P: &u, S: []uuidrep.StringUUID{u}, M: map[string]uuidrep.StringUUID{"k": u}, K: map[uuidrep.StringUUID]int32{u: 1}}
	raw := marshal(t, in)
	const text = "00112233-4455-6677-8899-aabbccddeeff" // RFC 9562, section 4: lower case on output
	for _, path := range [][]string{{"v"}, {"p"}, {"s", "0"}, {"m", "k"}} {
		if s, ok := raw.Lookup(path...).StringValueOK(); !ok || s != text {
			t.Errorf("%v: got %v", path, raw.Lookup(path...))
		}
	}
	if raw.Lookup("k", text).Type == 0 || raw.Lookup("zero").StringValue() != uuid.Nil.String() || raw.Lookup("omit").Type != 0 {
		t.Errorf("got %v", raw)
	}
	var out doc
	if err := bson.Unmarshal(raw, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("got %v, %v", out, err)
	}
	if b, err := json.Marshal(u); err != nil || string(b) != `"`+text+`"` {
		t.Errorf("JSON: %s, %v", b, err)
	}
}

func TestStringUUIDReads(t *testing.T) {
	type doc struct{ V uuidrep.StringUUID }
	text := testUUID.String()
	for _, s := range []string{text, strings.ToUpper(text), "{" + text + "}", "urn:uuid:" + text, strings.ReplaceAll(text, "-", "")} {
		var d doc
		if err := bson.Unmarshal(marshal(t, bson.M{"v": s}), &d); err != nil || d.V.UUID != testUUID {
			t.Errorf("%q: got %v, %v", s, d.V, err)
		}
	}
	for _, v := range []any{bson.Null{}, bson.Undefined{}} {
		d := doc{uuidrep.StringUUID{UUID: testUUID}}
		if err := bson.Unmarshal(marshal(t, bson.M{"v": v}), &d); err != nil || !d.V.IsZero() {
			t.Errorf("%T: got %v, %v", v, d.V, err)
		}
	}
	for _, v := range []any{
		"", "x", text[1:], text + " ", "x" + text + "y", text + "\x00", strings.Repeat("0", 1<<20), bson.Symbol(text),
		uuidrep.NewBinary(testUUID), bson.Binary{Data: octetsStandard}, int32(1), bson.D{}, bson.A{}, true, bson.NewObjectID(),
	} {
		d := doc{uuidrep.StringUUID{UUID: testUUID}}
		err := bson.Unmarshal(marshal(t, bson.M{"v": v}), &d)
		if err == nil || !strings.Contains(err.Error(), "uuidrep: ") || d.V.UUID != testUUID {
			t.Errorf("%T: got %v, %v", v, d.V, err)
		}
	}
}

func TestStringUUIDTruncated(t *testing.T) {
	whole := append(append([]byte{37, 0, 0, 0}, testUUID.String()...), 0)
	for n := range whole {
		u := uuidrep.StringUUID{UUID: testUUID}
		err := u.UnmarshalBSONValue(byte(bson.TypeString), whole[:n])
		if err == nil || !strings.Contains(err.Error(), "truncated") || u.UUID != testUUID {
			t.Errorf("%d octets: got %v, %v", n, u, err)
		}
	}
}

func FuzzStringUUID(f *testing.F) {
	text := testUUID.String()
	f.Add(byte(2), append(append([]byte{37, 0, 0, 0}, text...), 0))
	f.Add(byte(2), append([]byte{37, 0, 0, 0}, text...))
	f.Add(byte(2), []byte{0, 0, 0, 0})
	f.Add(byte(2), []byte{0xFF, 0xFF, 0xFF, 0xFF, 0})
	f.Add(byte(2), []byte{1})
	f.Add(byte(10), []byte{})
	f.Fuzz(func(t *testing.T, typ byte, data []byte) {
		u := uuidrep.StringUUID{UUID: testUUID}
		if err := u.UnmarshalBSONValue(typ, data); err != nil {
			if u.UUID != testUUID {
				t.Errorf("changed to %v by an error", u)
			}
			return
		}
		backType, back, err := u.MarshalBSONValue()
		if err != nil || backType != 2 || len(back) != 41 || binary.LittleEndian.Uint32(back) != 37 || bytes.IndexByte(back[4:], 0) != 36 {
			t.Errorf("%v is written as %d %X, %v", u, backType, back, err)
		}
		again := uuidrep.StringUUID{}
		if err := again.UnmarshalBSONValue(backType, back); err != nil || again != u {
			t.Errorf("%v comes back as %v, %v", u, again, err)
		}
	})
}
