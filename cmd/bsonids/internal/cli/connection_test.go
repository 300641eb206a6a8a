package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

// The driver reads back the password that was typed.
func TestPasswordPrompt(t *testing.T) {
	for _, tt := range []struct {
		uri, user string
		asks      bool
	}{
		{"mongodb://u@h/?authSource=admin", "u", true},
		{"mongodb://me%40example.org@h1,h2:27018", "me@example.org", true},
		{"mongodb://u:p@h", "", false},
		{"mongodb://u:@h", "", false},
		{"mongodb://h/?x=a@b", "", false},
		{"mongodb://h", "", false},
		{"mongodb://CN=me@h/?authMechanism=MONGODB-X509", "", false},
		{"mongodb://u@h/?tls=true&authMechanism=gssapi&x=1", "", false},
		{"", "", false},
	} {
		user, asks := withoutPassword(tt.uri)
		if user != tt.user || asks != tt.asks {
			t.Errorf("%s: %q, %v", tt.uri, user, asks)
		}
		if !asks {
			continue
		}
		for _, password := range []string{"p", "a b+c%d/e@f:g?h#i", "ü\"'$"} {
			cs, err := connstring.Parse(withPassword(tt.uri, password))
			if err != nil || cs.Username != tt.user || cs.Password != password {
				t.Errorf("%s: %v, %+v", tt.uri, err, cs)
			}
		}
	}
}

// The connection string in a file is used, and its password is not in any output.
func TestURIFile(t *testing.T) {
	t.Setenv("MONGODB_URI", "mongodb://elsewhere.invalid")
	const secret = "s3cr3t-p4ss"
	dir := t.TempDir()
	for content, want := range map[string]struct {
		code int
		text string
	}{
		"mongodb://u:" + secret + "@127.0.0.1:1/?serverSelectionTimeoutMS=200\n": {failure.ExitUnreachable, "127.0.0.1:1"},
		"mongodb://u:" + secret + "@h:x:y\n":                                     {failure.ExitUsage, "connection string"},
		"\n":                                                                     {failure.ExitUsage, "--uri-file"},
		"mongodb://u:" + secret + "@a\nmongodb://b":                              {failure.ExitUsage, "--uri-file"},
		strings.Repeat("x", 70<<10):                                              {failure.ExitUsage, "--uri-file"},
	} {
		path := filepath.Join(dir, "uri")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		r := command(t, "scan", "--uri-file", path)
		if r.code != want.code || !strings.Contains(r.stderr, want.text) || strings.Contains(r.stdout+r.stderr, secret) {
			t.Errorf("%.40q: %d %s%s", content, r.code, r.stdout, r.stderr)
		}
	}
	command(t, "scan", "--uri-file", filepath.Join(dir, "none")).want(t, failure.ExitUsage)
	command(t, "scan", "--uri-file", "/dev/zero").want(t, failure.ExitUsage)
}
