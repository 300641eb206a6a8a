// Package server connects to a deployment, and says in one sentence what went wrong with it.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/readpref"
	"go.mongodb.org/mongo-driver/v2/mongo/writeconcern"

	"github.com/bsonids/bsonids/clientopt"
)

// selectionTimeout is how long a command waits for a server where the connection string doesn't say: a program that
// somebody watches should not be silent for the driver's 30 seconds.
const selectionTimeout = 10 * time.Second

// Mode says what a client is for.
type Mode int

const (
	// Read follows the connection string's read preference.
	Read Mode = iota
	// Write reads from the primary, and waits for a majority to write where the connection string names no write
	// concern: an update that a failover rolled back would be reported as done.
	Write
)

// Connect returns a client of uri that has reached its server. The error is a *Error without the connection string's
// credentials.
func Connect(ctx context.Context, uri string, mode Mode) (*mongo.Client, error) {
	if uri == "" {
		return nil, &Error{Kind: Usage, Text: "no server: give --uri, or set MONGODB_URI"}
	}
	hide := secretsOf(uri)
	opts, err := clientopt.ApplyURI(uri)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "clientopt: ")
		if e := (*net.DNSError)(nil); errors.As(err, &e) { // where mongodb+srv has its servers
			return nil, &Error{Kind: Unreachable, Text: "the server cannot be reached: " + hide.from(text), err: err}
		}
		return nil, &Error{Kind: Usage, Text: "the connection string cannot be used: " + hide.from(text)}
	}
	if opts.AppName == nil {
		opts.SetAppName("bsonids")
	}
	if opts.ServerSelectionTimeout == nil {
		opts.SetServerSelectionTimeout(selectionTimeout)
	}
	if mode == Write {
		opts.SetReadPreference(readpref.Primary())
		if opts.WriteConcern == nil {
			opts.SetWriteConcern(writeconcern.Majority())
		} else if opts.WriteConcern.W == nil { // journal alone: the server's default of w may be 1
			opts.SetWriteConcern(&writeconcern.WriteConcern{W: writeconcern.WCMajority, Journal: opts.WriteConcern.Journal})
		}
		if !opts.WriteConcern.Acknowledged() {
			return nil, &Error{Kind: Usage, Text: "the connection string has w=0: writes that the server doesn't acknowledge cannot be counted"}
		}
	}
	client, err := mongo.Connect(opts)
	if err == nil {
		if err = client.Ping(ctx, nil); err != nil {
			_ = client.Disconnect(context.WithoutCancel(ctx))
		}
	}
	if err != nil {
		return nil, Explain(err, uri)
	}
	return client, nil
}

// Kind says whose an error is.
type Kind int

const (
	// Failed is everything that is none of the others.
	Failed Kind = iota
	// Usage is a mistake in what the user gave.
	Usage
	// Unreachable is a server that didn't answer, or was lost on the way.
	Unreachable
	// Denied is a server that refused: wrong credentials or a missing privilege.
	Denied
	// Interrupted is the user's own doing.
	Interrupted
)

// Error is one sentence for the user. It shows no credentials.
type Error struct {
	Kind Kind
	Text string
	err  error
}

func (e *Error) Error() string { return e.Text }

// Unwrap gives the error behind the sentence, whose own text may show more.
func (e *Error) Unwrap() error { return e.err }

// lost are the error codes of a server that is shutting down, is not the primary any more or took too long, and of a router
// that didn't reach one or not the right one, by MongoDB's src/mongo/base/error_codes.yml.
var lost = []int{
	6, 7, 50, 63, 70, 82, 83, 89, 91, 133, 150, 189, 202, 249, 262, 317, 384, 407, 9001, 10058, 10107, 11600, 11602, 13388, 13435, 13436, 91331,
}

// refuses are further codes that say nothing of a single document: missing privileges and expired credentials, an operation
// that was killed, locks, conflicts and overload, no room on the disk, a quota, writes that are blocked.
var refuses = []int{13, 18, 24, 46, 112, 117, 237, 246, 279, 290, 355, 358, 363, 365, 371, 391, 402, 433, 449, 450, 453, 462, 8000, 11601, 14031, 46841, 10045600}

// Concerns reports whether a write error with the code concerns the server, and not the one document that was to be written.
func Concerns(code int) bool { return slices.Contains(lost, code) || slices.Contains(refuses, code) }

// Explain makes a sentence of err, which may come from the driver. The credentials in uri are taken out of it.
func Explain(err error, uri string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	text := secretsOf(uri).from(oneLine(err.Error()))
	if errors.Is(err, context.Canceled) {
		return &Error{Kind: Interrupted, Text: "interrupted", err: err}
	}
	var se mongo.ServerError
	if errors.As(err, &se) {
		switch {
		case se.HasErrorCode(18), se.HasErrorCode(11), // AuthenticationFailed, UserNotFound
			se.HasErrorCode(8000) && strings.Contains(text, "bad auth"): // AtlasError, which may be a quota too
			return &Error{Kind: Denied, Text: "the server refused the credentials: " + text, err: err}
		case se.HasErrorCode(13): // Unauthorized; the message goes on with the whole command
			text, _, _ = strings.Cut(text, "{")
			return &Error{Kind: Denied, Text: "the user lacks a privilege: " + strings.TrimSpace(text), err: err}
		case se.HasErrorCode(8000) && strings.Contains(text, "not allowed to do action"):
			return &Error{Kind: Denied, Text: "the user lacks a privilege: " + text, err: err}
		}
		if slices.ContainsFunc(lost, se.HasErrorCode) {
			return &Error{Kind: Unreachable, Text: "the server was lost: " + text, err: err}
		}
	}
	switch {
	case strings.Contains(text, "auth error"), strings.Contains(text, "sasl conversation"), strings.Contains(text, "AuthenticationFailed"),
		strings.Contains(text, "unable to authenticate"):
		return &Error{Kind: Denied, Text: "the server refused the credentials: " + lastError(text), err: err}
	case mongo.IsNetworkError(err), mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded),
		strings.Contains(text, "server selection error"), errors.Is(err, mongo.ErrClientDisconnected):
		return &Error{Kind: Unreachable, Text: "the server cannot be reached: " + lastError(text), err: err}
	}
	return &Error{Kind: Failed, Text: text, err: err}
}

// lastError takes the reason out of the driver's description of a topology.
func lastError(text string) string {
	const mark = "Last error: "
	i := strings.LastIndex(text, mark)
	if i < 0 {
		return text
	}
	reason := text[i+len(mark):]
	if end := strings.Index(reason, " }"); end >= 0 {
		reason = reason[:end]
	}
	return reason
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// secrets are the texts of a connection string that nothing may show.
type secrets []string

func secretsOf(uri string) secrets {
	_, rest, found := strings.Cut(uri, "://")
	if !found {
		return secrets{uri}
	}
	s := secrets{uri}
	add := func(secret string, unescape func(string) (string, error)) {
		s = append(s, secret)
		if plain, err := unescape(secret); err == nil {
			s = append(s, plain)
		}
	}
	// Options may have an @ too, and what cannot be used may have anything: wherever one stands, credentials may end.
	for i, c := range rest {
		switch c {
		case '@':
			s = append(s, rest[:i])
			if _, password, ok := strings.Cut(rest[:i], ":"); ok {
				add(password, url.PathUnescape)
			}
		case '?':
			for _, option := range strings.Split(rest[i+1:], "&") {
				name, value, _ := strings.Cut(option, "=")
				name = strings.ToLower(name)
				if strings.HasSuffix(name, "password") || name == "authmechanismproperties" {
					add(value, url.QueryUnescape)
				}
				if _, token, ok := strings.Cut(value, "AWS_SESSION_TOKEN:"); ok {
					token, _, _ = strings.Cut(token, ",")
					add(token, url.QueryUnescape)
				}
			}
		}
	}
	// A secret may be part of another one.
	slices.SortStableFunc(s, func(a, b string) int { return len(b) - len(a) })
	return s
}

func (s secrets) from(text string) string {
	for _, secret := range s {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "[redacted]")
		}
	}
	return text
}

// Hide takes out of text what the arguments of a command line hold of connection strings, wherever they stand: other tools
// take them without a flag.
func Hide(text string, args []string) string {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			text = secretsOf(arg).from(text)
		}
	}
	return text
}

// Host names the deployment for people, without credentials.
func Host(uri string) string {
	_, rest, _ := strings.Cut(uri, "://")
	if _, hosts, ok := strings.Cut(rest, "@"); ok {
		rest = hosts
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// Usagef is an error of what the user gave.
func Usagef(format string, args ...any) *Error {
	return &Error{Kind: Usage, Text: fmt.Sprintf(format, args...)}
}
