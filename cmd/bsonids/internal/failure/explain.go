package failure

import (
	"context"
	"errors"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/bsonids/bsonids/internal/redact"
)

// Explain describes err, which may come from the driver, in one sentence. It removes the
// credentials in uri.
func Explain(err error, uri string) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	text := redact.ConnectionString(uri).Text(oneLine(err.Error()))
	if errors.Is(err, context.Canceled) {
		return &Error{Kind: Interrupted, Text: "interrupted", Err: err}
	}
	var se mongo.ServerError
	if errors.As(err, &se) {
		switch {
		case Means(err, Unauthenticated),
			Means(err, Atlas) && strings.Contains(text, "bad auth"): // AtlasError, which may also be a quota
			return &Error{Kind: Denied, Text: "the server refused the credentials: " + text, Err: err}
		case Means(err, Unauthorized): // the rest of the message is the whole command
			text, _, _ = strings.Cut(text, "{")
			return &Error{Kind: Denied, Text: "the user lacks a privilege: " + strings.TrimSpace(text), Err: err}
		case Means(err, Atlas) && strings.Contains(text, "not allowed to do action"):
			return &Error{Kind: Denied, Text: "the user lacks a privilege: " + text, Err: err}
		}
		if Means(err, Lost) {
			return &Error{Kind: Unreachable, Text: "the server was lost: " + text, Err: err}
		}
	}
	switch {
	case strings.Contains(text, "auth error"), strings.Contains(text, "sasl conversation"), strings.Contains(text, "AuthenticationFailed"),
		strings.Contains(text, "unable to authenticate"):
		return &Error{Kind: Denied, Text: "the server refused the credentials: " + lastError(text), Err: err}
	case mongo.IsNetworkError(err), poolCleared(err), mongo.IsTimeout(err), errors.Is(err, context.DeadlineExceeded),
		strings.Contains(text, "server selection error"), errors.Is(err, mongo.ErrClientDisconnected):
		return &Error{Kind: Unreachable, Text: "the server cannot be reached: " + lastError(text), Err: err}
	}
	return &Error{Kind: Failed, Text: text, Err: err}
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
