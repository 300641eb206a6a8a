package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
)

func TestExplain(t *testing.T) {
	const uri = "mongodb://user:p%40ss%2Fword@db.example:27017,other:1/app?tlsCertificateKeyFilePassword=k3y"
	for _, tt := range []struct {
		err  error
		kind Kind
		want string // in the sentence
		not  string
	}{
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { update: "c", lsid: { id: UUID("…") } }`}, Denied, "lacks a privilege: not authorized", "lsid"},
		{mongo.CommandError{Code: 18, Message: "Authentication failed."}, Denied, "credentials", ""},
		{mongo.CommandError{Code: 8000, Name: "AtlasError", Message: "bad auth : Authentication failed."}, Denied, "refused the credentials", ""},
		{mongo.CommandError{Code: 8000, Name: "AtlasError", Message: "user is not allowed to do action [update] on [app.c]"}, Denied, "lacks a privilege", "credentials"},
		{mongo.CommandError{Code: 8000, Name: "AtlasError", Message: "you are over your space quota, using 513 MB of 512 MB"}, Failed, "over your space quota", "credentials"},
		{errors.New("connection() error occurred during connection handshake: auth error: sasl conversation error: bad p@ss/word"), Denied, "[redacted]", "p@ss/word"},
		{errors.New("server selection error: server selection timeout, current topology: { Type: Unknown, Servers: [{ Addr: db.example:27017, Type: Unknown, Last error: dial tcp: lookup db.example: no such host }, ] }"),
			Unreachable, "cannot be reached: dial tcp: lookup db.example: no such host", "topology"},
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), Unreachable, "cannot be reached", ""},
		{mongo.CommandError{Labels: []string{"NetworkError"}, Message: "connection reset"}, Unreachable, "connection reset", ""},
		{mongo.CommandError{Code: 11600, Message: "interrupted at shutdown"}, Unreachable, "interrupted at shutdown", ""},
		{fmt.Errorf("x: %w", context.Canceled), Interrupted, "interrupted", ""},
		{errors.New("several\nlines of k3y and " + uri), Failed, "several lines of", "k3y"},
		{Usagef("--x %d", 1), Usage, "--x 1", ""},
	} {
		e := Explain(tt.err, uri)
		if e.Kind != tt.kind || !strings.Contains(e.Text, tt.want) || tt.not != "" && strings.Contains(e.Text, tt.not) || strings.Contains(e.Text, "\n") {
			t.Errorf("%v: kind %d, %q; want kind %d with %q and without %q", tt.err, e.Kind, e.Text, tt.kind, tt.want, tt.not)
		}
	}
}

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
		var e *Error
		if !errors.As(err, &e) || e.Kind != Usage || strings.Contains(e.Text, "secret") {
			t.Errorf("%q: %v", uri, err)
		}
	}
}

// A name that the DNS doesn't know, or doesn't tell for now, is no mistake of the command line that a script should give up
// at: with mongodb:// it is a server that cannot be reached, too.
func TestUnknownName(t *testing.T) {
	for _, scheme := range []string{"mongodb", "mongodb+srv"} {
		_, err := Connect(t.Context(), scheme+"://u:secret@nowhere.invalid/?serverSelectionTimeoutMS=200", Read)
		var e *Error
		if !errors.As(err, &e) || e.Kind != Unreachable || strings.Contains(e.Text, "secret") {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}

// The credentials of a connection string are in nothing that is printed, whether it can be used or not.
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
		e := Explain(errors.New(`it said "sec-ret-1" and a@sec-ret-2`), uri)
		if strings.Contains(uri, "@127.0.0.1:1/") && strings.Contains(uri, "sec-ret-2") && !strings.Contains(uri, "%zz") && strings.Contains(e.Text, "sec-ret") {
			t.Errorf("%s: %v", uri, e)
		}
	}
}
