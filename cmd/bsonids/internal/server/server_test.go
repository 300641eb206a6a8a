package server

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bsonids/bsonids/cmd/bsonids/internal/failure"
)

func TestHost(t *testing.T) {
	for uri, want := range map[string]string{
		"mongodb://localhost:27017":               "localhost:27017",
		"mongodb://u:p@a:1,b:2/db?x=y":            "a:1,b:2",
		"mongodb+srv://u:p%40@cluster.example/":   "cluster.example",
		"mongodb://u:p@with@at@host/?replicaSet=": "host",
	} {
		if got := Host(uri); got != want {
			t.Errorf("%s: got %s, want %s", uri, got, want)
		}
	}
}

func TestConnectRefuses(t *testing.T) {
	for _, uri := range []string{"", "nonsense", "http://u:secret@h", "mongodb://u:secret@", "mongodb://u:secret@h/?uuidRepresentation=x", "mongodb://u:secret@h/?w=0"} {
		_, err := Connect(t.Context(), uri, Write)
		var e *failure.Error
		if !errors.As(err, &e) || e.Kind != failure.Usage || strings.Contains(e.Text, "secret") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// A name that DNS does not know, or cannot resolve temporarily, is not a usage error, after which a
// script should give up. With mongodb://, it is an unreachable server, too.
func TestUnknownName(t *testing.T) {
	for _, scheme := range []string{"mongodb", "mongodb+srv"} {
		_, err := Connect(t.Context(), scheme+"://u:secret@nowhere.invalid/?serverSelectionTimeoutMS=200", Read)
		var e *failure.Error
		if !errors.As(err, &e) || e.Kind != failure.Unreachable || strings.Contains(e.Text, "secret") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// The credentials of a connection string are not in any output, whether the connection string is
// valid or not.
func TestNoCredentials(t *testing.T) {
	for _, uri := range []string{
		"mongodb://u:sec-ret-1@127.0.0.1:1/?tlsCertificateKeyFilePassword=a@sec-ret-2&tls=true",
		"mongodb://u:sec-ret-1@127.0.0.1:1/?authMechanism=MONGODB-AWS&authMechanismProperties=AWS_SESSION_TOKEN:a@sec-ret-2",
		"mongodb://u:sec-ret-1@127.0.0.1:1/?proxyHost=p&proxyPassword=a@sec-ret-2",
		"mongodb://u:sec-ret-1@127.0.0.1:1/?proxyPassword=sec-ret-2%zz\"x",
		"mongodb://u:sec-ret-1%zz@127.0.0.1:1/",
		"mongodb://u:sec-ret-1%et@127.0.0.1:1/",
		"mongodb://u:sec-ret-1/x@127.0.0.1:1/",
		"mongodb://u:sec-ret-1?x@127.0.0.1:1/",
		"mongodb://u:sec-ret-1@x@127.0.0.1:1/?appName=a@b",
		"mongodb://h:sec-ret-1",
		"mongodb://u:sec-ret-1@h:x/?appName=a@b",
		"mongodb://u:sec-ret-1@127.0.0.1:1/?tlsCertificateKeyFile=/nowhere&tlsCertificateKeyFilePassword=sec-ret-2&appName=a@b",
		"mongodb+srv://u:sec-ret-1@nowhere.invalid/?authMechanismProperties=AWS_SESSION_TOKEN:sec-ret-2",
	} {
		if got := Host(uri); strings.Contains(got, "ret-") && uri != "mongodb://h:sec-ret-1" {
			t.Errorf("%s: host %s", uri, got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := Connect(ctx, uri, Read)
		cancel()
		if err == nil || strings.Contains(err.Error(), "ret-") || strings.Contains(err.Error(), "%et") {
			t.Errorf("%s: %v", uri, err)
		}
		e := failure.Explain(errors.New(`it said "sec-ret-1" and a@sec-ret-2`), uri)
		if strings.Contains(uri, "@127.0.0.1:1/") && strings.Contains(uri, "sec-ret-2") && !strings.Contains(uri, "%zz") && strings.Contains(e.Text, "sec-ret") {
			t.Errorf("%s: %v", uri, e)
		}
	}
}
