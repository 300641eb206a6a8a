// Package terminal writes text for users. Names and values from a database are data, and must not
// control the terminal.
package terminal

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Writer writes results. It replaces characters that are not [Visible]. It keeps the first error,
// because a truncated result is not valid.
type Writer struct {
	w   io.Writer
	err error
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Write writes b. After an error, it returns the same error again.
func (p *Writer) Write(b []byte) (int, error) {
	if p.err != nil {
		return 0, p.err
	}
	if _, p.err = p.w.Write(bytes.Map(Visible, b)); p.err != nil {
		return 0, p.err
	}
	return len(b), nil
}

// Err returns the first error of Write.
func (p *Writer) Err() error { return p.err }

// Visible returns r, or U+FFFD if r may control a terminal or reorder text: control and format
// characters, including the bidirectional ones, and line and paragraph separators. It keeps line
// feeds, tabs, and the joiners that some scripts need.
func Visible(r rune) rune {
	const zeroWidthNonJoiner, zeroWidthJoiner = 0x200c, 0x200d
	switch {
	case r == '\n' || r == '\t' || r == zeroWidthNonJoiner || r == zeroWidthJoiner:
		return r
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
		return unicode.ReplacementChar
	}
	return r
}

// Line returns text on one line, for a message.
func Line(text string) string { return strings.Map(Visible, strings.ReplaceAll(text, "\n", " ")) }

// Cell returns a name from the data on one line and without tabs, for a table cell or a progress
// bar.
func Cell(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return unicode.ReplacementChar
		}
		return Visible(r)
	}, name)
}

// Count returns a number of things, whose name is that of one.
func Count(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Is reports whether w is a terminal.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
