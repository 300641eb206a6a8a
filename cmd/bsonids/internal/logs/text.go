package logs

import (
	"context"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// textHandler writes lines of text. Unlike [slog.TextHandler], it does not quote the message, so that
// a user can copy a command in it.
type textHandler struct {
	w     io.Writer
	level slog.Level
}

func (h *textHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= h.level }

// Handle writes a line with one call of Write. The caller serializes the calls.
func (h *textHandler) Handle(_ context.Context, r slog.Record) error {
	b := r.Time.AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00")
	b = append(append(append(b, ' '), r.Level.String()...), ' ')
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == collectionKey {
			b = append(append(b, a.Value.String()...), ": "...)
		}
		return false
	})
	b = append(b, r.Message...)
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == collectionKey {
			return true
		}
		s := a.Value.String()
		if s == "" || strings.ContainsAny(s, " =\"") {
			s = strconv.Quote(s)
		}
		b = append(append(append(append(b, ' '), a.Key...), '='), s...)
		return true
	})
	_, err := h.w.Write(append(b, '\n'))
	return err
}
