package uuidtext_test

import (
	"strings"
	"testing"

	"github.com/bsonids/bsonids/internal/uuidtext"
	"github.com/google/uuid"
)

func TestParse(t *testing.T) {
	want := uuid.UUID{0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xAA, 0xBB, 0xCC, 0xDD, 0xEE, 0xFF}
	for _, s := range []string{
		"00112233-4455-6677-8899-aabbccddeeff", "00112233-4455-6677-8899-AABBCCDDEEFF", "00112233445566778899aabbccddeeff",
		"{00112233-4455-6677-8899-aabbccddeeff}", "urn:uuid:00112233-4455-6677-8899-aabbccddeeff",
	} {
		if u, err := uuidtext.Parse(s); err != nil || u != want {
			t.Errorf("Parse(%q): got %v, %v", s, u, err)
		}
	}
	for _, s := range []string{
		"", "x", "00112233-4455-6677-8899-aabbccddeef", "00112233-4455-6677-8899-aabbccddeefff", "00112233-4455-6677-8899-aabbccddeefg",
		"x00112233-4455-6677-8899-aabbccddeeffy", "00112233-4455-6677-8899-aabbccddeeff ", "00112233x4455-6677-8899-aabbccddeeff",
		"urn:oid_:00112233-4455-6677-8899-aabbccddeeff",
	} {
		if u, err := uuidtext.Parse(s); err == nil || u != uuid.Nil {
			t.Errorf("Parse(%q): got %v, %v", s, u, err)
		}
	}
}

func TestParseBinary(t *testing.T) {
	const text, digits = "00112233-4455-6677-8899-aabbccddeeff", "00112233445566778899aabbccddeeff"
	for _, s := range []string{text, digits, strings.ToUpper(text), strings.ToUpper(digits), "00000000-0000-0000-0000-000000000000"} {
		for subtype := range 256 {
			want := subtype == 0 || subtype == 2 || subtype == 3 || subtype == 4
			if u, ok := uuidtext.ParseBinary(byte(subtype), []byte(s)); ok != want || ok && u != uuid.MustParse(s) {
				t.Errorf("%q in subtype %d: got %v, %v", s, subtype, u, ok)
			}
		}
	}
	for _, s := range []string{
		"", digits[:16], digits[:31], digits + "0", text[:35], text + "0", text + "\x00", "{" + text + "}", "urn:uuid:" + text, "g" + digits[1:], "g" + text[1:],
		"001122334455-6677-8899-aabbccddeeff-", digits + "    ", text[:35] + "\xff", "\x00" + digits[1:],
	} {
		for _, subtype := range []byte{0, 2, 3, 4} {
			if u, ok := uuidtext.ParseBinary(subtype, []byte(s)); ok || u != uuid.Nil {
				t.Errorf("%q in subtype %d: got %v, %v", s, subtype, u, ok)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("00112233-4455-6677-8899-aabbccddeeff")
	f.Add("{00112233-4455-6677-8899-aabbccddeeff]")
	f.Fuzz(func(t *testing.T, s string) {
		u, err := uuidtext.Parse(s)
		if err != nil {
			if u != uuid.Nil {
				t.Errorf("Parse(%q): %v beside an error", s, u)
			}
			return
		}
		if back, err := uuidtext.Parse(u.String()); err != nil || back != u {
			t.Errorf("Parse(%q): %v comes back as %v, %v", s, u, back, err)
		}
	})
}
