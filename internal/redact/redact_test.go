package redact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for _, c := range []struct {
		secrets Secrets
		text    string
		want    string
	}{
		{nil, "text", "text"},
		{Secrets{""}, "text", "text"},
		{Secrets{"secret"}, "a secret, secrets", "a [redacted], [redacted]s"},
		{Secrets{"secretsecret", "secret"}, "secretsecretsecret", "[redacted]"},
		{Secrets{"aXaXa"}, "aXaXaXa-", "[redacted]-"},
		{Secrets{"abcd", "cdef"}, "x abcdef", "x [redacted]"},
		{Secrets{"one", "two"}, "one,two", "[redacted],[redacted]"},
		{Secrets{"[redacted]"}, "x", "x"},
		{Secrets{"redacted", "abcd"}, "abcd", "[redacted]"},
		{Secrets{"abc"}, "abcd abc", "abcd [redacted]"},
		{Secrets{"abcd"}, "abcde abcd", "[redacted]e [redacted]"},
		{Secrets{"at"}, "at that @at, at", "[redacted] that @[redacted], [redacted]"},
		{Secrets{"a\"b\n"}, "is \"a\\\"b\\n\"", "is \"[redacted]\""},
		{Secrets{"p\xffss"}, `"p\xffss"`, `"[redacted]"`},
		{Secrets{"grün"}, "grün", "[redacted]"},
		{Secrets{"SeCret"}, "İ SECRET secret", "İ [redacted] [redacted]"},
		{nil, `prohibited rune: '\u0007'`, `prohibited rune: '[redacted]'`},
	} {
		if got := c.secrets.Text(c.text); got != c.want {
			t.Errorf("%q without %q: %q, want %q", c.text, c.secrets, got, c.want)
		}
	}
}

func TestError(t *testing.T) {
	s := Secrets{"hush4you"}
	if err := s.Error(nil); err != nil {
		t.Error(err)
	}
	if err := s.Error(fs.ErrExist); err != fs.ErrExist {
		t.Errorf("an error without a secret became %#v", err)
	}
	cause := &fs.PathError{Op: "open", Path: "/hush4you", Err: fs.ErrNotExist}
	err := s.Error(fmt.Errorf("x: %w", cause))
	if want := "x: open /[redacted]: file does not exist"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	var pathErr *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.As(err, &pathErr) || errors.Unwrap(err) != nil {
		t.Errorf("%#v", err)
	}
}

// Each row holds a secret and a text in which an error could show it.
func TestConnectionString(t *testing.T) {
	const secret = "Hush4you"
	for _, c := range []struct{ uri, text string }{
		{"mongodb://u:Hush4you@h/", "Hush4you"},
		{"mongodb://u:%48ush4you@h/", "Hush4you and %48ush4you"},
		{"mongodb:/u:Hush4you@h/", "Hush4you"},
		{"u:Hush4you@h/", "Hush4you"},
		{"mongodb://u:p@Hush4you@h/", "p@Hush4you, Hush4you@h"},
		{"mongodb://u:p@h/?maxPoolSize=Hush4you@h/", "Hush4you@h/"},
		{"mongodb://Hush4you", "mongodb://Hush4you"},
		{"mongodb://h/?connectTimeoutMS=Hush%34you?w=1", "Hush4you?w=1"},
		{"mongodb://u:p?connectTimeoutMS=%48ush4you?w=1&x=Hush%34you", "Hush4you?w=1, Hush4you and Hush%34you"},
		{"mongodb://h/?w=1?Hush%34you=1", "the option Hush4you=1"},
		{"mongodb://h/?tlsCertificateKeyFilePassword=Hush4you", "Hush4you"},
		{"mongodb://h/?tlsCertificateKeyFilePassword=a@Hush4you", "a@Hush4you"},
		{"mongodb://h/?PROXYPASSWORD=Hush4you&w=1", "hush4you"},
		{"mongodb://h/?proxyPassword=%48ush4you%", "%48ush4you%"},
		{"mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:Hush4you", "Hush4you"},
		{"mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:a,Hush4you:b", "Hush4you"},
		{"mongodb://h/?authMechanismProperties=ENVIRONMENT:azure?AWS_SESSION_TOKEN:Hush4you", "azure?AWS_SESSION_TOKEN:Hush4you"},
		{"mongodb://h/?tls=true?tlsCertificateKeyFilePassword=Hush4you", "true?tlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/?tls=true%26tlsCertificateKeyFilePassword=Hush4you", "true&tlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/?tls=true%26tlsCertificateKeyFilePassword%3DHush4you", "true&tlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/?tls=true%2526tlsCertificateKeyFilePassword%253DHush4you", "true%26tlsCertificateKeyFilePassword%3DHush4you"},
		{"mongodb://h/?tls=true,tlsCertificateKeyFilePassword=Hush4you", "true,tlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/?tls=truetlsCertificateKeyFilePassword=Hush4you", "truetlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/?tls=true tlsCertificateKeyFilePassword = Hush4you", "true tlsCertificateKeyFilePassword = Hush4you"},
		{"mongodb://h/?w=1%26authMechanismProperties=AWS_SESSION_TOKEN:Hush4you", "Hush4you"},
		{"mongodb://h/?w=1?authMechanismProperties=AWS_SESSION_TOKEN:a,Hush4you:b", "Hush4you"},
		{"mongodb://h&tlsCertificateKeyFilePassword=Hush4you", "lookup h&tlsCertificateKeyFilePassword=Hush4you"},
		{"mongodb://h/db&tlsCertificateKeyFilePassword=Hush4you", "Hush4you"},
	} {
		got := ConnectionString(c.uri).Text(c.text)
		if strings.Contains(strings.ToLower(got), strings.ToLower(secret)) {
			t.Errorf("%s: %s", c.uri, got)
		}
	}
	if s := ConnectionString(""); len(s) != 0 {
		t.Errorf("%q has secrets %q", "", s)
	}
}

// What is not secret stays readable.
func TestNotSecret(t *testing.T) {
	for _, c := range []struct{ uri, text string }{
		{"mongodb://user:password@host/?maxPoolSize=x", `invalid value for "maxPoolSize": "x", host`},
		{"mongodb://h/?tls=true&tlsCAFile=/run/secrets/password/ca.pem", "open /run/secrets/password/ca.pem"},
		{"mongodb+srv://secret.example.com/passwords?w=1", "lookup secret.example.com: passwords"},
		{"mongodb://h/?authMechanismProperties=ENVIRONMENT:azur,SERVICE_NAME:x", `azur "ENVIRONMENT" x SERVICE_NAME`},
		{"mongodb://u:p@h/?appName=a?b=c", `port "appName"`},
		{"mongodb://u:p@h/?appName=a%20b", `invalid value for "appName": "a b"`},
	} {
		if got := ConnectionString(c.uri).Text(c.text); got != c.text {
			t.Errorf("%s: %s", c.uri, got)
		}
	}
}

// A program that imports the package does not compile its expressions before main.
func TestInitialization(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Skip(err)
	}
	cmd := exec.Command(program, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("cannot run the test again: %v", err)
	}
	if !strings.Contains(string(out), "init runtime @") {
		t.Skipf("no trace of initialization: %s", out)
	}
	// A package without work at its start has no line.
	trace := regexp.MustCompile(`(?m)^init \S+/internal/redact @.* (\d+) allocs$`).FindSubmatch(out)
	if trace == nil {
		return
	}
	if allocs, err := strconv.Atoi(string(trace[1])); err != nil || allocs > 20 {
		t.Errorf("%s", trace[0])
	}
}
