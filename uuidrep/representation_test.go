package uuidrep_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/bsonids/bsonids/uuidrep"
)

// The values of the option as the specification's table spells them.
var spelled = map[uuidrep.Representation]string{
	uuidrep.Unspecified:  "unspecified",
	uuidrep.Standard:     "standard",
	uuidrep.CSharpLegacy: "csharpLegacy",
	uuidrep.JavaLegacy:   "javaLegacy",
	uuidrep.PythonLegacy: "pythonLegacy",
}

func TestZeroValueIsUnspecified(t *testing.T) {
	var r uuidrep.Representation
	if r != uuidrep.Unspecified {
		t.Errorf("the zero value is %v", r)
	}
}

func TestParseAndString(t *testing.T) {
	for r, name := range spelled {
		if r.String() != name {
			t.Errorf("String of %d: got %q, want %q", r, r, name)
		}
		for _, s := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
			got, err := uuidrep.Parse(s)
			if err != nil || got != r {
				t.Errorf("Parse(%q): got %v, %v; want %v", s, got, err, r)
			}
		}
		text, err := r.MarshalText()
		if err != nil || string(text) != name {
			t.Errorf("MarshalText of %v: got %q, %v", r, text, err)
		}
		var back uuidrep.Representation
		if err := back.UnmarshalText(text); err != nil || back != r {
			t.Errorf("UnmarshalText(%q): got %v, %v", text, back, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, s := range []string{
		"", " ", "standard ", " standard", "charpLegacy", "csharp_legacy", "C_SHARP_LEGACY", "legacy", "3",
		"\u017ftandard", "standard\x00", "javaLegacy,standard", "Representation(1)",
	} {
		r, err := uuidrep.Parse(s)
		if err == nil {
			t.Errorf("Parse(%q) is %v", s, r)
			continue
		}
		for _, name := range spelled {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("Parse(%q): %q does not list %s", s, err, name)
			}
		}
	}
	r := uuidrep.JavaLegacy
	if err := r.UnmarshalText([]byte("nonsense")); err == nil || r != uuidrep.JavaLegacy {
		t.Errorf("UnmarshalText of nonsense: %v, %v", r, err)
	}
}

func TestUnknownValue(t *testing.T) {
	for _, n := range []uint8{5, 9, 255} { // the constants are 0 to 4
		r := uuidrep.Representation(n)
		if want := fmt.Sprintf("Representation(%d)", n); r.String() != want {
			t.Errorf("got %q, want %q", r, want)
		}
		if text, err := r.MarshalText(); err == nil {
			t.Errorf("MarshalText gave %q", text)
		}
		if subtype, err := r.Subtype(); err == nil || subtype != 0 {
			t.Errorf("Subtype gave %d, %v", subtype, err)
		}
	}
	if subtype, err := uuidrep.Unspecified.Subtype(); !errors.Is(err, uuidrep.ErrUnspecified) || subtype != 0 {
		t.Errorf("Subtype of Unspecified gave %d, %v", subtype, err)
	}
}

func TestRepresentationInConfiguration(t *testing.T) {
	var config struct{ UUIDs uuidrep.Representation }
	if err := json.Unmarshal([]byte(`{"UUIDs":"javalegacy"}`), &config); err != nil || config.UUIDs != uuidrep.JavaLegacy {
		t.Errorf("JSON: got %v, %v", config.UUIDs, err)
	}
	fs := flag.NewFlagSet("test", flag.ContinueOnError)
	var r uuidrep.Representation
	fs.TextVar(&r, "uuid", uuidrep.Standard, "")
	if err := fs.Parse([]string{"-uuid", "csharpLegacy"}); err != nil || r != uuidrep.CSharpLegacy {
		t.Errorf("flag: got %v, %v", r, err)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range spelled {
		f.Add(name)
	}
	f.Add("STANDARD\x00")
	f.Add("\u017ftandard")
	f.Fuzz(func(t *testing.T, s string) {
		r, err := uuidrep.Parse(s)
		if err != nil {
			if r != uuidrep.Unspecified {
				t.Errorf("Parse(%q): %v beside an error", s, r)
			}
			return
		}
		if !strings.EqualFold(r.String(), s) {
			t.Errorf("Parse(%q) is %v", s, r)
		}
		if back, err := uuidrep.Parse(r.String()); err != nil || back != r {
			t.Errorf("Parse(%q): got %v, %v", r.String(), back, err)
		}
	})
}
