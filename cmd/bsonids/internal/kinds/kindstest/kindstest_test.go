package kindstest

import (
	"encoding/hex"
	"testing"
)

// Value returns the bytes that the UUID document of the driver specifications gives.
func TestValue(t *testing.T) {
	for kind, want := range map[string]struct {
		subtype byte
		octets  string
	}{
		"standard":     {4, "00112233445566778899aabbccddeeff"},
		"pythonLegacy": {3, "00112233445566778899aabbccddeeff"},
		"csharpLegacy": {3, "33221100554477668899aabbccddeeff"},
		"javaLegacy":   {3, "7766554433221100ffeeddccbbaa9988"},
		"generic":      {0, "00112233445566778899aabbccddeeff"},
	} {
		if v := Value(kind); v.Subtype != want.subtype || hex.EncodeToString(v.Data) != want.octets {
			t.Errorf("%s: %v, want %+v", kind, v, want)
		}
	}
}
