package mongotest

import (
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"
)

func TestConnString(t *testing.T) {
	for _, tt := range []struct{ uri, opts, want string }{
		{"mongodb://h", "", "mongodb://h/db"},
		{"mongodb://h/", "a=1", "mongodb://h/db?a=1"},
		{"mongodb://h/x?a=1", "b=2", "mongodb://h/db?a=1&b=2"},
		{"mongodb://h?a=1", "", "mongodb://h/db?a=1"},
		{"mongodb://h1:1,h2:2/?replicaSet=rs", "b=2", "mongodb://h1:1,h2:2/db?replicaSet=rs&b=2"},
		{"mongodb://[::1]:27017/", "", "mongodb://[::1]:27017/db"},
		{"mongodb://%2Ftmp%2Fmongodb.sock/x", "", "mongodb://%2Ftmp%2Fmongodb.sock/db"},
		{"mongodb+srv://h.example/x", "", "mongodb+srv://h.example/db"},
		// The database of the path authenticates the user. Without one it is admin.
		{"mongodb://u:p%40@h/x", "", "mongodb://u:p%40@h/db?authSource=x"},
		{"mongodb://u:p@h", "a=1", "mongodb://u:p@h/db?authSource=admin&a=1"},
		{"mongodb://u:p@h/x?AuthSource=y", "", "mongodb://u:p@h/db?AuthSource=y"},
	} {
		c, err := parseConnString(tt.uri)
		if err != nil {
			t.Errorf("%s: %v", tt.uri, err)
			continue
		}
		if got := c.with("db", tt.opts); got != tt.want {
			t.Errorf("%s with %q: got %s, want %s", tt.uri, tt.opts, got, tt.want)
		}
	}
}

// TestConnStringKeepsMeaning tests that the driver reads the same values from the string before and
// after, except the database.
func TestConnStringKeepsMeaning(t *testing.T) {
	for _, uri := range []string{
		"mongodb://localhost",
		"mongodb://u:p@localhost/x",
		"mongodb://u:p@localhost/?authMechanism=SCRAM-SHA-256",
		"mongodb://u:p%2F@a:1,b:2/x?authSource=y&replicaSet=rs&w=majority",
	} {
		before, err := connstring.ParseAndValidate(uri)
		if err != nil {
			t.Fatal(err)
		}
		c, err := parseConnString(uri)
		if err != nil {
			t.Fatal(err)
		}
		after, err := connstring.ParseAndValidate(c.with("db", ""))
		if err != nil {
			t.Fatal(err)
		}
		if after.Database != "db" {
			t.Errorf("%s: database %q", uri, after.Database)
		}
		type meaning struct{ hosts, user, password, source, mechanism, set, w string }
		of := func(c *connstring.ConnString) meaning {
			return meaning{strings.Join(c.Hosts, ","), c.Username, c.Password, c.AuthSource, c.AuthMechanism, c.ReplicaSet, c.WString}
		}
		if of(before) != of(after) {
			t.Errorf("%s: before %+v, after %+v", uri, of(before), of(after))
		}
	}
}

func TestConnStringErrors(t *testing.T) {
	for _, uri := range []string{"", "localhost:27017", "http://u:secret@h", "mongodb://", "mongodb://u:secret@/db"} {
		if _, err := parseConnString(uri); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: error %v", uri, err)
		}
	}
}

func TestDatabaseName(t *testing.T) {
	valid := regexp.MustCompile(`^[a-z0-9_]{1,63}$`)
	seen := make(map[string]bool)
	for _, test := range []string{"", "TestX", "TestX", "TestX/sub test#01", "Test\x00$./\\\"é", strings.Repeat("Long", 50)} {
		name := databaseName(test)
		if !valid.MatchString(name) || seen[name] {
			t.Errorf("%q: name %q", test, name)
		}
		seen[name] = true
	}
}
