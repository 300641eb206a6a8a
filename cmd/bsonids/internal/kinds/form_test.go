package kinds

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// The spellings are those of RFC 9562, section 4: hyphens and digits of either case, and the URN.
// The digits are those of its first example.
func TestParseText(t *testing.T) {
	const hyphens, digits = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "f81d4fae7dec11d0a76500a0c91e6bf6"
	want := [16]byte{0xf8, 0x1d, 0x4f, 0xae, 0x7d, 0xec, 0x11, 0xd0, 0xa7, 0x65, 0x00, 0xa0, 0xc9, 0x1e, 0x6b, 0xf6}
	for text, certain := range map[string]bool{hyphens: true, digits: false, "{" + hyphens + "}": true, "urn:uuid:" + hyphens: true,
		"URN:UUID:" + hyphens: true, "f81D4fAe-7dec-11d0-A765-00a0c91e6bF6": true} {
		for _, s := range []string{text, strings.ToUpper(text)} {
			if got, ok := ParseText([]byte(s)); !ok || got.UUID != want || got.Certain != certain {
				t.Errorf("%s: %+v, %v", s, got, ok)
			}
		}
	}
	for _, s := range []string{"", " " + hyphens, hyphens + "\n", "(" + hyphens + ")", "{" + hyphens + "]", "{" + digits + "}", "urn:uuid:" + digits,
		"guid:uuid" + hyphens, digits[:31], digits + "0", strings.Repeat("-", 36), strings.Repeat("-", 32), "f81d4fae-7dec-11d0-a765-00a0c91e6bfg",
		"f81d4fae7dec-11d0-a765-00a0c91e-6bf6", strings.Replace(hyphens, "-", "_", 1), strings.Replace(hyphens, "f8", "ｆ", 1)} {
		if got, ok := ParseText([]byte(s)); ok {
			t.Errorf("%q is %x", s, got.UUID)
		}
	}
}

// No text with one wrong character is read, and none is read as the UUID of another.
func TestParseTextNearly(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 2000 {
		var u [16]byte
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		digits := fmt.Sprintf("%x", u)
		hyphens := strings.Join([]string{digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]}, "-")
		s := []string{digits, hyphens, "{" + hyphens + "}", "urn:uuid:" + hyphens}[r.IntN(4)]
		if got, ok := ParseText([]byte(s)); !ok || got.UUID != u {
			t.Fatalf("%s: %x, %v", s, got.UUID, ok)
		}
		i := r.IntN(len(s))
		for _, c := range []string{"", "g", "x", " ", "\x00", s[i:i+1] + "0"} {
			if wrong := s[:i] + c + s[i+1:]; len(wrong) != len(s) || c != s[i:i+1] {
				if got, ok := ParseText([]byte(wrong)); ok {
					t.Fatalf("%q is %x", wrong, got.UUID)
				}
			}
		}
	}
}
