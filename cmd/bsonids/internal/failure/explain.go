package failure

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/internal/redact"
)

// IsDenied reports whether the user lacks a privilege.
func IsDenied(err error) bool { return err != nil && Explain(err, "").Kind == Denied }

// Explain describes err, which may come from the driver, in one sentence. It removes the
// credentials in uri.
func Explain(err error, uri string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	text := redact.ConnectionString(uri).Text(oneLine(err.Error()))
	says := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
	}
	switch {
	case errors.Is(err, context.Canceled):
		return &Error{Kind: Interrupted, Text: "interrupted", Err: err}
	case Means(err, Unauthorized):
		return &Error{Kind: Denied, Text: "the user lacks a privilege: " + refused(text), Err: err}
	case Means(err, Atlas) && says("not allowed to do action"): // AtlasError, which may also be a quota
		return &Error{Kind: Denied, Text: "the user lacks a privilege: " + text, Err: err}
	case Means(err, Unauthenticated), Means(err, Atlas) && says("bad auth"),
		says("auth error", "sasl conversation", "AuthenticationFailed", "unable to authenticate"):
		return &Error{Kind: Denied, Text: "the server refused the credentials: " + lastError(text), Err: err}
	case Means(err, Lost):
		return &Error{Kind: Unreachable, Text: "the server was lost: " + text, Err: err}
	case mongo.IsNetworkError(err), poolCleared(err), mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded),
		says("server selection error"), errors.Is(err, mongo.ErrClientDisconnected):
		return &Error{Kind: Unreachable, Text: "the server cannot be reached: " + lastError(text), Err: err}
	}
	return &Error{Kind: Failed, Text: text, Err: err}
}

// again has the labels of errors of a server that is overloaded, or of a transaction that may succeed later.
var again = []string{"SystemOverloadedError", "TransientTransactionError", "UnknownTransactionCommitResult"}

// Transient reports whether an operation that ended with err may succeed if it is tried again: the
// server was lost, has no primary, or is overloaded, or another operation holds a collection. An interrupt by the user is not transient.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, mongo.ErrClientDisconnected) {
		return false
	}
	if e := Explain(err, ""); e.Kind == Unreachable || errors.As(err, new(*Error)) {
		return e.Kind == Unreachable || e.Kind == Held
	}
	var se mongo.ServerError
	return Means(err, Busy) || errors.As(err, &se) && slices.ContainsFunc(again, se.HasErrorLabel)
}

// Hide removes from text what the arguments of a command line contain of connection strings. It
// checks all arguments, because other tools take a connection string without a flag.
func Hide(text string, args []string) string {
	for _, arg := range args {
		if strings.Contains(arg, "://") {
			text = redact.ConnectionString(arg).Text(text)
		}
	}
	return text
}

// poolCleared reports whether the driver sent nothing, because another operation had lost its
// connection to the same server.
func poolCleared(err error) bool {
	var pool interface{ Retryable() bool } // driver.RetryablePoolError
	return errors.As(err, &pool) && pool.Retryable()
}

// lastError extracts the reason from the description of a topology by the driver.
func lastError(text string) string {
	const mark = "Last error: "
	if i := strings.LastIndex(text, mark); i >= 0 {
		text, _, _ = strings.Cut(text[i+len(mark):], " }")
	}
	return text
}

// oneLine joins the lines of s. It leaves out a line that an earlier one ends with: errors that were
// joined may have the same cause.
func oneLine(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		line = strings.Join(strings.Fields(line), " ")
		if line != "" && !slices.ContainsFunc(lines, func(earlier string) bool { return strings.HasSuffix(earlier, line) }) {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
