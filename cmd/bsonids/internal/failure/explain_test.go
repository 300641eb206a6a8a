package failure

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
		want string // part of the sentence
		not  string
	}{
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { update: "c", lsid: { id: UUID("…") } }`}, Denied, "lacks a privilege: not authorized", "lsid"},
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { update: "c", ordered: false, bypassDocumentValidation: true, lsid: { id: UUID("…") } }`}, Denied, "command update on app.c, which needs the action update and bypassDocumentValidation", "lsid"},
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { delete: "a \"b\" c", deletes: [ { q: { secret: 1 } } ] }`}, Denied, `delete on app.a \"b\" c, which needs the action remove`, "secret"},
		{mongo.CommandError{Code: 13, Message: `not authorized on admin to execute command { renameCollection: "app.c", to: "app.d", dropTarget: false }`}, Denied, "renameCollection on app.c, which needs the action renameCollectionSameDB on the database app", "dropTarget"},
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { aggregate: 1, pipeline: [ { $changeStream: {} } ], cursor: {} }`}, Denied, "aggregate on the database app, which needs the action changeStream and find on it", "pipeline"},
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { listCollections: 1, filter: { name: "secret" } }`}, Denied, "listCollections on the database app, which needs the action listCollections", "secret"},
		{mongo.CommandError{Code: 13, Message: `not authorized on app to execute command { fsync: 1 }`}, Denied, "command fsync on the database app", "action"},
		{mongo.CommandError{Code: 13, Message: `command find requires authentication`}, Denied, "command find requires authentication", "action"},
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
		{fmt.Errorf("--list: %w", errors.Join(errors.New("disk full"), errors.New("disk full"), errors.New("end"), errors.New("disk full"))), Failed, "--list: disk full end", "end disk"},
		{Usagef("--x %d", 1), Usage, "--x 1", ""},
	} {
		e := Explain(tt.err, uri)
		if e.Kind != tt.kind || !strings.Contains(e.Text, tt.want) || tt.not != "" && strings.Contains(e.Text, tt.not) || strings.Contains(e.Text, "\n") {
			t.Errorf("%v: kind %d, %q; want kind %d with %q and without %q", tt.err, e.Kind, e.Text, tt.kind, tt.want, tt.not)
		}
	}
}

// The codes are those of src/mongo/base/error_codes.yml of MongoDB.
func TestTransient(t *testing.T) {
	code := func(n int) error {
		return mongo.BulkWriteException{WriteErrors: []mongo.BulkWriteError{{WriteError: mongo.WriteError{Code: n}}}}
	}
	for _, tt := range []struct {
		name string
		err  error
		want bool
	}{
		{"nothing", nil, false},
		{"NotWritablePrimary", mongo.CommandError{Code: 10107}, true},
		{"PrimarySteppedDown, of a document", code(189), true},
		{"ShutdownInProgress", mongo.CommandError{Code: 91}, true},
		{"network", mongo.CommandError{Labels: []string{"NetworkError"}}, true},
		{"deadline", fmt.Errorf("a batch: %w", context.DeadlineExceeded), true},
		{"WriteConflict", code(112), true},
		{"CursorNotFound", mongo.CommandError{Code: 43}, true},
		{"IngressRequestRateLimitExceeded", mongo.CommandError{Code: 462}, true},
		{"overload", mongo.CommandError{Code: 1, Labels: []string{"SystemOverloadedError"}}, true},
		{"interrupt", context.Canceled, false},
		{"interrupt and network", errors.Join(context.Canceled, mongo.CommandError{Labels: []string{"NetworkError"}}), false},
		{"Unauthorized", mongo.CommandError{Code: 13}, false},
		{"OutOfDiskSpace", code(14031), false},
		{"UserWritesBlocked", code(371), false},
		{"DuplicateKey", code(11000), false},
		{"usage", Usagef("wrong"), false},
		{"explained", &Error{Kind: Unreachable}, true},
		{"a collection that is held", fmt.Errorf("a: %w", &Error{Kind: Held}), true},
		{"other", errors.New("other"), false},
	} {
		if got := Transient(tt.err); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}
