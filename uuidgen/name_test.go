package uuidgen

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// The vectors of RFC 9562, appendices A.4 and B.2.
func TestNameBased(t *testing.T) {
	for want, f := range map[string]func() (uuid.UUID, error){
		"2ed6657d-e927-568b-95e1-2665a8aea6a2": func() (uuid.UUID, error) {
			return NewV5(uuid.NameSpaceDNS, "www.example.com")
		},
		"5c146b14-3c52-8afd-938a-375d0df1fbf6": func() (uuid.UUID, error) {
			return NewV8SHA256(uuid.NameSpaceDNS, []byte("www.example.com"))
		},
	} {
		if u, err := f(); err != nil || u.String() != want {
			t.Errorf("%v, %v, want %s", u, err, want)
		}
	}
	// Another implementation, of names short and long.
	for n := range 200 {
		name := strings.Repeat("x", n)
		if u, err := NewV5(uuid.NameSpaceURL, name); err != nil || u != uuid.NewSHA1(uuid.NameSpaceURL, []byte(name)) {
			t.Errorf("%q: %v, %v", name, u, err)
		}
	}
}

// SHA-1 is refused with an error, not with a panic, if the program allows functions of FIPS 140
// alone. Everything else works there.
func TestFIPS(t *testing.T) {
	const variable = "UUIDGEN_TEST_FIPS"
	if os.Getenv(variable) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestFIPS$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1", "GODEBUG=fips140=only")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "refused") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	if u, err := NewV5(uuid.NameSpaceDNS, "name"); !errors.Is(err, ErrHash) || u != uuid.Nil {
		t.Errorf("version 5: %v, %v", u, err)
	} else {
		t.Log("refused:", err)
	}
	if u, err := NewV8SHA256(uuid.NameSpaceDNS, "name"); err != nil || u.Version() != 8 {
		t.Errorf("version 8: %v, %v", u, err)
	}
	for name := range timed {
		newUUID(t, newTimed(t, name))
	}
	newUUID(t, newGen(t, 4))
}
