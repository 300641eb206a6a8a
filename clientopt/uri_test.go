package clientopt

import (
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/uuidrep"
)

func TestRepresentation(t *testing.T) {
	refuseDNS(t)
	const (
		unspecified = uuidrep.Unspecified
		standard    = uuidrep.Standard
		java        = uuidrep.JavaLegacy
		csharp      = uuidrep.CSharpLegacy
		python      = uuidrep.PythonLegacy
	)
	for _, c := range []struct {
		uri  string
		want uuidrep.Representation
	}{
		{"mongodb://h", unspecified},
		{"mongodb://h/", unspecified},
		{"mongodb://h/?", unspecified},
		{"mongodb://h/uuidRepresentation=standard", unspecified}, // a database
		{"mongodb://uuidRepresentation=standard@h/", unspecified},
		{"mongodb://h/?appName=uuidRepresentation%3Dstandard", unspecified},
		{"mongodb://h/?xuuidRepresentation=standard&uuidRepresentationx=standard", unspecified},

		{"mongodb://h/?uuidRepresentation=unspecified", unspecified},
		{"mongodb://h/?uuidRepresentation=standard", standard},
		{"mongodb://h/?uuidRepresentation=csharpLegacy", csharp},
		{"mongodb://h/?uuidRepresentation=javaLegacy", java},
		{"mongodb://h/?uuidRepresentation=pythonLegacy", python},

		{"mongodb://h/?UUIDREPRESENTATION=JAVALEGACY", java},
		{"mongodb://h/?uuidrepresentation=Pythonlegacy", python},
		{"mongodb://h/?uuid%52epresentation=%73tandard", standard},
		{"mongodb://h/?%75%75%69%64representation=java%4Cegacy", java},

		{"mongodb://h/?uuidRepresentation=standard&uuidRepresentation=standard", standard},
		{"mongodb://h/?uuidRepresentation=standard&UuidRepresentation=STANDARD", standard},
		{"mongodb://h/?w=1&uuidRepresentation=standard&retryWrites=false", standard},
		{"mongodb://h/?w=1;uuidRepresentation=standard;retryWrites=false", standard},
		{"mongodb://h/?w=1;uuidRepresentation=standard&retryWrites=false", standard},
		{"mongodb://h/?&;&uuidRepresentation=standard;;", standard},
		{"mongodb://h/?maxPoolSize=not-a-number&uuidRepresentation=standard", standard}, // not this function's to judge

		{"mongodb://a:1,b:2,[::1]:27017/db?uuidRepresentation=standard", standard},
		{"mongodb://%2Ftmp%2Fmongodb-27017.sock/?uuidRepresentation=standard", standard},
		{"mongodb://u:p%40%2F%3F%3A@h/db%3F?uuidRepresentation=standard", standard},
		{"mongodb://u:p?uuidRepresentation=javaLegacy@h/?uuidRepresentation=standard", standard},
		{"mongodb://u:p@h/?appName=a@b&uuidRepresentation=standard", standard},
		{"mongodb://u:p@h/db@x?uuidRepresentation=standard", standard},
		{"mongodb://h/?uuidRepresentation=standard&appName=a?b=c", standard},

		{"mongodb+srv://cluster.example.com/?uuidRepresentation=javaLegacy", java},
		{"mongodb+srv://u:p@cluster.example.com/db?w=majority;UUIDRepresentation=javaLegacy", java},
	} {
		got, err := Representation(c.uri)
		if got != c.want || err != nil {
			t.Errorf("Representation(%q) = %v, %v, want %v", c.uri, got, err, c.want)
		}
		if strings.Contains(c.uri, "not-a-number") {
			continue
		}
		// The driver itself must take every string of this table, and find the same values.
		cs, err := connstring.Parse(strings.Replace(c.uri, "mongodb+srv:", "mongodb:", 1))
		if err != nil {
			t.Errorf("the driver refuses %q: %v", c.uri, err)
			continue
		}
		values := cs.Options["uuidrepresentation"]
		if len(values) == 0 && c.want != unspecified {
			t.Errorf("the driver finds none in %q", c.uri)
		}
		for _, v := range values {
			if !strings.EqualFold(v, c.want.String()) {
				t.Errorf("the driver finds %q in %q", values, c.uri)
			}
		}
	}
}

func TestRepresentationErrors(t *testing.T) {
	refuseDNS(t)
	for _, c := range []struct{ uri, want string }{
		{"mongodb://h/?uuidRepresentation=", `unknown UUID representation ""`},
		{"mongodb://h/?uuidRepresentation=bogus", `unknown UUID representation "bogus": the valid ones are unspecified, standard, csharpLegacy, javaLegacy, pythonLegacy`},
		{"mongodb://h/?uuidRepresentation=+standard", `" standard"`},
		{"mongodb://h/?uuidRepresentation=standard\n", `"standard\n"`},
		{"mongodb://h/?uuidRepresentation=standard,javaLegacy", "unknown"},
		{"mongodb://h/?uuidRepresentation=standard&uuidRepresentation=", "unknown"},
		{"mongodb://h/?uuidRepresentation=standard&uuidRepresentation=javaLegacy", "twice, to standard and to javaLegacy"},
		{"mongodb://h/?uuidRepresentation=unspecified;UUIDREPRESENTATION=standard", "twice, to unspecified and to standard"},
		{"mongodb+srv://h.example.com/?uuidRepresentation=bogus", "bogus"},

		{"", "must begin with mongodb://"},
		{"h/?uuidRepresentation=standard", "must begin with"},
		{"MONGODB://h/?uuidRepresentation=standard", "must begin with"},
		{" mongodb://h/", "must begin with"},
		{"mongodb:h/", "must begin with"},
		{"mongodb://h?uuidRepresentation=standard", "a / between the hosts and the ?"},
		{"mongodb://u:p@q@h/?uuidRepresentation=standard", "has an @"},
		{"mongodb://u:p/q@h/", "the password has a /: write it as %2F"},
		{"mongodb://u/q:p@h/", "the user name has a /"},
		{"mongodb://h/?appName=a@b", "an @ elsewhere as %40"}, // no user name at all, but the first @ ends one
		{"mongodb://h:27017/?appName=a@b", "an @ elsewhere as %40"},
		{"mongodb://u:p:q@h/", "the password has a :"},
		{"mongodb://u:p%q@h/", "percent-encoding of the password"},
		{"mongodb://u%:p@h/", "percent-encoding of the user name"},
		{"mongodb://h%/", "host 1 of 1 has percent-encoding"},
		{"mongodb://h,user:secret/", "host 2 of 2 has a port that is not a number from 1 to 65535; a user name"},
		{"mongodb://a:b:c/", "is not host or host:port"},
		{"mongodb://[::1/", "is not host or host:port"},
		{"mongodb://h:0/", "port"},
		{"mongodb://h:65536/", "port"},
		{"mongodb://h/d%b?", "database"},
		{"mongodb://h/?uuidRepresentation", "option 1 has not the form"},
		{"mongodb://h/?w=1&=standard", "option 2 has not the form"},
		{"mongodb://h/?w=1&;uuid%Representation=standard", "percent-encoding of option 2"},
		{"mongodb://h/?uuidRepresentation=%standard", "percent-encoding of option 1"},
		{"mongodb://h/?uuidRepresentation=standard&appName=50%", "percent-encoding of option 2"},
	} {
		got, err := Representation(c.uri)
		if err == nil || got != uuidrep.Unspecified {
			t.Errorf("Representation(%q) = %v, %v", c.uri, got, err)
			continue
		}
		if msg := err.Error(); !strings.HasPrefix(msg, "clientopt: ") || !strings.Contains(msg, c.want) {
			t.Errorf("Representation(%q): %q does not hold %q", c.uri, msg, c.want)
		}
		if opts, err := ApplyURI(c.uri); err == nil || opts != nil {
			t.Errorf("ApplyURI(%q) = %v, %v", c.uri, opts, err)
		}
		if client, err := Connect(c.uri); err == nil || client != nil {
			t.Errorf("Connect(%q) = %v, %v", c.uri, client, err)
		}
	}
}

// checkAgainstDriver compares parse with the driver's own parser, without DNS.
func checkAgainstDriver(t *testing.T, uri string) {
	t.Helper()
	plain := uri
	if rest, ok := strings.CutPrefix(uri, "mongodb+srv://"); ok {
		plain = "mongodb://" + rest
	}
	ours, err := parse(uri)
	theirs, driverErr := connstring.Parse(plain)

	if driverErr == nil {
		if err != nil {
			t.Fatalf("%q: the driver takes it, parse says %v", uri, err)
		}
		got := map[string][]string{}
		for _, o := range ours.options {
			got[o.name] = append(got[o.name], o.value)
		}
		if len(got) != len(theirs.Options) {
			t.Fatalf("%q: options %q, the driver's %q", uri, got, theirs.Options)
		}
		for name, values := range theirs.Options {
			if !slices.Equal(got[name], values) {
				t.Fatalf("%q: option %q is %q, the driver's %q", uri, name, got[name], values)
			}
		}
		return
	}
	if err == nil {
		// The form is good and an option or the absence of hosts is not: the driver quotes whole values at most.
		for _, form := range []string{"invalid host", "invalid option", "invalid database", "invalid username",
			"invalid password", "unescaped", "scheme must be", "must have a"} {
			if strings.Contains(driverErr.Error(), form) && !strings.Contains(driverErr.Error(), "must have at least 1") {
				t.Fatalf("%q: parse takes it, the driver says %v", uri, driverErr)
			}
		}
		return
	}
	// Both refuse it. The driver's checks of single options come last, so it must be for the form.
	for _, value := range []string{"invalid value", "conflict", "auth source", "auth mechanism"} {
		if strings.Contains(driverErr.Error(), value) && !strings.Contains(err.Error(), "option") {
			t.Fatalf("%q: the driver comes as far as %v, parse says %v", uri, driverErr, err)
		}
	}
}

// FuzzRepresentation holds Representation against the driver's own parser: the same strings, the same options.
func FuzzRepresentation(f *testing.F) {
	for _, uri := range []string{
		"mongodb://h/?uuidRepresentation=standard",
		"mongodb+srv://u:p@h.example.com/db?UUIDRepresentation=javaLegacy;w=1",
		"mongodb://u:p%40@a:1,b,[::1]:2,%2Ftmp%2Fx.sock/d%2Fb?uuid%52epresentation=standard&&appName=a+b",
		"mongodb://user:secret/host?uuidRepresentation=standard",
		"mongodb://u:p?x@h/?a=b@c",
		"mongodb://h/?uuidRepresentation=standard&uuidRepresentation=javaLegacy",
		"mongodb://h/?uu\u0130dRepresentation=standard", // a capital I with a dot, whose lower case begins with i
		"mongodb://h/?authMechanismProperties=A:b,C:d&authMechanism=MONGODB-AWS",
		"mongodb://h?x=y", "mongodb://a@b@c/", "mongodb://", "mongodb:///", "",
	} {
		f.Add(uri)
	}
	refuseDNS(f)
	f.Fuzz(func(t *testing.T, uri string) {
		checkAgainstDriver(t, uri)
		r, err := Representation(uri)
		if err != nil {
			if r != uuidrep.Unspecified || !strings.HasPrefix(err.Error(), "clientopt: ") {
				t.Fatalf("%q: %v, %v", uri, r, err)
			}
			return
		}
		if strings.HasPrefix(uri, "mongodb+srv:") {
			return
		}
		cs, driverErr := connstring.Parse(uri)
		if driverErr != nil {
			return
		}
		values := cs.Options["uuidrepresentation"]
		if len(values) == 0 && r != uuidrep.Unspecified {
			t.Fatalf("%q: %v, and the driver finds none", uri, r)
		}
		for _, v := range values {
			if !strings.EqualFold(v, r.String()) {
				t.Fatalf("%q: %v, and the driver finds %q", uri, r, values)
			}
		}
	})
}
