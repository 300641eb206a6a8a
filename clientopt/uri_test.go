package clientopt

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// Representation reads the option as the specification of connection strings says: in any letter case,
// percent-encoded.
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
		{"mongodb://h/uuidRepresentation", unspecified}, // the name of a database
		{"mongodb://uuidRepresentation=standard@h/", unspecified},
		{"mongodb://h/?appName=uuidRepresentation%3Dstandard", unspecified},
		{"mongodb://h/?appName=uuidRepresentation&x=uuid", unspecified},

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
		{"mongodb://h/?maxPoolSize=not-a-number&uuidRepresentation=standard", standard}, // this function does not check it

		{"mongodb://a:1,b:2,[::1]:27017/db?uuidRepresentation=standard", standard},
		{"mongodb://%2Ftmp%2Fmongodb-27017.sock/?uuidRepresentation=standard", standard},
		{"mongodb://u:p%40%2F%3F%3A@h/db%3F?uuidRepresentation=standard", standard},
		{"mongodb://u:p?uuidRepresentation=javaLegacy@h/?uuidRepresentation=standard", standard},
		{"mongodb://u:p@h/?appName=a@b&uuidRepresentation=standard", standard},
		{"mongodb://u:p@h/db@x?uuidRepresentation=standard", standard},
		{"mongodb://h/?uuidRepresentation=standard&appName=a?b=c", standard},

		{"mongodb://a:65535,b:1/?uuidRepresentation=standard", standard},

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
		// The driver must accept every string of this table and find the same values.
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

// A representation that is not known, two different ones, and a connection string that the driver refuses are
// errors.
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
		{"mongodb://?uuidRepresentation=standard", "a / between the hosts and the ?"},
		{"mongodb://u:p@q@h/?uuidRepresentation=standard", "has an @"},
		{"mongodb://u:p/q@h/", "the password has a slash: write it as %2F"},
		{"mongodb://u/q:p@h/", "the user name has a slash"},
		{"mongodb://h/?appName=a@b", "an @ elsewhere as %40"}, // there is no user name, but the first @ ends one
		{"mongodb://h:27017/?appName=a@b", "an @ elsewhere as %40"},
		{"mongodb://u:p:q@h/", "the password has a colon"},
		{"mongodb://u:p%q@h/", "percent-encoding of the password"},
		{"mongodb://u%:p@h/", "percent-encoding of the user name"},
		{"mongodb://h%/", "host 1 of 1 has percent-encoding"},
		{"mongodb://h,user:secret/", "host 2 of 2 has a port that is not a number from 1 to 65535; a user name"},
		{"mongodb://a:b:c/", "is not host or host:port"},
		{"mongodb://[::1/", "is not host or host:port"},
		{"mongodb://h:0/", "port"},
		{"mongodb://h:65536/", "port"},
		{"mongodb://h/d%b?", "database"},
		{"mongodb://h/?uuidRepresentation", "option 1 does not have the form"},
		{"mongodb://h/?w=1&=standard", "option 2 does not have the form"},
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

// wantAsTheDriver compares parse with the driver's own parser, without DNS.
func wantAsTheDriver(t *testing.T, uri string) {
	t.Helper()
	plain := uri
	if rest, ok := strings.CutPrefix(uri, "mongodb+srv://"); ok {
		plain = "mongodb://" + rest
	}
	ours, err := parse(uri)
	theirs, driverErr := connstring.Parse(plain)

	if driverErr == nil {
		if err != nil && strings.Contains(err.Error(), "uuidRepresentation") {
			return // a near miss, which the driver does not check
		}
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
		// The form is valid, and an option is not or the hosts are missing. These errors of the
		// driver quote whole values only.
		for _, form := range []string{"invalid host", "invalid option", "invalid database", "invalid username",
			"invalid password", "unescaped", "scheme must be", "must have a"} {
			if strings.Contains(driverErr.Error(), form) && !strings.Contains(driverErr.Error(), "must have at least 1") {
				t.Fatalf("%q: parse takes it, the driver says %v", uri, driverErr)
			}
		}
		return
	}
	// Both refuse it. The driver checks single options last, so parse must not refuse the form.
	for _, value := range []string{"invalid value", "conflict", "auth source", "auth mechanism"} {
		if strings.Contains(driverErr.Error(), value) && !strings.Contains(err.Error(), "option") {
			t.Fatalf("%q: the driver comes as far as %v, parse says %v", uri, driverErr, err)
		}
	}
}

// FuzzRepresentation compares Representation with the driver's parser: both must accept the same
// strings and find the same options.
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
		"mongodb://h/?uuid_representation=standard", "mongodb://h/?w=1?uuidRepresentation=standard",
		"mongodb://h?x=y", "mongodb://a@b@c/", "mongodb://", "mongodb:///", "",
	} {
		f.Add(uri)
	}
	refuseDNS(f)
	f.Fuzz(func(t *testing.T, uri string) {
		wantAsTheDriver(t, uri)
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

// TestUserPassword tests what the package documentation says: the standard library encodes user
// names and passwords so that the driver decodes them.
func TestUserPassword(t *testing.T) {
	var every strings.Builder
	for c := rune(1); c < 0x180; c++ {
		every.WriteRune(c)
	}
	for _, password := range []string{"plain", "a b:c@d/e?f+g%h&i;j=k#l[m]n,o", every.String(), "\xff\x00"} {
		user := "n" + password
		opts, err := ApplyURI("mongodb://" + url.UserPassword(user, password).String() + "@h/?uuidRepresentation=standard")
		if err != nil {
			t.Errorf("%q: %v", password, err)
			continue
		}
		if opts.Auth.Username != user || opts.Auth.Password != password {
			t.Errorf("%q arrives as %q and %q", password, opts.Auth.Username, opts.Auth.Password)
		}
	}
}

// TestValidatesTheWhole tests that validation sees the connection string together with the options,
// which may make it valid.
func TestValidatesTheWhole(t *testing.T) {
	const uri = "mongodb://h/?authMechanism=MONGODB-OIDC"
	if _, err := ApplyURI(uri); err == nil {
		t.Error("MONGODB-OIDC without a callback is valid")
	}
	auth := options.Credential{AuthMechanism: "MONGODB-OIDC", OIDCMachineCallback: func(context.Context, *options.OIDCArgs) (*options.OIDCCredential, error) {
		return nil, errors.New("none")
	}}
	if _, err := ApplyURI(uri, WithClientOptions(options.Client().SetAuth(auth))); err != nil {
		t.Error(err)
	}
	if _, err := ApplyURI("mongodb://h,i/", WithClientOptions(options.Client().SetDirect(true))); err == nil {
		t.Error("a direct connection to two hosts is valid")
	}
}

// The representation of an SRV connection string is read without a look-up, and the client has the options of
// its TXT record.
func TestSRV(t *testing.T) {
	lookups := serveDNS(t, "a.b.example.com", "authSource=other&replicaSet=rs0")
	const uri = "mongodb+srv://u:p@cluster.example.com/?uuidRepresentation=javaLegacy"
	if r, err := Representation(uri); r != uuidrep.JavaLegacy || err != nil || lookups.Load() != 0 {
		t.Errorf("%v, %v after %d DNS look-ups", r, err, lookups.Load())
	}
	opts, err := ApplyURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(opts.Hosts, []string{"a.b.example.com:27017"}) || opts.Auth.AuthSource != "other" || *opts.ReplicaSet != "rs0" {
		t.Errorf("%+v", opts)
	}
	rv, err := bsoncodec.MarshalValue(opts.Registry, testUUID)
	if err != nil {
		t.Fatal(err)
	}
	wantStored(t, rv, uuidrep.JavaLegacy)

	// A TXT record cannot have the option. The driver returns an error.
	serveDNS(t, "a.b.example.com", "uuidRepresentation=standard")
	if _, err := ApplyURI(uri); err == nil || !strings.Contains(err.Error(), "TXT record") {
		t.Error(err)
	}
}
