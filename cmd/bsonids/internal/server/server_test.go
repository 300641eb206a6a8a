package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

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
