package clientopt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/bsonids/bsonids/bsoncodec"
	"github.com/bsonids/bsonids/uuidrep"
)

// texts returns the text of err and of all errors that it wraps, in every verb that a log may use.
func texts(err error) string {
	if err == nil {
		return ""
	}
	s := fmt.Sprintf("%v\n%+v\n%q\n%#v\n", err, err, err, err)
	switch u := err.(type) {
	case interface{ Unwrap() error }:
		s += texts(u.Unwrap())
	case interface{ Unwrap() []error }:
		for _, e := range u.Unwrap() {
			s += texts(e)
		}
	}
	return s
}

// noNetwork is a dialer that fails at once.
type noNetwork struct{}

func (noNetwork) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errors.New("no network in this test")
}

// connectError returns the error of Connect with uri, without a network.
func connectError(uri string) error {
	client, err := Connect(uri, WithClientOptions(options.Client().SetDialer(noNetwork{})))
	if err == nil {
		_ = client.Disconnect(context.Background())
	}
	return err
}

// allErrors returns the errors of every other function of this package that takes uri.
func allErrors(uri string) []error {
	_, errRepresentation := Representation(uri)
	_, errApply := ApplyURI(uri)
	_, errBuilder := ApplyURI(uri, WithRegistryBuilder(func(b *bsoncodec.RegistryBuilder) { b.AlsoDecode(uuidrep.Unspecified) }))
	_, errNested := ApplyURI("mongodb://localhost/?uuidRepresentation=standard",
		WithClientOptions(options.Client().ApplyURI(uri)))
	_, errSecond := ApplyURI("mongodb://localhost/?uuidRepresentation=standard",
		WithClientOptions(options.Client().ApplyURI("mongodb://other").ApplyURI(uri)))
	return []error{errRepresentation, errApply, errBuilder, errNested, errSecond}
}

// No error shows a secret of the connection string, wherever it stands in it.
func TestNoErrorShowsSecrets(t *testing.T) {
	t.Run("no DNS", func(t *testing.T) { refuseDNS(t); wantNoSecretsInErrors(t) })
	t.Run("DNS", func(t *testing.T) { serveDNS(t, "a.b.elsewhere.test", ""); wantNoSecretsInErrors(t) })
}

func wantNoSecretsInErrors(t *testing.T) {
	const secret = "Hush4you"
	for _, uri := range []string{
		// Without the @, the driver shows the password: as a port, as an address, or as an escape.
		"mongodb://user:Hush4you/host",
		"mongodb://user:Hush4you",
		"mongodb://user:Hush4you/?uuidRepresentation=standard",
		"mongodb://us:er:Hush4you/host",
		"mongodb://user:Hush4you%/host",
		"mongodb://[user:Hush4you/host",
		"mongodb+srv://user:Hush4you/host.example.com",
		"mongodb+srv://user:27017Hush4you/host.example.com",
		// The password has characters that end it too early.
		"mongodb://user:a@Hush4you@host/",
		"mongodb://user:a@h:Hush4you/b@host/",
		"mongodb://user:a@h/Hush4you%@host/",
		"mongodb://user:a@h/?Hush4you%=1@host/",
		"mongodb://user:a@h/?x=Hush4you%@host/",
		"mongodb://user:a@h/?maxPoolSize=Hush4you@host/",
		"mongodb://user:a@h/?uuidRepresentation=Hush4you@host/",
		"mongodb://user:a@h/?readPreference=%48ush4you@host/",
		"mongodb://user:a?connectTimeoutMS=%48ush4you?w=1",
		"mongodb://h/?connectTimeoutMS=a&maxPoolSize=%48ush4you?w=1",
		"mongodb://h/?w=1?connectTimeoutMS=%48ush4you",
		"mongodb://user:a@h/?tls=true&tlsCAFile=Hush4you@host/",
		"mongodb+srv://user:a@Hush4you/b@host.example.com/",
		"mongodb://user:Hush4you:x@host/",
		"mongodb://user:Hush4you/x@host/",
		"mongodb://user:Hush4you%zz@host/",
		"mongodb://Hush4you%zz:x@host/",
		"mongodb://Hush4you/x:x@host/",
		// The password is valid and something else is not.
		"mongodb://user:Hush4you@host/?uuidRepresentation=bogus",
		"mongodb://user:Hush4you@host/?maxPoolSize=x",
		"mongodb://user:Hush4you@/?maxPoolSize=1",
		"mongodb://user:Hush4you@host/?authMechanism=MONGODB-X509&tls=true",
		"mongodb://user:Hush4you@host/?authMechanism=MONGODB-OIDC",
		"mongodb://user:Hush4you@host/?authMechanism=GSSAPI",
		"mongodb://user:Hush4you%07@host/?authMechanism=SCRAM-SHA-256",
		"mongodb+srv://user:Hush4you@host.example.com/",
		"mongodb://user:pw@host/?tlsCAFile=/nowhere/ca.pem&x=Hush4you@",
		// Options that hold secrets.
		"mongodb://u:p@h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:Hush4you,x:y",
		"mongodb://u:p@h/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:Hush4you%",
		"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:test,Hush4you:y",
		"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=AWS_SESSION_TOKEN:a,Hush4you:b",
		"mongodb://h/?tls=true&tlsCertificateKeyFile=/nowhere/x.pem&tlsCertificateKeyFilePassword=Hush4you",
		"mongodb://h/?tls=true&sslClientCertificateKeyPassword=Hush4you%",
		"mongodb://h/?tlsCertificateKeyFilePassword=a;Hush4you&b",
		"mongodb://h/?tlsCertificateKeyFilePassword=a&Hush4you%=b",
		"mongodb://h/?proxyPassword=Hush4you%&proxyHost=x",
		// Options that hold secrets, joined by a wrong separator to an option whose value an error
		// shows.
		"mongodb://h/?uuidRepresentation=standard?authMechanismProperties=AWS_SESSION_TOKEN:Hush4you",
		"mongodb://h/?uuidRepresentation=standard%26authMechanismProperties=AWS_SESSION_TOKEN:Hush4you",
		"mongodb://h/?uuidRepresentation=standard,authMechanismProperties=AWS_SESSION_TOKEN:a,Hush4you:b",
		"mongodb://h/?uuidRepresentation=standardauthMechanismProperties=AWS_SESSION_TOKEN:Hush4you",
		"mongodb://h/?uuidRepresentation=standard?AWS_SESSION_TOKEN:Hush4you",
		"mongodb://h/?tls=true?tlsCertificateKeyFilePassword=Hush4you",
		"mongodb://h/?tls=true%26tlsCertificateKeyFilePassword%3DHush4you",
		"mongodb://h/?tls=true%2526tlsCertificateKeyFilePassword%253D%2548ush4you",
		"mongodb://h/?tls=true,tlsCertificateKeyFilePassword=Hush4you",
		"mongodb://h/?tls=trueproxyPassword=Hush4you",
		"mongodb://h/?connect=DIRECT,proxyPassword=Hush4you",
		"mongodb://h/?readPreference=primary?proxyPassword=Hush4you",
		"mongodb://h/?tls=true&tlsCAFile=/nowhere?proxyPassword=Hush4you",
		"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:azur?AWS_SESSION_TOKEN:Hush4you",
		"mongodb+srv://nowhere.invalid&tlsCertificateKeyFilePassword=Hush4you",
	} {
		failed := false
		for i, err := range append(allErrors(uri), connectError(uri)) {
			failed = failed || err != nil
			if strings.Contains(strings.ToLower(texts(err)), strings.ToLower(secret)) {
				t.Errorf("%s: error %d shows the secret: %s", uri, i, err)
			}
		}
		if !failed {
			t.Errorf("%s: no error at all, so the row shows nothing", uri)
		}
	}
}

// TestDriverShowsSecrets tests that the errors of the driver show the secrets of the table above,
// so that the table is not useless.
func TestDriverShowsSecrets(t *testing.T) {
	for _, uri := range []string{
		"mongodb://user:Hush4you/host",
		"mongodb://us:er:Hush4you/host",
		"mongodb://user:a@h/Hush4you%@host/",
		"mongodb://user:a@h/?maxPoolSize=Hush4you@host/",
		"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:test,Hush4you:b",
	} {
		if err := options.Client().ApplyURI(uri).Validate(); err == nil || !strings.Contains(err.Error(), "Hush4you") {
			t.Errorf("%s: the driver says %v", uri, err)
		}
	}
}

// No error shows a secret of the client options.
func TestSecretsOfClientOptions(t *testing.T) {
	auth := options.Credential{
		AuthMechanism:           "MONGODB-OIDC",
		AuthMechanismProperties: map[string]string{"Hush4you": "x"},
		OIDCMachineCallback:     func(context.Context, *options.OIDCArgs) (*options.OIDCCredential, error) { return nil, nil },
	}
	_, err := ApplyURI("mongodb://h", WithClientOptions(options.Client().SetAuth(auth)))
	if err == nil || strings.Contains(texts(err), "Hush4you") || !strings.Contains(err.Error(), `property "[redacted]" is not valid`) {
		t.Error(err)
	}

	// SASLprep names the character that it refuses. It refuses a BEL. If the password has a
	// right-to-left letter, it may refuse any character that is not one (RFC 3454, section 6). The
	// error names the character of the NFKC form of the password.
	for _, password := range []string{"a\abc", "a\u00adb\u0001", "\u05d0Zq", "\u05d07", "\u05d0\uff3a", "\u05d0\U0001d400"} {
		auth = options.Credential{AuthMechanism: "SCRAM-SHA-256", Username: "u", Password: password}
		for _, c := range []struct {
			uri  string
			opts []*options.ClientOptions
		}{
			{"mongodb://h", []*options.ClientOptions{options.Client().SetAuth(auth)}},
			{"mongodb://u:" + url.PathEscape(password) + "@h/?authMechanism=SCRAM-SHA-256", nil},
		} {
			_, err := Connect(c.uri, WithClientOptions(c.opts...))
			if err == nil || !strings.Contains(err.Error(), "SASLprepping") || regexp.MustCompile(`\\u[0-9a-f]{4}`).MatchString(texts(err)) {
				t.Errorf("%q: %v", c.uri, err)
			}
		}
	}
}

// TestDriverErrorsStay tests that the parts of an error that are not secret stay, and that its
// chain stays.
func TestDriverErrorsStay(t *testing.T) {
	lookups := refuseDNS(t)
	missing := filepath.Join(t.TempDir(), "ca.pem")
	for _, c := range []struct{ uri, want string }{
		{"mongodb://u:p@h/?maxPoolSize=x", `invalid value for "maxPoolSize": "x"`},
		{"mongodb://u:p@h/?readPreference=bogus", "unknown read preference bogus"},
		{"mongodb://h/?minPoolSize=5&maxPoolSize=3", "minPoolSize=5 maxPoolSize=3"},
		{"mongodb://h/?heartbeatFrequencyMS=1", "500ms"},
		{"mongodb:///?w=1", "must have at least 1 host"},
		{"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=ENVIRONMENT:azur", `azur "ENVIRONMENT" is not supported`},
		{"mongodb://h/?authMechanism=MONGODB-OIDC&authMechanismProperties=TOKEN_RESOURCE:x,FOO:y,ENVIRONMENT:k8s", `property "FOO" is not valid`},
		{"mongodb://h/?tls=true&tlsCAFile=" + missing, missing},
		{"mongodb+srv://cluster.example.com/", "cluster.example.com"},
		{"mongodb+srv://a.example.com,b.example.com/", "one and only one hostname"},
	} {
		driverErr := options.Client().ApplyURI(c.uri).Validate()
		_, err := ApplyURI(c.uri)
		if err == nil || err.Error() != "clientopt: "+driverErr.Error() || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, the driver: %v", c.uri, err, driverErr)
		}
	}

	_, err := ApplyURI("mongodb://h,i/?loadBalanced=true")
	if !errors.Is(err, connstring.ErrLoadBalancedWithMultipleHosts) {
		t.Error(err)
	}
	var pathErr *fs.PathError
	if _, err := ApplyURI("mongodb://h/?tls=true&tlsCAFile=" + missing); !errors.As(err, &pathErr) || pathErr.Path != missing {
		t.Error(err)
	}
	var dnsErr *net.DNSError
	if _, err := ApplyURI("mongodb+srv://cluster.example.com/"); !errors.As(err, &dnsErr) {
		t.Error(err)
	}
	if lookups.Load() == 0 {
		t.Error("the driver asked no DNS server")
	}
}

// An error whose text had a secret still answers to errors.Is, and gives no error that has it.
func TestRedactedError(t *testing.T) {
	// The password is in the path. The remaining error supports errors.Is, and errors.As returns no
	// *PathError.
	const file = "/?tls=true&tlsCAFile=/nowhere/nowhere.pem"
	for _, c := range []struct {
		uri  string
		opts []*options.ClientOptions
	}{
		{"mongodb://u:nowhere@h" + file, nil},
		{"mongodb://u:n%6Fwhere@h" + file, nil},
		{"mongodb://h" + file + "&tlsCertificateKeyFilePassword=nowhere", nil},
		{"mongodb://h" + file + "&proxyPassword=n%6Fwhere", nil},
		{"mongodb://h" + file, []*options.ClientOptions{options.Client().SetAuth(options.Credential{Password: "nowhere"})}},
		{"mongodb://h" + file, []*options.ClientOptions{options.Client().ApplyURI("mongodb://u:nowhere@h")}},
		{"mongodb://h" + file, []*options.ClientOptions{keyVault("mongodb://u:nowhere@h/?uuidRepresentation=bogus")}},
		{"mongodb://h" + file, []*options.ClientOptions{options.Client().SetAutoEncryptionOptions(options.AutoEncryption().
			SetKeyVaultClientOptions(options.Client().SetAuth(options.Credential{Password: "nowhere"})))}},
	} {
		_, err := ApplyURI(c.uri, WithClientOptions(c.opts...))
		if want := "clientopt: open /[redacted]/[redacted].pem: "; err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s…", c.uri, err, want)
		}
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: errors.Is does not reach the driver's error", c.uri)
		}
		if pathErr := new(fs.PathError); errors.As(err, &pathErr) {
			t.Errorf("%s: errors.As hands out %v", c.uri, pathErr)
		}
	}
}

// places are connection strings with a secret, one for each place that may hold one.
var places = []string{
	"mongodb://user:SECRET@host/?uuidRepresentation=standard",
	"mongodb://SECRET:password@host/?uuidRepresentation=standard",
	"mongodb://SECRET@host",
	"mongodb://user:SECRET/host",
	"mongodb://user:SECRET",
	"mongodb+srv://user:SECRET@host.example.com/",
	"mongodb+srv://user:SECRET/host.example.com",
	"mongodb://user:SECRET@host/?authMechanism=SCRAM-SHA-256",
	"mongodb://user:password@host/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:SECRET",
	"mongodb://host/?authMechanism=MONGODB-OIDC&authMechanismProperties=AWS_SESSION_TOKEN:SECRET",
	"mongodb://host/?tls=true&tlsCertificateKeyFilePassword=SECRET",
	"mongodb://host/?ssl=true&sslClientCertificateKeyPassword=SECRET",
	"mongodb://host/?proxyPassword=SECRET",
	"mongodb://host/?uuidRepresentation=standard?proxyPassword=SECRET",
	"mongodb://host/?tls=true%26tlsCertificateKeyFilePassword=SECRET",
	"mongodb://host/?maxPoolSize=1,authMechanismProperties=AWS_SESSION_TOKEN:SECRET",
	"mongodb://host/?readPreference=primarytlsCertificateKeyFilePassword=SECRET",
}

// faults are options that the driver, or this package, refuses.
var faults = []string{
	"", "x", "%", "maxPoolSize=x", "readPreference=bogus", "uuidRepresentation=bogus", "uuidRepresentation=standard",
	"loadBalanced=true&replicaSet=r", "minPoolSize=2&maxPoolSize=1", "authMechanism=GSSAPI", "authMechanism=PLAIN", "=", "a@b=%zz",
}

// FuzzRedaction puts a secret into a connection string, as it is or percent-encoded, and reads
// every error.
func FuzzRedaction(f *testing.F) {
	for place := range places {
		for _, s := range [][2]string{
			{"", ""}, {"p@", "x"}, {"a/", "@"}, {"%", "%"}, {"27017,", ":"}, {"h/?maxPoolSize=", ""}, {"x@h/?maxPoolSize=", ""},
			{"x@h/?%zz", "=1"}, {",", ":x"}, {"\"", "\n"}, {"[", "]"}, {"a:b:", "\x00"}, {"\xff", "\u00ad"},
		} {
			f.Add(uint8(place), uint8(place), s[0], s[1], false)
			f.Add(uint8(place), uint8(place+3), s[0], s[1], true)
		}
	}
	refuseDNS(f)
	const mark = "Hush4you"
	hasOption := regexp.MustCompile(`[&;?][^=]*=`)
	f.Fuzz(func(t *testing.T, place, fault uint8, before, after string, encode bool) {
		secret := before + mark + after
		if encode {
			secret = url.QueryEscape(secret)
		}
		template := places[int(place)%len(places)]
		uri := strings.Replace(template, "SECRET", secret, 1)
		if f := faults[int(fault)%len(faults)]; f != "" {
			switch {
			case strings.Contains(uri, "/?"):
				uri += "&" + f
			case strings.HasSuffix(uri, "host"), strings.HasSuffix(uri, "com"):
				uri += "/?" + f
			default:
				uri += "?" + f
			}
		}
		if strings.Contains(strings.ToLower(before+after), "file") {
			t.Skip("the driver would read files")
		}
		switch {
		case encode:
		case strings.Count(uri, "@") < 2 && hasOption.MatchString(before):
			t.Skip("what follows is the value of an option, by any reading")
		case !strings.Contains(template, "@") && strings.Contains(before, "@"):
			t.Skip("what follows is a host, by any reading")
		}
		errs := allErrors(uri)
		if strings.Contains(template, "SCRAM") {
			// A successful Connect starts goroutines, which disturb the coverage of the fuzzer. So
			// call it only with the strings that it may refuse.
			errs = append(errs, connectError(uri))
		}
		for i, err := range errs {
			if strings.Contains(texts(err), mark) {
				t.Errorf("%q: error %d shows the secret: %s", uri, i, err)
			}
			if strings.Contains(texts(err), `rune: '\u`) {
				t.Errorf("%q: error %d shows a character of the password: %s", uri, i, err)
			}
		}
	})
}
