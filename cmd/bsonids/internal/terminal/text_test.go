package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
)

// hostile is a name of a collection or a field with an escape sequence, a bidirectional mark (UAX
// #9), a soft hyphen, a tag and a byte that is not UTF-8.
const hostile = "a\x1b]0;x\x07b\u202ec\u2066d\u200fe\u00adf\U000e0041g\u2028h\x9bi\u0085j"

func TestNamesAreNotObeyed(t *testing.T) {
	var written, bar bytes.Buffer
	if _, err := NewWriter(&written).Write([]byte(hostile + "\n")); err != nil {
		t.Fatal(err)
	}
	p := NewBar(&bar, 10, "x"+hostile)
	p.Add(3)
	p.Done()
	// The bar itself moves to the beginning of its line and clears it.
	drawn := strings.NewReplacer("\r", "", "\x1b[K", "", "\x1b[2K", "").Replace(bar.String())
	if !strings.Contains(drawn, "x") {
		t.Errorf("no bar: %q", bar.String())
	}
	for what, s := range map[string]string{"writer": written.String(), "progress": drawn, "line": Line(hostile + "\n"), "cell": Cell(hostile + "\n\t")} {
		for _, r := range s {
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Bidi_Control) && r != '\n' {
				t.Errorf("%s has %U: %q", what, r, s)
			}
		}
		if strings.Contains(s, "\x9b") || strings.Contains(s, "\u2028") {
			t.Errorf("%s: %q", what, s)
		}
	}
	// Ordinary text is unchanged.
	for _, s := range []string{"Größe", "نمی\u200cخواهم", "👩\u200d💻", "id\n"} {
		if got := strings.Map(Visible, s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
}
