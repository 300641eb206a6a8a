package clientopt

import (
	"strings"
	"testing"
)

// An option of a connection string that is spelled almost as uuidRepresentation is an error that says so; the
// driver ignores it.
func TestNearMisses(t *testing.T) {
	refuseDNS(t)
	for _, c := range []struct{ options, want string }{
		{"?uuid_representation=standard", `option 1, "uuid_representation", is not known: did you mean uuidRepresentation?`},
		{"?w=1&uuidRepresentaton=standard", `option 2, "uuidRepresentaton", is not known`},
		{"?uuid-representation=standard", `"uuid-representation"`},
		{"?UUID_REPRESENTATION=standard", `"UUID_REPRESENTATION"`},
		{"?uidRepresentation=standard", "did you mean"},
		{"?uuidRepresentations=standard", "did you mean"},
		{"?uuidRepesentation=standard", "did you mean"},
		{"?uuidReprezentation=standard", "did you mean"},
		{"?representation=standard", "did you mean"},
		{"?guidRepresentation=standard", "did you mean"},
		{"?+uuidRepresentation=standard", `" uuidRepresentation"`},
		{"?uuidRepresentation%20=standard", `"uuidRepresentation "`},
		{"?uuidRepresentation[]=standard", "did you mean"},
		{"??uuidRepresentation=standard", `"?uuidRepresentation"`},
		{"?%26uuidRepresentation=standard", `"&uuidRepresentation"`},
		{"?xuuidRepresentation=standard", "did you mean"},
		{"?uuidRep=standard", "option 1 is not known and has uuid or guid in its name"},
		{"?uuid=standard", "has uuid"},
		{"?guids=CSharpLegacy", "guid"},
		{"?javaUuidRepresentationSetting=standard", "uuid"},
		{"?uuidRepresentation=standard&uuid_representation=standard", "option 2"},

		{"?u_u_i_d_R_e_p_r_e_sentation=standard", "did you mean"},
		{"?epresentation=standard", "did you mean"}, // five letters are missing
		{"?uuidRepresentation" + strings.Repeat("_", 18) + "=standard", "uuidRepresentation___"},
		{"?uuidRepresentation" + strings.Repeat("_", 19) + "=standard", "option 1 is not known and has uuid"},

		{"?w=1?uuidRepresentation=standard", "the value of option 1 has uuidRepresentation= in it"},
		{"?w=1,uuidRepresentation=standard", "the value of option 1"},
		{"?w=1%26uuidRepresentation=standard", "the value of option 1"},
		{"?retryWrites=true&w=1UUIDREPRESENTATION=standard", "the value of option 2"},
		{"?uuidRepresentation=standard?uuidRepresentation=standard", "the value of option 1"},
		{"uuidRepresentation=standard", "not among the options"},
		{"db&uuidRepresentation=standard", "not among the options"},
	} {
		for _, uri := range []string{"mongodb://h/", "mongodb+srv://u:p@h.example.com/"} {
			_, err := Representation(uri + c.options)
			if err == nil || !strings.HasPrefix(err.Error(), "clientopt: ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %s", uri+c.options, err, c.want)
			}
			if _, err := ApplyURI(uri + c.options); err == nil {
				t.Errorf("ApplyURI takes %s", uri+c.options)
			}
		}
	}
	for _, uri := range []string{"mongodb://h,uuidRepresentation=standard/", "mongodb://h&uuidRepresentation=standard"} {
		if _, err := ApplyURI(uri); err == nil || !strings.Contains(err.Error(), "not among the options") {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// TestKnownOptions tests that the options of the "MongoDB URI Options" specification, older options of
// the drivers, and names that differ by six letters are not near misses.
func TestKnownOptions(t *testing.T) {
	for _, name := range strings.Fields(`
		appName authMechanism authMechanismProperties authSource compressors connect connectTimeoutMS directConnection
		enableOverloadRetargeting fsync gssapiServiceName heartbeatFrequencyMS heartbeatIntervalMS j journal
		jaasLoginContextName loadBalanced localThresholdMS maxAdaptiveRetries maxConnecting maxIdleTimeMS maxPoolSize
		maxStaleness maxStalenessSeconds minPoolSize proxyHost proxyPassword proxyPort proxyUsername readConcernLevel
		readPreference readPreferenceTags replicaSet retryReads retryWrites safe secondaryAcceptableLatencyMS
		serverMonitoringMode serverSelectionTimeoutMS serverSelectionTryOnce socketTimeoutMS srvMaxHosts srvServiceName ssl
		sslCertificateAuthorityFile sslClientCertificateKeyFile sslClientCertificateKeyPassword sslInsecure
		sslInvalidHostNameAllowed timeoutMS tls tlsAllowInvalidCertificates tlsAllowInvalidHostnames tlsCAFile
		tlsCertificateFile tlsCertificateKeyFile tlsCertificateKeyFilePassword tlsDisableCertificateRevocationCheck
		tlsDisableOCSPEndpointCheck tlsInsecure tlsPrivateKeyFile unknown w waitQueueMultiple waitQueueTimeoutMS wtimeoutMS
		zlibCompressionLevel zstdCompressionLevel
		presentation representationzz representationaa`) {
		if err := checkNearMiss(name); err != nil {
			t.Errorf("%s%v", name, err)
		}
	}
}

// distance is the Levenshtein distance.
func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "ac", 1}, {"ac", "abc", 1},
		{"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance of %q and %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
